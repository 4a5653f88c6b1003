/* Admission's inner loops (see `nephila.frontier.embedded.admission`): the links of a page are given their keys, and
 * those that the store knows are told from those that are new; `queueing.c` packs these. The twins in Python are in
 * `embedded/links.py`; what the bytes mean is told in `embedded/queueing.py`.
 *
 * Candidates that come packed (packed.c) are read as they lie: nouns are made of those that are new, or need a closer
 * look. Most links of a page are neither.
 */
#include "candidates.h"
#include "packed.h"

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

/* The key of a URL as numbers, so that they can be sorted fast, and where it stands in the page. */
typedef struct {
    uint64_t domain, fingerprint; /* the first eight bytes of the host's key, and of the fingerprint */
    uint32_t host, at;            /* the rest of the host's key */
} Sortable;

static Sortable sortable(PyObject *key, uint32_t at) {
    Sortable made = {.at = at};
    const char *bytes = PyBytes_AS_STRING(key);
    memcpy(&made.domain, bytes, 8);
    memcpy(&made.host, bytes + 8, 4);
    memcpy(&made.fingerprint, bytes + HOST_KEY + 1, 8);
    made.domain = __builtin_bswap64(made.domain);
    made.host = __builtin_bswap32(made.host);
    made.fingerprint = __builtin_bswap64(made.fingerprint);
    return made;
}

static inline int same_url(const Sortable *one, const Sortable *other) {
    return one->fingerprint == other->fingerprint && one->domain == other->domain && one->host == other->host;
}

static inline int comes_before(const Sortable *one, const Sortable *other) {
    if (one->domain != other->domain)
        return one->domain < other->domain;
    if (one->host != other->host)
        return one->host < other->host;
    if (one->fingerprint != other->fingerprint)
        return one->fingerprint < other->fingerprint;
    return one->at < other->at;
}

/* Shell's sort, with the gaps of Ciura: a page has some sixty links. */
static void sort_keys(Sortable *keys, Py_ssize_t count) {
    static const Py_ssize_t GAPS[] = {90927, 40412, 17961, 7983, 3548, 1577, 701, 301, 132, 57, 23, 10, 4, 1};
    for (size_t gap = 0; gap < sizeof GAPS / sizeof *GAPS; gap++)
        for (Py_ssize_t at = GAPS[gap]; at < count; at++) {
            Sortable moved = keys[at];
            Py_ssize_t to = at;
            for (; to >= GAPS[gap] && comes_before(&moved, &keys[to - GAPS[gap]]); to -= GAPS[gap])
                keys[to] = keys[to - GAPS[gap]];
            keys[to] = moved;
        }
}

/* What is read of a link, whether it is packed or a noun; all of it is borrowed. */
typedef struct {
    PyObject *host, *depth, *level;
    PyObject *key;    /* the spelling that URLs are told apart by; NULL where it is packed: */
    const char *text;
    Py_ssize_t size;
    const char *fingerprint;
} Met;

static void read_packed(const Candidates *candidates, Py_ssize_t at, Met *met) {
    const packed_candidate *one = &candidates->candidates[at];
    *met = (Met){.host = one->host, .depth = candidates->depth, .level = Py_None,
                 .fingerprint = (const char *)one->fingerprint};
    if (one->address) {
        met->host = PyTuple_GET_ITEM(one->address, 1);
        met->key = PyTuple_GET_ITEM(one->address, 2);
    } else {
        met->text = candidates->links->bytes + candidates->links->links[one->link].url;
        met->size = one->key_size;
    }
}

/* A link of a list, or of packed candidates; -1 with an exception. */
static int read_link(PyObject *links, Py_ssize_t at, Met *met) {
    Candidate read;
    if (nephila_is_candidates(links)) {
        read_packed((const Candidates *)links, at, met);
        return 0;
    }
    if (read_candidate(PyList_GET_ITEM(links, at), &read) < 0)
        return -1;
    *met = (Met){read.host, read.depth, read.level, read.key, NULL, 0, PyBytes_AS_STRING(read.fingerprint)};
    return 0;
}

/* The same as a noun. */
static PyObject *noun_of(PyObject *links, Py_ssize_t at) {
    return nephila_is_candidates(links) ? nephila_candidate((Candidates *)links, at) : Py_NewRef(PyList_GET_ITEM(links, at));
}

