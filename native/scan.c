/* A page's text to references, metas, title, base, language and text features in one pass; twin: nephila/parse/scan.py.
 *
 * The text is valid UTF-8 and is read where it lies: strings are made for what is kept only. What is kept until the end
 * of the page lies in an arena that is freed with it. Memory that cannot be had is told of at the end, in one place.
 */
#include "scan.h"
#include "scan_tags.h"

#include <stddef.h>

typedef struct {
    text at;
    size_t size;
} slice;

enum { HREF, REL, HREFLANG, CONTENT, NAME, HTTP_EQUIV, SRC, ACTION, METHOD, LANG, XML_LANG, ALT, SRCSET, SHADOW, ATTRIBUTES };

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

typedef struct {
    text at, end;
    int images, doubtful, failed;
    uint32_t templates, tags;
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

static int is_space(unsigned char c) {
    return c == ' ' || (c >= '\t' && c <= '\r' && c != '\v');
}

static inline int is_alpha(unsigned char c) {
    return (unsigned char)((c | 0x20) - 'a') < 26;
}

static inline unsigned char lower(unsigned char c) {
    return (unsigned char)(c - 'A') < 26 ? c | 0x20 : c;
}

static unsigned char *take(scanner *self, size_t size) {
    arena_block *block = self->arena;
    if (!block || block->room - block->used < size) {
        size_t room = size > 16384 ? size : 16384;
        block = PyMem_Malloc(sizeof *block + room);
        if (!block) {
            self->failed = 1;
            return NULL;
        }
        block->next = self->arena;
        block->used = 0;
        block->room = room;
        self->arena = block;
    }
    block->used += size;
    return block->bytes + block->used - size;
}

/* Bytes of the last `take` that were not needed. */
static void give_back(scanner *self, size_t size) {
    self->arena->used -= size;
}

static slice kept(scanner *self, text at, size_t size) {
    unsigned char *to = take(self, size + 1);
    if (!to)
        return (slice){(text) "", 0};
    memcpy(to, at, size);
    return (slice){to, size};
}

/* An attribute's value with its references as characters. */
static slice decoded(scanner *self, slice raw) {
    if (!raw.at || (!memchr(raw.at, '&', raw.size) && !memchr(raw.at, '\r', raw.size)))
        return raw;
    unsigned char *to = take(self, raw.size * 2 + 8);
    if (!to)
        return (slice){(text) "", 0};
    size_t size = (size_t)(put_decoded(to, raw.at, raw.at + raw.size, 1) - to);
    give_back(self, raw.size * 2 + 8 - size);
    return (slice){to, size};
}

/* Each run of white space as one space, none at the ends, cut to so many characters. */
static slice folded(scanner *self, slice raw, size_t limit) {
    size_t most = limit * 4 < raw.size ? limit * 4 : raw.size;
    unsigned char *to = take(self, most + 4), *p = to;
    if (!to)
        return (slice){(text) "", 0};
    text at = raw.at, end = raw.at + raw.size;
    size_t count = 0;
    int space = 0;
    while (at < end && count < limit) {
        text before = at;
        uint32_t code = get_character(&at);
        if (Py_UNICODE_ISSPACE(code)) {
            space = count > 0;
            continue;
        }
        if (space) {
            *p++ = ' ';
            space = 0;
            if (++count == limit)
                break;
        }
        count++;
        for (; before < at; before++)
            *p++ = *before;
    }
    give_back(self, most + 4 - (size_t)(p - to));
    return (slice){to, (size_t)(p - to)};
}

static slice stripped(slice raw) {
    text at = raw.at, end = raw.at + raw.size, first = NULL, last = raw.at;
    while (at < end) {
        text before = at;
        uint32_t code = get_character(&at);
        if (!Py_UNICODE_ISSPACE(code)) {
            first = first ? first : before;
            last = at;
        }
    }
    return first ? (slice){first, (size_t)(last - first)} : (slice){(text) "", 0};
}

static int same_folded(slice value, const char *word) {
    size_t size = strlen(word);
    if (!value.at || value.size != size)
        return 0;
    for (size_t place = 0; place < size; place++)
        if (lower(value.at[place]) != (unsigned char)word[place])
            return 0;
    return 1;
}

/* A rel attribute in lower case, folded. */
static slice normal_rel(scanner *self, slice raw) {
    if (!raw.at || !raw.size)
        return (slice){(text) "", 0};
    unsigned char *to = take(self, raw.size);
    if (!to)
        return (slice){(text) "", 0};
    int ascii = 1;
    for (size_t place = 0; place < raw.size; place++) {
        to[place] = lower(raw.at[place]);
        ascii &= raw.at[place] < 0x80;
    }
    if (ascii)
        return folded(self, (slice){to, raw.size}, raw.size);
    PyObject *written = PyUnicode_DecodeUTF8((const char *)raw.at, (Py_ssize_t)raw.size, "replace");
    PyObject *lowered = written ? PyObject_CallMethod(written, "lower", NULL) : NULL;
    Py_XDECREF(written);
    Py_ssize_t size = 0;
    const char *bytes = lowered ? PyUnicode_AsUTF8AndSize(lowered, &size) : NULL;
    slice rel = {(text) "", 0};
    if (bytes)
        rel = folded(self, (slice){(text)bytes, (size_t)size}, (size_t)size);
    else
        self->failed = 1;
    Py_XDECREF(lowered);
    return rel;
}

/* Whether a space-separated list holds a word. */
static int lists(slice list, const char *word) {
    size_t size = strlen(word);
    text at = list.at, end = list.at + list.size;
    while (at < end) {
        text next = memchr(at, ' ', (size_t)(end - at));
        next = next ? next : end;
        if ((size_t)(next - at) == size && !memcmp(at, word, size))
            return 1;
        at = next + 1;
    }
    return 0;
}

static int says_nofollow(slice raw) {
    static const char WORD[] = "nofollow";
    for (size_t place = 0; raw.at && place + 8 <= raw.size; place++)
        if (same_folded((slice){raw.at + place, 8}, WORD))
            return 1;
    return 0;
}

static void doubt(scanner *self) {
    self->doubtful = 1;
    self->anchor_count = 0;
}

/* One more entry for an array that grows; 0 where there is no memory. */
static int grown(scanner *self, void **array, uint32_t count, uint32_t *room, size_t size) {
    if (count < *room)
        return 1;
    uint32_t more = *room ? *room * 2 : 64;
    void *bytes = PyMem_Realloc(*array, more * size);
    if (!bytes) {
        self->failed = 1;
        return 0;
    }
    *array = bytes;
    *room = more;
    return 1;
}

static uint32_t *slot_of(scanner *self, slice href) {
    uint32_t mask = (1u << self->slot_bits) - 1;
    uint32_t slot = (uint32_t)(hash_bytes(href.at, href.size) >> 20) & mask;
    while (self->slots[slot]) {
        slice *known = &self->references[self->slots[slot] - 1].href;
        if (known->size == href.size && !memcmp(known->at, href.at, href.size))
            break;
        slot = (slot + 1) & mask;
    }
    return &self->slots[slot];
}

static int more_slots(scanner *self) {
    uint32_t bits = self->slot_bits ? self->slot_bits + 1 : 9;
    uint32_t *slots = PyMem_Calloc((size_t)1 << bits, sizeof *slots);
    if (!slots) {
        self->failed = 1;
        return 0;
    }
    PyMem_Free(self->slots);
    self->slots = slots;
    self->slot_bits = bits;
    for (uint32_t place = 0; place < self->reference_count; place++)
        *slot_of(self, self->references[place].href) = place + 1;
    return 1;
}

/* The reference of an href; where it is new it is made, and `is_new` set. */
static reference *reference_to(scanner *self, slice href, int *is_new) {
    if ((!self->slots || self->reference_count * 2 >= 1u << self->slot_bits) && !more_slots(self))
        return NULL;
    uint32_t *slot = slot_of(self, href);
    *is_new = !*slot;
    if (*slot)
        return &self->references[*slot - 1];
    if (!grown(self, (void **)&self->references, self->reference_count, &self->reference_room, sizeof *self->references))
        return NULL;
    reference *made = &self->references[self->reference_count++];
    *made = (reference){.href = href, .rel = {(text) "", 0}, .text = {(text) "", 0}};
    *slot = self->reference_count;
    if (self->reference_count >= MAX_REFERENCES)
        doubt(self);
    return made;
}

/* Keep a reference that is no anchor, unless its href was met before. */
static void refer(scanner *self, slice href, const char *tag, slice rel, slice anchor_text) {
    int is_new;
    if (!href.at)
        return;
    reference *made = reference_to(self, href, &is_new);
    if (made && is_new) {
        made->tag = tag;
        made->rel = rel;
        made->text = anchor_text;
    }
}

static void read_anchor(scanner *self, uint16_t tag, const attributes *raw) {
    slice href = decoded(self, raw->values[HREF]), rel = decoded(self, raw->values[REL]);
    int is_new;
    if (!href.at)
        return;
    reference *made = reference_to(self, href, &is_new);
    if (!made || self->doubtful)
        return;
    int nofollow = says_nofollow(rel);
    if (!is_new) {
        if (made->anchor && (!made->rel.size || !made->nofollow || nofollow))
            return;
        for (int place = 0; place < self->anchor_count; place++)
            if (&self->references[self->anchors[place].reference] == made) {
                doubt(self);
                return;
            }
    }
    made->tag = tag == TAG_A ? "a" : "area";
    made->anchor = 1;
    made->nofollow = (unsigned char)nofollow;
    made->rel = normal_rel(self, rel);
    made->text = (slice){(text) "", 0};
    if (tag == TAG_AREA) {
        slice alt = decoded(self, raw->values[ALT]);
        if (alt.at)
            made->text = folded(self, alt, MAX_TEXT);
        return;
    }
    nesting_want_text(&self->nesting);
    if (self->nesting.doubt)
        return;
    if (!self->anchor_count)
        self->anchor_text.used = 0;
    self->anchors[self->anchor_count].reference = (uint32_t)(made - self->references);
    self->anchors[self->anchor_count++].first = self->anchor_text.used;
}

/* The anchors that the nesting has closed have their text now. */
static void settle_anchors(scanner *self) {
    while (self->anchor_count > self->nesting.anchor_count) {
        self->anchor_count--;
        size_t first = self->anchors[self->anchor_count].first;
        slice raw = {self->anchor_text.bytes + first, self->anchor_text.used - first};
        self->references[self->anchors[self->anchor_count].reference].text =
            raw.size ? folded(self, raw, MAX_TEXT) : (slice){(text) "", 0};
    }
}

static void keep_anchor_text(scanner *self, text from, text end, int references) {
    size_t size = (size_t)(end - from);
    if (buffer_reserve(&self->anchor_text, size * 2 + 8) < 0) {
        self->failed = 1;
        return;
    }
    unsigned char *to = self->anchor_text.bytes + self->anchor_text.used, *begun = to;
    if (references || memchr(from, '\r', size)) {
        if (references) {
            to = put_decoded(to, from, end, 0);
        } else {
            for (; from < end; from += *from == '\r' && from + 1 < end && from[1] == '\n' ? 2 : 1)
                *to++ = *from == '\r' ? '\n' : *from;
        }
    } else {
        memcpy(to, from, size);
        to += size;
    }
    self->anchor_text.used += (size_t)(to - begun);
    for (; begun < to; begun++)
        self->anchor_characters += (*begun & 0xC0) != 0x80;
    if (self->anchor_characters > MAX_ANCHOR_TEXT)
        doubt(self);
}

static void read_link(scanner *self, const attributes *raw) {
    slice href = decoded(self, raw->values[HREF]);
    if (!href.at)
        return;
    slice rel = normal_rel(self, decoded(self, raw->values[REL]));
    if (!self->canonical.at && lists(rel, "canonical"))
        self->canonical = href;
    slice language = decoded(self, raw->values[HREFLANG]);
    if (language.at && language.size && lists(rel, "alternate") &&
        grown(self, (void **)&self->hreflang, self->hreflang_count, &self->hreflang_room, sizeof *self->hreflang))
        self->hreflang[self->hreflang_count++] = (slice_pair){language, href};
    refer(self, href, "link", rel, (slice){(text) "", 0});
}

/* A URL out of a value's own small language, by the reader in Python: such values are rare. */
static slice by_python(scanner *self, PyObject *result) {
    slice url = {NULL, 0};
    if (!result) {
        self->failed = 1;
        return url;
    }
    if (result != Py_None) {
        Py_ssize_t size;
        const char *bytes = PyUnicode_AsUTF8AndSize(result, &size);
        if (bytes)
            url = kept(self, (text)bytes, (size_t)size);
        else
            self->failed = 1;
    }
    return url;
}

static void read_meta(scanner *self, const attributes *raw) {
    slice content = decoded(self, raw->values[CONTENT]), nothing = {(text) "", 0};
    if (!content.at)
        return;
    slice name = decoded(self, raw->values[NAME]);
    if (name.at && name.size && grown(self, (void **)&self->metas, self->meta_count, &self->meta_room, sizeof *self->metas))
        self->metas[self->meta_count++] = (slice_pair){name, content};
    slice kind = decoded(self, raw->values[HTTP_EQUIV]);
    if (same_folded(kind, "refresh")) {
        PyObject *url =
            PyObject_CallFunction(self->refresh_url, "s#", (const char *)content.at, (Py_ssize_t)content.size);
        refer(self, by_python(self, url), "meta", nothing, nothing);
        Py_XDECREF(url);
    } else if (same_folded(kind, "content-language") && !memchr(content.at, ',', content.size) &&
               !self->default_language.size) {
        self->default_language = stripped(content);
    }
}

static void read_image(scanner *self, uint16_t tag, const attributes *raw) {
    slice nothing = {(text) "", 0};
    if (tag != TAG_SOURCE) {
        slice alt = decoded(self, raw->values[ALT]);
        refer(self, decoded(self, raw->values[SRC]), "img", nothing, alt.at ? folded(self, alt, MAX_TEXT) : nothing);
    }
    slice set = decoded(self, raw->values[SRCSET]);
    if (!set.at || !set.size || self->doubtful)
        return;
    PyObject *urls = PyObject_CallFunction(self->srcset_urls, "s#", (const char *)set.at, (Py_ssize_t)set.size);
    if (!urls || !PyList_Check(urls))
        self->failed = 1;
    for (Py_ssize_t place = 0; !self->failed && !self->doubtful && place < PyList_GET_SIZE(urls); place++)
        refer(self, by_python(self, PyList_GET_ITEM(urls, place)), "srcset", nothing, nothing);
    Py_XDECREF(urls);
}

static void read_element(scanner *self, uint16_t tag, const attributes *raw) {
    slice nothing = {(text) "", 0};
    switch (tag) {
    case TAG_A:
    case TAG_AREA:
        read_anchor(self, tag, raw);
        break;
    case TAG_LINK:
        read_link(self, raw);
        break;
    case TAG_META:
        read_meta(self, raw);
        break;
    case TAG_IFRAME:
        refer(self, decoded(self, raw->values[SRC]), "iframe", nothing, nothing);
        break;
    case TAG_FORM: {
        slice method = decoded(self, raw->values[METHOD]);
        if (!same_folded(method, "post") && !same_folded(method, "dialog"))
            refer(self, decoded(self, raw->values[ACTION]), "form",
                  normal_rel(self, decoded(self, raw->values[REL])), nothing);
        break;
    }
    case TAG_BASE:
        if (!self->base.at)
            self->base = decoded(self, raw->values[HREF]);
        break;
    case TAG_HTML:
        if (!self->language.at)
            self->language = decoded(self, raw->values[LANG]);
        if (!self->xml_language.at)
            self->xml_language = decoded(self, raw->values[XML_LANG]);
        break;
    case TAG_IMG:
    case TAG_IMAGE:
    case TAG_SOURCE:
        if (self->images)
            read_image(self, tag, raw);
        break;
    }
}

/* Which of the attributes that are read it is, or -1. */
static int attribute_of(text name, size_t size) {
    static const struct {
        const char *name;
        int attribute;
    } NAMES[] = {{"href", HREF}, {"rel", REL}, {"hreflang", HREFLANG}, {"content", CONTENT}, {"name", NAME},
                 {"http-equiv", HTTP_EQUIV}, {"src", SRC}, {"action", ACTION}, {"method", METHOD}, {"lang", LANG},
                 {"xml:lang", XML_LANG}, {"alt", ALT}, {"srcset", SRCSET}, {"shadowrootmode", SHADOW}};
    if (size < 3 || size > 14)
        return -1;
    unsigned char first = lower(*name);
    for (size_t place = 0; place < sizeof NAMES / sizeof *NAMES; place++)
        if ((unsigned char)NAMES[place].name[0] == first && same_folded((slice){name, size}, NAMES[place].name))
            return NAMES[place].attribute;
    return -1;
}

/* Behind a tag's name: its attributes, to the place behind it; NULL where the text ends before the tag does. */
static text read_attributes(text p, text end, attributes *out, int wanted) {
    int slash = 0;
    if (wanted)
        memset(out->values, 0, sizeof out->values);
    while (p < end) {
        unsigned char c = *p;
        if (is_space(c) || c == '/') {
            slash = c == '/';
            p++;
            continue;
        }
        if (c == '>') {
            out->self_closing = slash;
            return p + 1;
        }
        slash = 0;
        text name = p++;
        while (p < end && !is_space(*p) && *p != '/' && *p != '>' && *p != '=')
            p++;
        text name_end = p;
        slice value = {name, 0};
        while (p < end && is_space(*p))
            p++;
        if (p < end && *p == '=') {
            p++;
            while (p < end && is_space(*p))
                p++;
            if (p >= end)
                return NULL;
            if (*p == '"' || *p == '\'') {
                text close = memchr(p + 1, *p, (size_t)(end - p - 1));
                if (!close)
                    return NULL;
                value = (slice){p + 1, (size_t)(close - p - 1)};
                p = close + 1;
            } else {
                value.at = p;
                while (p < end && !is_space(*p) && *p != '>')
                    p++;
                value.size = (size_t)(p - value.at);
            }
        } else if (p < end) {
            p = name_end; /* white space may be followed by a slash that counts */
        }
        if (wanted) {
            int attribute = attribute_of(name, (size_t)(name_end - name));
            if (attribute >= 0 && !out->values[attribute].at)
                out->values[attribute] = value;
        }
    }
    return NULL;
}

static const struct tag_entry *tag_of(uint64_t key) {
    static const struct tag_entry OTHER = {0, TAG_OTHER, 0};
    size_t slot = (key * FACTOR) >> (64 - TAG_SLOT_BITS);
    while (TAGS[slot].key) {
        if (TAGS[slot].key == key)
            return &TAGS[slot];
        slot = (slot + 1) & ((1u << TAG_SLOT_BITS) - 1);
    }
    return &OTHER;
}

/* A tag's name: what it is known by, and the place behind it. */
static text read_name(scanner *self, text p, uint64_t *key) {
    text first = p;
    uint64_t packed = 0;
    for (; p < self->end && !is_space(*p) && *p != '/' && *p != '>'; p++)
        if (p - first < 8)
            packed |= (uint64_t)lower(*p) << 8 * (p - first);
    size_t size = (size_t)(p - first);
    if (size > 8) {
        unsigned char small[64], *name = size <= sizeof small ? small : take(self, size);
        if (!name)
            return NULL;
        for (size_t place = 0; place < size; place++)
            name[place] = lower(first[place]);
        packed = hash_bytes(name, size);
        if (name != small)
            give_back(self, size);
    }
    *key = packed;
    return p;
}

/* Whether an end tag of that name stands here, or a start tag if there is no slash. */
static int stands(text p, text end, const char *name, size_t size) {
    if ((size_t)(end - p) <= size)
        return 0;
    for (size_t place = 0; place < size; place++)
        if (lower(p[place]) != (unsigned char)name[place])
            return 0;
    return is_space(p[size]) || p[size] == '/' || p[size] == '>';
}

static text raw_end(text p, text end, const char *name) {
    size_t size = strlen(name);
    while ((p = memchr(p, '<', (size_t)(end - p)))) {
        if (end - p > 2 && p[1] == '/' && stands(p + 2, end, name, size))
            return p;
        p++;
    }
    return end;
}

/* In a script behind "<!--": where its end tag is, or where the escape ends; `over` tells which. */
static text escaped_script(text p, text end, int *over) {
    int twice = 0;
    *over = 0;
    while (p < end) {
        if (*p == '-' && end - p > 2 && p[1] == '-' && p[2] == '>')
            return p + 3;
        if (*p == '<') {
            if (end - p > 2 && p[1] == '/' && stands(p + 2, end, "script", 6)) {
                if (!twice) {
                    *over = 1;
                    return p;
                }
                twice = 0;
                p += 9;
                continue;
            }
            if (!twice && stands(p + 1, end, "script", 6)) {
                twice = 1;
                p += 8;
                continue;
            }
        }
        p++;
    }
    *over = 1;
    return end;
}

static text script_end(text p, text end) {
    while ((p = memchr(p, '<', (size_t)(end - p)))) {
        if (end - p > 2 && p[1] == '/' && stands(p + 2, end, "script", 6))
            return p;
        if (end - p > 3 && !memcmp(p, "<!--", 4)) {
            int over;
            p = escaped_script(p + 2, end, &over);
            if (over)
                return p;
            continue;
        }
        p++;
    }
    return end;
}

static void see(scanner *self, text from, text end, int references) {
    if (from == end)
        return;
    prose_text(&self->prose, from, end, references);
    if (self->anchor_count && !self->templates)
        keep_anchor_text(self, from, end, references);
}

static const char *raw_name(uint16_t tag) {
    switch (tag) {
    case TAG_STYLE:
        return "style";
    case TAG_XMP:
        return "xmp";
    case TAG_IFRAME:
        return "iframe";
    case TAG_NOEMBED:
        return "noembed";
    case TAG_NOFRAMES:
        return "noframes";
    case TAG_TITLE:
        return "title";
    default:
        return "textarea";
    }
}

/* The content of an element without tags in it; returns the place behind its end tag, NULL at the end of the text. */
static text read_raw(scanner *self, uint16_t tag, uint32_t flags, text p) {
    text close = tag == TAG_SCRIPT ? script_end(p, self->end) : raw_end(p, self->end, raw_name(tag));
    int references = (flags & RCDATA) != 0;
    if (self->anchor_count && !self->templates)
        keep_anchor_text(self, p, close, references);
    if (tag == TAG_TITLE) {
        if (!self->doubtful && !self->templates && !self->title.at) {
            size_t size = (size_t)(close - p);
            unsigned char *to = take(self, size * 2 + 8);
            if (to)
                self->title = folded(self, (slice){to, (size_t)(put_decoded(to, p, close, 0) - to)}, MAX_TITLE);
        }
        prose_title(&self->prose, p, close);
    }
    if (close == self->end)
        return NULL;
    uint64_t key;
    attributes ignored;
    p = read_name(self, close + 2, &key);
    p = p ? read_attributes(p, self->end, &ignored, 0) : NULL;
    if (p)
        prose_end(&self->prose, tag, flags);
    return p;
}

static void follow_start(scanner *self, uint64_t key, const struct tag_entry *tag, const attributes *raw) {
    nesting *open = &self->nesting;
    int foreign = open->open[open->depth - 1].foreign;
    if (++self->tags > MAX_TAGS) {
        doubt(self);
        return;
    }
    int counts = nesting_start(open, key, tag->tag, tag->flags, raw->self_closing);
    if (!open->doubt) {
        settle_anchors(self);
        if (counts && (tag->flags & READ || tag->tag == TAG_HTML))
            read_element(self, tag->tag, raw);
        if (foreign && raw->self_closing && tag->tag == TAG_A && !self->doubtful && !open->doubt) {
            nesting_close_last(open);
            settle_anchors(self);
        }
    }
    if (open->doubt)
        doubt(self);
}

static text read_start_tag(scanner *self, text bracket) {
    uint64_t key;
    attributes raw;
    text p = read_name(self, bracket + 1, &key);
    if (!p)
        return NULL;
    const struct tag_entry *tag = tag_of(key);
    int wanted = tag->flags & READ || tag->tag == TAG_HTML || tag->tag == TAG_TEMPLATE;
    p = read_attributes(p, self->end, &raw, wanted);
    if (!p)
        return NULL;
    prose_start(&self->prose, tag->tag, tag->flags, tag->tag == TAG_A && raw.values[HREF].at, raw.self_closing);
    nesting *open = &self->nesting;
    int foreign = !self->doubtful && !self->templates && open->open[open->depth - 1].foreign;
    if (tag->tag == TAG_TEMPLATE) {
        if (foreign || raw.values[SHADOW].at)
            doubt(self);
        self->templates++;
    } else if (tag->tag == TAG_PLAINTEXT || tag->tag == TAG_FRAMESET ||
               (self->templates && tag->flags & (RAW | RCDATA) && raw.self_closing)) {
        doubt(self);
    } else if (!self->templates && !self->doubtful) {
        follow_start(self, key, tag, &raw);
    }
    if (tag->tag == TAG_PRE || tag->tag == TAG_LISTING || tag->tag == TAG_TEXTAREA) {
        if (p < self->end && *p == '\r')
            p += self->end - p > 1 && p[1] == '\n' ? 2 : 1;
        else if (p < self->end && *p == '\n')
            p++;
    }
    if (tag->tag == TAG_PLAINTEXT) {
        prose_text(&self->prose, p, self->end, 0);
        return NULL;
    }
    return tag->flags & (RAW | RCDATA) && !foreign ? read_raw(self, tag->tag, tag->flags, p) : p;
}

static text past(text p, text end, unsigned char c) {
    p = memchr(p, c, (size_t)(end - p));
    return p ? p + 1 : NULL;
}

static text read_end_tag(scanner *self, text bracket) {
    if (self->end - bracket < 3) {
        see(self, bracket, bracket + 2, 0);
        return NULL;
    }
    if (!is_alpha(bracket[2]))
        return past(bracket, self->end, '>');
    uint64_t key;
    attributes ignored;
    text p = read_name(self, bracket + 2, &key);
    p = p ? read_attributes(p, self->end, &ignored, 0) : NULL;
    if (!p)
        return NULL;
    const struct tag_entry *tag = tag_of(key);
    prose_end(&self->prose, tag->tag, tag->flags);
    if (tag->tag == TAG_TEMPLATE && self->templates) {
        self->templates--;
    } else if (!self->templates && !self->doubtful) {
        self->tags++;
        nesting_end(&self->nesting, key, tag->tag, tag->flags);
        if (self->nesting.doubt)
            doubt(self);
        else
            settle_anchors(self);
    }
    return p;
}

static text comment_end(text p, text end) {
    if (p < end && *p == '>')
        return p + 1;
    if (end - p > 1 && p[0] == '-' && p[1] == '>')
        return p + 2;
    while ((p = memchr(p, '-', (size_t)(end - p)))) {
        if (end - p > 2 && p[1] == '-') {
            if (p[2] == '>')
                return p + 3;
            if (p[2] == '!' && end - p > 3 && p[3] == '>')
                return p + 4;
        }
        p++;
    }
    return NULL;
}

static text read_declaration(scanner *self, text bracket) {
    size_t left = (size_t)(self->end - bracket);
    if (left >= 4 && !memcmp(bracket, "<!--", 4))
        return comment_end(bracket + 4, self->end);
    nesting *open = &self->nesting;
    if (left >= 9 && !memcmp(bracket, "<![CDATA[", 9) && !self->doubtful && open->open[open->depth - 1].foreign) {
        for (text p = bracket + 9; (p = memchr(p, ']', (size_t)(self->end - p))); p++)
            if (self->end - p > 2 && p[1] == ']' && p[2] == '>') {
                see(self, bracket + 9, p, 0);
                return p + 3;
            }
        see(self, bracket + 9, self->end, 0);
        return NULL;
    }
    return past(bracket, self->end, '>');
}

static void run(scanner *self) {
    text p = self->at;
    self->doubtful = memchr(p, 0, (size_t)(self->end - p)) != NULL;
    while (p && !self->failed) {
        text bracket = memchr(p, '<', (size_t)(self->end - p));
        see(self, p, bracket ? bracket : self->end, 1);
        if (!bracket)
            break;
        unsigned char following = bracket + 1 < self->end ? bracket[1] : 0;
        if (is_alpha(following)) {
            p = read_start_tag(self, bracket);
        } else if (following == '/') {
            p = read_end_tag(self, bracket);
        } else if (following == '!') {
            p = read_declaration(self, bracket);
        } else if (following == '?') {
            p = past(bracket, self->end, '>');
        } else {
            see(self, bracket, bracket + 1, 0);
            p = bracket + 1;
        }
    }
    prose_close(&self->prose);
    if (!self->doubtful) {
        nesting_close_all(&self->nesting);
        settle_anchors(self);
        slice language = self->language.size ? self->language : self->xml_language;
        self->language = language.at ? folded(self, language, MAX_TEXT) : (slice){(text) "", 0};
    }
}

static PyObject *string(slice raw) {
    return raw.at ? PyUnicode_DecodeUTF8((const char *)raw.at, (Py_ssize_t)raw.size, "replace") : Py_NewRef(Py_None);
}

static PyObject *strings(const slice_pair *pairs, uint32_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint32_t place = 0; list && place < count; place++) {
        PyObject *pair = Py_BuildValue("(NN)", string(pairs[place].one), string(pairs[place].other));
        if (!pair)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)place, pair);
    }
    return list;
}

