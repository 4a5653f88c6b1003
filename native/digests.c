/* Digests of an answer by the processor's own instructions, several at a time (see `model/digests.py`).
 *
 * A round of SHA waits for the one before it, and the processor has time to spare meanwhile. So the blocks of different
 * digests are taken in turns: what the archive wants of a page costs little more than the digest of its content alone.
 * Where there are no such instructions, None is the answer, and the twin does it.
 */
#include "native.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>

#define WITH_SHA __attribute__((target("sha,sse4.1,ssse3")))
enum { BLOCK = 64, LONG = 1 << 18 };

static int has_sha(void) {
    static int known = -1;
    unsigned a, b, c, d;
    if (known < 0)
        known = __get_cpuid(1, &a, &b, &c, &d) && c & bit_SSSE3 && c & bit_SSE4_1 && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
                b & bit_SHA;
    return known;
}

static const uint32_t ROUNDS[64] __attribute__((aligned(16))) = {
    0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4, 0xAB1C5ED5, 0xD807AA98, 0x12835B01,
    0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE, 0x9BDC06A7, 0xC19BF174, 0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC,
    0x2DE92C6F, 0x4A7484AA, 0x5CB0A9DC, 0x76F988DA, 0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7, 0xC6E00BF3, 0xD5A79147,
    0x06CA6351, 0x14292967, 0x27B70A85, 0x2E1B2138, 0x4D2C6DFC, 0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85,
    0xA2BFE8A1, 0xA81A664B, 0xC24B8B70, 0xC76C51A3, 0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070, 0x19A4C116, 0x1E376C08,
    0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F, 0x682E6FF3, 0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208,
    0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7, 0xC67178F2,
};

/* A digest that is being made, of two pieces one behind the other. Its state is as the instructions want it: for SHA-256
 * {A, B, E, F} and {C, D, G, H}, for SHA-1 {A, B, C, D} and {E}. */
typedef struct {
    __m128i one, two;
    const unsigned char *pieces[2];
    size_t sizes[2], left, whole;
    unsigned char last[2 * BLOCK]; /* the end, with what goes behind it */
    size_t last_left;
} digest;

static inline WITH_SHA void sha256_block(digest *self, const unsigned char *bytes) {
    const __m128i swap = _mm_set_epi64x(0x0C0D0E0F08090A0B, 0x0405060700010203);
    __m128i words[16], abef = self->one, cdgh = self->two;
    for (int at = 0; at < 4; at++)
        words[at] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)bytes + at), swap);
#pragma GCC unroll 16
    for (int at = 0; at < 16; at++) {
        __m128i added = _mm_add_epi32(words[at], _mm_load_si128((const __m128i *)ROUNDS + at));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0E));
        if (at < 12)
            words[at + 4] = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(words[at], words[at + 1]),
                                                               _mm_alignr_epi8(words[at + 3], words[at + 2], 4)),
                                                 words[at + 3]);
    }
    self->one = _mm_add_epi32(self->one, abef);
    self->two = _mm_add_epi32(self->two, cdgh);
}

#define SHA1_ROUNDS(from, function)                                                                                    \
    _Pragma("GCC unroll 5") for (int at = from; at < from + 5; at++) {                                                 \
        __m128i added = at ? _mm_sha1nexte_epu32(before, words[at]) : _mm_add_epi32(self->two, words[0]);              \
        before = abcd;                                                                                                 \
        abcd = _mm_sha1rnds4_epu32(abcd, added, function);                                                             \
        if (at < 16)                                                                                                   \
            words[at + 4] = _mm_sha1msg2_epu32(                                                                        \
                _mm_xor_si128(_mm_sha1msg1_epu32(words[at], words[at + 1]), words[at + 2]), words[at + 3]);            \
    }

