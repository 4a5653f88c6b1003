/* Admission's inner loops (see `nephila.frontier.embedded.admission`): the links of a page are given their keys, and
 * those that the store knows are told from those that are new; `queueing.c` packs these. The twins in Python are in
 * `embedded/links.py`; what the bytes mean is told in `embedded/queueing.py`.
 */
#include "candidates.h"

/* The key of a host: remembered, or found by calling. A borrowed reference that the cache holds. */
static PyObject *host_key(PyObject *cache, PyObject *find, PyObject *host) {
    PyObject *key = PyDict_GetItemWithError(cache, host);
    if (key == NULL && !PyErr_Occurred()) {
        PyObject *found = PyObject_CallOneArg(find, host);
        Py_XDECREF(found); /* it remembers what it finds */
        key = found == NULL ? NULL : PyDict_GetItemWithError(cache, host);
        if (found != NULL && key == NULL && !PyErr_Occurred())
            PyErr_SetString(PyExc_KeyError, "the key of a host was not remembered");
    }
    if (key != NULL && (!PyBytes_Check(key) || PyBytes_GET_SIZE(key) != HOST_KEY)) {
        PyErr_SetString(PyExc_TypeError, "the key of a host has twelve bytes");
        return NULL;
    }
    return key;
}

static PyObject *link_keys(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 4 || !PyDict_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "link_keys(candidates, host_keys, find_host_key, nearer)");
        return NULL;
    }
    PyObject *candidates = PySequence_Fast(arguments[0], "candidates must be a sequence");
    PyObject *hosts = candidates == NULL ? NULL : PyDict_New();
    PyObject *keyed = hosts == NULL ? NULL : PyDict_New();
    PyObject *last_host = NULL, *last_key = NULL, *result = NULL;
    for (Py_ssize_t at = 0; keyed != NULL && at < PySequence_Fast_GET_SIZE(candidates); at++) {
        PyObject *candidate = PySequence_Fast_GET_ITEM(candidates, at), *key = NULL, *known;
        Candidate read;
        if (read_candidate(candidate, &read) == 0) {
            if (read.host != last_host) {
                last_key = host_key(arguments[1], arguments[2], read.host);
                last_host = read.host;
                if (last_key != NULL && PyDict_SetItem(hosts, last_host, last_key) < 0)
                    last_key = NULL;
            }
            key = last_key == NULL ? NULL : PyBytes_FromStringAndSize(NULL, URL_KEY);
        }
        if (key == NULL) {
            Py_CLEAR(keyed);
            break;
        }
        char *bytes = PyBytes_AS_STRING(key);
        memcpy(bytes, PyBytes_AS_STRING(last_key), HOST_KEY);
        bytes[HOST_KEY] = URL_MARK;
        memcpy(bytes + HOST_KEY + 1, PyBytes_AS_STRING(read.fingerprint), 8);
        Py_ssize_t before = PyDict_GET_SIZE(keyed);
        known = PyDict_SetDefault(keyed, key, candidate);
        int failed = known == NULL;
        if (!failed && PyDict_GET_SIZE(keyed) == before) { /* a second link to the same URL */
            PyObject *better = PyObject_CallFunctionObjArgs(arguments[3], known, candidate, NULL);
            failed = better == NULL || PyDict_SetItem(keyed, key, better) < 0;
            Py_XDECREF(better);
        }
        Py_DECREF(key);
        if (failed)
            Py_CLEAR(keyed);
    }
    if (keyed != NULL)
        result = PyTuple_Pack(2, keyed, hosts);
    Py_XDECREF(keyed);
    Py_XDECREF(hosts);
    Py_XDECREF(candidates);
    return result;
}

static int same_kind(const Candidate *one, PyObject *kind) {
    PyObject *const fields[4] = {one->depth, one->level, one->hops, one->bonus};
    for (int at = 0; at < 4; at++) {
        PyObject *other = PyTuple_GET_ITEM(kind, at);
        int same = fields[at] == other ? 1 : PyObject_RichCompareBool(fields[at], other, Py_EQ);
        if (same <= 0)
            return same;
    }
    return 1;
}

