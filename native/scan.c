/* A page's text to references, metas, title, base, language and text features in one pass; twin: nephila/parse/scan.py.
 *
 * The text is valid UTF-8 and is read where it lies: strings are made for what is kept only.
 */
#include "plain.h"
#include "scan.h"
#include "scan_tags.h"

#include <stddef.h>

/* What a byte is in a tag. */
enum { SPACE = 1, ENDS_NAME = 2, ENDS_ATTRIBUTE = 4, ENDS_VALUE = 8 };
static const unsigned char CLASSES[256] = {
    ['\t'] = SPACE | ENDS_NAME | ENDS_ATTRIBUTE | ENDS_VALUE, ['\n'] = SPACE | ENDS_NAME | ENDS_ATTRIBUTE | ENDS_VALUE,
    ['\f'] = SPACE | ENDS_NAME | ENDS_ATTRIBUTE | ENDS_VALUE, ['\r'] = SPACE | ENDS_NAME | ENDS_ATTRIBUTE | ENDS_VALUE,
    [' '] = SPACE | ENDS_NAME | ENDS_ATTRIBUTE | ENDS_VALUE,   ['/'] = ENDS_NAME | ENDS_ATTRIBUTE,
    ['>'] = ENDS_NAME | ENDS_ATTRIBUTE | ENDS_VALUE,           ['='] = ENDS_ATTRIBUTE,
};

static inline int is_space(unsigned char c) {
    return CLASSES[c] & SPACE;
}

static inline int is_alpha(unsigned char c) {
    return (unsigned char)((c | 0x20) - 'a') < 26;
}

