/* The loops of PageRank (R3): names in sorted arrays, links as numbers, one step of the iteration.
 *
 * A *name* is 64 bits of a hash, so names are spread evenly, and a place among sorted ones is guessed rather than
 * searched. Arrays are `array.array` objects or mapped files, in the machine's own byte order; the twins in Python are
 * `ranking/words.py`, `ranking/adjacency.py` and `ranking/power.py`, and do every sum in the same order.
 */
#include "native.h"

#include <math.h>
#include <stdlib.h>

#define NOWHERE UINT32_MAX
#define FEW 24
#define MOST_GUESSES 24

/* A buffer of numbers of `size` bytes each; -1 with an exception where it is none. */
static int numbers(PyObject *given, Py_buffer *view, int size, int writable) {
    if (PyObject_GetBuffer(given, view, PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0)) < 0)
        return -1;
    if (view->len % size == 0 && (!view->len || ((uintptr_t)view->buf & (uintptr_t)(size - 1)) == 0))
        return 0;
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_ValueError, "these are no numbers of that size");
    return -1;
}

static void sort_few(uint64_t *words, size_t count) {
    for (size_t at = 1; at < count; at++) {
        uint64_t word = words[at];
        size_t to = at;
        for (; to > 0 && words[to - 1] > word; to--)
            words[to] = words[to - 1];
        words[to] = word;
    }
}

/* In place, by the leading byte first: without a second array, and names have all leading bytes. */
static void sort_words(uint64_t *words, size_t count, int shift) {
    if (count <= FEW) {
        sort_few(words, count);
        return;
    }
    size_t ends[256] = {0}, begins[256], heads[256];
    for (size_t at = 0; at < count; at++)
        ends[words[at] >> shift & 255]++;
    size_t sum = 0;
    for (int byte = 0; byte < 256; byte++) {
        begins[byte] = heads[byte] = sum;
        ends[byte] = sum += ends[byte];
    }
    for (int byte = 0; byte < 256; byte++)
        while (heads[byte] < ends[byte]) {
            uint64_t word = words[heads[byte]];
            int belongs = word >> shift & 255;
            while (belongs != byte) {
                uint64_t other = words[heads[belongs]];
                words[heads[belongs]++] = word;
                word = other;
                belongs = word >> shift & 255;
            }
            words[heads[byte]++] = word;
        }
    if (shift)
        for (int byte = 0; byte < 256; byte++)
            sort_words(words + begins[byte], ends[byte] - begins[byte], shift - 8);
}

static PyObject *sort_unique(PyObject *self, PyObject *given) {
    Py_buffer view;
    if (numbers(given, &view, 8, 1) < 0)
        return NULL;
    uint64_t *words = view.buf;
    size_t count = (size_t)view.len / 8, kept = 0;
    Py_BEGIN_ALLOW_THREADS;
    sort_words(words, count, 56);
    for (size_t at = 0; at < count; at++)
        if (!kept || words[kept - 1] != words[at])
            words[kept++] = words[at];
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&view);
    return PyLong_FromSize_t(kept);
}

/* Where a name stands among sorted ones. Guessed by its size some times, then halved: names may be anything. */
static uint32_t place_of(const uint64_t *names, size_t count, uint64_t name) {
    size_t low = 0, high = count; /* it is in [low, high) */
    for (int guesses = 0; low < high; guesses++) {
        uint64_t least = names[low], most = names[high - 1];
        if (name < least || name > most)
            return NOWHERE;
        size_t guess = low + (high - low) / 2;
        if (guesses < MOST_GUESSES && most > least)
            guess = low + (size_t)((double)(name - least) / (double)(most - least) * (double)(high - 1 - low));
        if (guess >= high)
            guess = high - 1;
        if (names[guess] == name)
            return (uint32_t)guess;
        if (names[guess] < name)
            low = guess + 1;
        else
            high = guess;
    }
    return NOWHERE;
}