static PyObject *reference_strings(const scanner *self) {
    PyObject *found = PyDict_New();
    PyObject *empty = PyUnicode_FromStringAndSize(NULL, 0);
    for (uint32_t place = 0; found && place < self->reference_count; place++) {
        const reference *made = &self->references[place];
        PyObject *href = string(made->href), *reference = PyTuple_New(3);
        PyObject *tag = PyUnicode_InternFromString(made->tag);
        PyObject *rel = made->rel.size ? string(made->rel) : Py_XNewRef(empty);
        PyObject *anchor_text = made->text.size ? string(made->text) : Py_XNewRef(empty);
        int good = href && reference && tag && rel && anchor_text;
        if (reference) {
            PyTuple_SET_ITEM(reference, 0, tag);
            PyTuple_SET_ITEM(reference, 1, rel);
            PyTuple_SET_ITEM(reference, 2, anchor_text);
        } else {
            Py_XDECREF(tag);
            Py_XDECREF(rel);
            Py_XDECREF(anchor_text);
        }
        if (!good || PyDict_SetItem(found, href, reference) < 0)
            Py_CLEAR(found);
        Py_XDECREF(href);
        Py_XDECREF(reference);
    }
    Py_XDECREF(empty);
    return found;
}

static PyObject *result_of(scanner *self) {
    slice nothing = {NULL, 0};
    if (self->doubtful) {
        self->reference_count = self->meta_count = self->hreflang_count = 0;
        self->base = self->title = self->canonical = nothing;
        self->language = self->default_language = (slice){(text) "", 0};
    } else if (!self->default_language.at) {
        self->default_language = (slice){(text) "", 0};
    }
    likeness like;
    prose_likeness(&self->prose, &like);
    Py_ssize_t hash_size = self->prose.signed_any ? 8 : 0;
    unsigned char hashes[16];
    for (int place = 0; place < 8; place++) {
        hashes[place] = (unsigned char)(self->prose.text >> 8 * place);
        hashes[place + 8] = (unsigned char)(self->prose.shape >> 8 * place);
    }
    return Py_BuildValue("(NNNNNNNNNy#y#Ky#Is)", PyBool_FromLong(self->doubtful), reference_strings(self),
                         strings(self->metas, self->meta_count), string(self->base), string(self->title),
                         string(self->language), string(self->default_language), string(self->canonical),
                         strings(self->hreflang, self->hreflang_count), hashes, hash_size, hashes + 8, hash_size,
                         (unsigned long long)like.simhash, like.sketch, (Py_ssize_t)(like.comparable ? PLACES : 0),
                         (unsigned int)like.words, prose_language(&self->prose));
}

