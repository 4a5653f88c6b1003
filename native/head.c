/* The header block of an answer, where it is an ordinary one (see `fetch/head.py` for the rules).
 *
 * Ordinary is: HTTP/1.0 or 1.1, a final status, lines that end with CR LF, none folded, names in ASCII, one plain
 * Content-Length or one `chunked` at most, one plain Connection. Everything else is not judged here: None is returned, and
 * the careful reading in Python decides. So no tolerance and no refusal stands in this file.
 */
#include "plain.h"

#define VERSION "HTTP/1."

enum { LENGTH, TRANSFER, CONNECTION, PROXY_CONNECTION, OTHERS };

static const struct {
    const char *name;
    Py_ssize_t length;
} NOTED[] = {
    [LENGTH] = {"content-length", 14},
    [TRANSFER] = {"transfer-encoding", 17},
    [CONNECTION] = {"connection", 10},
    [PROXY_CONNECTION] = {"proxy-connection", 16},
    [OTHERS] = {"content-type", 12},
    {"content-encoding", 16},
    {"keep-alive", 10},
};
#define NOTED_COUNT ((int)(sizeof NOTED / sizeof *NOTED))

typedef struct {
    const char *text;
    Py_ssize_t length;
} Piece;

static int is_word(Piece piece, const char *word, Py_ssize_t length) {
    if (piece.length != length)
        return 0;
    for (Py_ssize_t at = 0; at < length; at++)
        if (Py_TOLOWER((unsigned char)piece.text[at]) != word[at])
            return 0;
    return 1;
}

/* The name of a field in lower case; NULL without an exception where it is not ASCII. */
static PyObject *lowered(Piece name) {
    for (Py_ssize_t at = 0; at < name.length; at++)
        if (name.text[at] & 0x80)
            return NULL;
    PyObject *text = PyUnicode_New(name.length, 127);
    for (Py_ssize_t at = 0; text != NULL && at < name.length; at++)
        PyUnicode_1BYTE_DATA(text)[at] = (Py_UCS1)Py_TOLOWER((unsigned char)name.text[at]);
    return text;
}

/* Adds a value to those that are noted under its name; -1 with an exception. */
static int note(PyObject *noted, PyObject *name, PyObject *value) {
    PyObject *values = PyDict_GetItemWithError(noted, name);
    if (values != NULL)
        return PyList_Append(values, value);
    if (PyErr_Occurred() || (values = PyList_New(1)) == NULL)
        return -1;
    Py_INCREF(value);
    PyList_SET_ITEM(values, 0, value);
    int failed = PyDict_SetItem(noted, name, values);
    Py_DECREF(values);
    return failed;
}

/* One line that is a field: 1, or 0 where it is not ordinary, or -1 with an exception. */
static int add_field(Piece line, PyObject *headers, PyObject *noted, Piece *seen) {
    const char *colon = memchr(line.text, ':', (size_t)line.length);
    if (colon == NULL || line.text[0] == ' ' || line.text[0] == '\t' || memchr(line.text, 0, (size_t)line.length) ||
        memchr(line.text, '\r', (size_t)line.length))
        return 0;
    const char *end = line.text + line.length, *start = colon + 1;
    while (start < end && (*start == ' ' || *start == '\t'))
        start++;
    while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    Piece name = {line.text, colon - line.text}, value = {start, end - start};
    PyObject *spelled = lowered(name);
    if (spelled == NULL)
        return PyErr_Occurred() ? -1 : 0;
    PyObject *text = PyUnicode_DecodeLatin1(value.text, value.length, NULL);
    PyObject *field = text == NULL ? NULL : PyTuple_Pack(2, spelled, text);
    int done = field == NULL || PyList_Append(headers, field) < 0 ? -1 : 1;
    for (int which = 0; done > 0 && which < NOTED_COUNT; which++)
        if (is_word(name, NOTED[which].name, NOTED[which].length)) {
            if (which < OTHERS) {
                if (seen[which].text != NULL) /* twice: whether they agree is not decided here */
                    done = 0;
                seen[which] = value;
            }
            if (done > 0 && note(noted, spelled, text) < 0)
                done = -1;
            break;
        }
    Py_XDECREF(field);
    Py_XDECREF(text);
    Py_DECREF(spelled);
    return done;
}

