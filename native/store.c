/* What the archive writes for every page (see `store/warc.py` and `pipeline/sentence.py`). */
#include "packed.h"

static PyObject *base32(PyObject *self, PyObject *digest) {
    static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    if (!PyBytes_Check(digest) || PyBytes_GET_SIZE(digest) % 5 != 0) {
        PyErr_SetString(PyExc_TypeError, "a digest of a multiple of five bytes was expected");
        return NULL;
    }
    Py_ssize_t size = PyBytes_GET_SIZE(digest);
    PyObject *text = PyUnicode_New(size / 5 * 8, 127);
    if (text == NULL)
        return NULL;
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(digest);
    Py_UCS1 *put = PyUnicode_1BYTE_DATA(text);
    for (Py_ssize_t at = 0; at < size; at += 5) {
        uint64_t bits = 0;
        for (int byte = 0; byte < 5; byte++)
            bits = bits << 8 | bytes[at + byte];
        for (int shift = 35; shift >= 0; shift -= 5)
            *put++ = (Py_UCS1)LETTERS[bits >> shift & 31];
    }
    return text;
}

/* "URL tag rel" of one link, without blanks at its end. */
static PyObject *outlink(PyObject *link) {
    PyObject *parts[3];
    Py_ssize_t length = 2;
    if (!PyTuple_Check(link) || PyTuple_GET_SIZE(link) < 3) {
        PyErr_SetString(PyExc_TypeError, "a link was expected");
        return NULL;
    }
    for (int part = 0; part < 3; part++) {
        parts[part] = PyTuple_GET_ITEM(link, part);
        if (!PyUnicode_Check(parts[part])) {
            PyErr_SetString(PyExc_TypeError, "URL, tag and rel are text");
            return NULL;
        }
        if (!PyUnicode_IS_COMPACT_ASCII(parts[part]))
            length = -1;
        else if (length >= 0)
            length += PyUnicode_GET_LENGTH(parts[part]);
    }
    Py_ssize_t tag = PyUnicode_GET_LENGTH(parts[1]);
    if (length < 0 || tag == 0 || Py_UNICODE_ISSPACE(PyUnicode_1BYTE_DATA(parts[1])[tag - 1])) { /* by way of Python */
        PyObject *whole = PyUnicode_FromFormat("%U %U %U", parts[0], parts[1], parts[2]);
        PyObject *stripped = whole == NULL ? NULL : PyObject_CallMethod(whole, "rstrip", NULL);
        Py_XDECREF(whole);
        return stripped;
    }
    Py_ssize_t rel = PyUnicode_GET_LENGTH(parts[2]);
    const Py_UCS1 *words = PyUnicode_1BYTE_DATA(parts[2]);
    while (rel > 0 && Py_UNICODE_ISSPACE(words[rel - 1]))
        rel--;
    length -= PyUnicode_GET_LENGTH(parts[2]) - rel;
    PyObject *text = PyUnicode_New(rel ? length : length - 1, 127);
    if (text == NULL)
        return NULL;
    Py_UCS1 *put = PyUnicode_1BYTE_DATA(text);
    for (int part = 0; part < 3; part++) {
        Py_ssize_t size = part == 2 ? rel : PyUnicode_GET_LENGTH(parts[part]);
        if (part && size)
            *put++ = ' ';
        memcpy(put, PyUnicode_1BYTE_DATA(parts[part]), (size_t)size);
        put += size;
    }
    return text;
}

static PyObject *outlinks(PyObject *self, PyObject *links) {
    if (nephila_is_links(links)) {
        PyObject *packed = nephila_outlinks(links);
        if (packed != NULL || PyErr_Occurred())
            return packed;
        PyObject *plain = PySequence_Tuple(links), *told = plain == NULL ? NULL : outlinks(self, plain);
        Py_XDECREF(plain);
        return told;
    }
    if (!PyTuple_Check(links)) {
        PyErr_SetString(PyExc_TypeError, "links are a tuple");
        return NULL;
    }
    PyObject *told = PyTuple_New(PyTuple_GET_SIZE(links));
    for (Py_ssize_t at = 0; told != NULL && at < PyTuple_GET_SIZE(links); at++) {
        PyObject *text = outlink(PyTuple_GET_ITEM(links, at));
        if (text == NULL)
            Py_CLEAR(told);
        else
            PyTuple_SET_ITEM(told, at, text);
    }
    return told;
}

PyMethodDef nephila_store_methods[] = {
    {"base32", base32, METH_O, "A digest in base 32."},
    {"outlinks", outlinks, METH_O, "Links as the metadata record of a capture tells them."},
    {NULL, NULL, 0, NULL},
};
