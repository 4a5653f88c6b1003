/* What a page refers to, resolved against its base (see `parse/html.py`). */
#include "joining.h"

unsigned char nephila_plain[256];

static void set_plain(const char *characters, int where) {
    for (; *characters; characters++)
        PLAIN[(unsigned char)*characters] |= (unsigned char)where;
}

void nephila_joining_prepare(void) {
    const char *lower = "abcdefghijklmnopqrstuvwxyz", *upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", *digits = "0123456789";
    set_plain(lower, IN_PATH | IN_QUERY | IN_HOST | IN_KEY);
    set_plain(upper, IN_PATH | IN_QUERY | IN_KEY);
    set_plain(digits, IN_PATH | IN_QUERY | IN_HOST | IN_KEY);
    set_plain("-", IN_PATH | IN_QUERY | IN_HOST | IN_KEY);
    set_plain("_~!$&*+,=@./", IN_PATH | IN_QUERY | IN_KEY);
    set_plain(":", IN_PATH | IN_QUERY | IN_KEY); /* a scheme is looked for elsewhere */
    set_plain("%()|;", IN_PATH | IN_QUERY);
    set_plain("?", IN_QUERY);
    PLAIN['.'] |= IN_HOST;
}

int nephila_read_base(PyObject *url, Base *base) {
    Py_ssize_t length;
    const char *text = ascii_text(url, &length);
    if (text == NULL || length < 9 || (memcmp(text, "http://", 7) != 0 && memcmp(text, "https://", 8) != 0))
        return 0;
    const char *fragment = memchr(text, '#', (size_t)length);
    if (fragment != NULL)
        length = fragment - text;
    const char *query = memchr(text, '?', (size_t)length);
    Py_ssize_t path_end = query == NULL ? length : query - text, slash = 8;
    while (slash < path_end && text[slash] != '/')
        slash++;
    if (slash >= path_end)
        return 0;
    Py_ssize_t directory = path_end;
    while (text[directory - 1] != '/')
        directory--;
    *base = (Base){text, slash, directory, length};
    return 1;
}

/* Where a dotted address of four plain numbers ends, if that is what it is; else 0. */
static Py_ssize_t plain_address_end(const char *href, Py_ssize_t from, Py_ssize_t length) {
    Py_ssize_t at = from;
    for (int part = 0; part < 4; part++) {
        Py_ssize_t start = at;
        int number = 0;
        while (at < length && at < start + 4 && href[at] >= '0' && href[at] <= '9')
            number = number * 10 + href[at++] - '0';
        if (at == start || number > 255 || (href[start] == '0' && at > start + 1))
            return 0;
        if (part < 3 && (at == length || href[at++] != '.'))
            return 0;
    }
    return at;
}

/* Where a host name ends, if its spelling is the standard's own; else 0. */
static Py_ssize_t plain_name_end(const char *href, Py_ssize_t from, Py_ssize_t length) {
    Py_ssize_t at = from, label = from;
    for (; at < length && href[at] != '/' && href[at] != ':'; at++) {
        if (!(PLAIN[(unsigned char)href[at]] & IN_HOST))
            return 0;
        if (href[at] == '.') {
            if (at == label)
                return 0; /* an empty label */
            label = at + 1;
        } else if (at == label + 3 && memcmp(href + label, "xn--", 4) == 0) {
            return 0;
        }
    }
    /* The last label must not make it an address: it begins with a letter and is no hexadecimal number. */
    return at == label || href[label] < 'a' || href[label] > 'z' || at - from > 253 ? 0 : at;
}

/* Where host and port end, at a slash or at the end of the link, if they are spelled in the standard's own way; else 0. */
static Py_ssize_t plain_authority_end(const char *href, Py_ssize_t from, Py_ssize_t length, int secure) {
    Py_ssize_t at = plain_name_end(href, from, length);
    if (at == 0)
        at = plain_address_end(href, from, length);
    if (at > 0 && at < length && href[at] == ':') {
        Py_ssize_t start = ++at;
        long port = 0;
        while (at < length && at < start + 6 && href[at] >= '0' && href[at] <= '9')
            port = port * 10 + href[at++] - '0';
        if (at == start || href[start] == '0' || port > 65535 || port == (secure ? 443 : 80))
            return 0;
    }
    return at > 0 && (at == length || href[at] == '/') ? at : 0;
}

/* Where path and query end (before a fragment), if all of it is plain; else -1. */
static Py_ssize_t plain_end(const char *href, Py_ssize_t from, Py_ssize_t length) {
    int in = IN_PATH;
    for (Py_ssize_t at = from; at < length; at++) {
        unsigned char character = (unsigned char)href[at];
        if (character == '#')
            return at;
        if (character == '?' && in == IN_PATH) {
            in = IN_QUERY;
            continue;
        }
        if (!(PLAIN[character] & in))
            return -1;
        if (in == IN_PATH) {
            if (character == '.' && (at == from || href[at - 1] == '/'))
                return -1; /* a dot segment, perhaps */
            if (character == '%' && at + 2 < length && href[at + 1] == '2' && (href[at + 2] | 32) == 'e')
                return -1; /* an encoded one */
        }
    }
    return length;
}

