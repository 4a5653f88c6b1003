/* What the scanner found, resolved where it lies: no string is made of a plain link (see `parse/html.py`).
 *
 * The same as `resolve_references` in joining.c does with the references of a page that has a base of its own.
 */
#include "joining.h"
#include "packed.h"
#include "scan.h"

enum { MOST_BYTES = 1 << 30 };

typedef struct {
    packed_link *links;
    uint32_t count, *slots, mask;
    buffer bytes;
    PyObject *outranked;
} resolving;

/* Bytes put behind the others; where they lie. */
static uint32_t keep(resolving *self, const void *bytes, size_t size) {
    uint32_t place = (uint32_t)self->bytes.used;
    if (size && buffer_reserve(&self->bytes, size) == 0) {
        memcpy(self->bytes.bytes + self->bytes.used, bytes, size);
        self->bytes.used += size;
    }
    return place;
}

static void keep_rest(resolving *self, packed_link *link, const reference *found) {
    link->tag = found->tag;
    link->rel = keep(self, found->rel.at, link->rel_size = (uint32_t)found->rel.size);
    link->text = keep(self, found->text.at, link->text_size = (uint32_t)found->text.size);
}

/* Whether a reference takes the place of the link to the same URL; -1 with an exception. */
static int replaces(const resolving *self, const packed_link *known, const reference *found) {
    if (!known->rel_size && strcmp(known->tag, "a") == 0 && strcmp(found->tag, "a") == 0)
        return 0; /* the usual repetition */
    const char *bytes = (const char *)self->bytes.bytes;
    PyObject *answer = PyObject_CallFunction(
        self->outranked, "(ss#s#)ss#", known->tag, bytes + known->rel, (Py_ssize_t)known->rel_size, bytes + known->text,
        (Py_ssize_t)known->text_size, found->tag, (const char *)found->rel.at, (Py_ssize_t)found->rel.size);
    int yes = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return yes;
}

/* The URL behind all bytes that are kept; its size, 0 where it is none, -1 with an exception. */
static Py_ssize_t put_url(resolving *self, const Base *base, PyObject *join, slice href) {
    Joined found;
    Py_ssize_t size;
    if (nephila_plain_join(base, (const char *)href.at, (Py_ssize_t)href.size, &found)) {
        size = joined_size(&found);
        if (buffer_reserve(&self->bytes, (size_t)size) == 0)
            put_joined((char *)self->bytes.bytes + self->bytes.used, &found);
        return size;
    }
    if (nephila_leads_elsewhere((const char *)href.at, (Py_ssize_t)href.size))
        return 0;
    PyObject *text = PyUnicode_DecodeUTF8((const char *)href.at, (Py_ssize_t)href.size, "replace");
    PyObject *url = text ? nephila_slow_join(join, text) : NULL;
    Py_XDECREF(text);
    if (!url)
        return -1;
    const char *bytes = url == Py_None ? "" : PyUnicode_AsUTF8AndSize(url, &size);
    if (url == Py_None)
        size = 0;
    else if (!bytes)
        size = -1;
    else if (buffer_reserve(&self->bytes, (size_t)size) == 0)
        memcpy(self->bytes.bytes + self->bytes.used, bytes, (size_t)size);
    Py_DECREF(url);
    return size;
}

/* Where the number of the link to a URL stands, one more than its place, or is to be put. */
static uint32_t *slot_of(const resolving *self, const unsigned char *url, size_t size) {
    uint32_t slot = (uint32_t)(hash_bytes(url, size) >> 20) & self->mask;
    while (self->slots[slot]) {
        const packed_link *known = &self->links[self->slots[slot] - 1];
        if (known->url_size == size && !memcmp(self->bytes.bytes + known->url, url, size))
            break;
        slot = (slot + 1) & self->mask;
    }
    return &self->slots[slot];
}

/* One reference; -1 where it failed. */
static int resolve(resolving *self, const Base *base, PyObject *join, const reference *found) {
    Py_ssize_t size = put_url(self, base, join, found->href);
    if (size <= 0 || self->bytes.failed)
        return size < 0 || self->bytes.failed ? -1 : 0;
    uint32_t *slot = slot_of(self, self->bytes.bytes + self->bytes.used, (size_t)size);
    if (*slot) {
        packed_link *known = &self->links[*slot - 1];
        int replacing = replaces(self, known, found);
        if (replacing > 0)
            keep_rest(self, known, found);
        return replacing < 0 ? -1 : 0;
    }
    packed_link *link = &self->links[self->count++];
    *slot = self->count;
    link->url = (uint32_t)self->bytes.used;
    link->url_size = (uint32_t)size;
    self->bytes.used += (size_t)size;
    keep_rest(self, link, found);
    return self->bytes.failed ? -1 : 0;
}

PyObject *nephila_resolved(const scanner *scanned, PyObject *base_url, PyObject *join, PyObject *outranked, PyObject *type) {
    Base base;
    if (scanned->doubtful || scanned->base.at || !nephila_read_base(base_url, &base))
        Py_RETURN_NONE;
    size_t count = scanned->reference_count, slots = 64;
    while (slots < 2 * count)
        slots *= 2;
    resolving self = {.mask = (uint32_t)slots - 1, .outranked = outranked};
    self.links = PyMem_Malloc((count + 1) * sizeof *self.links);
    self.slots = PyMem_Calloc(slots, sizeof *self.slots);
    int failed = !self.links || !self.slots;
    for (size_t at = 0; !failed && at < count && self.bytes.used < MOST_BYTES; at++)
        failed = resolve(&self, &base, join, &scanned->references[at]) < 0;
    PyObject *result = NULL;
    if (failed && !PyErr_Occurred())
        PyErr_NoMemory();
    else if (!failed && self.bytes.used >= MOST_BYTES)
        result = Py_NewRef(Py_None);
    else if (!failed)
        result = nephila_links(type, self.links, self.count, self.bytes.bytes, self.bytes.used);
    PyMem_Free(self.bytes.bytes);
    PyMem_Free(self.links);
    PyMem_Free(self.slots);
    return result;
}
