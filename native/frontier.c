/* Admission's inner loops (see `nephila.frontier.embedded.admission`): the links of a page are given their keys, those
 * that the store knows are told from those that are new, and new ones are packed into bundles. The twins in Python are
 * in `embedded/links.py`; what the bytes mean is told in `embedded/queueing.py` and `embedded/bundle.py`.
 */
#include "native.h"

enum {
    HOST_KEY = 12,    /* of which the first six bytes are the registrable domain's */
    DOMAIN_KEY = 6,
    URL_KEY = HOST_KEY + 1 + 8,
    URL_MARK = 1,     /* what stands between host and fingerprint in the key of a URL */
    FINGERPRINT = 16,
    AFTER_TAIL = FINGERPRINT + 2,
    HEAD = 9,         /* of a bundle, without the key of the page it came from; its last byte is the length of that */
    LONGEST_VIA = 255,
    QUEUED = 0,
    PARKED = 1,
    PLACE_END = 10,   /* of a mark: its first byte and the nine of the place; the rank follows */
    DEPTH_AT = 5,     /* of a mark: the depth in its place */
    TIE = 4,          /* what breaks ties, at the end of a place */
    STATE_AT = 1,     /* of a packed record, and the rank behind it */
    RANK_AT = 2,
    STATE_QUEUED = 0,
    RANKS_PER_MOVE = 8,
    IMMEDIATE = 0,
};

/* XXH32, by its published specification; little-endian machines only, as everything that CPython's wheels run on. */

#define PRIME1 0x9E3779B1U
#define PRIME2 0x85EBCA77U
#define PRIME3 0xC2B2AE3DU
#define PRIME4 0x27D4EB2FU
#define PRIME5 0x165667B1U

static inline uint32_t rotated(uint32_t value, int bits) {
    return value << bits | value >> (32 - bits);
}

static inline uint32_t word_at(const unsigned char *at) {
    uint32_t word;
    memcpy(&word, at, 4);
    return word;
}

static uint32_t xxh32(const unsigned char *at, size_t length, uint32_t seed) {
    const unsigned char *end = at + length;
    uint32_t hash;
    if (length >= 16) {
        uint32_t lanes[4] = {seed + PRIME1 + PRIME2, seed + PRIME2, seed, seed - PRIME1};
        for (; end - at >= 16; at += 16)
            for (int lane = 0; lane < 4; lane++)
                lanes[lane] = rotated(lanes[lane] + word_at(at + 4 * lane) * PRIME2, 13) * PRIME1;
        hash = rotated(lanes[0], 1) + rotated(lanes[1], 7) + rotated(lanes[2], 12) + rotated(lanes[3], 18);
    } else {
        hash = seed + PRIME5;
    }
    hash += (uint32_t)length;
    for (; end - at >= 4; at += 4)
        hash = rotated(hash + word_at(at) * PRIME3, 17) * PRIME4;
    for (; at < end; at++)
        hash = rotated(hash + *at * PRIME5, 11) * PRIME1;
    hash ^= hash >> 15;
    hash *= PRIME2;
    hash ^= hash >> 13;
    hash *= PRIME3;
    return hash ^ hash >> 16;
}

/* A candidate, as tuples: ((url, host, key, fingerprint), depth, level, hops, bonus). */

typedef struct {
    PyObject *url, *host, *key, *fingerprint, *depth, *level, *hops, *bonus;
} Candidate;

static int read_candidate(PyObject *object, Candidate *read) {
    PyObject *address;
    if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != 5 ||
        !PyTuple_Check(address = PyTuple_GET_ITEM(object, 0)) || PyTuple_GET_SIZE(address) != 4 ||
        !PyUnicode_Check(PyTuple_GET_ITEM(address, 0)) || !PyUnicode_Check(PyTuple_GET_ITEM(address, 2)) ||
        !PyBytes_Check(PyTuple_GET_ITEM(address, 3)) ||
        PyBytes_GET_SIZE(PyTuple_GET_ITEM(address, 3)) != FINGERPRINT) {
        PyErr_SetString(PyExc_TypeError, "a candidate was expected");
        return -1;
    }
    *read = (Candidate){
        PyTuple_GET_ITEM(address, 0), PyTuple_GET_ITEM(address, 1), PyTuple_GET_ITEM(address, 2),
        PyTuple_GET_ITEM(address, 3), PyTuple_GET_ITEM(object, 1),  PyTuple_GET_ITEM(object, 2),
        PyTuple_GET_ITEM(object, 3),  PyTuple_GET_ITEM(object, 4),
    };
    return 0;
}

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

/* A URL as a bundle keeps it: `s/path` for https, `h/path` for http, else `=` and the whole (see `tables.shorten`). */
typedef struct {
    char mark;
    const char *rest;
    Py_ssize_t length; /* of the rest */
    const char *fingerprint;
} Entry;

