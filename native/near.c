/* Fingerprints within a few bits of each other (D3): the loops of the index of near-duplicates.
 *
 * A *run* is an immutable, packed table of 64-bit fingerprints and the numbers of the pages they belong to, four times
 * over: table t is sorted by the fingerprint rotated left by 16 t bits, so that its t-th block of 16 bits leads, and has
 * a directory of where each value of the leading `bits` bits begins. `dedup/near_run.py` describes the layout and why
 * four tables suffice; `dedup/near_twin.py` is the same in Python. Numbers are in the machine's own byte order.
 */
#include "native.h"

#define MAGIC 0x314e55524148504eULL
#define HEADER 16
#define TABLES 4
#define BLOCK_BITS 16
#define ENTRY 12
#define SLOTS_MAX (TABLES * (BLOCK_BITS + 1))

typedef struct {
    uint64_t hash;
    uint32_t id;
} Entry;

typedef struct {
    const uint32_t *directory;
    const uint64_t *hashes;
    const uint32_t *ids;
} Table;

typedef struct {
    uint32_t count;
    uint32_t bits;
    Table tables[TABLES];
} Run;

typedef struct {
    uint32_t id;
    int distance;
} Match;

typedef struct {
    Match *found;
    size_t count, room;
} Matches;

static inline uint64_t rotated(uint64_t hash, int table) {
    return table ? hash << (BLOCK_BITS * table) | hash >> (64 - BLOCK_BITS * table) : hash;
}

static inline uint64_t restored(uint64_t hash, int table) {
    return table ? hash >> (BLOCK_BITS * table) | hash << (64 - BLOCK_BITS * table) : hash;
}

static inline size_t padded(size_t size) {
    return (size + 7) & ~(size_t)7;
}

/* Leading bits that the directory of a run of so many entries tells apart: some 16 to 32 entries under each. */
static uint32_t directory_bits(uint64_t count) {
    uint32_t length = 0;
    while (count >> length)
        length++;
    return length <= 5 ? 0 : length - 5 > BLOCK_BITS ? BLOCK_BITS : length - 5;
}

static size_t table_size(size_t count, uint32_t bits) {
    return padded(4 * (((size_t)1 << bits) + 1)) + 8 * count + padded(4 * count);
}

/* Point at the parts of a run. -1 where the bytes are none. */
static int open_run(const Py_buffer *view, Run *run) {
    const char *at = view->buf;
    uint64_t magic;
    if (view->len < HEADER || (uintptr_t)at & 7)
        return -1;
    memcpy(&magic, at, 8);
    memcpy(&run->count, at + 8, 4);
    memcpy(&run->bits, at + 12, 4);
    if (magic != MAGIC || run->bits != directory_bits(run->count))
        return -1;
    size_t each = table_size(run->count, run->bits);
    if ((size_t)view->len != HEADER + TABLES * each)
        return -1;
    at += HEADER;
    for (int table = 0; table < TABLES; table++, at += each) {
        const char *hashes = at + padded(4 * (((size_t)1 << run->bits) + 1));
        run->tables[table] = (Table){(const uint32_t *)at, (const uint64_t *)hashes,
                                     (const uint32_t *)(hashes + 8 * (size_t)run->count)};
    }
    return 0;
}

static int keep(Matches *matches, uint32_t id, int distance) {
    if (matches->count == matches->room) {
        size_t room = matches->room ? 2 * matches->room : 16;
        Match *grown = PyMem_RawRealloc(matches->found, room * sizeof *grown);
        if (!grown)
            return -1;
        matches->found = grown;
        matches->room = room;
    }
    matches->found[matches->count++] = (Match){id, distance};
    return 0;
}

/* What is asked of the tables: the block itself in the first `exact`, its one-bit neighbours in the first `near`. */
typedef struct {
    uint64_t hash;
    int distance, exact, near;
} Question;

static Question question(uint64_t hash, int distance) {
    int exact = distance + 1 < TABLES ? distance + 1 : TABLES;
    int near = distance > TABLES - 1 ? distance - (TABLES - 1) : 0;
    return (Question){hash, distance, exact, near};
}

