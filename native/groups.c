/* Candidates of a host as the functions of a fleet's frontier read them (`nephila.frontier.redis.asking`, where the twin is;
 * `lua/links.lua` says what the bytes mean). Once for every host that a page links to, and a step for every link.
 */
#include "native.h"
#include "xxh32.h"

enum {
    FINGERPRINT = 16,
    NAME = 8,
    HEAD = 7,
    EACH = 25,
    KIND_AT = 8,       /* of a candidate's facts: depth, class, hops, bonus */
    KIND = 5,
    ALIKE = 1 << 15,
    NO_LEVEL = 255,
    SHARED = 255,      /* bytes of the base that a tail may begin with; a rest as long says its length in two bytes more */
    LONGEST = 32767,
};

static void put32(unsigned char *at, uint32_t value) {
    at[0] = value >> 24, at[1] = value >> 16, at[2] = value >> 8, at[3] = value;
}

typedef struct {
    unsigned char *bytes;
    size_t length, room;
} Text;

static int grow(Text *text, size_t more) {
    if (text->length + more <= text->room)
        return 0;
    size_t room = 2 * (text->length + more);
    unsigned char *bytes = PyMem_Realloc(text->bytes, room);
    if (bytes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    text->bytes = bytes, text->room = room;
    return 0;
}

static int add(Text *text, const void *bytes, size_t length) {
    if (grow(text, length) < 0)
        return -1;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    return 0;
}

/* A URL without what its host tells: a mark of the scheme and the rest, or the whole behind a =. The mark is not in `rest`. */
static char tail_of(const char *host, size_t host_length, const char *url, size_t length, const char **rest, size_t *left) {
    static const struct {
        char mark;
        const char *scheme;
        size_t length;
    } schemes[] = {{'s', "https://", 8}, {'h', "http://", 7}};
    for (int one = 0; one < 2; one++) {
        size_t before = schemes[one].length + host_length;
        if (length > before && memcmp(url, schemes[one].scheme, schemes[one].length) == 0 &&
            memcmp(url + schemes[one].length, host, host_length) == 0 && memchr("/:?", url[before], 3) != NULL) {
            *rest = url + before, *left = length - before;
            return schemes[one].mark;
        }
    }
    *rest = url, *left = length;
    return '=';
}

/* A number that is cut off at 255; -1 with an exception set. */
static int small(PyObject *object) {
    long value = PyLong_AsLong(object);
    if (value == -1 && PyErr_Occurred())
        return -1;
    if (value < 0) {
        PyErr_SetString(PyExc_ValueError, "a number below zero");
        return -1;
    }
    return value > 255 ? 255 : (int)value;
}

typedef struct {
    const char *host;
    size_t host_length;
    uint32_t seed, salt;
    int draws, grade;
    Text facts, items, spelled; /* `spelled`: host and tail, for what breaks ties */
    const unsigned char *base;
    size_t base_length;
} Packing;

static int add_item(Packing *packing, const unsigned char *fingerprint, const unsigned char *tail, size_t length) {
    size_t most = length < packing->base_length ? length : packing->base_length, begins = 0;
    most = most < SHARED ? most : SHARED;
    while (begins < most && tail[begins] == packing->base[begins])
        begins++;
    size_t left = length - begins;
    unsigned char head[4] = {begins, left < SHARED ? left : SHARED, left >> 8, left};
    return add(&packing->items, fingerprint, FINGERPRINT) < 0 || add(&packing->items, head, left < SHARED ? 2 : 4) < 0 ||
                   add(&packing->items, tail + begins, left) < 0
               ? -1
               : 0;
}

/* Host and tail of a candidate into `spelled`, from its beginning. */
static int spell(Packing *packing, PyObject *address) {
    const char *rest;
    size_t left;
    Py_ssize_t length;
    const char *url = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(address, 0), &length);
    if (url == NULL)
        return -1;
    char mark = tail_of(packing->host, packing->host_length, url, length, &rest, &left);
    if (left > LONGEST - 1) {
        PyErr_SetString(PyExc_ValueError, "a URL is too long for a bundle");
        return -1;
    }
    packing->spelled.length = packing->host_length;
    return add(&packing->spelled, &mark, 1) < 0 ? -1 : add(&packing->spelled, rest, left);
}

static int add_candidate(Packing *packing, PyObject *candidate) {
    PyObject *address = PyTuple_GET_ITEM(candidate, 0), *level = PyTuple_GET_ITEM(candidate, 2);
    const unsigned char *fingerprint = (const unsigned char *)PyBytes_AS_STRING(PyTuple_GET_ITEM(address, 3));
    unsigned char *facts;
    if (spell(packing, address) < 0 || grow(&packing->facts, EACH) < 0)
        return -1;
    facts = packing->facts.bytes + packing->facts.length;
    int depth = small(PyTuple_GET_ITEM(candidate, 1)), class = level == Py_None ? NO_LEVEL : small(level);
    int hops = small(PyTuple_GET_ITEM(candidate, 3));
    long bonus = PyLong_AsLong(PyTuple_GET_ITEM(candidate, 4));
    if (depth < 0 || class < 0 || hops < 0 || (bonus == -1 && PyErr_Occurred()))
        return -1;
    if (bonus < -32768 || bonus > 32767) {
        PyErr_SetString(PyExc_ValueError, "a bonus of more than two bytes");
        return -1;
    }
    memcpy(facts, fingerprint, NAME);
    facts[8] = depth, facts[9] = class, facts[10] = hops, facts[11] = (unsigned long)bonus >> 8, facts[12] = bonus;
    uint32_t chance = 0;
    if (packing->draws) {
        Py_ssize_t length;
        const char *key = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(address, 2), &length);
        if (key == NULL)
            return -1;
        chance = xxh32((const unsigned char *)key, length, packing->salt);
    }
    put32(facts + 13, chance);
    put32(facts + 17, xxh32(packing->spelled.bytes, packing->spelled.length, packing->seed));
    put32(facts + 21, (uint32_t)packing->items.length);
    packing->facts.length += EACH;
    return add_item(packing, fingerprint, packing->spelled.bytes + packing->host_length,
                    packing->spelled.length - packing->host_length);
}