/* Makes the keys of all candidates, in the order of the page, and notes their hosts. */
static int make_keys(PyObject *links, PyObject *cache, PyObject *find, PyObject *hosts, PyObject *keys) {
    PyObject *last_host = NULL, *last_key = NULL;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(keys); at++) {
        Met met;
        if (read_link(links, at, &met) < 0)
            return -1;
        if (met.host != last_host) {
            last_key = host_key(cache, find, met.host);
            last_host = met.host;
            if (last_key == NULL || PyDict_SetItem(hosts, last_host, last_key) < 0)
                return -1;
        }
        PyObject *key = PyBytes_FromStringAndSize(NULL, URL_KEY);
        if (key == NULL)
            return -1;
        char *bytes = PyBytes_AS_STRING(key);
        memcpy(bytes, PyBytes_AS_STRING(last_key), HOST_KEY);
        bytes[HOST_KEY] = URL_MARK;
        memcpy(bytes + HOST_KEY + 1, met.fingerprint, 8);
        PyList_SET_ITEM(keys, at, key);
    }
    return 0;
}

/* Lets the first of several links to one URL have what is best of all, and takes the others out; `sorted` says which. */
static int join_links(const Sortable *sorted, PyObject *keys, PyObject *links, PyObject *nearer) {
    Py_ssize_t count = PyList_GET_SIZE(keys), first = 0, kept = 0;
    for (Py_ssize_t at = 1; at < count; at++) {
        if (!same_url(&sorted[at], &sorted[first])) {
            first = at;
            continue;
        }
        PyObject *better = PyObject_CallFunctionObjArgs(nearer, PyList_GET_ITEM(links, sorted[first].at),
                                                        PyList_GET_ITEM(links, sorted[at].at), NULL);
        if (better == NULL || PyList_SetItem(links, sorted[first].at, better) < 0 ||
            PyList_SetItem(keys, sorted[at].at, Py_NewRef(Py_None)) < 0)
            return -1;
    }
    for (Py_ssize_t at = 0; at < count; at++)
        if (PyList_GET_ITEM(keys, at) != Py_None) {
            if (kept != at && (PyList_SetItem(keys, kept, Py_NewRef(PyList_GET_ITEM(keys, at))) < 0 ||
                               PyList_SetItem(links, kept, Py_NewRef(PyList_GET_ITEM(links, at))) < 0))
                return -1;
            kept++;
        }
    return PyList_SetSlice(keys, kept, count, NULL) < 0 || PyList_SetSlice(links, kept, count, NULL) < 0 ? -1 : 0;
}