/* Puts a new URL with the others of its host: new[host] = [urls by key, their kind or None]. */
static int add_new(PyObject *new, PyObject *key, PyObject *candidate, const Candidate *read) {
    PyObject *group = PyDict_GetItemWithError(new, read->host);
    if (group == NULL) {
        if (PyErr_Occurred())
            return -1;
        PyObject *urls = PyDict_New(), *kind = PyTuple_Pack(4, read->depth, read->level, read->hops, read->bonus);
        group = urls && kind ? PyList_New(2) : NULL;
        if (group == NULL) {
            Py_XDECREF(urls);
            Py_XDECREF(kind);
            return -1;
        }
        PyList_SET_ITEM(group, 0, urls);
        PyList_SET_ITEM(group, 1, kind);
        int failed = PyDict_SetItem(new, read->host, group) < 0 || PyDict_SetItem(urls, key, candidate) < 0;
        Py_DECREF(group);
        return failed ? -1 : 0;
    }
    PyObject *kind = PyList_GET_ITEM(group, 1);
    if (kind != Py_None) {
        int same = same_kind(read, kind);
        if (same < 0 || (same == 0 && PyList_SetItem(group, 1, Py_NewRef(Py_None)) < 0))
            return -1;
    }
    return PyDict_SetItem(PyList_GET_ITEM(group, 0), key, candidate);
}

/* The rank that a known URL has after a link; -1 with an exception. `known` is a table of entries by rank, or None. */
static long risen(PyObject *known, unsigned char rank, PyObject *spelling, uint32_t salt) {
    if (known == Py_None)
        return rank;
    if (rank >= PyTuple_GET_SIZE(known)) {
        PyErr_SetString(PyExc_ValueError, "there is no such rank");
        return -1;
    }
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(spelling, &length);
    long long entry = text == NULL ? -1 : PyLong_AsLongLong(PyTuple_GET_ITEM(known, rank));
    if (text == NULL || (entry == -1 && PyErr_Occurred()))
        return -1;
    return (long)((entry + xxh32((const unsigned char *)text, (size_t)length, salt)) >> 32);
}

/* What a second meeting with a URL brings: nothing, a byte in `writes`, or a case for `again`. */
static int meet_again(PyObject *candidate, const Candidate *read, PyObject *key, PyObject *raw, PyObject *known,
                      uint32_t salt, int later_cycle, PyObject *writes, PyObject *again) {
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(raw);
    Py_ssize_t size = PyBytes_GET_SIZE(raw), rank_at = bytes[0] == QUEUED ? PLACE_END : RANK_AT;
    int special = 0;
    long level = read->level == Py_None ? -1 : PyLong_AsLong(read->level);
    if (level == -1 && PyErr_Occurred())
        return -1;
    if (bytes[0] == PARKED) {
        if (level != IMMEDIATE)
            return 0;
        special = 1;
    } else if (size <= rank_at) {
        PyErr_SetString(PyExc_ValueError, "what lies under the key of a URL is too short");
        return -1;
    }
    if (!special) {
        long raised = risen(known, bytes[rank_at], read->key, salt);
        if (raised < 0)
            return -1;
        if (bytes[0] == QUEUED) {
            long depth = PyLong_AsLong(read->depth);
            if (depth == -1 && PyErr_Occurred())
                return -1;
            special = raised / RANKS_PER_MOVE != bytes[rank_at] / RANKS_PER_MOVE || level >= 0 ||
                      depth < bytes[DEPTH_AT];
        } else {
            special = bytes[STATE_AT] == STATE_QUEUED || level == IMMEDIATE || later_cycle;
        }
        if (!special) {
            if (raised == bytes[rank_at])
                return 0;
            PyObject *changed = PyBytes_FromStringAndSize((const char *)bytes, size);
            if (changed == NULL)
                return -1;
            PyBytes_AS_STRING(changed)[rank_at] = (char)raised;
            PyObject *write = PyTuple_Pack(2, key, changed);
            Py_DECREF(changed);
            int failed = write == NULL || PyList_Append(writes, write) < 0;
            Py_XDECREF(write);
            return failed ? -1 : 0;
        }
    }
    PyObject *case_ = PyTuple_Pack(3, key, raw, candidate);
    int failed = case_ == NULL || PyList_Append(again, case_) < 0;
    Py_XDECREF(case_);
    return failed ? -1 : 0;
}

