/* XXH32, by its published specification; little-endian machines only, as everything that CPython's wheels run on. */
#ifndef NEPHILA_XXH32_H
#define NEPHILA_XXH32_H

#include <stdint.h>
#include <string.h>

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

#endif
