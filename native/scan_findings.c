/* What is kept of a page: references with their anchor texts, metas, title, base, languages; twins: the readers of
 * nephila/parse/scan.py, and nephila/parse/walk.py.
 *
 * What is kept until the end of the page lies in an arena that is freed with it, or in the page's own text. Memory that
 * cannot be had is told of at the end, in one place.
 */
#include "scan.h"
#include "scan_tags.h"

unsigned char *take(scanner *self, size_t size) {
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
void give_back(scanner *self, size_t size) {
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
slice folded(scanner *self, slice raw, size_t limit) {
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

int same_folded(slice value, const char *word) {
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

void doubt(scanner *self) {
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
    void **references = (void **)&self->references;
    if (!grown(self, references, self->reference_count, &self->reference_room, sizeof *self->references))
        return NULL;
    reference *made = &self->references[self->reference_count++];
    *made = (reference){.href = href, .rel = {(text) "", 0}, .text = {(text) "", 0}};
    *slot = self->reference_count;
    if (self->reference_count >= MAX_REFERENCES)
        doubt(self);
    return made;
}

/* Keep a reference that is no anchor, unless its href is empty or was met before. */
static void refer(scanner *self, slice href, const char *tag, slice rel, slice anchor_text) {
    int is_new;
    if (!href.at || !href.size)
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
void settle_anchors(scanner *self) {
    while (self->anchor_count > self->nesting.anchor_count) {
        self->anchor_count--;
        size_t first = self->anchors[self->anchor_count].first;
        slice raw = {self->anchor_text.bytes + first, self->anchor_text.used - first};
        self->references[self->anchors[self->anchor_count].reference].text =
            raw.size ? folded(self, raw, MAX_TEXT) : (slice){(text) "", 0};
    }
}

void keep_anchor_text(scanner *self, text from, text end, int references) {
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
    if (!href.at || !href.size)
        return;
    slice rel = normal_rel(self, decoded(self, raw->values[REL]));
    if (!self->canonical.at && lists(rel, "canonical"))
        self->canonical = href;
    slice language = decoded(self, raw->values[HREFLANG]);
    if (language.at && language.size && lists(rel, "alternate") &&
        grown(self, (void **)&self->hreflang, self->hreflang_count, &self->hreflang_room, sizeof *self->hreflang))
        self->hreflang[self->hreflang_count++] = (slice_pair){language, href};
    if (self->hreflang_count >= MAX_METAS)
        doubt(self);
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
    if (name.at && name.size &&
        grown(self, (void **)&self->metas, self->meta_count, &self->meta_room, sizeof *self->metas))
        self->metas[self->meta_count++] = (slice_pair){name, content};
    if (self->meta_count >= MAX_METAS)
        doubt(self);
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

void read_element(scanner *self, uint16_t tag, const attributes *raw) {
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
