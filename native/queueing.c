/* New URLs go into the queues of their hosts (see `nephila.frontier.embedded.arrivals`), packed into bundles. The twins in
 * Python are in `embedded/links.py` and `embedded/arrivals.py`; what the bytes mean is told in `embedded/bundle.py`.
 */
#include "candidates.h"

enum {
    QUEUE_MARK = 2, /* what stands between host and place in the key of a bundle */
    PREFIX = HOST_KEY + PLACE_END - TIE, /* how such a key begins: all of it but the tie-break */
    HOST_READY = 2, /* `records.Place` */
};

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

/* What the bundles of one host share. */
typedef struct {
    PyObject *writes;
    const char *name;
    Py_ssize_t name_length, head_length, most; /* bytes of a bundle at most */
    uint32_t seed;
    unsigned char rank;
    int whole; /* bundles go to the writes as well, each before the marks of its URLs in the order of their keys */
    unsigned char prefix[PREFIX]; /* how their keys begin: host, queue, lane, step, depth */
    unsigned char head[HEAD + LONGEST_VIA];
} Packing;

/* Packs what the URLs share. Of a page on the same host only the fingerprint is kept of its key. */
static int pack_head(Packing *packing, long long admitted_s, long long cycle, long long rank, long long hops,
                     PyObject *via_key) {
    const char *via = PyBytes_AS_STRING(via_key);
    Py_ssize_t length = PyBytes_GET_SIZE(via_key);
    if (length >= HOST_KEY && memcmp(via, packing->prefix, HOST_KEY) == 0) {
        Py_ssize_t known = length > HOST_KEY ? HOST_KEY + 1 : HOST_KEY;
        via += known;
        length -= known;
    }
    if (admitted_s < 0 || admitted_s > UINT32_MAX || cycle < 0 || rank < 0 || rank > UINT8_MAX || hops < 0 ||
        length > LONGEST_VIA) {
        PyErr_SetString(PyExc_ValueError, "a head does not fit into its bytes");
        return -1;
    }
    cycle = cycle > UINT16_MAX ? UINT16_MAX : cycle;
    for (int at = 0; at < 4; at++)
        packing->head[at] = (unsigned char)(admitted_s >> (24 - 8 * at));
    packing->head[4] = (unsigned char)(cycle >> 8);
    packing->head[5] = (unsigned char)cycle;
    packing->head[6] = packing->rank = (unsigned char)rank;
    packing->head[7] = (unsigned char)(hops > UINT8_MAX ? UINT8_MAX : hops);
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
    size_t length = (size_t)(packing->name_length + 1 + first->length);
    unsigned char *text = PyMem_Malloc(length); /* XXH32 wants them in one piece */
    PyObject *key = text == NULL ? PyErr_NoMemory() : PyBytes_FromStringAndSize(NULL, PREFIX + TIE);
    if (key != NULL) {
        memcpy(text, packing->name, (size_t)packing->name_length);
        text[packing->name_length] = (unsigned char)first->mark;
        memcpy(text + packing->name_length + 1, first->rest, (size_t)first->length);
        uint32_t tie = xxh32(text, length, packing->seed);
        unsigned char *put = (unsigned char *)PyBytes_AS_STRING(key);
        memcpy(put, packing->prefix, PREFIX);
        for (int at = 0; at < TIE; at++)
            put[PREFIX + at] = (unsigned char)(tie >> (24 - 8 * at));
    }
    PyMem_Free(text);
    return key;
}

static int append_pair(PyObject *list, PyObject *one, PyObject *other) {
    PyObject *pair = PyTuple_Pack(2, one, other);
    int failed = pair == NULL || PyList_Append(list, pair) < 0;
    Py_XDECREF(pair);
    return failed ? -1 : 0;
}

