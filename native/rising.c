/* URLs that wait and are met again: which of them get a better place. The twin is in `embedded/rising.py`.
 *
 * Nothing is written to the store here, and what is not at hand is left to Python.
 */
#include "candidates.h"

enum { STANDING = 5, LANE = 1, STEP = 3 }; /* bytes: lane, step and depth */

typedef struct {
    PyObject *ledger, *covered, *own, *inside, *abroad, *writes; /* borrowed */
    PyObject *moves, *closer;                                    /* what is handed back */
    uint32_t salt;
} Rising;

/* A known URL that is met again: its key, what lies under it, the link to it. */
typedef struct {
    PyObject *key, *raw, *candidate, *host;
    const unsigned char *bytes;
    Candidate read;
    long rank;
} Case;

static int read_case(PyObject *given, Case *one) {
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 3 || !PyBytes_Check(one->key = PyTuple_GET_ITEM(given, 0)) ||
        PyBytes_GET_SIZE(one->key) != URL_KEY || !PyBytes_Check(one->raw = PyTuple_GET_ITEM(given, 1)) ||
        PyBytes_GET_SIZE(one->raw) < 1) {
        PyErr_SetString(PyExc_TypeError, "a key, what lies under it and a candidate were expected");
        return -1;
    }
    one->candidate = PyTuple_GET_ITEM(given, 2);
    one->bytes = (const unsigned char *)PyBytes_AS_STRING(one->raw);
    return read_candidate(one->candidate, &one->read);
}

static PyObject *found_in(const Rising *all, int item, PyObject *key) {
    return PyDict_GetItemWithError(PyTuple_GET_ITEM(all->ledger, item), key);
}

/* Finds the host, where nothing waits to be counted of it, and what its lease covers: 0 where that is not at hand. */
static int find_host(const Rising *all, Case *one, PyObject **covered) {
    PyObject *key = PyBytes_FromStringAndSize(PyBytes_AS_STRING(one->key), HOST_KEY);
    int waits = key == NULL ? -1 : PyDict_Contains(PyTuple_GET_ITEM(all->ledger, REFERRERS), key);
    PyObject *token = waits ? NULL : found_in(all, LEASED, key);
    one->host = token == NULL ? NULL : found_in(all, STATES, key);
    Py_XDECREF(key);
    long long number = one->host == NULL ? 0 : PyLong_AsLongLong(token);
    *covered = number ? PyDict_GetItemWithError(all->covered, token) : NULL;
    if (PyErr_Occurred())
        return -1;
    return one->host != NULL && (!number || *covered != NULL);
}

/* Where it would stand if it were scored now, borrowed; NULL where that is not remembered, or with an exception. */
static PyObject *standing_of(const Rising *all, const Case *one) {
    long depth = PyLong_AsLong(one->read.depth), held = one->bytes[DEPTH_AT];
    PyObject *name = PyTuple_GET_ITEM(PyTuple_GET_ITEM(all->ledger, FIELDS), REFERRED_BY);
    PyObject *referrers = PyErr_Occurred() ? NULL : PyObject_GetAttr(one->host, name);
    unsigned long long bits = referrers == NULL ? 0 : PyLong_AsUnsignedLongLong(referrers);
    Py_XDECREF(referrers);
    PyObject *like = PyErr_Occurred() ? NULL
                                      : Py_BuildValue("(llOi)", one->rank, depth < held ? depth : held, one->read.bonus,
                                                      __builtin_popcountll(bits));
    PyObject *standing = like == NULL ? NULL : found_in(all, STANDINGS, like);
    Py_XDECREF(like);
    if (standing != NULL && (!PyBytes_Check(standing) || PyBytes_GET_SIZE(standing) != STANDING)) {
        PyErr_SetString(PyExc_TypeError, "a standing has five bytes");
        return NULL;
    }
    return standing;
}

static int append(PyObject *list, PyObject *made) {
    int failed = made == NULL || PyList_Append(list, made) < 0;
    Py_XDECREF(made);
    return failed ? -1 : 1;
}

/* It stays where it is; a rank that has risen is written down. */
static int stay(const Rising *all, const Case *one) {
    if (one->rank == one->bytes[PLACE_END])
        return 1;
    PyObject *mark = PyBytes_FromStringAndSize((const char *)one->bytes, PLACE_END + 1);
    if (mark == NULL)
        return -1;
    PyBytes_AS_STRING(mark)[PLACE_END] = (char)one->rank;
    return append(all->writes, Py_BuildValue("(ON)", one->key, mark));
}