static PyObject *find_words(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    Py_buffer names, wanted, places;
    if (nargs != 3) {
        PyErr_SetString(PyExc_TypeError, "find_words takes sorted names, wanted names and places");
        return NULL;
    }
    if (numbers(args[0], &names, 8, 0) < 0)
        return NULL;
    if (numbers(args[1], &wanted, 8, 0) < 0) {
        PyBuffer_Release(&names);
        return NULL;
    }
    if (numbers(args[2], &places, 4, 1) < 0) {
        PyBuffer_Release(&names);
        PyBuffer_Release(&wanted);
        return NULL;
    }
    size_t count = (size_t)names.len / 8, asked = (size_t)wanted.len / 8;
    int fits = (size_t)places.len / 4 == asked && count < NOWHERE;
    if (fits) {
        const uint64_t *words = wanted.buf;
        uint32_t *found = places.buf;
        Py_BEGIN_ALLOW_THREADS;
        for (size_t at = 0; at < asked; at++)
            found[at] = place_of(names.buf, count, words[at]);
        Py_END_ALLOW_THREADS;
    } else
        PyErr_SetString(PyExc_ValueError, "there must be a place for each wanted name");
    PyBuffer_Release(&names);
    PyBuffer_Release(&wanted);
    PyBuffer_Release(&places);
    if (!fits)
        return NULL;
    Py_RETURN_NONE;
}

static int by_number(const void *one, const void *two) {
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)two;
    return (a > b) - (a < b);
}

typedef struct {
    const uint64_t *names, *links, *counts;
    const uint32_t *standing, *nodes;
    uint32_t *targets, *degrees, *sizes;
    size_t known, all_links, rows, room, all_nodes;
} Joining;

/* Links of rows to numbers of nodes: each once, sorted, none to itself. SIZE_MAX where the arrays contradict. */
static size_t join_rows(const Joining *all) {
    size_t first = 0, used = 0;
    for (size_t row = 0; row < all->rows; row++) {
        size_t count = all->counts[row];
        uint32_t node = all->nodes[row];
        if (count > all->all_links - first || (node != NOWHERE && (node >= all->all_nodes || count > all->room - used)))
            return SIZE_MAX;
        if (node != NOWHERE) {
            uint32_t *own = all->targets + used, outside = 0;
            size_t found = 0, kept = 0;
            for (size_t at = first; at < first + count; at++) {
                uint32_t place = place_of(all->names, all->known, all->links[at]);
                uint32_t target = place == NOWHERE ? NOWHERE : all->standing[place];
                if (target == NOWHERE)
                    outside++;
                else if (target != node)
                    own[found++] = target;
            }
            qsort(own, found, sizeof *own, by_number);
            for (size_t at = 0; at < found; at++)
                if (!kept || own[kept - 1] != own[at])
                    own[kept++] = own[at];
            all->sizes[node] = (uint32_t)kept;
            all->degrees[node] = (uint32_t)kept + outside;
            used += kept;
        }
        first += count;
    }
    return used;
}

static PyObject *join_links(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    static const int SIZES[] = {8, 4, 8, 8, 4, 4, 4, 4};
    Py_buffer views[8];
    int got = 0;
    if (nargs != 8) {
        PyErr_SetString(PyExc_TypeError, "join_links takes eight arrays");
        return NULL;
    }
    while (got < 8 && numbers(args[got], &views[got], SIZES[got], got >= 5) == 0)
        got++;
    size_t used = SIZE_MAX;
    if (got == 8) {
        Joining all = {
            .names = views[0].buf, .standing = views[1].buf, .links = views[2].buf, .counts = views[3].buf,
            .nodes = views[4].buf, .targets = views[5].buf, .degrees = views[6].buf, .sizes = views[7].buf,
            .known = (size_t)views[0].len / 8, .all_links = (size_t)views[2].len / 8,
            .rows = (size_t)views[3].len / 8, .room = (size_t)views[5].len / 4, .all_nodes = (size_t)views[6].len / 4,
        };
        if (views[1].len / 4 == views[0].len / 8 && views[4].len / 4 == views[3].len / 8
            && views[6].len == views[7].len) {
            Py_BEGIN_ALLOW_THREADS;
            used = join_rows(&all);
            Py_END_ALLOW_THREADS;
        }
        if (used == SIZE_MAX)
            PyErr_SetString(PyExc_ValueError, "the arrays of links contradict each other");
    }
    while (got--)
        PyBuffer_Release(&views[got]);
    return used == SIZE_MAX ? NULL : PyLong_FromSize_t(used);
}