/* Adds what goes under the keys of the URLs of one bundle to the writes: the mark of a queued URL. */
static int mark_urls(const Packing *packing, PyObject *key, PyObject *const *url_keys, Py_ssize_t from, Py_ssize_t to) {
    char mark[PLACE_END + 1] = {QUEUED};
    memcpy(mark + 1, PyBytes_AS_STRING(key) + HOST_KEY + 1, PLACE_END - 1);
    mark[PLACE_END] = (char)packing->rank;
    PyObject *marked = PyBytes_FromStringAndSize(mark, sizeof mark);
    int failed = marked == NULL;
    for (Py_ssize_t at = from; !failed && at < to; at++)
        failed = append_pair(packing->writes, url_keys[at], marked) < 0;
    Py_XDECREF(marked);
    return failed ? -1 : 0;
}

/* Puts the keys of URLs of one host into their order: writes to neighbours are cheap. */
static void sort_keys(PyObject **keys, Py_ssize_t count) {
    static const Py_ssize_t GAPS[] = {57, 23, 10, 4, 1};
    for (size_t gap = 0; gap < sizeof GAPS / sizeof *GAPS; gap++)
        for (Py_ssize_t at = GAPS[gap]; at < count; at++) {
            PyObject *moved = keys[at];
            Py_ssize_t to = at;
            for (; to >= GAPS[gap] && memcmp(PyBytes_AS_STRING(moved), PyBytes_AS_STRING(keys[to - GAPS[gap]]), URL_KEY) < 0;
                 to -= GAPS[gap])
                keys[to] = keys[to - GAPS[gap]];
            keys[to] = moved;
        }
}

static int add_bundle(PyObject *bundles, const Packing *packing, const Entry *entries, PyObject **url_keys,
                      Py_ssize_t from, Py_ssize_t to) {
    PyObject *value = bundle_value(packing, entries, from, to);
    PyObject *key = value == NULL ? NULL : bundle_key(packing, &entries[from]), *bundle = NULL;
    if (key != NULL && !packing->whole)
        bundle = Py_BuildValue("(OOn)", key, value, to - from);
    else if (key != NULL && append_pair(packing->writes, key, value) == 0) {
        bundle = Py_NewRef(key);
        sort_keys(url_keys + from, to - from);
    }
    int failed = bundle == NULL || mark_urls(packing, key, url_keys, from, to) < 0 || PyList_Append(bundles, bundle) < 0;
    Py_XDECREF(bundle);
    Py_XDECREF(key);
    Py_XDECREF(value);
    return failed ? -1 : 0;
}

/* Packs the new URLs of a host into as many bundles as they need, which are appended to `bundles`. */
static int pack_urls(const Packing *packing, PyObject *urls, PyObject *bundles) {
    Py_ssize_t count = PyDict_GET_SIZE(urls), at = 0, position = 0, start = 0, size = 0;
    Py_ssize_t room = packing->most - packing->head_length;
    Entry *entries = PyMem_Malloc((size_t)(count ? count : 1) * (sizeof *entries + sizeof(PyObject *)));
    PyObject **url_keys = (PyObject **)(entries + (count ? count : 1)), *key, *candidate;
    int failed = entries == NULL;
    if (failed)
        PyErr_NoMemory();
    while (!failed && PyDict_Next(urls, &position, &key, &candidate)) {
        Candidate read;
        url_keys[at] = key;
        if (packing->whole && (!PyBytes_Check(key) || PyBytes_GET_SIZE(key) != URL_KEY)) {
            PyErr_SetString(PyExc_TypeError, "the keys of URLs are bytes");
            failed = 1;
            break;
        }
        failed = read_candidate(candidate, &read) < 0 ||
                 read_entry(&read, packing->name, packing->name_length, &entries[at++]) < 0;
    }
    for (at = 0; !failed && at < count; at++) {
        Py_ssize_t length = 1 + entries[at].length + AFTER_TAIL;
        size += length;
        if (size > room && at > start) {
            failed = add_bundle(bundles, packing, entries, url_keys, start, at) < 0;
            start = at;
            size = length;
        }
    }
    if (!failed && count)
        failed = add_bundle(bundles, packing, entries, url_keys, start, count) < 0;
    PyMem_Free(entries);
    return failed ? -1 : 0;
}