static void free_scanner(scanner *self) {
    while (self->arena) {
        arena_block *next = self->arena->next;
        PyMem_Free(self->arena);
        self->arena = next;
    }
    PyMem_Free(self->references);
    PyMem_Free(self->slots);
    PyMem_Free(self->metas);
    PyMem_Free(self->hreflang);
    PyMem_Free(self->anchor_text.bytes);
    prose_free(&self->prose);
    PyMem_Free(self);
}

static PyObject *scan(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    if (count != 4 || !PyBytes_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "scan_page(body: bytes, images: bool, refresh_url, srcset_urls)");
        return NULL;
    }
    char *bytes = PyBytes_AS_STRING(args[0]);
    Py_ssize_t size = PyBytes_GET_SIZE(args[0]);
    int images = PyObject_IsTrue(args[1]);
    if (images < 0)
        return NULL;
    PyObject *repaired = NULL;
    if (!is_utf8((text)bytes, (size_t)size)) {
        repaired = PyUnicode_DecodeUTF8(bytes, size, "replace");
        bytes = repaired ? (char *)PyUnicode_AsUTF8AndSize(repaired, &size) : NULL;
        if (!bytes) {
            Py_XDECREF(repaired);
            return NULL;
        }
    }
    PyObject *result = NULL;
    scanner *self = PyMem_Malloc(sizeof *self);
    if (self) {
        memset(self, 0, offsetof(scanner, nesting));
        self->at = (text)bytes;
        self->end = self->at + size;
        self->images = images;
        self->refresh_url = args[2];
        self->srcset_urls = args[3];
        prose_begin(&self->prose);
        nesting_begin(&self->nesting);
        run(self);
        if (!self->failed && !self->prose.failed)
            result = result_of(self);
        free_scanner(self);
    }
    Py_XDECREF(repaired);
    if (!result && !PyErr_Occurred())
        PyErr_NoMemory();
    return result;
}

PyMethodDef nephila_scan_methods[] = {
    {"scan_page", (PyCFunction)(void (*)(void))scan, METH_FASTCALL, "All that is to be known of a page's text."},
    {NULL, NULL, 0, NULL},
};