static inline WITH_SHA void sha1_block(digest *self, const unsigned char *bytes) {
    const __m128i swap = _mm_set_epi64x(0x0001020304050607, 0x08090A0B0C0D0E0F);
    __m128i words[20], abcd = self->one, before = abcd;
    for (int at = 0; at < 4; at++)
        words[at] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)bytes + at), swap);
    SHA1_ROUNDS(0, 0)
    SHA1_ROUNDS(5, 1)
    SHA1_ROUNDS(10, 2)
    SHA1_ROUNDS(15, 3)
    self->two = _mm_sha1nexte_epu32(before, self->two);
    self->one = _mm_add_epi32(self->one, abcd);
}

/* What goes behind the bytes: a bit, zeros, and how many bits there were. Only whole blocks of the second piece are left
 * to be read where they lie, unless there is no first one. */
static void begin(digest *self, const unsigned char *first, size_t first_size, const unsigned char *second, size_t size) {
    uint64_t bits = 8 * (uint64_t)(first_size + size);
    size_t end = (first_size + size) % BLOCK;
    self->pieces[0] = first;
    self->pieces[1] = second;
    self->sizes[0] = first_size;
    self->sizes[1] = size;
    self->whole = self->left = (first_size + size) / BLOCK;
    memset(self->last, 0, sizeof self->last);
    for (size_t at = 0; at < end; at++) {
        size_t place = first_size + size - end + at;
        self->last[at] = place < first_size ? first[place] : second[place - first_size];
    }
    self->last[end] = 0x80;
    self->last_left = end + 9 <= BLOCK ? 1 : 2;
    for (int at = 0; at < 8; at++)
        self->last[self->last_left * BLOCK - 1 - (size_t)at] = (unsigned char)(bits >> 8 * at);
}

/* The next block; NULL when there is none. One that lies in both pieces is put together. */
static inline const unsigned char *next_block(digest *self, unsigned char room[BLOCK]) {
    if (self->left) {
        size_t from = (self->whole - self->left--) * BLOCK;
        if (from >= self->sizes[0])
            return self->pieces[1] + (from - self->sizes[0]);
        if (from + BLOCK <= self->sizes[0])
            return self->pieces[0] + from;
        size_t here = self->sizes[0] - from;
        memcpy(room, self->pieces[0] + from, here);
        memcpy(room + here, self->pieces[1], BLOCK - here);
        return room;
    }
    if (self->last_left) {
        const unsigned char *block = self->last + (self->whole == SIZE_MAX ? BLOCK : 0);
        self->last_left--;
        self->whole = SIZE_MAX; /* the second of them comes next */
        return block;
    }
    return NULL;
}

static WITH_SHA void begin_sha256(digest *self) {
    self->one = _mm_set_epi32(0x6A09E667, (int)0xBB67AE85, 0x510E527F, (int)0x9B05688C);
    self->two = _mm_set_epi32(0x3C6EF372, (int)0xA54FF53A, 0x1F83D9AB, 0x5BE0CD19);
}

static WITH_SHA void begin_sha1(digest *self) {
    self->one = _mm_set_epi32(0x67452301, (int)0xEFCDAB89, (int)0x98BADCFE, 0x10325476);
    self->two = _mm_set_epi32((int)0xC3D2E1F0, 0, 0, 0);
}

static void put_words(unsigned char *to, const uint32_t *words, int count) {
    for (int at = 0; at < count; at++)
        for (int byte = 0; byte < 4; byte++)
            to[4 * at + byte] = (unsigned char)(words[at] >> (24 - 8 * byte));
}

static WITH_SHA void end_sha256(const digest *self, unsigned char out[32]) {
    uint32_t fe[4], hg[4];
    _mm_storeu_si128((__m128i *)fe, self->one);
    _mm_storeu_si128((__m128i *)hg, self->two);
    put_words(out, (uint32_t[8]){fe[3], fe[2], hg[3], hg[2], fe[1], fe[0], hg[1], hg[0]}, 8);
}