/* Whether `table` is the first one that answers for a pair which differs in the bits `apart`: each is told once. */
static int answers_for(const Question *asked, uint64_t apart, int table) {
    for (int one = 0; one <= table; one++) {
        uint64_t block = apart >> (64 - BLOCK_BITS * (one + 1)) & 0xffff;
        int reached = one < asked->near ? (block & (block - 1)) == 0 : block == 0;
        if (reached)
            return one == table;
    }
    return 0;
}

/* The loops that count bits are written once and compiled twice: for processors that do it in one instruction, and for
 * those that do not. */
#define COUNTING_LOOPS(suffix, attribute)                                                                              \
    attribute static int scan_slot##suffix(const Question *asked, const Table *part, int table, uint32_t begin,       \
                                           uint32_t end, Matches *matches) {                                          \
        uint64_t wanted = rotated(asked->hash, table);                                                                 \
        for (uint32_t at = begin; at < end; at++) {                                                                    \
            uint64_t apart = part->hashes[at] ^ wanted;                                                                \
            int distance = __builtin_popcountll(apart);                                                                \
            if (distance <= asked->distance && answers_for(asked, restored(apart, table), table) &&                    \
                keep(matches, part->ids[at], distance) < 0)                                                            \
                return -1;                                                                                             \
        }                                                                                                              \
        return 0;                                                                                                      \
    }                                                                                                                  \
    attribute static int scan_all##suffix(uint64_t wanted, int limit, const char *at, size_t count,                   \
                                          Matches *matches) {                                                          \
        for (; count; count--, at += ENTRY) {                                                                          \
            uint64_t hash;                                                                                             \
            memcpy(&hash, at, 8);                                                                                      \
            int distance = __builtin_popcountll(hash ^ wanted);                                                        \
            if (distance <= limit) {                                                                                   \
                uint32_t id;                                                                                           \
                memcpy(&id, at + 8, 4);                                                                                \
                if (keep(matches, id, distance) < 0)                                                                   \
                    return -1;                                                                                         \
            }                                                                                                          \
        }                                                                                                              \
        return 0;                                                                                                      \
    }

COUNTING_LOOPS(_plain, )
#if defined(__x86_64__) && defined(__GNUC__)
COUNTING_LOOPS(_fast, __attribute__((target("popcnt"))))
#define SCAN(name) (__builtin_cpu_supports("popcnt") ? name##_fast : name##_plain)
#else
#define SCAN(name) (name##_plain)
#endif

/* All of one run. Where to look is found for all places first, so that memory is waited for once and not fifty times. */
static int search_run(const Run *run, const Question *asked, Matches *matches) {
    struct {
        int table;
        uint32_t slot;
    } places[SLOTS_MAX];
    int count = 0;
    uint32_t shift = BLOCK_BITS - run->bits;
    for (int table = 0; table < asked->exact; table++) {
        uint32_t slot = (uint32_t)(rotated(asked->hash, table) >> (64 - BLOCK_BITS)) >> shift;
        places[count].table = table;
        places[count++].slot = slot;
        for (uint32_t bit = 0; table < asked->near && bit < run->bits; bit++) {
            places[count].table = table;
            places[count++].slot = slot ^ (uint32_t)1 << bit;
        }
    }
    for (int place = 0; place < count; place++)
        __builtin_prefetch(run->tables[places[place].table].directory + places[place].slot);
    for (int place = 0; place < count; place++) {
        const Table *part = &run->tables[places[place].table];
        __builtin_prefetch(part->hashes + part->directory[places[place].slot]);
    }
    for (int place = 0; place < count; place++) {
        int table = places[place].table;
        const Table *part = &run->tables[table];
        uint32_t begin = part->directory[places[place].slot], end = part->directory[places[place].slot + 1];
        if (end > run->count)
            end = run->count; /* of a damaged file: no more than is there */
        if (SCAN(scan_slot)(asked, part, table, begin, end, matches) < 0)
            return -1;
    }
    return 0;
}

static PyObject *listed(Matches *matches, int failed) {
    PyObject *list = failed ? PyErr_NoMemory() : PyList_New((Py_ssize_t)matches->count);
    for (size_t at = 0; list && at < matches->count; at++) {
        PyObject *pair = Py_BuildValue("(Ii)", (unsigned)matches->found[at].id, matches->found[at].distance);
        if (!pair)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)at, pair);
    }
    PyMem_RawFree(matches->found);
    return list;
}

