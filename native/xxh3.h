/* XXH3 with 128 bits, seeded, for short texts, by its published specification.
 *
 * The fingerprint of a URL (`nephila.urls.fingerprint`) is this hash of its normal form; nearly all URLs are shorter than
 * the 240 bytes from which on the algorithm works in stripes. For longer ones the caller asks the library.
 */
#ifndef NEPHILA_XXH3_H
#define NEPHILA_XXH3_H

#include <stddef.h>
#include <stdint.h>

#define XXH3_LONGEST 240

typedef struct {
    uint64_t low, high;
} Xxh128;

/* The hash of at most XXH3_LONGEST bytes. */
Xxh128 nephila_xxh3_128(const unsigned char *text, size_t length, uint64_t seed);

/* Its canonical form: sixteen bytes, the high half first, big-endian. */
void nephila_xxh3_digest(Xxh128 hash, unsigned char digest[16]);

#endif
