/* What the loops over links share (`frontier.c`, `queueing.c`): the sizes of keys and marks, how a candidate is read, and
 * XXH32.
 */
#ifndef NEPHILA_CANDIDATES_H
#define NEPHILA_CANDIDATES_H

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

static inline uint32_t xxh32(const unsigned char *at, size_t length, uint32_t seed) {
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

#endif