static int asked_distance(PyObject *number, int *distance) {
    long given = PyLong_AsLong(number);
    if (given == -1 && PyErr_Occurred())
        return -1;
    if (given < 0 || given > 7) {
        PyErr_SetString(PyExc_ValueError, "four tables answer for distances 0 to 7");
        return -1;
    }
    *distance = (int)given;
    return 0;
}

static PyObject *near_find(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    (void)self;
    int distance;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "near_find(runs, simhash, distance)");
        return NULL;
    }
    uint64_t hash = PyLong_AsUnsignedLongLong(given[1]);
    if (PyErr_Occurred() || asked_distance(given[2], &distance) < 0)
        return NULL;
    PyObject *runs = PySequence_Fast(given[0], "runs are a sequence");
    if (!runs)
        return NULL;
    Question asked = question(hash, distance);
    Matches matches = {0};
    int failed = 0;
    for (Py_ssize_t at = 0; !failed && at < PySequence_Fast_GET_SIZE(runs); at++) {
        Py_buffer view;
        Run run;
        if (PyObject_GetBuffer(PySequence_Fast_GET_ITEM(runs, at), &view, PyBUF_SIMPLE) < 0)
            break;
        if (open_run(&view, &run) < 0)
            PyErr_SetString(PyExc_ValueError, "not a run of fingerprints");
        else
            failed = search_run(&run, &asked, &matches) < 0;
        PyBuffer_Release(&view);
        if (PyErr_Occurred())
            break;
    }
    Py_DECREF(runs);
    if (PyErr_Occurred()) {
        PyMem_RawFree(matches.found);
        return NULL;
    }
    return listed(&matches, failed);
}

static PyObject *near_scan(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    (void)self;
    int distance;
    Py_buffer view;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "near_scan(entries, simhash, distance)");
        return NULL;
    }
    uint64_t hash = PyLong_AsUnsignedLongLong(given[1]);
    if (PyErr_Occurred() || asked_distance(given[2], &distance) < 0 ||
        PyObject_GetBuffer(given[0], &view, PyBUF_SIMPLE) < 0)
        return NULL;
    Matches matches = {0};
    int failed = SCAN(scan_all)(hash, distance, view.buf, (size_t)view.len / ENTRY, &matches) < 0;
    PyBuffer_Release(&view);
    return listed(&matches, failed);
}

static int by_hash(const void *one, const void *other) {
    const Entry *left = one, *right = other;
    if (left->hash != right->hash)
        return left->hash < right->hash ? -1 : 1;
    return left->id < right->id ? -1 : left->id > right->id;
}

/* One sorted source of a merge: where it stands, and what is left of it. */
typedef struct {
    const uint64_t *hashes;
    const uint32_t *ids;
    size_t left;
} Source;

/* One table of the run that is written: all sources, the least (hash, id) first. */
static void merge_table(char *at, size_t total, uint32_t bits, Source *sources, size_t count, const Entry *entry,
                        size_t entries) {
    uint32_t *directory = (uint32_t *)at;
    uint64_t *hashes = (uint64_t *)(at + padded(4 * (((size_t)1 << bits) + 1)));
    uint32_t *ids = (uint32_t *)((char *)hashes + 8 * total);
    size_t slots = (size_t)1 << bits, slot = 0;
    for (size_t written = 0; written < total; written++) {
        Source *least = NULL;
        for (size_t one = 0; one < count; one++) {
            Source *source = &sources[one];
            if (source->left && (!least || *source->hashes < *least->hashes ||
                                 (*source->hashes == *least->hashes && *source->ids < *least->ids)))
                least = source;
        }
        uint64_t hash;
        uint32_t id;
        if (entries && (!least || entry->hash < *least->hashes ||
                        (entry->hash == *least->hashes && entry->id < *least->ids))) {
            hash = entry->hash;
            id = entry->id;
            entry++;
            entries--;
        } else {
            hash = *least->hashes++;
            id = *least->ids++;
            least->left--;
        }
        size_t own = bits ? (size_t)(hash >> (64 - bits)) : 0;
        while (slot <= own)
            directory[slot++] = (uint32_t)written;
        hashes[written] = hash;
        ids[written] = id;
    }
    while (slot <= slots)
        directory[slot++] = (uint32_t)total;
}

