/* The links of a page in few pieces of memory: see packed.c. */
#ifndef NEPHILA_PACKED_H
#define NEPHILA_PACKED_H

#include "native.h"

/* A link: places in the bytes of its page, and a tag that is a constant. */
typedef struct {
    uint32_t url, url_size, rel, rel_size, text, text_size;
    const char *tag;
} packed_link;

typedef struct {
    PyObject_HEAD
    PyObject *items; /* the nouns, once somebody has asked for one */
    Py_ssize_t count;
    PyObject *type;  /* Link */
    PyObject *owner; /* who has the bytes, where they are not behind the links */
    packed_link *links;
    const char *bytes;
} Links;

/* A link that may be queued. What is not plain has an address that was made in Python, and perhaps a bonus. */
typedef struct {
    uint32_t link, key_size;
    PyObject *host, *address, *bonus;
    unsigned char fingerprint[16];
} packed_candidate;

typedef struct {
    PyObject_HEAD
    PyObject *items;
    Py_ssize_t count;
    PyObject *type, *address_type, *depth; /* Candidate and Address */
    Links *links;
    packed_candidate *candidates;
} Candidates;

int nephila_is_links(PyObject *object);
int nephila_is_candidates(PyObject *object);

/* The links, copied, with the bytes that they name; NULL with an exception where there is no memory. */
PyObject *nephila_links(PyObject *type, const packed_link *links, size_t count, const void *bytes, size_t size);

/* The candidates among some links, of which memory and references are taken over, whatever comes of it. */
PyObject *nephila_candidates(Links *links, PyObject *type, PyObject *address_type, PyObject *depth,
                             packed_candidate *candidates, size_t count);

/* One of the candidates, as a noun. */
PyObject *nephila_candidate(Candidates *candidates, Py_ssize_t at);

/* The links that candidates were made of. */
PyObject *nephila_links_of(const Candidates *candidates);

/* The links as the archive tells them; NULL without an exception where that is not plain. */
PyObject *nephila_outlinks(PyObject *links);

void nephila_drop_candidates(packed_candidate *candidates, size_t count);

static inline int is_link_element(const packed_link *link) {
    return strcmp(link->tag, "link") == 0;
}

#endif
