/* The links of a page in few pieces of memory: as they were found, as candidates, and as the archive tells them.
 *
 * A page has eighty links, and a hundred pages wait for their turn in the frontier: as nouns that is a million small
 * objects, which are made where the processor's caches have none of their memory, and looked at again when they have
 * been forgotten. Here they are sequences that know their length, and make nouns of what is asked for. To
 * anybody but the extension they are like tuples: equal to one (and to a list), hashed and shown as one, pickled as one.
 */
#include "packed.h"
#include "plain.h"

typedef struct {
    PyObject_HEAD
    PyObject *items;
    Py_ssize_t count;
    Links *links;
} Outlinks;

/* What all three begin with. */
typedef struct {
    PyObject_HEAD
    PyObject *items;
    Py_ssize_t count;
} packed;

static PyTypeObject LinksType, CandidatesType, OutlinksType;

int nephila_is_links(PyObject *object) {
    return Py_IS_TYPE(object, &LinksType);
}

int nephila_is_candidates(PyObject *object) {
    return Py_IS_TYPE(object, &CandidatesType);
}

static PyObject *text_at(const Links *self, uint32_t at, uint32_t size) {
    return PyUnicode_DecodeUTF8(self->bytes + at, (Py_ssize_t)size, "replace");
}

static PyObject *make_link(const Links *self, Py_ssize_t at) {
    const packed_link *one = &self->links[at];
    PyObject *fields[4] = {text_at(self, one->url, one->url_size), PyUnicode_InternFromString(one->tag),
                           text_at(self, one->rel, one->rel_size), text_at(self, one->text, one->text_size)};
    PyObject *link = fields[0] && fields[1] && fields[2] && fields[3] ? noun(self->type, 4) : NULL;
    for (int field = 0; field < 4; field++) {
        if (link)
            PyTuple_SET_ITEM(link, field, fields[field]);
        else
            Py_XDECREF(fields[field]);
    }
    return link;
}

static PyObject *make_address(const Candidates *self, const packed_candidate *one) {
    if (one->address)
        return Py_NewRef(one->address);
    const packed_link *link = &self->links->links[one->link];
    const char *url = self->links->bytes + link->url;
    PyObject *whole = PyUnicode_FromKindAndData(PyUnicode_1BYTE_KIND, url, link->url_size);
    PyObject *key = one->key_size == link->url_size ? Py_XNewRef(whole)
                                                    : PyUnicode_FromKindAndData(PyUnicode_1BYTE_KIND, url, one->key_size);
    PyObject *fingerprint = PyBytes_FromStringAndSize((const char *)one->fingerprint, sizeof one->fingerprint);
    PyObject *address = whole && key && fingerprint ? noun(self->address_type, 4) : NULL;
    if (!address) {
        Py_XDECREF(whole);
        Py_XDECREF(key);
        Py_XDECREF(fingerprint);
        return NULL;
    }
    PyTuple_SET_ITEM(address, 0, whole);
    PyTuple_SET_ITEM(address, 1, Py_NewRef(one->host));
    PyTuple_SET_ITEM(address, 2, key);
    PyTuple_SET_ITEM(address, 3, fingerprint);
    return address;
}

static PyObject *make_candidate(const Candidates *self, Py_ssize_t at) {
    const packed_candidate *one = &self->candidates[at];
    PyObject *address = make_address(self, one), *bonus = one->bonus ? Py_NewRef(one->bonus) : PyLong_FromLong(0);
    PyObject *zero = PyLong_FromLong(0), *candidate = address && bonus && zero ? noun(self->type, 5) : NULL;
    if (!candidate) {
        Py_XDECREF(address);
        Py_XDECREF(bonus);
        Py_XDECREF(zero);
        return NULL;
    }
    PyTuple_SET_ITEM(candidate, 0, address);
    PyTuple_SET_ITEM(candidate, 1, Py_NewRef(self->depth));
    PyTuple_SET_ITEM(candidate, 2, Py_NewRef(Py_None));
    PyTuple_SET_ITEM(candidate, 3, zero);
    PyTuple_SET_ITEM(candidate, 4, bonus);
    return candidate;
}

