/* Segments and endings of paths that mean something to a rule (see `frontier/scope.py` and `frontier/score.py`). */
#include "paths.h"
#include "plain.h"

#define MOST_SEGMENTS 24
static const char *const TABLE_NAME = "nephila_native.words";

static inline unsigned char lowered(char character) {
    return (unsigned char)(character >= 'A' && character <= 'Z' ? character | 32 : character);
}

/* Up to eight bytes as a number. */
static inline uint64_t eight_of(const char *text, Py_ssize_t length) {
    uint64_t value = 0;
    uint32_t first, last;
    if (length >= 8) {
        memcpy(&value, text, 8);
    } else if (length >= 4) { /* they overlap */
        memcpy(&first, text, 4);
        memcpy(&last, text + length - 4, 4);
        value = (uint64_t)last << 32 | first;
    } else {
        for (Py_ssize_t at = 0; at < length; at++)
            value |= (uint64_t)(unsigned char)text[at] << 8 * at;
    }
    return value;
}

/* The same for upper and lower case, and now and then for what differs: whoever finds something by it looks twice. */
static uint64_t word_hash(const char *word, Py_ssize_t length) {
    uint64_t hash = (uint64_t)length;
    for (Py_ssize_t at = 0; at < length; at += 8) {
        hash = (hash ^ (eight_of(word + at, length - at) | UINT64_C(0x2020202020202020))) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return hash;
}

static int is_same_word(const char *slot, const char *word, Py_ssize_t length) {
    if (slot[0] != length)
        return 0;
    for (Py_ssize_t at = 0; at < length; at++)
        if ((unsigned char)slot[at + 1] != lowered(word[at]))
            return 0;
    return 1;
}

/* Where a word stands in the table, or would stand. Upper and lower case are the same. */
static char *word_slot(const Words *words, const char *word, Py_ssize_t length, uint64_t hash) {
    size_t at = (size_t)(hash ^ hash >> 32) & words->mask;
    while (words->slots[at][0] && !is_same_word(words->slots[at], word, length))
        at = (at + 1) & words->mask;
    return words->slots[at];
}

static void free_words(PyObject *capsule) {
    Words *words = PyCapsule_GetPointer(capsule, TABLE_NAME);
    if (words != NULL) {
        PyMem_Free(words->slots);
        PyMem_Free(words);
    }
}

static PyObject *word_table(PyObject *self, PyObject *argument) {
    PyObject *given = PySequence_Fast(argument, "words must be a sequence");
    if (given == NULL)
        return NULL;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(given);
    size_t size = 16;
    while (size < (size_t)count * 4)
        size *= 2;
    Words *words = PyMem_Malloc(sizeof *words);
    char(*slots)[LONGEST_WORD] = PyMem_Calloc(size, LONGEST_WORD);
    PyObject *capsule = NULL;
    if (words == NULL || slots == NULL) {
        PyErr_NoMemory();
    } else {
        *words = (Words){size - 1, slots};
        Py_ssize_t at = 0;
        for (; at < count; at++) {
            Py_ssize_t length;
            const char *word = ascii_text(PySequence_Fast_GET_ITEM(given, at), &length);
            if (word == NULL || length < 1 || length >= LONGEST_WORD) {
                PyErr_SetString(PyExc_ValueError, "a word of the table has 1 to 31 ASCII characters");
                break;
            }
            char *slot = word_slot(words, word, length, word_hash(word, length));
            slot[0] = (char)length;
            memcpy(slot + 1, word, (size_t)length);
        }
        if (at == count)
            capsule = PyCapsule_New(words, TABLE_NAME, free_words);
    }
    if (capsule == NULL) {
        PyMem_Free(words);
        PyMem_Free(slots);
    }
    Py_DECREF(given);
    return capsule;
}

static int holds_word(const Words *words, const char *text, Py_ssize_t length, uint64_t hash) {
    return length > 0 && length < LONGEST_WORD && word_slot(words, text, length, hash)[0] != 0;
}

/* Whether the file name at the end of a path has no ending, and no name before it, that means anything. */
static int is_plain_name(const char *from, const char *to, const Words *words) {
    const char *dot = to;
    while (dot > from && dot[-1] != '.')
        dot--;
    if (dot == from)
        return 1;
    return !holds_word(words, dot, to - dot, word_hash(dot, to - dot)) &&
           !holds_word(words, from, dot - 1 - from, word_hash(from, dot - 1 - from));
}

int nephila_is_plain_path(const char *url, Py_ssize_t path, Py_ssize_t length, const Words *words, Py_ssize_t repeats) {
    const char *end = url + length, *from = url + path + 1;
    uint64_t seen[MOST_SEGMENTS];
    Py_ssize_t segments = 0, same = 0;
    for (const char *at = from;; at++) {
        if (at < end && *at == ';')
            return 0;
        if (at < end && *at != '/' && *at != '?')
            continue;
        uint64_t hash = word_hash(from, at - from);
        if (segments == MOST_SEGMENTS || holds_word(words, from, at - from, hash))
            return 0;
        for (Py_ssize_t other = 0; other < segments; other++)
            if (seen[other] == hash) { /* or as good as: then Python looks */
                same++;
                break;
            }
        seen[segments++] = hash;
        if (at == end || *at == '?')
            return same + 1 < repeats && is_plain_name(from, at, words);
        from = at + 1;
    }
}

const Words *nephila_words(PyObject *table) {
    return PyCapsule_GetPointer(table, TABLE_NAME);
}

PyMethodDef nephila_paths_methods[] = {
    {"word_table", word_table, METH_O, "A set of short words, for the rules of the sieve."},
    {NULL, NULL, 0, NULL},
};