static PyObject *link_keys(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (given != 4 || !PyDict_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "link_keys(candidates, host_keys, find_host_key, nearer)");
        return NULL;
    }
    PyObject *links = nephila_is_candidates(arguments[0]) ? Py_NewRef(arguments[0]) : PySequence_List(arguments[0]);
    if (links == NULL)
        return NULL;
    Py_ssize_t count = PySequence_Size(links), unique = 0;
    PyObject *hosts = PyDict_New(), *keys = PyList_New(count), *ordered = NULL;
    Sortable *sorted = PyMem_Malloc((size_t)(count ? count : 1) * sizeof *sorted);
    if (sorted == NULL)
        PyErr_NoMemory();
    if (sorted != NULL && hosts != NULL && keys != NULL && make_keys(links, arguments[1], arguments[2], hosts, keys) == 0) {
        for (Py_ssize_t at = 0; at < count; at++)
            sorted[at] = sortable(PyList_GET_ITEM(keys, at), (uint32_t)at);
        sort_keys(sorted, count);
        for (Py_ssize_t at = 0; at < count; at++)
            unique += at == 0 || !same_url(&sorted[at], &sorted[at - 1]);
        ordered = PyList_New(unique);
        for (Py_ssize_t at = 0, put = 0; ordered != NULL && at < count; at++)
            if (at == 0 || !same_url(&sorted[at], &sorted[at - 1]))
                PyList_SET_ITEM(ordered, put++, Py_NewRef(PyList_GET_ITEM(keys, sorted[at].at)));
        if (ordered != NULL && unique < count) {
            Py_SETREF(links, PySequence_List(links));
            if (links == NULL || join_links(sorted, keys, links, arguments[3]) < 0)
                Py_CLEAR(ordered);
        }
    }
    PyObject *result = ordered == NULL ? NULL : Py_BuildValue("((OO)OO)", keys, links, ordered, hosts);
    PyMem_Free(sorted);
    Py_XDECREF(ordered);
    Py_XDECREF(links);
    Py_XDECREF(keys);
    Py_XDECREF(hosts);
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
static int add_new(PyObject *new, PyObject *key, PyObject *candidate) {
    Candidate made, *read = &made;
    if (read_candidate(candidate, read) < 0)
        return -1;
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

/* What a second meeting with a URL brings: nothing, a byte in `writes`, or a case for `again`. */
static int meet_again(PyObject *links, Py_ssize_t at, const Met *met, PyObject *key, PyObject *raw, PyObject *known,
                      uint32_t salt, int later_cycle, PyObject *writes, PyObject *again) {
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(raw);
    Py_ssize_t size = PyBytes_GET_SIZE(raw), rank_at = bytes[0] == QUEUED ? PLACE_END : RANK_AT;
    int special = 0;
    long level = met->level == Py_None ? -1 : PyLong_AsLong(met->level);
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
        Py_ssize_t length = met->size;
        const char *text = met->text ? met->text : PyUnicode_AsUTF8AndSize(met->key, &length);
        long raised = text == NULL ? -1 : risen(known, bytes[rank_at], text, length, salt);
        if (raised < 0)
            return -1;
        if (bytes[0] == QUEUED) {
            long depth = PyLong_AsLong(met->depth);
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
    PyObject *candidate = noun_of(links, at), *case_ = candidate == NULL ? NULL : PyTuple_Pack(3, key, raw, candidate);
    int failed = case_ == NULL || PyList_Append(again, case_) < 0;
    Py_XDECREF(case_);
    Py_XDECREF(candidate);
    return failed ? -1 : 0;
}

/* Whether what was found in the store is pairs of a URL's key and bytes, in the order of the keys. */
static int check_found(PyObject *found) {
    PyObject *before = NULL;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(found); at++) {
        PyObject *pair = PyList_GET_ITEM(found, at), *key;
        if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2 || !PyBytes_Check(key = PyTuple_GET_ITEM(pair, 0)) ||
            PyBytes_GET_SIZE(key) != URL_KEY || !PyBytes_Check(PyTuple_GET_ITEM(pair, 1)) ||
            PyBytes_GET_SIZE(PyTuple_GET_ITEM(pair, 1)) < 1) {
            PyErr_SetString(PyExc_TypeError, "what was found must be pairs of bytes");
            return -1;
        }
        if (before != NULL && memcmp(PyBytes_AS_STRING(before), PyBytes_AS_STRING(key), URL_KEY) >= 0) {
            PyErr_SetString(PyExc_ValueError, "what was found is not in the order of the keys");
            return -1;
        }
        before = key;
    }
    return 0;
}

