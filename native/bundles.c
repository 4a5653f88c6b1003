/* Bundles of queued URLs, taken apart (see `nephila.frontier.embedded.bundle`, which tells their bytes): for every URL
 * that is leased, when it ends, and when it moves in its queue. The twins in Python are in `embedded/unpacking.py`.
 */
#include "native.h"

enum {
    HOST_KEY = 12,
    URL_MARK = 1, /* what stands between host and fingerprint in the key of a URL */
    FINGERPRINT = 16,
    AFTER_TAIL = FINGERPRINT + 2,
    HEAD = 9, /* without the key of the page that the URLs were found on; its last byte is the length of that */
    CYCLE_AT = 4,
    RANK_AT = 6,
    HOPS_AT = 7,
};

typedef struct {
    const unsigned char *bytes;
    Py_ssize_t size, start; /* of the entries */
} Bundle;

static int read_bundle(PyObject *value, Bundle *bundle) {
    *bundle = (Bundle){(const unsigned char *)PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value), 0};
    bundle->start = bundle->size < HEAD ? bundle->size + 1 : HEAD + bundle->bytes[HEAD - 1];
    if (bundle->start <= bundle->size)
        return 0;
    PyErr_SetString(PyExc_ValueError, "a bundle is damaged");
    return -1;
}

/* Where the entry begins that ends at `end`; -1 with an exception. */
static Py_ssize_t entry_before(const Bundle *bundle, Py_ssize_t end) {
    Py_ssize_t from = -1;
    if (end <= bundle->size && end >= bundle->start + AFTER_TAIL)
        from = end - AFTER_TAIL - (bundle->bytes[end - 2] << 8 | bundle->bytes[end - 1]);
    if (from >= bundle->start)
        return from;
    PyErr_SetString(PyExc_ValueError, "a bundle is damaged");
    return -1;
}

/* Where the entry of a URL ends, by the whole of its fingerprint or the first half; 0 where it is not in there, -1 with
 * an exception. `from` is set to where it begins. */
static Py_ssize_t find_entry(const Bundle *bundle, PyObject *fingerprint, Py_ssize_t *from) {
    for (Py_ssize_t end = bundle->size; end > bundle->start; end = *from) {
        if ((*from = entry_before(bundle, end)) < 0)
            return -1;
        if (memcmp(bundle->bytes + end - AFTER_TAIL, PyBytes_AS_STRING(fingerprint),
                   (size_t)PyBytes_GET_SIZE(fingerprint)) == 0)
            return end;
    }
    return 0;
}

/* The bundle without the entry between `from` and `end`; None when that was its last one. */
static PyObject *without(const Bundle *bundle, Py_ssize_t from, Py_ssize_t end) {
    if (bundle->size - (end - from) == bundle->start)
        return Py_NewRef(Py_None);
    PyObject *rest = PyBytes_FromStringAndSize(NULL, bundle->size - (end - from));
    if (rest != NULL) {
        memcpy(PyBytes_AS_STRING(rest), bundle->bytes, (size_t)from);
        memcpy(PyBytes_AS_STRING(rest) + from, bundle->bytes + end, (size_t)(bundle->size - end));
    }
    return rest;
}

static PyObject *tail_of(const Bundle *bundle, Py_ssize_t from, Py_ssize_t end) {
    return PyUnicode_DecodeUTF8((const char *)bundle->bytes + from, end - AFTER_TAIL - from, NULL);
}

/* The key of the page that the URLs were found on: of one on the same host only the fingerprint is kept. */
static PyObject *via_of(const Bundle *bundle, PyObject *host_key) {
    Py_ssize_t length = bundle->start - HEAD;
    if (length == 0 || length >= HOST_KEY)
        return PyBytes_FromStringAndSize((const char *)bundle->bytes + HEAD, length);
    PyObject *via = PyBytes_FromStringAndSize(NULL, HOST_KEY + 1 + length);
    if (via != NULL) {
        char *put = PyBytes_AS_STRING(via);
        memcpy(put, PyBytes_AS_STRING(host_key), HOST_KEY);
        put[HOST_KEY] = URL_MARK;
        memcpy(put + HOST_KEY + 1, bundle->bytes + HEAD, (size_t)length);
    }
    return via;
}

static unsigned int admitted_in(const Bundle *bundle) {
    const unsigned char *at = bundle->bytes;
    return (unsigned int)at[0] << 24 | (unsigned int)at[1] << 16 | (unsigned int)at[2] << 8 | at[3];
}

static int cycle_in(const Bundle *bundle) {
    return bundle->bytes[CYCLE_AT] << 8 | bundle->bytes[CYCLE_AT + 1];
}

