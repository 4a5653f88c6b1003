/* Which sockets have something new to read, asked between any two answers (see `fetch/arrivals.py`).
 *
 * The lock of the interpreter is kept: nothing is waited for, and to let go of the lock is to wait for whoever takes it.
 */
#include "native.h"

#include <errno.h>
#include <stddef.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { MOST_AT_ONCE = 256 };

/* The bytes that have come in a socket so far; -1 where the kernel does not count them. */
static long long count_of(int number) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    const socklen_t needed = offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received;
    if (getsockopt(number, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || size < needed)
        return -1;
    return (long long)info.tcpi_bytes_received;
}

static PyObject *received(PyObject *self, PyObject *given) {
    long number = PyLong_AsLong(given);
    if (number == -1 && PyErr_Occurred())
        return NULL;
    return PyLong_FromLongLong(count_of((int)number));
}

static PyObject *readable(PyObject *self, PyObject *watched) {
    struct epoll_event found[MOST_AT_ONCE];
    long set = PyLong_AsLong(watched);
    if (set == -1 && PyErr_Occurred())
        return NULL;
    int count = epoll_wait((int)set, found, MOST_AT_ONCE, 0);
    if (count < 0 && errno != EINTR)
        return PyErr_SetFromErrno(PyExc_OSError);
    if (count < 0)
        count = 0;
    PyObject *figures = PyList_New(2 * (Py_ssize_t)count);
    if (figures == NULL)
        return NULL;
    for (int at = 0; at < count; at++) {
        PyObject *number = PyLong_FromLong(found[at].data.fd), *bytes = PyLong_FromLongLong(count_of(found[at].data.fd));
        if (number == NULL || bytes == NULL) {
            Py_XDECREF(number);
            Py_XDECREF(bytes);
            Py_DECREF(figures);
            return NULL;
        }
        PyList_SET_ITEM(figures, 2 * at, number);
        PyList_SET_ITEM(figures, 2 * at + 1, bytes);
    }
    return figures;
}

PyMethodDef nephila_sockets_methods[] = {
    {"readable", readable, METH_O, "The sockets with something new of an epoll set: number, bytes so far, and so on."},
    {"received", received, METH_O, "The bytes that have come in a socket so far; -1 where they are not counted."},
    {NULL, NULL, 0, NULL},
};