static PyObject *pack_bundles(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 7 || !PyUnicode_Check(arguments[1]) || !PyDict_Check(arguments[2]) || !PyBytes_Check(arguments[5]) ||
        PyBytes_GET_SIZE(arguments[5]) != PREFIX || !PyList_Check(arguments[6])) {
        PyErr_SetString(PyExc_TypeError, "pack_bundles(head, host, urls, most, seed, prefix, writes)");
        return NULL;
    }
    PyObject *head = arguments[0];
    long long fields[4];
    if (!PyTuple_Check(head) || PyTuple_GET_SIZE(head) != 5 || !PyBytes_Check(PyTuple_GET_ITEM(head, 4))) {
        PyErr_SetString(PyExc_TypeError, "a head is (admitted, cycle, rank, hops, via)");
        return NULL;
    }
    for (int at = 0; at < 4; at++)
        fields[at] = PyLong_AsLongLong(PyTuple_GET_ITEM(head, at));
    Packing packing = {.writes = arguments[6], .most = PyLong_AsSsize_t(arguments[3])};
    packing.seed = (uint32_t)PyLong_AsUnsignedLongMask(arguments[4]);
    memcpy(packing.prefix, PyBytes_AS_STRING(arguments[5]), PREFIX);
    packing.name = PyUnicode_AsUTF8AndSize(arguments[1], &packing.name_length);
    if (packing.name == NULL || PyErr_Occurred() ||
        pack_head(&packing, fields[0], fields[1], fields[2], fields[3], PyTuple_GET_ITEM(head, 4)) < 0)
        return NULL;
    PyObject *bundles = PyList_New(0);
    if (bundles != NULL && pack_urls(&packing, arguments[2], bundles) < 0)
        Py_CLEAR(bundles);
    return bundles;
}

/* What is new on ordinary hosts. */

typedef struct {
    PyObject *book, *ledger, *fields, *via, *queued, *ages, *writes;          /* borrowed */
    PyObject *bundles, *closer, *woken;                                       /* what is handed back */
    long long most, unsectioned, wall_s, now, cycle, inside, abroad;
    int lowered;
    Packing packing;
} Arrivals;

/* One host, with what a page brings it. `host` and `place` are held. */
typedef struct {
    PyObject *key, *host, *urls, *kind, *queued;
    long long rank;
} Arrival;

static inline PyObject *ledger_item(const Arrivals *all, int item) {
    return PyTuple_GET_ITEM(all->ledger, item);
}

static inline PyObject *field_of(const Arrivals *all, PyObject *host, int field) {
    return PyObject_GetAttr(host, PyTuple_GET_ITEM(all->fields, field));
}

/* The number in a field of a host; -1 with an exception. */
static long long number_in(const Arrivals *all, PyObject *host, int field) {
    PyObject *value = field_of(all, host, field);
    long long number = value == NULL ? -1 : PyLong_AsLongLong(value);
    Py_XDECREF(value);
    return number;
}

static int set_number(const Arrivals *all, PyObject *host, int field, long long number) {
    PyObject *value = PyLong_FromLongLong(number);
    int failed = value == NULL ? -1 : PyObject_SetAttr(host, PyTuple_GET_ITEM(all->fields, field), value);
    Py_XDECREF(value);
    return failed;
}

static int is_set(const Arrivals *all, PyObject *host, int field) {
    PyObject *value = field_of(all, host, field);
    int truth = value == NULL ? -1 : PyObject_IsTrue(value);
    Py_XDECREF(value);
    return truth;
}

static int add_to(PyObject *list, Py_ssize_t at, long long by) {
    long long before = at < PyList_GET_SIZE(list) ? PyLong_AsLongLong(PyList_GET_ITEM(list, at)) : -1;
    if (at >= PyList_GET_SIZE(list))
        PyErr_SetString(PyExc_IndexError, "there is no such lane");
    PyObject *sum = PyErr_Occurred() ? NULL : PyLong_FromLongLong(before + by);
    return sum == NULL ? -1 : PyList_SetItem(list, at, sum);
}

