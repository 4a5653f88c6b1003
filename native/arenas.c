/* How many arenas the C library keeps memory in (see `node/memory.py`). */
#include "native.h"

#include <malloc.h>

static PyObject *share_arenas(PyObject *self, PyObject *count) {
    long wanted = PyLong_AsLong(count);
    if (wanted == -1 && PyErr_Occurred())
        return NULL;
    if (wanted < 1 || wanted > 1024) {
        PyErr_SetString(PyExc_ValueError, "1 to 1024 arenas were expected");
        return NULL;
    }
#ifdef M_ARENA_MAX
    return PyBool_FromLong(mallopt(M_ARENA_MAX, (int)wanted));
#else
    Py_RETURN_FALSE; /* another library than glibc, which has none */
#endif
}

PyMethodDef nephila_arenas_methods[] = {
    {"share_arenas", share_arenas, METH_O, "Let all threads share so many arenas of memory; whether that was done."},
    {NULL, NULL, 0, NULL},
};