/* Which of the attributes that are read it is, or -1. */
static int attribute_of(text name, size_t size) {
    static const struct {
        const char *name;
        int attribute, size;
    } NAMES[] = {{"rel", REL, 3}, {"src", SRC, 3}, {"alt", ALT, 3}, {"href", HREF, 4}, {"name", NAME, 4},
                 {"lang", LANG, 4}, {"action", ACTION, 6}, {"method", METHOD, 6}, {"srcset", SRCSET, 6},
                 {"content", CONTENT, 7}, {"hreflang", HREFLANG, 8}, {"xml:lang", XML_LANG, 8}, {"http-equiv", HTTP_EQUIV, 10},
                 {"xlink:href", XLINK_HREF, 10}, {"shadowrootmode", SHADOW, 14}};
    static const signed char FIRST[15] = {-1, -1, -1, 0, 3, -1, 6, 9, 10, -1, 12, -1, -1, -1, 14};
    if (size > 14 || FIRST[size] < 0)
        return -1;
    for (size_t place = (size_t)FIRST[size]; place < sizeof NAMES / sizeof *NAMES; place++) {
        if (NAMES[place].size != (int)size)
            break;
        if (same_folded((slice){name, size}, NAMES[place].name))
            return NAMES[place].attribute;
    }
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
        while (p < end && !(CLASSES[*p] & ENDS_ATTRIBUTE))
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
                while (p < end && !(CLASSES[*p] & ENDS_VALUE))
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
    for (; p < self->end && !(CLASSES[*p] & ENDS_NAME); p++)
        if (p - first < 8)
            packed |= (uint64_t)lower(*p) << 8 * (p - first);
    size_t size = (size_t)(p - first);
    if (size > 8 || (size && !first[size - 1])) { /* a zero byte at the end would not be told from none */
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
    return CLASSES[p[size]] & ENDS_NAME;
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
    if (self->drawn && memchr(p, '<', (size_t)(close - p)))
        doubt(self);
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

static void follow_start(scanner *self, uint64_t key, const struct tag_entry *tag, attributes *raw) {
    nesting *open = &self->nesting;
    int foreign = open->open[open->depth - 1].foreign;
    int counts = nesting_start(open, key, tag->tag, tag->flags, raw->self_closing);
    if (foreign && tag->tag == TAG_A && !raw->values[HREF].at)
        raw->values[HREF] = raw->values[XLINK_HREF];
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

/* What may keep a marker in a template from being closed by its end tag. */
#define HOLDS_MARKERS (MARKER | TABLE | PART | SELECT)

static void start_in_template(scanner *self, const struct tag_entry *tag) {
    if (self->marker && (tag->flags & HOLDS_MARKERS || tag->tag == TAG_SVG || tag->tag == TAG_MATH ||
                         tag->tag == TAG_TEMPLATE))
        self->marked = 1;
    if (self->drawn && tag->tag == TAG_TEMPLATE)
        doubt(self);
    self->drawn |= tag->tag == TAG_SVG || tag->tag == TAG_MATH;
    if (tag->flags & MARKER)
        self->marker = tag->tag;
}

/* A template clears formatting up to the last marker alone: one that is open there leaves its own behind. */
static void end_in_template(scanner *self, const struct tag_entry *tag) {
    if (tag->tag == TAG_TEMPLATE) {
        if (--self->templates)
            return;
        if (self->marker || self->marked)
            doubt(self);
        self->marker = self->marked = self->drawn = 0;
    } else if (self->marker && tag->tag == self->marker) {
        self->marker = 0;
    } else if (tag->flags & HOLDS_MARKERS && self->marker) {
        self->marked = 1;
    }
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
    if (self->templates)
        start_in_template(self, tag);
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
    if (self->templates) {
        end_in_template(self, tag);
    } else if (!self->doubtful) {
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
    int is_cdata = left >= 9 && !memcmp(bracket, "<![CDATA[", 9);
    if (is_cdata && self->drawn)
        doubt(self);
    if (is_cdata && !self->doubtful && open->open[open->depth - 1].foreign) {
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
        if (++self->tags > MAX_TAGS)
            doubt(self);
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

/* `links` (taken over) are what references were resolved to; then these are not told. */
static PyObject *result_of(scanner *self, PyObject *links) {
    slice nothing = {NULL, 0};
    if (self->doubtful) {
        self->reference_count = self->meta_count = self->hreflang_count = 0;
        self->base = self->title = self->canonical = nothing;
        self->language = self->default_language = (slice){(text) "", 0};
    } else if (!self->default_language.at) {
        self->default_language = (slice){(text) "", 0};
    }
    if (links && links != Py_None)
        self->reference_count = 0;
    const char *spoken = self->language.size || self->default_language.size ? "" : prose_language(&self->prose);
    likeness like;
    prose_likeness(&self->prose, &like);
    Py_ssize_t hash_size = self->prose.signed_any ? 8 : 0;
    unsigned char hashes[24];
    for (int place = 0; place < 8; place++) {
        hashes[place] = (unsigned char)(self->prose.text >> 8 * place);
        hashes[place + 8] = (unsigned char)(self->prose.shape >> 8 * place);
        hashes[place + 16] = (unsigned char)(like.said >> 8 * place);
    }
    return Py_BuildValue(links ? "(N(NNNNNNNN)(y#y#y#)(Ky#I)sN)" : "(N(NNNNNNNN)(y#y#y#)(Ky#I)s)",
                         PyBool_FromLong(self->doubtful), reference_strings(self),
                         strings(self->metas, self->meta_count), string(self->base), string(self->title),
                         string(self->language), string(self->default_language), string(self->canonical),
                         strings(self->hreflang, self->hreflang_count), hashes, hash_size, hashes + 8, hash_size,
                         hashes + 16, (Py_ssize_t)(like.comparable ? 8 : 0),
                         (unsigned long long)like.simhash, like.sketch, (Py_ssize_t)(like.comparable ? PLACES : 0),
                         (unsigned int)like.words, spoken, links);
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

/* `resolver`: base, join, outranked and Link; or NULL. */
static PyObject *scanned(PyObject *const *args, PyObject *const *resolver) {
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
        prose_begin(&self->prose, self->end);
        nesting_begin(&self->nesting);
        run(self);
        if (!self->failed && !self->prose.failed) {
            PyObject *links = resolver ? nephila_resolved(self, resolver[0], resolver[1], resolver[2], resolver[3]) : NULL;
            if (links || !resolver)
                result = result_of(self, links);
        }
        free_scanner(self);
    }
    Py_XDECREF(repaired);
    if (!result && !PyErr_Occurred())
        PyErr_NoMemory();
    return result;
}

static PyObject *scan_page(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    if (count != 4 || !PyBytes_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "scan_page(body: bytes, images: bool, refresh_url, srcset_urls)");
        return NULL;
    }
    return scanned(args, NULL);
}

static PyObject *read_page(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
    if (count != 8 || !PyBytes_Check(args[0]) || !is_noun_type(args[7])) {
        PyErr_SetString(PyExc_TypeError,
                        "read_page(body: bytes, images: bool, refresh_url, srcset_urls, base, join, outranked, Link)");
        return NULL;
    }
    return scanned(args, args + 4);
}

PyMethodDef nephila_scan_methods[] = {
    {"scan_page", (PyCFunction)(void (*)(void))scan_page, METH_FASTCALL, "All that is to be known of a page's text."},
    {"read_page", (PyCFunction)(void (*)(void))read_page, METH_FASTCALL,
     "The same with the links resolved, where the page's own URL is their base; else None in their place."},
    {NULL, NULL, 0, NULL},
};