static int read_entry(const Candidate *read, const char *name, Py_ssize_t name_length, Entry *entry) {
    Py_ssize_t length;
    const char *url = PyUnicode_AsUTF8AndSize(read->url, &length);
    if (url == NULL)
        return -1;
    *entry = (Entry){'=', url, length, PyBytes_AS_STRING(read->fingerprint)};
    for (int secure = 1; secure >= 0; secure--) {
        const char *scheme = secure ? "https://" : "http://";
        Py_ssize_t start = secure ? 8 : 7, after = start + name_length;
        if (length > after && memcmp(url, scheme, (size_t)start) == 0 &&
            memcmp(url + start, name, (size_t)name_length) == 0 && strchr("/:?", url[after]) != NULL && url[after]) {
            *entry = (Entry){secure ? 's' : 'h', url + after, length - after, entry->fingerprint};
            break;
        }
    }
    if (entry->length + 1 > 0xFFFF) {
        PyErr_SetString(PyExc_ValueError, "a URL is too long for a bundle");
        return -1;
    }
    return 0;
}

/* What the bundles of one call share. */
typedef struct {
    PyObject *prefix, *writes;
    const char *name;
    Py_ssize_t name_length, head_length;
    uint32_t seed;
    unsigned char rank;
    unsigned char head[HEAD + LONGEST_VIA];
} Packing;

/* Packs what the URLs share: (admitted, cycle, rank, hops, via). Of a page on the same host only the fingerprint is
 * kept of its key. */
static int pack_head(Packing *packing, PyObject *head) {
    long long fields[4];
    if (!PyTuple_Check(head) || PyTuple_GET_SIZE(head) != 5 || !PyBytes_Check(PyTuple_GET_ITEM(head, 4))) {
        PyErr_SetString(PyExc_TypeError, "a head is (admitted, cycle, rank, hops, via)");
        return -1;
    }
    for (int at = 0; at < 4; at++) {
        fields[at] = PyLong_AsLongLong(PyTuple_GET_ITEM(head, at));
        if (fields[at] == -1 && PyErr_Occurred())
            return -1;
    }
    const char *via = PyBytes_AS_STRING(PyTuple_GET_ITEM(head, 4));
    Py_ssize_t length = PyBytes_GET_SIZE(PyTuple_GET_ITEM(head, 4));
    if (length >= HOST_KEY && memcmp(via, PyBytes_AS_STRING(packing->prefix), HOST_KEY) == 0) {
        Py_ssize_t known = length > HOST_KEY ? HOST_KEY + 1 : HOST_KEY;
        via += known;
        length -= known;
    }
    if (fields[0] < 0 || fields[0] > UINT32_MAX || fields[1] < 0 || fields[2] < 0 || fields[2] > UINT8_MAX ||
        fields[3] < 0 || length > LONGEST_VIA) {
        PyErr_SetString(PyExc_ValueError, "a head does not fit into its bytes");
        return -1;
    }
    long long cycle = fields[1] > UINT16_MAX ? UINT16_MAX : fields[1];
    for (int at = 0; at < 4; at++)
        packing->head[at] = (unsigned char)(fields[0] >> (24 - 8 * at));
    packing->head[4] = (unsigned char)(cycle >> 8);
    packing->head[5] = (unsigned char)cycle;
    packing->head[6] = packing->rank = (unsigned char)fields[2];
    packing->head[7] = (unsigned char)(fields[3] > UINT8_MAX ? UINT8_MAX : fields[3]);
    packing->head[HEAD - 1] = (unsigned char)length;
    memcpy(packing->head + HEAD, via, (size_t)length);
    packing->head_length = HEAD + length;
    return 0;
}

/* The bytes of one bundle: the head, then the entries, the first of them last. */
static PyObject *bundle_value(const Packing *packing, const Entry *entries, Py_ssize_t from, Py_ssize_t to) {
    Py_ssize_t size = packing->head_length;
    for (Py_ssize_t at = from; at < to; at++)
        size += 1 + entries[at].length + AFTER_TAIL;
    PyObject *value = PyBytes_FromStringAndSize(NULL, size);
    if (value == NULL)
        return NULL;
    char *put = PyBytes_AS_STRING(value);
    memcpy(put, packing->head, (size_t)packing->head_length);
    put += packing->head_length;
    for (Py_ssize_t at = to - 1; at >= from; at--) {
        const Entry *entry = &entries[at];
        Py_ssize_t tail = entry->length + 1;
        *put++ = entry->mark;
        memcpy(put, entry->rest, (size_t)entry->length);
        put += entry->length;
        memcpy(put, entry->fingerprint, FINGERPRINT);
        put += FINGERPRINT;
        *put++ = (char)(tail >> 8);
        *put++ = (char)tail;
    }
    return value;
}

/* The key of a bundle: the prefix, then the hash of the host's name and the first tail, which breaks ties. */
static PyObject *bundle_key(const Packing *packing, const Entry *first) {
    Py_ssize_t before = PyBytes_GET_SIZE(packing->prefix);
    size_t length = (size_t)(packing->name_length + 1 + first->length);
    unsigned char *text = PyMem_Malloc(length); /* XXH32 wants them in one piece */
    PyObject *key = text == NULL ? PyErr_NoMemory() : PyBytes_FromStringAndSize(NULL, before + TIE);
    if (key != NULL) {
        memcpy(text, packing->name, (size_t)packing->name_length);
        text[packing->name_length] = (unsigned char)first->mark;
        memcpy(text + packing->name_length + 1, first->rest, (size_t)first->length);
        uint32_t tie = xxh32(text, length, packing->seed);
        unsigned char *put = (unsigned char *)PyBytes_AS_STRING(key);
        memcpy(put, PyBytes_AS_STRING(packing->prefix), (size_t)before);
        for (int at = 0; at < TIE; at++)
            put[before + at] = (unsigned char)(tie >> (24 - 8 * at));
    }
    PyMem_Free(text);
    return key;
}