static void merge(char *out, const Run *runs, size_t count, Source *sources, Entry *entries, size_t new, size_t total) {
    uint64_t magic = MAGIC;
    uint32_t size = (uint32_t)total, bits = directory_bits(total);
    memcpy(out, &magic, 8);
    memcpy(out + 8, &size, 4);
    memcpy(out + 12, &bits, 4);
    out += HEADER;
    for (int table = 0; table < TABLES; table++, out += table_size(total, bits)) {
        for (size_t one = 0; one < count; one++)
            sources[one] = (Source){runs[one].tables[table].hashes, runs[one].tables[table].ids, runs[one].count};
        for (size_t one = 0; table && one < new; one++)
            entries[one].hash = rotated(entries[one].hash, 1);
        qsort(entries, new, sizeof *entries, by_hash);
        merge_table(out, total, bits, sources, count, entries, new);
    }
}

static PyObject *near_merge(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer out, packed;
    PyObject *given, *result = NULL;
    if (!PyArg_ParseTuple(args, "w*Oy*:near_merge", &out, &given, &packed))
        return NULL;
    PyObject *fast = PySequence_Fast(given, "runs are a sequence");
    size_t count = fast ? (size_t)PySequence_Fast_GET_SIZE(fast) : 0, held = 0;
    size_t new = (size_t)packed.len / ENTRY, total = new;
    Py_buffer *views = PyMem_RawCalloc(count + 1, sizeof *views);
    Run *runs = PyMem_RawCalloc(count + 1, sizeof *runs);
    Source *sources = PyMem_RawCalloc(count + 1, sizeof *sources);
    Entry *entries = PyMem_RawCalloc(new + 1, sizeof *entries);
    if (!views || !runs || !sources || !entries)
        PyErr_NoMemory();
    for (; fast && !PyErr_Occurred() && held < count; held++) {
        if (PyObject_GetBuffer(PySequence_Fast_GET_ITEM(fast, (Py_ssize_t)held), &views[held], PyBUF_SIMPLE) < 0)
            break;
        if (open_run(&views[held], &runs[held]) < 0)
            PyErr_SetString(PyExc_ValueError, "not a run of fingerprints");
        total += runs[held].count;
    }
    if (!PyErr_Occurred() && (total > UINT32_MAX || (uintptr_t)out.buf & 7 ||
                              (size_t)out.len != HEADER + TABLES * table_size(total, directory_bits(total))))
        PyErr_SetString(PyExc_ValueError, "the room for the merged run is not of its size");
    if (!PyErr_Occurred()) {
        const char *at = packed.buf;
        for (size_t one = 0; one < new; one++, at += ENTRY) {
            memcpy(&entries[one].hash, at, 8);
            memcpy(&entries[one].id, at + 8, 4);
        }
        Py_BEGIN_ALLOW_THREADS
        merge(out.buf, runs, count, sources, entries, new, total);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    while (held--)
        PyBuffer_Release(&views[held]);
    PyMem_RawFree(views);
    PyMem_RawFree(runs);
    PyMem_RawFree(sources);
    PyMem_RawFree(entries);
    Py_XDECREF(fast);
    PyBuffer_Release(&out);
    PyBuffer_Release(&packed);
    return result;
}

PyMethodDef nephila_near_methods[] = {
    {"near_find", (PyCFunction)(void (*)(void))near_find, METH_FASTCALL,
     "near_find(runs, simhash, distance) -> [(id, distance)]: what the runs hold within that distance."},
    {"near_scan", (PyCFunction)(void (*)(void))near_scan, METH_FASTCALL,
     "near_scan(entries, simhash, distance) -> [(id, distance)]: the same of packed entries in any order."},
    {"near_merge", near_merge, METH_VARARGS,
     "near_merge(out, runs, entries): write one run that holds what runs and packed entries hold."},
    {NULL, NULL, 0, NULL},
};