/* The state of a host, a new reference: what is at hand, unless referrers wait to be counted; else it is looked for. */
static PyObject *state_of(const Arrivals *all, PyObject *key, PyObject *name) {
    int waiting = PyDict_Contains(ledger_item(all, REFERRERS), key);
    PyObject *host = waiting ? NULL : PyDict_GetItemWithError(ledger_item(all, STATES), key);
    if (host != NULL)
        return Py_NewRef(host);
    if (PyErr_Occurred())
        return NULL;
    return PyObject_CallFunctionObjArgs(ledger_item(all, FIND), all->book, key, name, NULL);
}

/* Whether all that comes can simply be queued; -1 with an exception. Everything else needs a closer look. */
static int is_ordinary(const Arrivals *all, Arrival *one) {
    static const int HOLDING[] = {FLAGGED, OVER, SECTIONS, REASON};
    if (one->kind == Py_None || PyTuple_GET_ITEM(one->kind, 1) != Py_None)
        return 0;
    for (size_t at = 0; at < sizeof HOLDING / sizeof *HOLDING; at++) {
        int holds = is_set(all, one->host, HOLDING[at]);
        if (holds != 0)
            return holds < 0 ? -1 : 0;
    }
    long long count = PyDict_GET_SIZE(one->urls), queued = 0;
    long long admitted = number_in(all, one->host, ADMITTED);
    one->queued = field_of(all, one->host, QUEUED_BY_LANE);
    if (one->queued == NULL || PyErr_Occurred())
        return -1;
    if (!PyList_Check(one->queued)) {
        PyErr_SetString(PyExc_TypeError, "URLs by lane are a list");
        return -1;
    }
    for (Py_ssize_t lane = 0; lane < PyList_GET_SIZE(one->queued); lane++)
        queued += PyLong_AsLongLong(PyList_GET_ITEM(one->queued, lane));
    if (PyErr_Occurred())
        return -1;
    return admitted + count <= all->most && queued + count <= all->unsectioned;
}

/* Lane, step and depth of what comes, a new reference: remembered by what it depends on, or worked out by calling. */
static PyObject *standing_of(const Arrivals *all, const Arrival *one) {
    PyObject *depth = PyTuple_GET_ITEM(one->kind, 0), *bonus = PyTuple_GET_ITEM(one->kind, 3), *standing = NULL;
    PyObject *referrers = field_of(all, one->host, REFERRED_BY);
    unsigned long long bits = referrers == NULL ? 0 : PyLong_AsUnsignedLongLong(referrers);
    PyObject *rank = PyErr_Occurred() ? NULL : PyLong_FromLongLong(one->rank);
    PyObject *like = rank == NULL ? NULL : Py_BuildValue("(OOOi)", rank, depth, bonus, __builtin_popcountll(bits));
    if (like != NULL)
        standing = Py_XNewRef(PyDict_GetItemWithError(ledger_item(all, STANDINGS), like));
    if (like != NULL && standing == NULL && !PyErr_Occurred())
        standing = PyObject_CallFunctionObjArgs(ledger_item(all, STAND), all->book, one->key, one->host, rank, depth,
                                                bonus, NULL);
    Py_XDECREF(like);
    Py_XDECREF(rank);
    Py_XDECREF(referrers);
    if (standing != NULL && (!PyBytes_Check(standing) || PyBytes_GET_SIZE(standing) != PREFIX - HOST_KEY - 1)) {
        PyErr_SetString(PyExc_TypeError, "a standing has five bytes");
        Py_CLEAR(standing);
    }
    return standing;
}