/* Adds what goes under the keys of the URLs of one bundle to the writes: the mark of a queued URL. */
static int mark_urls(const Packing *packing, PyObject *key, PyObject *const *url_keys, Py_ssize_t from, Py_ssize_t to) {
    char mark[PLACE_END + 1] = {QUEUED};
    memcpy(mark + 1, PyBytes_AS_STRING(key) + HOST_KEY + 1, PLACE_END - 1);
    mark[PLACE_END] = (char)packing->rank;
    PyObject *marked = PyBytes_FromStringAndSize(mark, sizeof mark);
    int failed = marked == NULL;
    for (Py_ssize_t at = from; !failed && at < to; at++) {
        PyObject *write = PyTuple_Pack(2, url_keys[at], marked);
        failed = write == NULL || PyList_Append(packing->writes, write) < 0;
        Py_XDECREF(write);
    }
    Py_XDECREF(marked);
    return failed ? -1 : 0;
}

static int add_bundle(PyObject *bundles, const Packing *packing, const Entry *entries, PyObject *const *url_keys,
                      Py_ssize_t from, Py_ssize_t to) {
    PyObject *value = bundle_value(packing, entries, from, to);
    PyObject *key = value == NULL ? NULL : bundle_key(packing, &entries[from]);
    PyObject *bundle = key == NULL ? NULL : Py_BuildValue("(OOn)", key, value, to - from);
    int failed = bundle == NULL || mark_urls(packing, key, url_keys, from, to) < 0 || PyList_Append(bundles, bundle) < 0;
    Py_XDECREF(bundle);
    Py_XDECREF(key);
    Py_XDECREF(value);
    return failed ? -1 : 0;
}

static PyObject *pack_bundles(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 7 || !PyUnicode_Check(arguments[1]) || !PyDict_Check(arguments[2]) || !PyBytes_Check(arguments[5]) ||
        PyBytes_GET_SIZE(arguments[5]) != HOST_KEY + PLACE_END - TIE || !PyList_Check(arguments[6])) {
        PyErr_SetString(PyExc_TypeError, "pack_bundles(head, host, urls, most, seed, prefix, writes)");
        return NULL;
    }
    Packing packing = {.prefix = arguments[5], .writes = arguments[6]};
    packing.seed = (uint32_t)PyLong_AsUnsignedLongMask(arguments[4]);
    Py_ssize_t most = PyLong_AsSsize_t(arguments[3]);
    packing.name = PyUnicode_AsUTF8AndSize(arguments[1], &packing.name_length);
    if (packing.name == NULL || PyErr_Occurred() || pack_head(&packing, arguments[0]) < 0)
        return NULL;
    Py_ssize_t room = most - packing.head_length;
    Py_ssize_t urls = PyDict_GET_SIZE(arguments[2]), at = 0, position = 0;
    Entry *entries = PyMem_Malloc((size_t)(urls ? urls : 1) * sizeof *entries);
    PyObject **url_keys = PyMem_Malloc((size_t)(urls ? urls : 1) * sizeof *url_keys);
    PyObject *bundles = entries == NULL || url_keys == NULL ? PyErr_NoMemory() : PyList_New(0), *key, *candidate;
    while (bundles != NULL && PyDict_Next(arguments[2], &position, &key, &candidate)) {
        Candidate read;
        url_keys[at] = key;
        if (read_candidate(candidate, &read) < 0 ||
            read_entry(&read, packing.name, packing.name_length, &entries[at++]) < 0)
            Py_CLEAR(bundles);
    }
    Py_ssize_t start = 0, size = 0;
    for (at = 0; bundles != NULL && at < urls; at++) {
        Py_ssize_t length = 1 + entries[at].length + AFTER_TAIL;
        size += length;
        if (size > room && at > start) {
            if (add_bundle(bundles, &packing, entries, url_keys, start, at) < 0)
                Py_CLEAR(bundles);
            start = at;
            size = length;
        }
    }
    if (bundles != NULL && urls && add_bundle(bundles, &packing, entries, url_keys, start, urls) < 0)
        Py_CLEAR(bundles);
    PyMem_Free(url_keys);
    PyMem_Free(entries);
    return bundles;
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
    {"pack_bundles", (PyCFunction)(void (*)(void))pack_bundles, METH_FASTCALL,
     "New URLs of a host as bundles by key; what goes under the keys of the URLs is added to the writes."},
    {"xxh32", xxh32_of, METH_VARARGS, "XXH32 of bytes under a seed, for the tests."},
    {NULL, NULL, 0, NULL},
};