/* "URL tag rel" of a link, without the rel where there is none. */
static PyObject *make_outlink(const Outlinks *self, Py_ssize_t at) {
    const packed_link *one = &self->links->links[at];
    PyObject *url = text_at(self->links, one->url, one->url_size), *rel = text_at(self->links, one->rel, one->rel_size);
    PyObject *told = url && rel ? PyUnicode_FromFormat(one->rel_size ? "%U %s %U" : "%U %s", url, one->tag, rel) : NULL;
    Py_XDECREF(url);
    Py_XDECREF(rel);
    return told;
}

static PyObject *make_item(packed *self, Py_ssize_t at) {
    return Py_IS_TYPE(self, &LinksType)        ? make_link((Links *)self, at)
           : Py_IS_TYPE(self, &CandidatesType) ? make_candidate((Candidates *)self, at)
                                               : make_outlink((Outlinks *)self, at);
}

/* Some of the nouns, in steps. */
static PyObject *make_items(packed *self, Py_ssize_t from, Py_ssize_t step, Py_ssize_t count) {
    PyObject *items = PyTuple_New(count);
    for (Py_ssize_t at = 0; items && at < count; at++) {
        PyObject *item = make_item(self, from + at * step);
        if (item)
            PyTuple_SET_ITEM(items, at, item);
        else
            Py_CLEAR(items);
    }
    return items;
}

/* All of them, borrowed. */
static PyObject *items_of(packed *self) {
    if (self->items)
        return self->items;
    PyObject *items = make_items(self, 0, 1, self->count);
    if (items && self->items) /* somebody was faster while memory was looked for */
        Py_DECREF(items);
    else
        self->items = items;
    return self->items;
}

static Py_ssize_t packed_length(packed *self) {
    return self->count;
}

static PyObject *packed_item(packed *self, Py_ssize_t at) {
    if (at < 0 || at >= self->count) {
        PyErr_SetString(PyExc_IndexError, "there are not so many links");
        return NULL;
    }
    return self->items ? Py_NewRef(PyTuple_GET_ITEM(self->items, at)) : make_item(self, at);
}

PyObject *nephila_candidate(Candidates *candidates, Py_ssize_t at) {
    return packed_item((packed *)candidates, at);
}

/* Whoever looks at one or two of them does not make all. */
static PyObject *packed_part(packed *self, PyObject *key) {
    Py_ssize_t start, stop, step;
    if (self->items)
        return PyObject_GetItem(self->items, key);
    if (!PySlice_Check(key)) {
        Py_ssize_t at = PyNumber_AsSsize_t(key, PyExc_IndexError);
        return at == -1 && PyErr_Occurred() ? NULL : packed_item(self, at < 0 ? at + self->count : at);
    }
    if (PySlice_Unpack(key, &start, &stop, &step) < 0)
        return NULL;
    Py_ssize_t count = PySlice_AdjustIndices(self->count, &start, &stop, step);
    return make_items(self, start, step, count);
}

static PyObject *packed_iterator(packed *self) {
    PyObject *items = items_of(self);
    return items ? PyObject_GetIter(items) : NULL;
}

static int is_packed(PyObject *object) {
    return Py_IS_TYPE(object, &LinksType) || Py_IS_TYPE(object, &CandidatesType) || Py_IS_TYPE(object, &OutlinksType);
}

static PyObject *packed_compare(PyObject *self, PyObject *other, int how) {
    PyObject *one = items_of((packed *)self);
    PyObject *two = is_packed(other)        ? Py_XNewRef(items_of((packed *)other))
                    : PyList_Check(other) ? PyList_AsTuple(other)
                                          : Py_NewRef(other);
    PyObject *answer = one && two ? PyObject_RichCompare(one, two, how) : NULL;
    Py_XDECREF(two);
    return answer;
}

static Py_hash_t packed_hash(packed *self) {
    PyObject *items = items_of(self);
    return items ? PyObject_Hash(items) : -1;
}