static WITH_SHA void end_sha1(const digest *self, unsigned char out[20]) {
    uint32_t dcba[4], e[4];
    _mm_storeu_si128((__m128i *)dcba, self->one);
    _mm_storeu_si128((__m128i *)e, self->two);
    put_words(out, (uint32_t[5]){dcba[3], dcba[2], dcba[1], dcba[0], e[3]}, 5);
}

/* In turns, block by block: the content with the payload, which is shorter as a rule, then with the whole answer. More
 * than two at a time are more than the processor looks ahead. */
static WITH_SHA void run(digest *content, digest *payload, digest *whole) {
    unsigned char rooms[2][BLOCK];
    const unsigned char *one, *two;
    do {
        if ((one = next_block(content, rooms[0])))
            sha256_block(content, one);
        if ((two = next_block(payload, rooms[1])))
            sha1_block(payload, two);
        else if ((two = next_block(whole, rooms[1])))
            sha1_block(whole, two);
    } while (one || two);
}

static PyObject *answer_digests(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    if (count != 3 || !PyBytes_Check(given[0]) || !PyBytes_Check(given[1]) || !PyBytes_Check(given[2])) {
        PyErr_SetString(PyExc_TypeError, "answer_digests(body: bytes, head: bytes, payload: bytes)");
        return NULL;
    }
    if (!has_sha())
        Py_RETURN_NONE;
    const unsigned char *parts[3];
    size_t sizes[3];
    for (int at = 0; at < 3; at++) {
        parts[at] = (const unsigned char *)PyBytes_AS_STRING(given[at]);
        sizes[at] = (size_t)PyBytes_GET_SIZE(given[at]);
    }
    digest content, payload, whole;
    unsigned char out[32 + 20 + 20];
    begin(&content, parts[0], sizes[0], parts[0], 0);
    begin(&payload, parts[2], sizes[2], parts[2], 0);
    begin(&whole, parts[1], sizes[1], parts[2], sizes[2]);
    begin_sha256(&content);
    begin_sha1(&payload);
    begin_sha1(&whole);
    PyThreadState *state = sizes[0] + sizes[2] > LONG ? PyEval_SaveThread() : NULL;
    run(&content, &payload, &whole);
    if (state)
        PyEval_RestoreThread(state);
    end_sha256(&content, out);
    end_sha1(&payload, out + 32);
    end_sha1(&whole, out + 52);
    return Py_BuildValue("(y#y#y#)", out, (Py_ssize_t)32, out + 32, (Py_ssize_t)20, out + 52, (Py_ssize_t)20);
}

static WITH_SHA void run_sha1(digest *self) {
    unsigned char room[BLOCK];
    for (const unsigned char *block; (block = next_block(self, room));)
        sha1_block(self, block);
}

static PyObject *sha1(PyObject *self, PyObject *given) {
    if (!PyBytes_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "sha1(data: bytes)");
        return NULL;
    }
    if (!has_sha())
        Py_RETURN_NONE;
    digest made;
    unsigned char out[20];
    begin(&made, (const unsigned char *)PyBytes_AS_STRING(given), (size_t)PyBytes_GET_SIZE(given), out, 0);
    begin_sha1(&made);
    PyThreadState *state = PyBytes_GET_SIZE(given) > LONG ? PyEval_SaveThread() : NULL;
    run_sha1(&made);
    if (state)
        PyEval_RestoreThread(state);
    end_sha1(&made, out);
    return PyBytes_FromStringAndSize((const char *)out, sizeof out);
}
#else
static PyObject *answer_digests(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    Py_RETURN_NONE;
}

static PyObject *sha1(PyObject *self, PyObject *given) {
    Py_RETURN_NONE;
}
#endif

PyMethodDef nephila_digests_methods[] = {
    {"answer_digests", (PyCFunction)(void (*)(void))answer_digests, METH_FASTCALL,
     "SHA-256 of a body, SHA-1 of a payload and of a head with it; None where the processor has no such instructions."},
    {"sha1", sha1, METH_O, "SHA-1 of bytes; None where the processor has no such instructions."},
    {NULL, NULL, 0, NULL},
};