/* What was found under a key; NULL where nothing was. */
static PyObject *find_key(PyObject *found, PyObject *key) {
    Py_ssize_t low = 0, high = PyList_GET_SIZE(found);
    while (low < high) {
        Py_ssize_t middle = (low + high) / 2;
        PyObject *pair = PyList_GET_ITEM(found, middle);
        int order = memcmp(PyBytes_AS_STRING(key), PyBytes_AS_STRING(PyTuple_GET_ITEM(pair, 0)), URL_KEY);
        if (order == 0)
            return PyTuple_GET_ITEM(pair, 1);
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static PyObject *sort_links(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    Py_buffer source = {0};
    PyObject *keys, *links;
    if (count != 8 || !PyTuple_Check(arguments[0]) || PyTuple_GET_SIZE(arguments[0]) != 2 ||
        !PyList_Check(keys = PyTuple_GET_ITEM(arguments[0], 0)) ||
        !(PyList_Check(links = PyTuple_GET_ITEM(arguments[0], 1)) || nephila_is_candidates(links)) ||
        PyList_GET_SIZE(keys) != PySequence_Size(links) ||
        !PyList_Check(arguments[1]) || !PyList_Check(arguments[7]) ||
        (arguments[3] != Py_None && !PyTuple_Check(arguments[3])) ||
        (arguments[4] != Py_None && !PyTuple_Check(arguments[4]))) {
        PyErr_SetString(PyExc_TypeError, "sort_links(keyed, found, source, inside, abroad, salt, later_cycle, writes)");
        return NULL;
    }
    uint32_t salt = (uint32_t)PyLong_AsUnsignedLongMask(arguments[5]);
    int later_cycle = PyObject_IsTrue(arguments[6]);
    if (PyErr_Occurred() || check_found(arguments[1]) < 0 || PyObject_GetBuffer(arguments[2], &source, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *new = PyDict_New(), *again = PyList_New(0), *result = NULL;
    int failed = new == NULL || again == NULL;
    for (Py_ssize_t at = 0; !failed && at < PyList_GET_SIZE(keys); at++) {
        Met met;
        PyObject *key = PyList_GET_ITEM(keys, at), *raw;
        if (!PyBytes_Check(key) || PyBytes_GET_SIZE(key) != URL_KEY) {
            PyErr_SetString(PyExc_TypeError, "the keys of URLs are bytes");
            failed = 1;
        } else if (read_link(links, at, &met) < 0) {
            failed = 1;
        } else if ((raw = find_key(arguments[1], key)) == NULL) {
            PyObject *candidate = noun_of(links, at);
            failed = candidate == NULL || add_new(new, key, candidate) < 0;
            Py_XDECREF(candidate);
        } else {
            int is_inside = source.len >= DOMAIN_KEY && memcmp(source.buf, PyBytes_AS_STRING(key), DOMAIN_KEY) == 0;
            failed = meet_again(links, at, &met, key, raw, arguments[is_inside ? 3 : 4], salt, later_cycle,
                                arguments[7], again) < 0;
        }
    }
    if (!failed)
        result = PyTuple_Pack(2, new, again);
    PyBuffer_Release(&source);
    Py_XDECREF(new);
    Py_XDECREF(again);
    return result;
}

/* Sets a bit in the number that a dict has under a key; -1 with an exception, 0 where it was set. */
static int mark_bit(PyObject *bitmaps, PyObject *key, unsigned long long bit) {
    PyObject *known = PyDict_GetItemWithError(bitmaps, key);
    unsigned long long bits = known == NULL ? 0 : PyLong_AsUnsignedLongLong(known);
    if (PyErr_Occurred())
        return -1;
    if (bits & bit)
        return 0;
    PyObject *marked = PyLong_FromUnsignedLongLong(bits | bit);
    int failed = marked == NULL || PyDict_SetItem(bitmaps, key, marked) < 0;
    Py_XDECREF(marked);
    return failed ? -1 : 1;
}

static PyObject *count_referrer(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 5 || !PyDict_Check(arguments[0]) || !PyBytes_Check(arguments[1]) || !PyLong_Check(arguments[2]) ||
        !PyDict_Check(arguments[3]) || !PyDict_Check(arguments[4])) {
        PyErr_SetString(PyExc_TypeError, "count_referrer(hosts, own, bit, referred, waiting)");
        return NULL;
    }
    unsigned long long bit = PyLong_AsUnsignedLongLong(arguments[2]);
    if (PyErr_Occurred())
        return NULL;
    PyObject *fresh = PyList_New(0), *name, *key;
    Py_ssize_t position = 0, own = PyBytes_GET_SIZE(arguments[1]);
    while (fresh != NULL && PyDict_Next(arguments[0], &position, &name, &key)) {
        if (!PyBytes_Check(key)) {
            PyErr_SetString(PyExc_TypeError, "the keys of hosts are bytes");
            Py_CLEAR(fresh);
            break;
        }
        if (PyBytes_GET_SIZE(key) >= own && memcmp(PyBytes_AS_STRING(key), PyBytes_AS_STRING(arguments[1]), own) == 0)
            continue;
        int marked = mark_bit(arguments[3], key, bit);
        if (marked < 0 || (marked && (mark_bit(arguments[4], key, bit) < 0 || PyList_Append(fresh, key) < 0)))
            Py_CLEAR(fresh);
    }
    return fresh;
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
     "The keys of the URLs of a page with their candidates, those keys in order, and the keys of their hosts."},
    {"sort_links", (PyCFunction)(void (*)(void))sort_links, METH_FASTCALL,
     "New URLs by host, and the known ones that need a closer look."},
    {"count_referrer", (PyCFunction)(void (*)(void))count_referrer, METH_FASTCALL,
     "Marks the hosts that a page of another domain links to; those that were not marked before."},
    {"xxh32", xxh32_of, METH_VARARGS, "XXH32 of bytes under a seed, for the tests."},
    {NULL, NULL, 0, NULL},
};