/* Whether a ready host stays where it is: all of its new places are behind the head of their lane. */
static int is_behind(const Arrivals *all, PyObject *host, Py_ssize_t first) {
    long long place = all->lowered ? -2 : number_in(all, host, PLACE);
    if (place != HOST_READY)
        return place == -1 && PyErr_Occurred() ? -1 : 0;
    PyObject *ready = field_of(all, host, READY_KEYS);
    int behind = ready == NULL || !PyList_Check(ready) ? -1 : 1;
    for (Py_ssize_t at = first; behind == 1 && at < PyList_GET_SIZE(all->bundles); at++) {
        const char *own = PyBytes_AS_STRING(PyList_GET_ITEM(all->bundles, at)) + HOST_KEY + 1;
        behind = 0;
        for (Py_ssize_t known = 0; known < PyList_GET_SIZE(ready); known++) {
            PyObject *key = PyList_GET_ITEM(ready, known);
            if (!PyBytes_Check(key) || PyBytes_GET_SIZE(key) < 9) {
                behind = -1;
                break;
            }
            if (PyBytes_AS_STRING(key)[0] == own[0]) { /* step and depth follow the lane there, and the count here */
                behind = memcmp(own + 1, PyBytes_AS_STRING(key) + 5, 4) >= 0;
                break;
            }
        }
    }
    Py_XDECREF(ready);
    if (behind < 0 && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "the ready keys of a host are a list of bytes");
    return behind;
}

/* Adds a host to those that are to be woken, with its new places; one that is leased stays as it is. */
static int wake(const Arrivals *all, const Arrival *one, Py_ssize_t first) {
    PyObject *token = PyDict_GetItemWithError(ledger_item(all, LEASED), one->key);
    int leased = token == NULL ? (PyErr_Occurred() ? -1 : 0) : PyObject_IsTrue(token);
    if (leased != 0)
        return leased < 0 ? -1 : 0;
    Py_ssize_t end = PyList_GET_SIZE(all->bundles);
    PyObject *places = PyList_New(end - first), *woken = NULL;
    for (Py_ssize_t at = first; places != NULL && at < end; at++) {
        PyObject *key = PyList_GET_ITEM(all->bundles, at);
        PyObject *place = PyBytes_FromStringAndSize(PyBytes_AS_STRING(key) + HOST_KEY + 1, PLACE_END - 1);
        if (place == NULL)
            Py_CLEAR(places);
        else
            PyList_SET_ITEM(places, at - first, place);
    }
    if (places != NULL)
        woken = PyTuple_Pack(3, one->key, one->host, places);
    int failed = woken == NULL || PyList_Append(all->woken, woken) < 0;
    Py_XDECREF(woken);
    Py_XDECREF(places);
    return failed ? -1 : 0;
}

/* Two bundles of one host with the same tie-break: whether there are any from `first` on. */
static int are_alike(PyObject *bundles, Py_ssize_t first) {
    for (Py_ssize_t one = first; one < PyList_GET_SIZE(bundles); one++)
        for (Py_ssize_t other = first; other < one; other++)
            if (memcmp(PyBytes_AS_STRING(PyList_GET_ITEM(bundles, one)),
                       PyBytes_AS_STRING(PyList_GET_ITEM(bundles, other)), PREFIX + TIE) == 0)
                return 1;
    return 0;
}