/* Every node hands `damping` of its rank on, in equal parts to all its links, those that lead outside included. */
static int hand_on(const double *ranks, const uint32_t *degrees, const uint32_t *sizes, const uint32_t *targets,
                   double *next, size_t nodes, size_t links, double damping) {
    size_t first = 0;
    for (size_t node = 0; node < nodes; node++)
        next[node] = 0.0;
    for (size_t node = 0; node < nodes; node++) {
        size_t size = sizes[node];
        if (size > links - first || size > degrees[node])
            return -1;
        if (!size)
            continue;
        double part = damping * ranks[node] / (double)degrees[node];
        for (size_t at = first; at < first + size; at++) {
            if (targets[at] >= nodes)
                return -1;
            next[targets[at]] += part;
        }
        first += size;
    }
    return first == links ? 0 : -1;
}

/* What was not handed on to a node jumps, in equal parts to those that may be jumped to; how much has changed. */
static double jump(const double *ranks, double *next, const unsigned char *jumps, size_t nodes) {
    double sum = 0.0, change = 0.0;
    size_t goals = 0;
    for (size_t node = 0; node < nodes; node++) {
        sum += next[node];
        goals += jumps[node] != 0;
    }
    double part = goals ? (1.0 - sum) / (double)goals : 0.0;
    for (size_t node = 0; node < nodes; node++) {
        if (jumps[node])
            next[node] += part;
        change += fabs(next[node] - ranks[node]);
    }
    return change;
}

static PyObject *rank_step(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
    static const int SIZES[] = {8, 4, 4, 4, 1, 8};
    Py_buffer views[6];
    int got = 0, whole = -1;
    double change = 0.0, damping = nargs == 7 ? PyFloat_AsDouble(args[6]) : 0.0;
    if (nargs != 7) {
        PyErr_SetString(PyExc_TypeError, "rank_step takes six arrays and the damping");
        return NULL;
    }
    if (damping == -1.0 && PyErr_Occurred())
        return NULL;
    while (got < 6 && numbers(args[got], &views[got], SIZES[got], got == 5) == 0)
        got++;
    if (got == 6) {
        size_t nodes = (size_t)views[0].len / 8;
        if ((size_t)views[1].len / 4 == nodes && (size_t)views[2].len / 4 == nodes && (size_t)views[4].len == nodes
            && (size_t)views[5].len / 8 == nodes) {
            Py_BEGIN_ALLOW_THREADS;
            whole = hand_on(views[0].buf, views[1].buf, views[2].buf, views[3].buf, views[5].buf, nodes,
                            (size_t)views[3].len / 4, damping);
            if (whole == 0)
                change = jump(views[0].buf, views[5].buf, views[4].buf, nodes);
            Py_END_ALLOW_THREADS;
        }
        if (whole < 0)
            PyErr_SetString(PyExc_ValueError, "the arrays of the graph contradict each other");
    }
    while (got--)
        PyBuffer_Release(&views[got]);
    return whole < 0 ? NULL : PyFloat_FromDouble(change);
}

PyMethodDef nephila_ranking_methods[] = {
    {"find_words", (PyCFunction)(void (*)(void))find_words, METH_FASTCALL, "Where names stand among sorted ones."},
    {"join_links", (PyCFunction)(void (*)(void))join_links, METH_FASTCALL, "Links by name to links by number."},
    {"rank_step", (PyCFunction)(void (*)(void))rank_step, METH_FASTCALL, "One step of PageRank; how much has changed."},
    {"sort_unique", sort_unique, METH_O, "Sort 64-bit words in place, each once in front; how many there are."},
    {NULL, NULL, 0, NULL},
};
