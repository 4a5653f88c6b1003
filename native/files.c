/* How large a file is, asked for every page (see `node/directory.py`).
 *
 * The lock of the interpreter is kept: what is asked for lies in the kernel's memory, which takes a microsecond, and to
 * let go of the lock is to wait for whoever takes it.
 */
#include "native.h"

#include <errno.h>
#include <sys/stat.h>

static PyObject *file_size(PyObject *self, PyObject *name) {
    struct stat found;
    if (!PyBytes_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "the name of a file was expected, as bytes");
        return NULL;
    }
    if (stat(PyBytes_AS_STRING(name), &found) == 0)
        return PyLong_FromLongLong((long long)found.st_size);
    return errno == ENOENT ? PyLong_FromLong(0) : PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, name);
}

PyMethodDef nephila_files_methods[] = {
    {"file_size", file_size, METH_O, "Bytes of a file; 0 where there is none."},
    {NULL, NULL, 0, NULL},
};
