/* The links of a page sifted as they lie, packed: nouns are made of those alone that are refused or not plain. */
#include "packed.h"
#include "sieve.h"

/* What one call is about. */
typedef struct {
    Links *links;
    PyObject *known, *learn, *depth, *type, *const *rels;
    const Rules *rules;
    PyObject *refused;
    packed_candidate *candidates;
    size_t count;
    unsigned char (*met)[16]; /* fingerprints, by their first bytes; all zero where there is none */
    size_t mask;
    Site site;
    int leads, forbidden;
} sifting;

/* Whether a fingerprint is met for the first time. All zeros, which nobody has, would be met again and again. */
static int is_new(sifting *self, const unsigned char fingerprint[16]) {
    static const unsigned char NONE[16];
    uint64_t first;
    memcpy(&first, fingerprint, sizeof first);
    size_t slot = (size_t)first & self->mask;
    for (; memcmp(self->met[slot], NONE, 16) != 0; slot = (slot + 1) & self->mask)
        if (memcmp(self->met[slot], fingerprint, 16) == 0)
            return 0;
    memcpy(self->met[slot], fingerprint, 16);
    return 1;
}

/* What the rel of a link means; most have none. */
static int ask_rel(sifting *self, const packed_link *link) {
    int is_element = is_link_element(link);
    self->leads = 1;
    self->forbidden = 0;
    if (!is_element && !link->rel_size)
        return 0;
    PyObject *rel = PyUnicode_DecodeUTF8(self->links->bytes + link->rel, (Py_ssize_t)link->rel_size, "replace");
    if (rel == NULL)
        return -1;
    if (is_element)
        self->leads = nephila_answered(self->rels[0], self->rels[1], rel);
    if (self->leads > 0 && link->rel_size)
        self->forbidden = nephila_answered(self->rels[2], self->rels[3], rel);
    Py_DECREF(rel);
    return self->leads < 0 || self->forbidden < 0 ? -1 : 0;
}

/* Notes a refusal: an address (taken over) or None, and a verdict. */
static int refuse(sifting *self, PyObject *address, PyObject *verdict) {
    PyObject *refusal = address == NULL ? NULL : PyTuple_Pack(2, address, verdict);
    int failed = refusal == NULL || PyList_Append(self->refused, refusal) < 0;
    Py_XDECREF(refusal);
    Py_XDECREF(address);
    return failed ? -1 : 0;
}

static PyObject *url_of(const sifting *self, const packed_link *link) {
    return PyUnicode_DecodeUTF8(self->links->bytes + link->url, (Py_ssize_t)link->url_size, "replace");
}

static int place_slowly(sifting *self, uint32_t at) {
    const packed_link *link = &self->links->links[at];
    PyObject *url = url_of(self, link), *address = NULL, *verdict = NULL, *bonus = NULL;
    self->site.prefix = NULL; /* what Python does may change the sites */
    int failed = url == NULL || nephila_judge_slowly(url, self->known, self->learn, &address, &verdict, &bonus) < 0;
    Py_XDECREF(url);
    if (failed)
        return -1;
    if (address == Py_None) {
        failed = refuse(self, Py_NewRef(address), verdict) < 0;
    } else if (!PyTuple_Check(address) || PyTuple_GET_SIZE(address) != 4 || !PyBytes_Check(PyTuple_GET_ITEM(address, 3)) ||
               PyBytes_GET_SIZE(PyTuple_GET_ITEM(address, 3)) != 16) {
        PyErr_SetString(PyExc_TypeError, "an address was expected");
        failed = 1;
    } else {
        const unsigned char *fingerprint = (const unsigned char *)PyBytes_AS_STRING(PyTuple_GET_ITEM(address, 3));
        if (!is_new(self, fingerprint)) {
            failed = 0;
        } else if (self->forbidden || verdict != Py_None) {
            failed = refuse(self, Py_NewRef(address), self->forbidden ? Py_None : verdict) < 0;
        } else {
            packed_candidate *made = &self->candidates[self->count++];
            *made = (packed_candidate){.link = at, .address = Py_NewRef(address), .bonus = Py_NewRef(bonus)};
            memcpy(made->fingerprint, fingerprint, 16);
        }
    }
    Py_DECREF(address);
    Py_DECREF(verdict);
    Py_DECREF(bonus);
    return failed ? -1 : 0;
}

static int place(sifting *self, uint32_t at) {
    const packed_link *link = &self->links->links[at];
    if (ask_rel(self, link) < 0)
        return -1;
    if (!self->leads)
        return 0;
    packed_candidate *made = &self->candidates[self->count];
    Py_ssize_t key = nephila_judge_plainly(self->links->bytes + link->url, (Py_ssize_t)link->url_size, self->rules,
                                           &self->site, made->fingerprint);
    if (key <= 0)
        return key < 0 ? -1 : place_slowly(self, at);
    if (!is_new(self, made->fingerprint))
        return 0;
    if (self->forbidden || !self->site.inside) {
        PyObject *url = url_of(self, link);
        PyObject *address = url == NULL ? NULL
                                        : nephila_made_address(self->rules->address_type, url, self->site.host, key,
                                                               made->fingerprint);
        Py_XDECREF(url);
        return refuse(self, address, self->forbidden ? Py_None : self->rules->outside);
    }
    made->link = at;
    made->key_size = (uint32_t)key;
    made->host = Py_NewRef(self->site.host);
    made->address = made->bonus = NULL;
    self->count++;
    return 0;
}

PyObject *nephila_sift_packed(PyObject *const *arguments, const Rules *rules) {
    Links *links = (Links *)arguments[0];
    size_t slots = 64;
    while (slots < 2 * (size_t)links->count)
        slots *= 2;
    sifting self = {
        .links = links,
        .known = arguments[1],
        .learn = arguments[2],
        .depth = arguments[3],
        .type = arguments[4],
        .rels = &PyTuple_GET_ITEM(arguments[5], 0),
        .rules = rules,
        .refused = PyList_New(0),
        .candidates = PyMem_Malloc(((size_t)links->count + 1) * sizeof *self.candidates),
        .met = PyMem_Calloc(slots, sizeof *self.met),
        .mask = slots - 1,
        .site = {NULL, 0, NULL, -1},
    };
    int failed = self.refused == NULL || self.candidates == NULL || self.met == NULL;
    if (failed && !PyErr_Occurred())
        PyErr_NoMemory();
    for (uint32_t at = 0; !failed && at < (uint32_t)links->count; at++)
        failed = place(&self, at) < 0;
    PyMem_Free(self.met);
    PyObject *result = NULL;
    if (failed) {
        if (self.candidates != NULL)
            nephila_drop_candidates(self.candidates, self.count);
    } else {
        PyObject *candidates =
            nephila_candidates(links, self.type, rules->address_type, self.depth, self.candidates, self.count);
        PyObject *wanted = candidates == NULL ? NULL : nephila_links_of((Candidates *)candidates);
        if (wanted != NULL)
            result = PyTuple_Pack(3, wanted, candidates, self.refused);
        Py_XDECREF(wanted);
        Py_XDECREF(candidates);
    }
    Py_XDECREF(self.refused);
    return result;
}