/* One case: 1 where it was decided, 0 where it needs a closer look, -1 with an exception. */
static int decide(const Rising *all, Case *one) {
    PyObject *covered;
    Py_ssize_t length, own = PyBytes_GET_SIZE(all->own);
    if (one->bytes[0] != QUEUED || PyBytes_GET_SIZE(one->raw) != PLACE_END + 1 || one->read.level != Py_None)
        return 0;
    int at_hand = find_host(all, one, &covered);
    if (at_hand <= 0)
        return at_hand;
    int is_inside = memcmp(PyBytes_AS_STRING(one->key), PyBytes_AS_STRING(all->own), (size_t)own) == 0;
    const char *text = PyUnicode_AsUTF8AndSize(one->read.key, &length);
    one->rank = text == NULL ? -1
                             : risen(is_inside ? all->inside : all->abroad, one->bytes[PLACE_END], text, length, all->salt);
    PyObject *fresh = one->rank < 0 ? NULL : standing_of(all, one);
    if (fresh == NULL)
        return PyErr_Occurred() ? -1 : 0;
    const unsigned char *now = (const unsigned char *)PyBytes_AS_STRING(fresh), *place = one->bytes + 1;
    unsigned char better[STANDING];
    memcpy(better, now, STANDING);
    if (now[0] > place[0])
        better[0] = place[0];
    int later = memcmp(now + LANE, place + LANE, STEP) > 0;
    if (later)
        memcpy(better + LANE, place + LANE, STEP);
    if (memcmp(better, place, STANDING) == 0)
        return stay(all, one);
    int is_leased = covered == NULL ? 0 : PySequence_Contains(covered, one->read.fingerprint);
    if (is_leased)
        return is_leased < 0 ? -1 : stay(all, one);
    return append(all->moves, Py_BuildValue("(OOOOy#Ol)", one->key, one->raw, one->candidate, one->host, better,
                                            (Py_ssize_t)STANDING, later ? Py_False : Py_True, one->rank));
}

static int is_table(PyObject *object) {
    return object == Py_None || PyTuple_Check(object);
}

static PyObject *rise(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 8 || !PyList_Check(arguments[0]) || !PyTuple_Check(arguments[1]) ||
        PyTuple_GET_SIZE(arguments[1]) != LEDGER || !PyDict_Check(arguments[2]) || !PyBytes_Check(arguments[3]) ||
        PyBytes_GET_SIZE(arguments[3]) > URL_KEY || !is_table(arguments[4]) || !is_table(arguments[5]) ||
        !PyList_Check(arguments[7])) {
        PyErr_SetString(PyExc_TypeError, "rise(again, ledger, covered, own, inside, abroad, salt, writes)");
        return NULL;
    }
    Rising all = {arguments[1], arguments[2], arguments[3], arguments[4], arguments[5], arguments[7],
                  PyList_New(0), PyList_New(0), (uint32_t)PyLong_AsUnsignedLongMask(arguments[6])};
    for (int item = STATES; item <= STANDINGS; item++)
        if (!PyDict_Check(PyTuple_GET_ITEM(all.ledger, item)))
            PyErr_SetString(PyExc_TypeError, "a ledger begins with four dicts");
    PyObject *fields = PyTuple_GET_ITEM(all.ledger, FIELDS);
    if (!PyTuple_Check(fields) || PyTuple_GET_SIZE(fields) != FIELD_COUNT)
        PyErr_SetString(PyExc_TypeError, "a ledger names the fields of a host");
    int failed = all.moves == NULL || all.closer == NULL || PyErr_Occurred() != NULL;
    for (Py_ssize_t at = 0; !failed && at < PyList_GET_SIZE(arguments[0]); at++) {
        Case one = {0};
        PyObject *given = Py_NewRef(PyList_GET_ITEM(arguments[0], at));
        int decided = read_case(given, &one) < 0 ? -1 : decide(&all, &one);
        failed = decided < 0 || (decided == 0 && PyList_Append(all.closer, given) < 0);
        Py_DECREF(given);
    }
    PyObject *result = failed ? NULL : PyTuple_Pack(2, all.moves, all.closer);
    Py_XDECREF(all.moves);
    Py_XDECREF(all.closer);
    return result;
}

PyMethodDef nephila_rising_methods[] = {
    {"rise", (PyCFunction)(void (*)(void))rise, METH_FASTCALL, "Of queued URLs that are met again, those that move."},
    {NULL, NULL, 0, NULL},
};
