/* What the parts that read links share.
 *
 * Each takes the plain cases, which are nearly all: ASCII, no character that the URL standard would encode or read in a
 * special way, no dot segments, no query to put in order. Whatever is not plain is handed to the twin in Python, link by
 * link, so that there is one place where the rules of URLs stand, and it is not here.
 */
#ifndef NEPHILA_PLAIN_H
#define NEPHILA_PLAIN_H

#include "native.h"

/* Characters by where they may stand unchanged. */
enum { IN_PATH = 1, IN_QUERY = 2, IN_HOST = 4, IN_KEY = 8 };

extern unsigned char nephila_plain[256];
#define PLAIN nephila_plain

/* The characters of a text that is ASCII; else NULL. */
static inline const char *ascii_text(PyObject *text, Py_ssize_t *length) {
    if (!PyUnicode_Check(text) || !PyUnicode_IS_COMPACT_ASCII(text))
        return NULL;
    *length = PyUnicode_GET_LENGTH(text);
    return (const char *)PyUnicode_1BYTE_DATA(text);
}

/* A tuple of a named type, whose fields are to be set. */
static inline PyObject *noun(PyObject *type, Py_ssize_t fields) {
    return unfilled((PyTypeObject *)type, fields);
}

static inline int is_noun_type(PyObject *object) {
    return PyType_Check(object) && PyType_IsSubtype((PyTypeObject *)object, &PyTuple_Type);
}

#endif