static int is_host_key(PyObject *object) {
    return PyBytes_Check(object) && PyBytes_GET_SIZE(object) == HOST_KEY;
}

/* A bundle of its own for one entry, with the head of the one it was in but for the rank. */
static PyObject *alone(const Bundle *bundle, Py_ssize_t from, Py_ssize_t end, unsigned char rank) {
    PyObject *value = PyBytes_FromStringAndSize(NULL, bundle->start + end - from);
    if (value != NULL) {
        unsigned char *put = (unsigned char *)PyBytes_AS_STRING(value);
        memcpy(put, bundle->bytes, (size_t)bundle->start);
        put[RANK_AT] = rank;
        memcpy(put + bundle->start, bundle->bytes + from, (size_t)(end - from));
    }
    return value;
}

static PyObject *split_off(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    Bundle bundle;
    Py_ssize_t from, end;
    long rank = count == 3 ? PyLong_AsLong(arguments[2]) : -1;
    if (PyErr_Occurred())
        return NULL;
    if (count != 3 || !PyBytes_Check(arguments[0]) || !PyBytes_Check(arguments[1]) ||
        PyBytes_GET_SIZE(arguments[1]) > FINGERPRINT || rank < 0 || rank > 255) {
        PyErr_SetString(PyExc_TypeError, "split_off(bundle, fingerprint, rank)");
        return NULL;
    }
    if (read_bundle(arguments[0], &bundle) < 0 || (end = find_entry(&bundle, arguments[1], &from)) < 0)
        return NULL;
    if (end == 0)
        Py_RETURN_NONE;
    /* "N" takes over what was made, and gives it up where one of the others could not be */
    return Py_BuildValue("(NNIN)", alone(&bundle, from, end, (unsigned char)rank),
                         PyBytes_FromStringAndSize((const char *)bundle.bytes + from, end - AFTER_TAIL - from),
                         admitted_in(&bundle), without(&bundle, from, end));
}

static PyObject *take_url(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    Bundle bundle;
    Py_ssize_t from, end;
    if (count != 3 || !PyBytes_Check(arguments[0]) || !PyBytes_Check(arguments[1]) ||
        PyBytes_GET_SIZE(arguments[1]) > FINGERPRINT || !is_host_key(arguments[2])) {
        PyErr_SetString(PyExc_TypeError, "take_url(bundle, fingerprint, host_key)");
        return NULL;
    }
    if (read_bundle(arguments[0], &bundle) < 0 || (end = find_entry(&bundle, arguments[1], &from)) < 0)
        return NULL;
    if (end == 0)
        Py_RETURN_NONE;
    return Py_BuildValue("(NIiiNN)", tail_of(&bundle, from, end), admitted_in(&bundle), cycle_in(&bundle),
                         (int)bundle.bytes[HOPS_AT], via_of(&bundle, arguments[2]), without(&bundle, from, end));
}

static PyObject *next_url(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    Bundle bundle;
    if (count != 3 || !PyBytes_Check(arguments[0]) || !PyLong_Check(arguments[1]) || !is_host_key(arguments[2])) {
        PyErr_SetString(PyExc_TypeError, "next_url(bundle, end, host_key)");
        return NULL;
    }
    Py_ssize_t end = PyLong_AsSsize_t(arguments[1]), from;
    if ((end == -1 && PyErr_Occurred()) || read_bundle(arguments[0], &bundle) < 0)
        return NULL;
    if (end == bundle.start)
        Py_RETURN_NONE;
    if ((from = entry_before(&bundle, end)) < 0)
        return NULL;
    return Py_BuildValue("(nNNiiN)", from, tail_of(&bundle, from, end),
                         PyBytes_FromStringAndSize((const char *)bundle.bytes + end - AFTER_TAIL, FINGERPRINT),
                         cycle_in(&bundle), (int)bundle.bytes[HOPS_AT], via_of(&bundle, arguments[2]));
}

PyMethodDef nephila_bundles_methods[] = {
    {"split_off", (PyCFunction)(void (*)(void))split_off, METH_FASTCALL,
     "A URL of a bundle in one of its own, and what is left without it; None where it is not in there."},
    {"take_url", (PyCFunction)(void (*)(void))take_url, METH_FASTCALL,
     "What a bundle knows of a URL, and what is left without it; None where it is not in there."},
    {"next_url", (PyCFunction)(void (*)(void))next_url, METH_FASTCALL,
     "The URL whose entry ends at a place of a bundle, and where that begins; None where the head ends there."},
    {NULL, NULL, 0, NULL},
};