static int is_candidate(PyObject *object) {
    PyObject *address;
    return PyTuple_Check(object) && PyTuple_GET_SIZE(object) == 5 && PyTuple_Check(address = PyTuple_GET_ITEM(object, 0)) &&
           PyTuple_GET_SIZE(address) == 4 && PyUnicode_Check(PyTuple_GET_ITEM(address, 0)) &&
           PyUnicode_Check(PyTuple_GET_ITEM(address, 2)) && PyBytes_Check(PyTuple_GET_ITEM(address, 3)) &&
           PyBytes_GET_SIZE(PyTuple_GET_ITEM(address, 3)) == FINGERPRINT;
}

/* The base is the tail of the one in the middle: it stands before the items. */
static int begin(Packing *packing, PyObject *middle) {
    unsigned char head[HEAD] = {0};
    if (add(&packing->facts, head, HEAD) < 0 || add(&packing->spelled, packing->host, packing->host_length) < 0 ||
        spell(packing, PyTuple_GET_ITEM(middle, 0)) < 0)
        return -1;
    packing->base_length = packing->spelled.length - packing->host_length;
    return add(&packing->items, packing->spelled.bytes + packing->host_length, packing->base_length);
}

static int pack(Packing *packing, PyObject *candidates) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(candidates);
    PyObject **all = PySequence_Fast_ITEMS(candidates);
    for (Py_ssize_t at = 0; at < count; at++)
        if (!is_candidate(all[at])) {
            PyErr_SetString(PyExc_TypeError, "a candidate was expected");
            return -1;
        }
    if (begin(packing, all[count / 2]) < 0)
        return -1;
    unsigned char *base = PyMem_Malloc(packing->base_length); /* items may move while they grow */
    if (base == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(base, packing->items.bytes, packing->base_length);
    packing->base = base;
    int failed = 0, alike = 1;
    for (Py_ssize_t at = 0; at < count && !failed; at++) {
        failed = add_candidate(packing, all[at]) < 0;
        alike = alike && !failed &&
                memcmp(packing->facts.bytes + HEAD + KIND_AT, packing->facts.bytes + HEAD + at * EACH + KIND_AT, KIND) == 0;
    }
    PyMem_Free(base);
    if (failed)
        return -1;
    size_t length = packing->base_length | (alike ? ALIKE : 0);
    put32(packing->facts.bytes, xxh32((const unsigned char *)packing->host, packing->host_length, packing->seed));
    packing->facts.bytes[4] = length >> 8, packing->facts.bytes[5] = length, packing->facts.bytes[6] = packing->grade;
    return 0;
}

static PyObject *pack_group(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    Packing packing = {0};
    if (count != 5 || !PyUnicode_Check(arguments[0])) {
        PyErr_SetString(PyExc_TypeError, "pack_group(host, candidates, seed, salt, grade)");
        return NULL;
    }
    Py_ssize_t length;
    packing.host = PyUnicode_AsUTF8AndSize(arguments[0], &length);
    packing.host_length = length;
    packing.seed = (uint32_t)PyLong_AsUnsignedLongLongMask(arguments[2]);
    packing.draws = arguments[3] != Py_None;
    packing.salt = packing.draws ? (uint32_t)PyLong_AsUnsignedLongLongMask(arguments[3]) : 0;
    packing.grade = small(arguments[4]);
    if (packing.host == NULL || PyErr_Occurred())
        return NULL;
    PyObject *candidates = PySequence_Fast(arguments[1], "candidates must be a sequence"), *result = NULL;
    if (candidates == NULL)
        return NULL;
    if (PySequence_Fast_GET_SIZE(candidates) == 0)
        PyErr_SetString(PyExc_ValueError, "a group has a candidate");
    else if (pack(&packing, candidates) == 0)
        result = Py_BuildValue("y#y#", (char *)packing.facts.bytes, (Py_ssize_t)packing.facts.length,
                               (char *)packing.items.bytes, (Py_ssize_t)packing.items.length);
    PyMem_Free(packing.facts.bytes);
    PyMem_Free(packing.items.bytes);
    PyMem_Free(packing.spelled.bytes);
    Py_DECREF(candidates);
    return result;
}

PyMethodDef nephila_groups_methods[] = {
    {"pack_group", (PyCFunction)(void (*)(void))pack_group, METH_FASTCALL,
     "pack_group(host, candidates, seed, salt, grade): the facts and items of a host's candidates."},
    {NULL, NULL, 0, NULL},
};