static PyObject *packed_shown(packed *self) {
    PyObject *items = items_of(self);
    return items ? PyObject_Repr(items) : NULL;
}

static PyObject *packed_reduced(packed *self, PyObject *Py_UNUSED(nothing)) {
    PyObject *items = items_of(self);
    return items ? Py_BuildValue("(O(O))", &PyTuple_Type, items) : NULL;
}

static void free_links(Links *self) {
    Py_XDECREF(self->items);
    Py_XDECREF(self->type);
    Py_XDECREF(self->owner);
    PyMem_Free(self->links);
    PyObject_Free(self);
}

void nephila_drop_candidates(packed_candidate *candidates, size_t count) {
    for (size_t at = 0; at < count; at++) {
        Py_XDECREF(candidates[at].host);
        Py_XDECREF(candidates[at].address);
        Py_XDECREF(candidates[at].bonus);
    }
    PyMem_Free(candidates);
}

static void free_candidates(Candidates *self) {
    Py_XDECREF(self->items);
    Py_XDECREF(self->type);
    Py_XDECREF(self->address_type);
    Py_XDECREF(self->depth);
    Py_XDECREF(self->links);
    nephila_drop_candidates(self->candidates, (size_t)self->count);
    PyObject_Free(self);
}

static void free_outlinks(Outlinks *self) {
    Py_XDECREF(self->items);
    Py_XDECREF(self->links);
    PyObject_Free(self);
}

static PyMethodDef METHODS[] = {
    {"__reduce__", (PyCFunction)packed_reduced, METH_NOARGS, "As a tuple."},
    {NULL, NULL, 0, NULL},
};
static PySequenceMethods AS_SEQUENCE = {.sq_length = (lenfunc)packed_length, .sq_item = (ssizeargfunc)packed_item};
static PyMappingMethods AS_MAPPING = {.mp_length = (lenfunc)packed_length, .mp_subscript = (binaryfunc)packed_part};

#define PACKED(kind, size, free, doc)                                                                                  \
    {                                                                                                                  \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "nephila_native." kind, .tp_basicsize = size,                         \
        .tp_dealloc = (destructor)free, .tp_doc = doc, .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_SEQUENCE,           \
        .tp_as_sequence = &AS_SEQUENCE, .tp_as_mapping = &AS_MAPPING, .tp_iter = (getiterfunc)packed_iterator,         \
        .tp_richcompare = packed_compare, .tp_hash = (hashfunc)packed_hash, .tp_repr = (reprfunc)packed_shown,         \
        .tp_methods = METHODS,                                                                                         \
    }

static PyTypeObject LinksType = PACKED("Links", sizeof(Links), free_links, "The links of a page.");
static PyTypeObject CandidatesType =
    PACKED("Candidates", sizeof(Candidates), free_candidates, "The links of a page that may be queued.");
static PyTypeObject OutlinksType =
    PACKED("Outlinks", sizeof(Outlinks), free_outlinks, "The links of a page as its metadata record tells them.");

int nephila_packed_prepare(void) {
    return PyType_Ready(&LinksType) < 0 || PyType_Ready(&CandidatesType) < 0 || PyType_Ready(&OutlinksType) < 0 ? -1 : 0;
}

static Links *new_links(PyObject *type, size_t count, size_t size) {
    Links *self = PyObject_New(Links, &LinksType);
    if (!self)
        return NULL;
    self->items = self->owner = NULL;
    self->type = Py_NewRef(type);
    self->count = (Py_ssize_t)count;
    self->links = PyMem_Malloc(count * sizeof *self->links + size);
    if (!self->links) {
        Py_DECREF(self);
        PyErr_NoMemory();
        return NULL;
    }
    self->bytes = (const char *)(self->links + count);
    return self;
}

PyObject *nephila_links(PyObject *type, const packed_link *links, size_t count, const void *bytes, size_t size) {
    Links *self = new_links(type, count, size);
    if (self && count) {
        memcpy(self->links, links, count * sizeof *links);
        memcpy(self->links + count, bytes, size);
    }
    return (PyObject *)self;
}