static int joined(Joined *out, const char *head, Py_ssize_t head_length, const char *tail, Py_ssize_t tail_length) {
    if (tail_length < 0)
        return 0;
    *out = (Joined){head, tail, head_length, tail_length, 0};
    return 1;
}

/* A link that names its host, behind a scheme that it may lack. */
static int plain_absolute(Joined *out, const char *scheme, Py_ssize_t scheme_length, const char *href, Py_ssize_t length,
                          Py_ssize_t authority, int secure) {
    Py_ssize_t slash = plain_authority_end(href, authority, length, secure);
    if (slash == 0)
        return 0;
    if (slash < length)
        return joined(out, scheme, scheme_length, href, plain_end(href, slash, length));
    *out = (Joined){scheme, href, scheme_length, length, 1}; /* without a path it leads to the root */
    return 1;
}

int nephila_plain_join(const Base *base, const char *href, Py_ssize_t length, Joined *out) {
    if (length == 0)
        return 0;
    if (href[0] == '#')
        return joined(out, base->text, base->length, "", 0);
    if (href[0] == '/') {
        if (length > 1 && href[1] == '\\')
            return 0;
        if (length > 1 && href[1] == '/') {
            int secure = base->text[4] == 's';
            return plain_absolute(out, base->text, secure ? 6 : 5, href, length, 2, secure);
        }
        return joined(out, base->text, base->origin, href, plain_end(href, 0, length));
    }
    if (length > 8 && memcmp(href, "http", 4) == 0 && (href[4] == ':' || (href[4] == 's' && href[5] == ':'))) {
        Py_ssize_t authority = href[4] == ':' ? 7 : 8;
        if (href[authority - 2] != '/' || href[authority - 1] != '/')
            return 0;
        if (length > base->origin && href[base->origin] == '/' && memcmp(href, base->text, (size_t)base->origin) == 0)
            return joined(out, "", 0, href, plain_end(href, base->origin, length)); /* the page's own origin, as it is */
        return plain_absolute(out, "", 0, href, length, authority, authority == 8);
    }
    if (href[0] == '?' || !(PLAIN[(unsigned char)href[0]] & IN_PATH) || memchr(href, ':', (size_t)length) != NULL)
        return 0;
    return joined(out, base->text, base->directory, href, plain_end(href, 0, length));
}

/* A plain link, resolved; NULL where it is not plain (without an exception) or memory is out. */
static PyObject *plain_url(const Base *base, const char *href, Py_ssize_t length) {
    Joined found;
    if (!nephila_plain_join(base, href, length, &found))
        return NULL;
    PyObject *url = PyUnicode_New(joined_size(&found), 127);
    if (url != NULL)
        put_joined((char *)PyUnicode_1BYTE_DATA(url), &found);
    return url;
}

int nephila_leads_elsewhere(const char *href, Py_ssize_t length) {
    Py_ssize_t at = 0;
    while (at < length && ((href[at] | 32) >= 'a' && (href[at] | 32) <= 'z'))
        at++;
    if (at == 0 || at == length || href[at] != ':')
        return 0;
    return !((at == 4 || (at == 5 && (href[4] | 32) == 's')) && (href[0] | 32) == 'h' && (href[1] | 32) == 't' &&
             (href[2] | 32) == 't' && (href[3] | 32) == 'p');
}

PyObject *nephila_slow_join(PyObject *join, PyObject *href) {
    PyObject *url = PyObject_CallOneArg(join, href);
    if (url == NULL || url == Py_None)
        return url;
    Py_ssize_t length = PyUnicode_Check(url) ? PyUnicode_GET_LENGTH(url) : 0;
    char scheme[7] = {0};
    for (Py_ssize_t at = 0; at < 7 && at < length; at++) {
        Py_UCS4 character = PyUnicode_READ_CHAR(url, at);
        scheme[at] = character < 128 ? (char)character : 0;
    }
    if (memcmp(scheme, "http://", 7) != 0 && memcmp(scheme, "https:/", 7) != 0) {
        Py_DECREF(url);
        Py_RETURN_NONE;
    }
    Py_ssize_t fragment = PyUnicode_FindChar(url, '#', 0, length, 1);
    if (fragment >= 0) {
        PyObject *cut = PyUnicode_Substring(url, 0, fragment);
        Py_DECREF(url);
        return cut;
    }
    return url;
}