/* Queues what comes to one ordinary host; 1 where it needs a closer look after all, and nothing was done. */
static int queue_all(Arrivals *all, const Arrival *one) {
    PyObject *standing = standing_of(all, one), *name = standing == NULL ? NULL : field_of(all, one->host, NAME);
    Packing *packing = &all->packing;
    Py_ssize_t first = PyList_GET_SIZE(all->bundles), written = PyList_GET_SIZE(all->writes);
    long long count = PyDict_GET_SIZE(one->urls), since = -1;
    int failed = name == NULL || (packing->name = PyUnicode_AsUTF8AndSize(name, &packing->name_length)) == NULL;
    if (!failed) {
        memcpy(packing->prefix, PyBytes_AS_STRING(one->key), HOST_KEY);
        packing->prefix[HOST_KEY] = QUEUE_MARK;
        memcpy(packing->prefix + HOST_KEY + 1, PyBytes_AS_STRING(standing), PREFIX - HOST_KEY - 1);
        long long hops = PyLong_AsLongLong(PyTuple_GET_ITEM(one->kind, 2));
        failed = PyErr_Occurred() || pack_head(packing, all->wall_s, all->cycle, one->rank, hops, all->via) < 0 ||
                 pack_urls(packing, one->urls, all->bundles) < 0;
    }
    Py_XDECREF(name);
    if (!failed && are_alike(all->bundles, first)) {
        Py_DECREF(standing);
        failed = PyList_SetSlice(all->bundles, first, PyList_GET_SIZE(all->bundles), NULL) < 0 ||
                 PyList_SetSlice(all->writes, written, PyList_GET_SIZE(all->writes), NULL) < 0;
        return failed ? -1 : 1;
    }
    if (!failed) {
        int lane = PyBytes_AS_STRING(standing)[0];
        long long admitted = number_in(all, one->host, ADMITTED);
        since = PyErr_Occurred() ? -1 : number_in(all, one->host, WORK_SINCE);
        failed = PyErr_Occurred() || set_number(all, one->host, ADMITTED, admitted + count) < 0 ||
                 add_to(one->queued, lane, count) < 0 || add_to(all->queued, lane, count) < 0 ||
                 add_to(all->ages, lane ? (lane - 1) % 3 + 1 : 0, count) < 0 ||
                 (since == 0 && set_number(all, one->host, WORK_SINCE, all->now > 1 ? all->now : 1) < 0);
    }
    Py_XDECREF(standing);
    int behind = failed ? -1 : is_behind(all, one->host, first);
    if (behind == 0)
        failed = wake(all, one, first) < 0;
    return failed || behind < 0 ? -1 : 0;
}

/* One host of those that a page brings something new to; `count` is raised by what was queued. */
static int arrive(Arrivals *all, PyObject *name, PyObject *key, PyObject *group, long long *mean, long long *count) {
    if (key == NULL || !PyBytes_Check(key) || PyBytes_GET_SIZE(key) != HOST_KEY || !(PyList_Check(group) || PyTuple_Check(group)) ||
        PySequence_Fast_GET_SIZE(group) != 2 || !PyDict_Check(PySequence_Fast_GET_ITEM(group, 0))) {
        PyErr_SetString(PyExc_TypeError, "what is new of a host with a key was expected");
        return -1;
    }
    Arrival one = {.key = key, .urls = PySequence_Fast_GET_ITEM(group, 0), .kind = PySequence_Fast_GET_ITEM(group, 1)};
    Py_ssize_t own = PyBytes_GET_SIZE(all->via) < DOMAIN_KEY ? PyBytes_GET_SIZE(all->via) : DOMAIN_KEY;
    one.rank = memcmp(PyBytes_AS_STRING(key), PyBytes_AS_STRING(all->via), (size_t)own) == 0 ? all->inside : all->abroad;
    if ((one.host = state_of(all, key, name)) == NULL)
        return -1;
    if (mean != NULL) /* as `rank.next_mean` has it */
        *mean += (one.rank * 65536 - *mean) >> 14;
    int ordinary = is_ordinary(all, &one), closer = ordinary == 1 ? queue_all(all, &one) : ordinary == 0 ? 1 : -1;
    if (closer == 0)
        *count += PyDict_GET_SIZE(one.urls);
    if (closer == 1) {
        PyObject *left = Py_BuildValue("(OOOOL)", key, one.host, one.urls, one.kind, one.rank);
        closer = left == NULL || PyList_Append(all->closer, left) < 0 ? -1 : 0;
        Py_XDECREF(left);
    }
    Py_XDECREF(one.queued);
    Py_DECREF(one.host);
    return closer;
}

