/* See xxh3.h. Little-endian machines only. */
#include "xxh3.h"

#include <string.h>

static const unsigned char SECRET[192] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

#define PRIME32_1 0x9E3779B1U
#define PRIME32_2 0x85EBCA77U
#define PRIME32_3 0xC2B2AE3DU
#define PRIME64_1 0x9E3779B185EBCA87ULL
#define PRIME64_2 0xC2B2AE3D27D4EB4FULL
#define PRIME64_3 0x165667B19E3779F9ULL
#define PRIME64_4 0x85EBCA77C2B2AE63ULL
#define PRIME64_5 0x27D4EB2F165667C5ULL
#define PRIME_MX1 0x165667919E3779F9ULL
#define PRIME_MX2 0x9FB21C651E98DF25ULL

typedef unsigned __int128 Wide;

static inline uint32_t read32(const unsigned char *at) {
    uint32_t word;
    memcpy(&word, at, 4);
    return word;
}

static inline uint64_t read64(const unsigned char *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

static inline uint64_t shift_mixed(uint64_t value, int bits) {
    return value ^ value >> bits;
}

static uint64_t avalanche64(uint64_t hash) { /* of XXH64 */
    hash = shift_mixed(hash, 33) * PRIME64_2;
    hash = shift_mixed(hash, 29) * PRIME64_3;
    return shift_mixed(hash, 32);
}

static uint64_t avalanche3(uint64_t hash) { /* of XXH3 */
    return shift_mixed(shift_mixed(hash, 37) * PRIME_MX1, 32);
}

static uint64_t folded(uint64_t one, uint64_t other) {
    Wide product = (Wide)one * other;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static Xxh128 of_1_to_3(const unsigned char *text, size_t length, uint64_t seed) {
    uint32_t combined = (uint32_t)text[0] << 16 | (uint32_t)text[length >> 1] << 24 | text[length - 1] | (uint32_t)length << 8;
    uint32_t swapped = __builtin_bswap32(combined);
    uint32_t turned = swapped << 13 | swapped >> 19;
    uint64_t low = (uint64_t)(read32(SECRET) ^ read32(SECRET + 4)) + seed;
    uint64_t high = (uint64_t)(read32(SECRET + 8) ^ read32(SECRET + 12)) - seed;
    return (Xxh128){avalanche64(combined ^ low), avalanche64(turned ^ high)};
}

static Xxh128 of_4_to_8(const unsigned char *text, size_t length, uint64_t seed) {
    seed ^= (uint64_t)__builtin_bswap32((uint32_t)seed) << 32;
    uint64_t input = read32(text) + ((uint64_t)read32(text + length - 4) << 32);
    uint64_t keyed = input ^ ((read64(SECRET + 16) ^ read64(SECRET + 24)) + seed);
    Wide product = (Wide)keyed * (PRIME64_1 + ((uint64_t)length << 2));
    uint64_t low = (uint64_t)product, high = (uint64_t)(product >> 64);
    high += low << 1;
    low ^= high >> 3;
    low = shift_mixed(low, 35) * PRIME_MX2;
    return (Xxh128){shift_mixed(low, 28), avalanche3(high)};
}

static Xxh128 of_9_to_16(const unsigned char *text, size_t length, uint64_t seed) {
    uint64_t flip_low = (read64(SECRET + 32) ^ read64(SECRET + 40)) - seed;
    uint64_t flip_high = (read64(SECRET + 48) ^ read64(SECRET + 56)) + seed;
    uint64_t first = read64(text), last = read64(text + length - 8);
    Wide product = (Wide)(first ^ last ^ flip_low) * PRIME64_1;
    uint64_t low = (uint64_t)product + ((uint64_t)(length - 1) << 54), high = (uint64_t)(product >> 64);
    last ^= flip_high;
    high += last + (uint64_t)(uint32_t)last * (PRIME32_2 - 1);
    low ^= __builtin_bswap64(high);
    product = (Wide)low * PRIME64_2;
    uint64_t higher = (uint64_t)(product >> 64) + high * PRIME64_2;
    return (Xxh128){avalanche3((uint64_t)product), avalanche3(higher)};
}

static uint64_t mixed16(const unsigned char *text, const unsigned char *secret, uint64_t seed) {
    return folded(read64(text) ^ (read64(secret) + seed), read64(text + 8) ^ (read64(secret + 8) - seed));
}

static void mix32(Xxh128 *sum, const unsigned char *one, const unsigned char *other, const unsigned char *secret, uint64_t seed) {
    sum->low += mixed16(one, secret, seed);
    sum->low ^= read64(other) + read64(other + 8);
    sum->high += mixed16(other, secret + 16, seed);
    sum->high ^= read64(one) + read64(one + 8);
}

static Xxh128 finished(Xxh128 sum, size_t length, uint64_t seed) {
    uint64_t low = sum.low + sum.high;
    uint64_t high = sum.low * PRIME64_1 + sum.high * PRIME64_4 + ((uint64_t)length - seed) * PRIME64_2;
    return (Xxh128){avalanche3(low), 0 - avalanche3(high)};
}

static Xxh128 of_17_to_128(const unsigned char *text, size_t length, uint64_t seed) {
    Xxh128 sum = {length * PRIME64_1, 0};
    for (size_t pair = (length - 1) / 32 + 1; pair-- > 0;)
        mix32(&sum, text + 16 * pair, text + length - 16 * (pair + 1), SECRET + 32 * pair, seed);
    return finished(sum, length, seed);
}

static Xxh128 of_129_to_240(const unsigned char *text, size_t length, uint64_t seed) {
    Xxh128 sum = {length * PRIME64_1, 0};
    for (size_t at = 32; at < 160; at += 32)
        mix32(&sum, text + at - 32, text + at - 16, SECRET + at - 32, seed);
    sum.low = avalanche3(sum.low);
    sum.high = avalanche3(sum.high);
    for (size_t at = 160; at <= length; at += 32)
        mix32(&sum, text + at - 32, text + at - 16, SECRET + 3 + at - 160, seed);
    mix32(&sum, text + length - 16, text + length - 32, SECRET + 136 - 17 - 16, 0 - seed);
    return finished(sum, length, seed);
}

Xxh128 nephila_xxh3_128(const unsigned char *text, size_t length, uint64_t seed) {
    if (length > 128)
        return of_129_to_240(text, length, seed);
    if (length > 16)
        return of_17_to_128(text, length, seed);
    if (length > 8)
        return of_9_to_16(text, length, seed);
    if (length >= 4)
        return of_4_to_8(text, length, seed);
    if (length > 0)
        return of_1_to_3(text, length, seed);
    uint64_t low = read64(SECRET + 64) ^ read64(SECRET + 72), high = read64(SECRET + 80) ^ read64(SECRET + 88);
    return (Xxh128){avalanche64(seed ^ low), avalanche64(seed ^ high)};
}

void nephila_xxh3_digest(Xxh128 hash, unsigned char digest[16]) {
    uint64_t high = __builtin_bswap64(hash.high), low = __builtin_bswap64(hash.low);
    memcpy(digest, &high, 8);
    memcpy(digest + 8, &low, 8);
}