PyObject *nephila_candidates(Links *links, PyObject *type, PyObject *address_type, PyObject *depth,
                             packed_candidate *candidates, size_t count) {
    Candidates *self = PyObject_New(Candidates, &CandidatesType);
    if (!self) {
        nephila_drop_candidates(candidates, count);
        return NULL;
    }
    self->items = NULL;
    self->type = Py_NewRef(type);
    self->address_type = Py_NewRef(address_type);
    self->depth = Py_NewRef(depth);
    self->links = (Links *)Py_NewRef((PyObject *)links);
    self->candidates = candidates;
    self->count = (Py_ssize_t)count;
    return (PyObject *)self;
}

PyObject *nephila_links_of(const Candidates *candidates) {
    Links *all = candidates->links;
    if (candidates->count == all->count)
        return Py_NewRef((PyObject *)all);
    Links *self = new_links(all->type, (size_t)candidates->count, 0);
    if (self) {
        self->owner = Py_NewRef((PyObject *)all);
        self->bytes = all->bytes;
        for (Py_ssize_t at = 0; at < self->count; at++)
            self->links[at] = all->links[candidates->candidates[at].link];
    }
    return (PyObject *)self;
}

/* Whether a rel can stand at the end of a line as it is: nothing is to be taken off. */
static int is_told_plainly(const Links *self, const packed_link *link) {
    unsigned char last = link->rel_size ? (unsigned char)self->bytes[link->rel + link->rel_size - 1] : 'x';
    return last > ' ' && last < 0x7F;
}

PyObject *nephila_outlinks(PyObject *given) {
    Links *links = (Links *)given;
    for (Py_ssize_t at = 0; at < links->count; at++)
        if (!is_told_plainly(links, &links->links[at]))
            return NULL;
    Outlinks *self = PyObject_New(Outlinks, &OutlinksType);
    if (self) {
        self->items = NULL;
        self->count = links->count;
        self->links = (Links *)Py_NewRef(given);
    }
    return (PyObject *)self;
}

/* The lines of a metadata record; None where that is for the twin. */
static PyObject *outlink_lines(PyObject *Py_UNUSED(module), PyObject *given) {
    static const char NAME[] = "outlink: ";
    if (!Py_IS_TYPE(given, &OutlinksType))
        Py_RETURN_NONE;
    const Links *links = ((Outlinks *)given)->links;
    size_t size = 0;
    for (Py_ssize_t at = 0; at < links->count; at++) {
        const packed_link *one = &links->links[at];
        size += sizeof NAME - 1 + one->url_size + 1 + strlen(one->tag) + (one->rel_size ? 1 + one->rel_size : 0) + 2;
    }
    PyObject *lines = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (!lines)
        return NULL;
    char *put = PyBytes_AS_STRING(lines);
    for (Py_ssize_t at = 0; at < links->count; at++) {
        const packed_link *one = &links->links[at];
        size_t tag = strlen(one->tag);
        memcpy(put, NAME, sizeof NAME - 1);
        put += sizeof NAME - 1;
        char *begun = put;
        memcpy(put, links->bytes + one->url, one->url_size);
        put += one->url_size;
        *put++ = ' ';
        memcpy(put, one->tag, tag);
        put += tag;
        if (one->rel_size) {
            *put++ = ' ';
            memcpy(put, links->bytes + one->rel, one->rel_size);
            put += one->rel_size;
        }
        if (memchr(begun, '\n', (size_t)(put - begun)) || memchr(begun, '\r', (size_t)(put - begun))) {
            Py_DECREF(lines);
            Py_RETURN_NONE;
        }
        *put++ = '\r';
        *put++ = '\n';
    }
    return lines;
}

PyMethodDef nephila_packed_methods[] = {
    {"outlink_lines", outlink_lines, METH_O, "The links of a page as lines of its metadata record, where they are packed."},
    {NULL, NULL, 0, NULL},
};