static PyObject *sort_links(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    Py_buffer source = {0};
    if (count != 8 || !PyDict_Check(arguments[0]) || !PyList_Check(arguments[1]) || !PyList_Check(arguments[7]) ||
        (arguments[3] != Py_None && !PyTuple_Check(arguments[3])) ||
        (arguments[4] != Py_None && !PyTuple_Check(arguments[4]))) {
        PyErr_SetString(PyExc_TypeError, "sort_links(keyed, found, source, inside, abroad, salt, later_cycle, writes)");
        return NULL;
    }
    uint32_t salt = (uint32_t)PyLong_AsUnsignedLongMask(arguments[5]);
    int later_cycle = PyObject_IsTrue(arguments[6]);
    if (PyErr_Occurred() || PyObject_GetBuffer(arguments[2], &source, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *new = PyDict_New(), *again = PyList_New(0), *key, *candidate, *result = NULL;
    Py_ssize_t position = 0, next = 0;
    int failed = new == NULL || again == NULL;
    while (!failed && PyDict_Next(arguments[0], &position, &key, &candidate)) {
        Candidate read;
        PyObject *raw = NULL;
        if (read_candidate(candidate, &read) < 0 || !PyBytes_Check(key)) {
            failed = 1;
            break;
        }
        if (next < PyList_GET_SIZE(arguments[1])) {
            PyObject *pair = PyList_GET_ITEM(arguments[1], next);
            if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2 || !PyBytes_Check(PyTuple_GET_ITEM(pair, 0)) ||
                !PyBytes_Check(PyTuple_GET_ITEM(pair, 1)) || PyBytes_GET_SIZE(PyTuple_GET_ITEM(pair, 1)) < 1) {
                PyErr_SetString(PyExc_TypeError, "what was found must be pairs of bytes");
                failed = 1;
                break;
            }
            PyObject *found = PyTuple_GET_ITEM(pair, 0);
            if (found == key || (PyBytes_GET_SIZE(found) == PyBytes_GET_SIZE(key) &&
                                 memcmp(PyBytes_AS_STRING(found), PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)) == 0)) {
                raw = PyTuple_GET_ITEM(pair, 1);
                next++;
            }
        }
        if (raw == NULL) {
            failed = add_new(new, key, candidate, &read) < 0;
        } else {
            int is_inside = source.len >= DOMAIN_KEY && memcmp(source.buf, PyBytes_AS_STRING(key), DOMAIN_KEY) == 0;
            failed = meet_again(candidate, &read, key, raw, arguments[is_inside ? 3 : 4], salt, later_cycle,
                                arguments[7], again) < 0;
        }
    }
    if (!failed && next != PyList_GET_SIZE(arguments[1])) {
        PyErr_SetString(PyExc_ValueError, "what was found is not in the order of the keys");
        failed = 1;
    }
    if (!failed)
        result = PyTuple_Pack(2, new, again);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "keys must be bytes");
    PyBuffer_Release(&source);
    Py_XDECREF(new);
    Py_XDECREF(again);
    return result;
}

static PyObject *xxh32_of(PyObject *self, PyObject *arguments) {
    Py_buffer text;
    unsigned long seed;
    if (!PyArg_ParseTuple(arguments, "y*k", &text, &seed))
        return NULL;
    uint32_t hash = xxh32(text.buf, (size_t)text.len, (uint32_t)seed);
    PyBuffer_Release(&text);
    return PyLong_FromUnsignedLong(hash);
}

PyMethodDef nephila_frontier_methods[] = {
    {"link_keys", (PyCFunction)(void (*)(void))link_keys, METH_FASTCALL,
     "The candidates of a page by the keys of their URLs, and the keys of their hosts."},
    {"sort_links", (PyCFunction)(void (*)(void))sort_links, METH_FASTCALL,
     "New URLs by host, and the known ones that need a closer look."},
    {"xxh32", xxh32_of, METH_VARARGS, "XXH32 of bytes under a seed, for the tests."},
    {NULL, NULL, 0, NULL},
};
