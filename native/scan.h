/* What the files of the scanner share. Its specification is the twin in Python, `nephila/parse/scan.py` and the files
 * beside it: the names here are the names there.
 */
#ifndef NEPHILA_SCAN_H
#define NEPHILA_SCAN_H

#include "native.h"
#include "scan_limits.h"

typedef const unsigned char *text;

/* Memory that only grows; `failed` stays set once there was none. */
typedef struct {
    unsigned char *bytes;
    size_t used, room;
    int failed;
} buffer;

int buffer_reserve(buffer *self, size_t more);

/* A character as UTF-8 into at least four bytes of room; returns how many it took. */
static inline size_t put_character(unsigned char *to, uint32_t code) {
    if (code < 0x80) {
        to[0] = (unsigned char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (unsigned char)(0xC0 | code >> 6);
        to[1] = (unsigned char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (unsigned char)(0xE0 | code >> 12);
        to[1] = (unsigned char)(0x80 | (code >> 6 & 0x3F));
        to[2] = (unsigned char)(0x80 | (code & 0x3F));
        return 3;
    }
    to[0] = (unsigned char)(0xF0 | code >> 18);
    to[1] = (unsigned char)(0x80 | (code >> 12 & 0x3F));
    to[2] = (unsigned char)(0x80 | (code >> 6 & 0x3F));
    to[3] = (unsigned char)(0x80 | (code & 0x3F));
    return 4;
}

/* The character at a place of valid UTF-8, and the place behind it. */
static inline uint32_t get_character(text *at) {
    text p = *at;
    uint32_t c = p[0];
    if (c < 0x80) {
        *at = p + 1;
        return c;
    }
    if (c < 0xE0) {
        *at = p + 2;
        return (c & 0x1F) << 6 | (p[1] & 0x3Fu);
    }
    if (c < 0xF0) {
        *at = p + 3;
        return (c & 0x0F) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
    }
    *at = p + 4;
    return (c & 0x07) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

/* scan_characters.c: character references. */
uint64_t hash_bytes(text bytes, size_t size);
int read_reference(text *at, text end, int attribute, uint32_t codes[2]);
unsigned char *put_decoded(unsigned char *to, text from, text end, int attribute);
int is_utf8(text bytes, size_t size);

/* scan_nesting.c: which elements are open. */
enum { FORMATTING_ROOM = 14 };

typedef struct {
    uint32_t counts[FORMATTING_ROOM];
    int again[FORMATTING_ROOM]; /* 0 where there is none */
    int any_again;
} formatting;

typedef struct {
    uint64_t key;
    uint32_t flags, mode;
    uint16_t tag;
    unsigned char foreign;
    formatting outside;
} open_element;

typedef struct {
    open_element open[DEEPEST + 4];
    int depth, paragraphs, table_in_paragraph, form, doubt;
    formatting formatting;
    int anchors[MOST_ANCHORS + 2];
    int anchor_count;
} nesting;

void nesting_begin(nesting *self);
int nesting_start(nesting *self, uint64_t key, uint16_t tag, uint32_t flags, int self_closing);
void nesting_end(nesting *self, uint64_t key, uint16_t tag, uint32_t flags);
void nesting_want_text(nesting *self);
void nesting_close_last(nesting *self);
void nesting_close_all(nesting *self);

/* scan_prose.c: words and blocks. */
typedef struct {
    uint32_t first, last, linked;
    int framing;
} block;

typedef struct {
    uint64_t *words;
    unsigned char *numeric;
    block *blocks;
    uint32_t count, room, block_count, block_room, first, linked, seen, templates, framing;
    uint16_t hidden;
    int in_link, signed_any, failed;
    const unsigned char *limit; /* up to here there are bytes that may be looked at */
    text held, held_end; /* text that was not read yet; `held` is null where there is none */
    int held_references, goes_on; /* whether the next text belongs to it */
    buffer joined, composed;
    uint64_t text, shape;
} prose;

typedef struct {
    uint64_t simhash;
    unsigned char sketch[PLACES];
    int comparable;
    uint32_t words;
    uint64_t said;
} likeness;

void prose_begin(prose *self, text limit);
void prose_free(prose *self);
void prose_start(prose *self, uint16_t tag, uint32_t flags, int link, int self_closing);
void prose_end(prose *self, uint16_t tag, uint32_t flags);
void prose_text(prose *self, text from, text end, int references);
void prose_title(prose *self, text from, text end);
void prose_close(prose *self);
void prose_likeness(const prose *self, likeness *out);
const char *prose_language(const prose *self);

/* scan_findings.c: what is kept of a page. */
typedef struct {
    text at;
    size_t size;
} slice;

enum {
    HREF, REL, HREFLANG, CONTENT, NAME, HTTP_EQUIV, SRC, ACTION, METHOD, LANG, XML_LANG, ALT, SRCSET, XLINK_HREF,
    SHADOW,
    ATTRIBUTES /* how many there are */
};

typedef struct {
    slice values[ATTRIBUTES]; /* absent where `at` is null */
    int self_closing;
} attributes;

typedef struct {
    slice href, rel, text;
    const char *tag;
    unsigned char anchor, nofollow;
} reference;

typedef struct {
    slice one, other;
} slice_pair;

typedef struct arena_block {
    struct arena_block *next;
    size_t used, room;
    unsigned char bytes[];
} arena_block;

/* One pass over one text. */
typedef struct {
    text at, end;
    int images, doubtful, failed;
    uint32_t templates, tags;
    int marker, marked; /* the marker that is open in a template, and whether one in it was not closed plainly */
    int drawn;          /* whether a drawing or a formula was opened in it: what begins there may be read otherwise */
    PyObject *refresh_url, *srcset_urls;
    arena_block *arena;
    reference *references;
    uint32_t reference_count, reference_room, *slots, slot_bits;
    slice_pair *metas, *hreflang;
    uint32_t meta_count, meta_room, hreflang_count, hreflang_room;
    slice base, title, language, xml_language, default_language, canonical;
    buffer anchor_text;
    size_t anchor_characters;
    struct {
        uint32_t reference;
        size_t first;
    } anchors[MOST_ANCHORS + 2];
    int anchor_count;
    prose prose;
    nesting nesting;
} scanner;

static inline unsigned char lower(unsigned char c) {
    return (unsigned char)(c - 'A') < 26 ? c | 0x20 : c;
}

unsigned char *take(scanner *self, size_t size);
void give_back(scanner *self, size_t size);
slice folded(scanner *self, slice raw, size_t limit);
int same_folded(slice value, const char *word);
void doubt(scanner *self);
void settle_anchors(scanner *self);
void keep_anchor_text(scanner *self, text from, text end, int references);
void read_element(scanner *self, uint16_t tag, const attributes *raw);

/* resolving.c: the references as links, or None where that is left to Python. */
PyObject *nephila_resolved(const scanner *scanned, PyObject *base, PyObject *join, PyObject *outranked, PyObject *type);

#endif