/* The length that is announced, -1 for none, -2 where that is not decided here. */
static long long length_of(Piece value) {
    long long number = 0;
    if (value.text == NULL)
        return -1;
    if (value.length < 1 || value.length > 18)
        return -2;
    for (Py_ssize_t at = 0; at < value.length; at++) {
        if (value.text[at] < '0' || value.text[at] > '9')
            return -2;
        number = number * 10 + (value.text[at] - '0');
    }
    return number;
}

/* Whether the server says that it keeps the connection: 1, 0, or -1 where that is not decided here. */
static int promise_of(const Piece *seen, int is_newer) {
    if (seen[PROXY_CONNECTION].text != NULL)
        return -1;
    if (seen[CONNECTION].text == NULL)
        return is_newer;
    if (is_word(seen[CONNECTION], "keep-alive", 10))
        return 1;
    return is_word(seen[CONNECTION], "close", 5) ? 0 : -1;
}

static PyObject *open_answer(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 2 || !PyBytes_Check(arguments[0]) || !is_noun_type(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "bytes and the type of a head were expected");
        return NULL;
    }
    const char *data = PyBytes_AS_STRING(arguments[0]), *at = data, *limit = data + PyBytes_GET_SIZE(arguments[0]);
    if (limit - data < 16 || memcmp(data, VERSION, 7) != 0 || (data[7] != '0' && data[7] != '1') || data[8] != ' ' ||
        data[9] < '2' || data[9] > '9' || data[10] < '0' || data[10] > '9' || data[11] < '0' || data[11] > '9')
        Py_RETURN_NONE;
    int status = (data[9] - '0') * 100 + (data[10] - '0') * 10 + (data[11] - '0'), ordinary = 0;
    PyObject *headers = PyList_New(0), *noted = PyDict_New(), *found = NULL, *head = NULL;
    Piece seen[OTHERS] = {{NULL, 0}};
    if (headers == NULL || noted == NULL)
        goto failed;
    for (;;) {
        const char *newline = memchr(at, '\n', (size_t)(limit - at));
        ordinary = newline != NULL && newline > at && newline[-1] == '\r';
        if (!ordinary)
            break;
        Piece line = {at, newline - 1 - at};
        if (at == data)
            ordinary = !memchr(line.text, '\r', (size_t)line.length) && !memchr(line.text, 0, (size_t)line.length);
        else if (line.length > 0)
            ordinary = add_field(line, headers, noted, seen);
        at = newline + 1;
        if (ordinary < 0)
            goto failed;
        if (!ordinary || line.length == 0)
            break;
    }
    long long length = length_of(seen[LENGTH]);
    int chunked = seen[TRANSFER].text != NULL, keeps = promise_of(seen, data[7] == '1');
    if (!ordinary || length == -2 || keeps < 0 || (chunked && !is_word(seen[TRANSFER], "chunked", 7))) {
        Py_DECREF(headers);
        Py_DECREF(noted);
        Py_RETURN_NONE;
    }
    if (status == 204 || status == 304) { /* no body, whatever they say */
        chunked = 0;
        length = 0;
    }
    head = noun(arguments[1], 4);
    if (head == NULL)
        goto failed;
    PyTuple_SET_ITEM(head, 0, PyLong_FromLong(status));
    PyTuple_SET_ITEM(head, 1, PyUnicode_FromStringAndSize(data + 5, 3));
    PyTuple_SET_ITEM(head, 2, PyList_AsTuple(headers));
    PyTuple_SET_ITEM(head, 3, noted);
    noted = NULL;
    for (int field = 0; field < 3; field++)
        if (PyTuple_GET_ITEM(head, field) == NULL)
            goto failed;
    keeps = keeps && (chunked || length >= 0);
    found = chunked || length < 0 ? Py_BuildValue("nOOOO", at - data, head, chunked ? Py_True : Py_False, Py_None,
                                                  keeps ? Py_True : Py_False)
                                  : Py_BuildValue("nOOLO", at - data, head, Py_False, length, keeps ? Py_True : Py_False);
failed:
    Py_XDECREF(headers);
    Py_XDECREF(noted);
    Py_XDECREF(head);
    return found;
}

PyMethodDef nephila_head_methods[] = {
    {"open_answer", (PyCFunction)(void (*)(void))open_answer, METH_FASTCALL,
     "The end of an ordinary header block, what it says, and how its body is framed; None for any other."},
    {NULL, NULL, 0, NULL},
};