/* Whether both of two references are anchors and the first may be followed: the usual repetition, where it stays. */
static int is_plain_anchor(PyObject *known, PyObject *reference) {
    PyObject *tags[2] = {PyTuple_GET_ITEM(known, 0), PyTuple_GET_ITEM(reference, 0)}, *rel = PyTuple_GET_ITEM(known, 1);
    for (int tag = 0; tag < 2; tag++)
        if (!PyUnicode_Check(tags[tag]) || PyUnicode_GET_LENGTH(tags[tag]) != 1 ||
            PyUnicode_READ_CHAR(tags[tag], 0) != 'a')
            return 0;
    return PyUnicode_Check(rel) && PyUnicode_GET_LENGTH(rel) == 0;
}

/* One link, as the twin would join it and cut its fragment off. */
static PyObject *web_url(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 3 || !PyUnicode_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "web_url(base, href, join)");
        return NULL;
    }
    Base base;
    Py_ssize_t length;
    const char *href = nephila_read_base(arguments[0], &base) ? ascii_text(arguments[1], &length) : NULL;
    PyObject *url = href == NULL ? NULL : plain_url(&base, href, length);
    if (url != NULL || PyErr_Occurred())
        return url;
    return nephila_slow_join(arguments[2], arguments[1]);
}

static PyObject *resolve_references(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 5 || !PyDict_Check(arguments[0]) || !is_noun_type(arguments[4])) {
        PyErr_SetString(PyExc_TypeError, "resolve_references(references, base, join, outranked, Link)");
        return NULL;
    }
    Base base = {NULL, 0, 0, 0};
    int based = nephila_read_base(arguments[1], &base);
    PyObject *links = PyDict_New(), *href, *reference, *result = NULL;
    Py_ssize_t position = 0;
    while (links != NULL && PyDict_Next(arguments[0], &position, &href, &reference)) {
        Py_ssize_t length;
        const char *text = based ? ascii_text(href, &length) : NULL;
        PyObject *url = text == NULL ? NULL : plain_url(&base, text, length);
        if (url == NULL && !PyErr_Occurred())
            url = nephila_slow_join(arguments[2], href);
        int failed = url == NULL || !PyTuple_Check(reference) || PyTuple_GET_SIZE(reference) != 3;
        if (!failed && url != Py_None) {
            PyObject *known = PyDict_GetItemWithError(links, url);
            int replaces = known == NULL;
            if (known != NULL && !is_plain_anchor(known, reference)) {
                PyObject *answer = PyObject_CallFunctionObjArgs(arguments[3], known, PyTuple_GET_ITEM(reference, 0),
                                                                PyTuple_GET_ITEM(reference, 1), NULL);
                replaces = answer == NULL ? -1 : PyObject_IsTrue(answer);
                Py_XDECREF(answer);
            }
            failed = PyErr_Occurred() || replaces < 0 || (replaces && PyDict_SetItem(links, url, reference) < 0);
        }
        Py_XDECREF(url);
        if (failed) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "a reference is a tag, a rel and a text");
            Py_CLEAR(links);
        }
    }
    if (links != NULL)
        result = PyTuple_New(PyDict_GET_SIZE(links));
    position = 0;
    for (Py_ssize_t at = 0; result != NULL && PyDict_Next(links, &position, &href, &reference); at++) {
        PyObject *link = noun(arguments[4], 4);
        if (link == NULL) {
            Py_CLEAR(result);
            break;
        }
        PyTuple_SET_ITEM(link, 0, Py_NewRef(href));
        for (int field = 0; field < 3; field++)
            PyTuple_SET_ITEM(link, field + 1, Py_NewRef(PyTuple_GET_ITEM(reference, field)));
        PyTuple_SET_ITEM(result, at, link);
    }
    Py_XDECREF(links);
    return result;
}

/* Whether a URL is its own serialisation, has no fragment, and nothing in it is special. */
static PyObject *is_normal(PyObject *self, PyObject *given) {
    Py_ssize_t length;
    const char *url = ascii_text(given, &length);
    if (url == NULL || length < 9 || memcmp(url, "http", 4) != 0)
        Py_RETURN_FALSE;
    int secure = url[4] == 's';
    if (memcmp(url + 4 + secure, "://", 3) != 0)
        Py_RETURN_FALSE;
    Py_ssize_t slash = plain_authority_end(url, 7 + secure, length, secure);
    return PyBool_FromLong(slash > 0 && slash < length && plain_end(url, slash, length) == length);
}

PyMethodDef nephila_joining_methods[] = {
    {"is_normal", is_normal, METH_O, "Whether a URL is plain, and what parsing it would make of it."},
    {"web_url", (PyCFunction)(void (*)(void))web_url, METH_FASTCALL,
     "A link, resolved, without its fragment; None if it is no http(s) one."},
    {"resolve_references", (PyCFunction)(void (*)(void))resolve_references, METH_FASTCALL,
     "What a page refers to as links, resolved, each URL once."},
    {NULL, NULL, 0, NULL},
};
