/* The machine's clocks, asked some twenty times a page (see `node/clock.py`). */
#include "native.h"

#include <time.h>

static PyObject *milliseconds(clockid_t clock) {
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    return PyLong_FromLongLong((long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

static PyObject *wall_ms(PyObject *self, PyObject *nothing) {
    return milliseconds(CLOCK_REALTIME);
}

static PyObject *steady_ms(PyObject *self, PyObject *nothing) {
    return milliseconds(CLOCK_BOOTTIME);
}

PyMethodDef nephila_clock_methods[] = {
    {"wall_ms", wall_ms, METH_NOARGS, "UTC milliseconds."},
    {"steady_ms", steady_ms, METH_NOARGS, "Milliseconds since the machine booted."},
    {NULL, NULL, 0, NULL},
};
