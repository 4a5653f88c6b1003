/* How much text a page shows, counted up to what is enough (see `parse/signs.py`). */
#include "native.h"

static inline int is_space(unsigned char byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static inline int is_word(unsigned char byte) {
    return ((byte | 32) >= 'a' && (byte | 32) <= 'z') || (byte >= '0' && byte <= '9') || byte == '_';
}

/* What hides the text behind it, after an opening bracket. */
static const struct {
    const char *name;
    Py_ssize_t length;
} HIDING[] = {
    {"script", 6}, {"style", 5}, {"svg", 3}, {"template", 8}, {"title", 5}, {"noscript", 8}, {"head", 4}, {"!--", 3},
};

static inline int is_same(unsigned char byte, char wanted) {
    return byte == wanted || (wanted >= 'a' && (byte | 32) == wanted);
}

/* How many bytes of a name that hides text stand here; 0 for any other. */
static Py_ssize_t hiding(const unsigned char *at, const unsigned char *end) {
    for (size_t which = 0; at < end && which < sizeof HIDING / sizeof *HIDING; which++) {
        const char *name = HIDING[which].name;
        Py_ssize_t length = HIDING[which].length, same = 1;
        if (!is_same(*at, *name) || end - at < length)
            continue;
        while (same < length && is_same(at[same], name[same]))
            same++;
        if (same == length && (*name != 'h' || at + length == end || !is_word(at[length])))
            return length;
    }
    return 0;
}

/* Where what hides text ends: behind the first three bytes of its closing; NULL where it never does. */
static const unsigned char *closed(const unsigned char *name, Py_ssize_t length, const unsigned char *end) {
    const unsigned char *at = name + length;
    if (*name == '!') {
        for (at += 2; at < end && (at = memchr(at, '>', (size_t)(end - at))) != NULL; at++)
            if (at[-1] == '-' && at[-2] == '-')
                return at + 1;
        return NULL;
    }
    for (; at < end && (at = memchr(at, '<', (size_t)(end - at))) != NULL; at++)
        if (end - at >= length + 2 && at[1] == '/' && memcmp(at + 2, name, (size_t)length) == 0)
            return at + 3;
    return NULL;
}

/* Characters of a stretch of text, white space apart; -1 where memory is short. */
static Py_ssize_t characters(const unsigned char *start, const unsigned char *end) {
    Py_ssize_t bytes = 0;
    unsigned char seen = 0;
    for (const unsigned char *at = start; at < end; at++) {
        bytes += !is_space(*at);
        seen |= *at;
    }
    if (seen < 0x80)
        return bytes;
    char *packed = PyMem_Malloc((size_t)bytes);
    if (packed == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    Py_ssize_t taken = 0;
    for (const unsigned char *at = start; at < end; at++)
        if (!is_space(*at))
            packed[taken++] = (char)*at;
    PyObject *text = PyUnicode_DecodeUTF8(packed, taken, "replace");
    PyMem_Free(packed);
    Py_ssize_t count = text == NULL ? -1 : PyUnicode_GET_LENGTH(text);
    Py_XDECREF(text);
    return count;
}

static const unsigned char *body_tag(const unsigned char *start, const unsigned char *end) {
    for (const unsigned char *at = start; end - at >= 5 && (at = memchr(at, '<', (size_t)(end - at))) != NULL; at++)
        if (end - at >= 5 && memcmp(at, "<body", 5) == 0)
            return at;
    return start;
}

static PyObject *visible_characters(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (given != 2 || !PyBytes_Check(arguments[0]) || !PyLong_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "visible_characters(body, enough)");
        return NULL;
    }
    Py_ssize_t count = 0, enough = PyLong_AsSsize_t(arguments[1]);
    if (enough == -1 && PyErr_Occurred())
        return NULL;
    const unsigned char *start = (const unsigned char *)PyBytes_AS_STRING(arguments[0]);
    const unsigned char *end = start + PyBytes_GET_SIZE(arguments[0]), *at = body_tag(start, end);
    while (count < enough && at < end) {
        Py_ssize_t length = *at == '<' ? hiding(at + 1, end) : 0;
        if (length) {
            at = closed(at + 1, length, end);
            if (at == NULL)
                break;
            continue;
        }
        if (*at++ != '>')
            continue;
        while (at < end && is_space(*at))
            at++;
        if (at == end || *at == '<')
            continue;
        const unsigned char *tag = memchr(at, '<', (size_t)(end - at));
        Py_ssize_t more = characters(at, tag == NULL ? end : tag);
        if (more < 0)
            return NULL;
        count += more;
        at = tag == NULL ? end : tag;
    }
    return PyLong_FromSsize_t(count);
}

PyMethodDef nephila_signs_methods[] = {
    {"visible_characters", (PyCFunction)(void (*)(void))visible_characters, METH_FASTCALL,
     "Characters of text in a page, up to about enough."},
    {NULL, NULL, 0, NULL},
};