static int read_ledger(Arrivals *all) {
    static const int DICTS[] = {STATES, REFERRERS, LEASED, STANDINGS};
    if (!PyTuple_Check(all->ledger) || PyTuple_GET_SIZE(all->ledger) != LEDGER ||
        !PyTuple_Check(ledger_item(all, FIELDS)) || PyTuple_GET_SIZE(ledger_item(all, FIELDS)) != FIELD_COUNT) {
        PyErr_SetString(PyExc_TypeError, "a ledger was expected");
        return -1;
    }
    for (size_t at = 0; at < sizeof DICTS / sizeof *DICTS; at++)
        if (!PyDict_Check(ledger_item(all, DICTS[at]))) {
            PyErr_SetString(PyExc_TypeError, "a ledger was expected");
            return -1;
        }
    all->fields = ledger_item(all, FIELDS);
    all->most = PyLong_AsLongLong(ledger_item(all, MOST));
    all->unsectioned = PyLong_AsLongLong(ledger_item(all, UNSECTIONED));
    all->packing.most = PyLong_AsSsize_t(ledger_item(all, BUNDLE_BYTES));
    all->packing.seed = (uint32_t)PyLong_AsUnsignedLongMask(ledger_item(all, SEED));
    all->wall_s = PyLong_AsLongLong(ledger_item(all, WALL_S));
    all->now = PyLong_AsLongLong(ledger_item(all, NOW));
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *queue_new(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    PyObject *page = count == 8 ? arguments[2] : Py_None;
    if (!PyTuple_Check(page) || PyTuple_GET_SIZE(page) != 6 || !PyBytes_Check(PyTuple_GET_ITEM(page, 0)) ||
        !PyDict_Check(arguments[3]) || !PyDict_Check(arguments[4]) || !PyList_Check(arguments[5]) ||
        !PyList_Check(arguments[6]) || !PyList_Check(arguments[7])) {
        PyErr_SetString(PyExc_TypeError, "queue_new(book, ledger, page, new, hosts, queued, ages, writes)");
        return NULL;
    }
    Arrivals all = {.book = arguments[0], .ledger = arguments[1], .via = PyTuple_GET_ITEM(page, 0),
                    .queued = arguments[5], .ages = arguments[6], .writes = arguments[7],
                    .packing = {.writes = arguments[7], .whole = 1}};
    all.inside = PyLong_AsLongLong(PyTuple_GET_ITEM(page, 1));
    all.abroad = PyLong_AsLongLong(PyTuple_GET_ITEM(page, 2));
    int counted = PyTuple_GET_ITEM(page, 3) != Py_None; /* whether the mean changes */
    long long mean = counted ? PyLong_AsLongLong(PyTuple_GET_ITEM(page, 3)) : 0, added = 0;
    all.cycle = PyLong_AsLongLong(PyTuple_GET_ITEM(page, 4));
    all.lowered = PyObject_IsTrue(PyTuple_GET_ITEM(page, 5));
    if (PyErr_Occurred() || read_ledger(&all) < 0)
        return NULL;
    all.bundles = PyList_New(0);
    all.closer = PyList_New(0);
    all.woken = PyList_New(0);
    int failed = all.bundles == NULL || all.closer == NULL || all.woken == NULL;
    PyObject *name, *group, *result = NULL;
    Py_ssize_t position = 0;
    while (!failed && PyDict_Next(arguments[3], &position, &name, &group)) {
        PyObject *key = PyDict_GetItemWithError(arguments[4], name);
        failed = arrive(&all, name, key, group, counted ? &mean : NULL, &added) < 0;
    }
    if (!failed)
        result = Py_BuildValue("(OOOLL)", all.bundles, all.closer, all.woken, added, mean);
    Py_XDECREF(all.bundles);
    Py_XDECREF(all.closer);
    Py_XDECREF(all.woken);
    return result;
}

PyMethodDef nephila_queueing_methods[] = {
    {"pack_bundles", (PyCFunction)(void (*)(void))pack_bundles, METH_FASTCALL,
     "New URLs of a host as bundles by key; what goes under the keys of the URLs is added to the writes."},
    {"queue_new", (PyCFunction)(void (*)(void))queue_new, METH_FASTCALL,
     "Queues what a page brings to ordinary hosts; the bundles and marks are added to the writes."},
    {NULL, NULL, 0, NULL},
};
