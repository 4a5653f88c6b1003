/* What the loops over links share (`frontier.c`, `queueing.c`): the sizes of keys and marks, and how a candidate is read.
 */
#ifndef NEPHILA_CANDIDATES_H
#define NEPHILA_CANDIDATES_H

#include "native.h"
#include "xxh32.h"

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

/* A candidate, as tuples: ((url, host, key, fingerprint), depth, level, hops, bonus). */

typedef struct {
    PyObject *url, *host, *key, *fingerprint, *depth, *level, *hops, *bonus;
} Candidate;

static inline int read_candidate(PyObject *object, Candidate *read) {
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

/* The rank that a known URL has after a link; -1 with an exception. `known` is a table of entries by rank, or None; the
 * text is the spelling that URLs are told apart by. */
static inline long risen(PyObject *known, unsigned char rank, const char *text, Py_ssize_t length, uint32_t salt) {
    if (known == Py_None)
        return rank;
    if (rank >= PyTuple_GET_SIZE(known)) {
        PyErr_SetString(PyExc_ValueError, "there is no such rank");
        return -1;
    }
    long long entry = PyLong_AsLongLong(PyTuple_GET_ITEM(known, rank));
    if (entry == -1 && PyErr_Occurred())
        return -1;
    return (long)((entry + xxh32((const unsigned char *)text, (size_t)length, salt)) >> 32);
}

/* What is at hand of a book: `arrivals.Ledger` and `arrivals.FIELDS` in the order of these. */

enum { STATES, REFERRERS, LEASED, STANDINGS, FIND, STAND, FIELDS, MOST, UNSECTIONED, BUNDLE_BYTES, SEED, WALL_S, NOW, LEDGER };
enum { NAME, QUEUED_BY_LANE, PLACE, READY_KEYS, REASON, WORK_SINCE, ADMITTED, REFERRED_BY, FLAGGED, SECTIONS, OVER, FIELD_COUNT };

#endif
