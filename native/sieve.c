/* The links of a page, identified and sifted (see `urls/identity.py` and `frontier/sifting.py`). */
#include "packed.h"
#include "sieve.h"
#include "xxh3.h"

/* The site of a URL whose origin ends at `slash`: 1 found, 0 not known or not plain, -1 failed. */
static int find_site(PyObject *sites, const char *url, Py_ssize_t slash, Site *site) {
    PyObject *origin = PyUnicode_FromKindAndData(PyUnicode_1BYTE_KIND, url, slash);
    PyObject *known = origin == NULL ? NULL : PyDict_GetItemWithError(sites, origin);
    Py_XDECREF(origin);
    if (known == NULL)
        return PyErr_Occurred() ? -1 : 0;
    if (!PyTuple_Check(known) || PyTuple_GET_SIZE(known) < 2) {
        PyErr_SetString(PyExc_TypeError, "a site begins with its prefix and its host");
        return -1;
    }
    Py_ssize_t length;
    const char *prefix = ascii_text(PyTuple_GET_ITEM(known, 0), &length);
    if (prefix == NULL || length != slash + 1 || memcmp(prefix, url, (size_t)slash) != 0)
        return 0; /* there is something in the URL that is left out of its prefix */
    *site = (Site){prefix, length, PyTuple_GET_ITEM(known, 1), -1};
    return 1;
}

/* The fingerprint of a plain URL on a site, and how much of it is its normal form; 0 where it is not plain. */
static Py_ssize_t plain_key(const char *url, Py_ssize_t length, const Site *site, uint64_t secret, Py_ssize_t max_segments,
                            int drop_slash, unsigned char fingerprint[16]) {
    Py_ssize_t slashes = 0, key_length = length;
    for (Py_ssize_t at = site->length - 1; at < length; at++) {
        if (!(PLAIN[(unsigned char)url[at]] & IN_KEY))
            return 0;
        slashes += url[at] == '/';
    }
    if (slashes > max_segments)
        return 0;
    if (length > site->length && url[length - 1] == '/') {
        if (url[length - 2] == '/' || !drop_slash)
            return 0;
        key_length--;
    }
    if (key_length > XXH3_LONGEST)
        return 0;
    nephila_xxh3_digest(nephila_xxh3_128((const unsigned char *)url, (size_t)key_length, secret), fingerprint);
    return key_length;
}

PyObject *nephila_made_address(PyObject *type, PyObject *whole, PyObject *host, Py_ssize_t key_length,
                               const unsigned char fingerprint[16]) {
    PyObject *address = noun(type, 4);
    PyObject *key = key_length == PyUnicode_GET_LENGTH(whole)
                        ? Py_NewRef(whole)
                        : PyUnicode_FromKindAndData(PyUnicode_1BYTE_KIND, PyUnicode_1BYTE_DATA(whole), key_length);
    PyObject *digest = PyBytes_FromStringAndSize((const char *)fingerprint, 16);
    if (address == NULL || key == NULL || digest == NULL) {
        Py_XDECREF(address);
        Py_XDECREF(key);
        Py_XDECREF(digest);
        return NULL;
    }
    PyTuple_SET_ITEM(address, 0, Py_NewRef(whole));
    PyTuple_SET_ITEM(address, 1, Py_NewRef(host));
    PyTuple_SET_ITEM(address, 2, key);
    PyTuple_SET_ITEM(address, 3, digest);
    return address;
}

static PyObject *identify(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 8 || !PyDict_Check(arguments[1]) || !is_noun_type(arguments[6])) {
        PyErr_SetString(PyExc_TypeError,
                        "identify(urls, sites, secret, max_length, max_segments, drop_slash, Address, slow)");
        return NULL;
    }
    uint64_t secret = PyLong_AsUnsignedLongLong(arguments[2]);
    Py_ssize_t max_length = PyErr_Occurred() ? -1 : PyLong_AsSsize_t(arguments[3]);
    Py_ssize_t max_segments = PyErr_Occurred() ? -1 : PyLong_AsSsize_t(arguments[4]);
    int drop_slash = PyErr_Occurred() ? -1 : PyObject_IsTrue(arguments[5]);
    if (PyErr_Occurred())
        return NULL;
    PyObject *urls = PySequence_Fast(arguments[0], "URLs must be a sequence");
    PyObject *answers = urls == NULL ? NULL : PyList_New(PySequence_Fast_GET_SIZE(urls));
    Site site = {NULL, 0, NULL, -1};
    for (Py_ssize_t at = 0; answers != NULL && at < PyList_GET_SIZE(answers); at++) {
        PyObject *whole = PySequence_Fast_GET_ITEM(urls, at), *address = NULL;
        Py_ssize_t length;
        const char *url = ascii_text(whole, &length);
        if (url != NULL && length > 8 && length <= max_length) {
            int found = site.prefix != NULL && length >= site.length && memcmp(url, site.prefix, (size_t)site.length) == 0;
            if (!found) {
                const char *slash = memchr(url + 8, '/', (size_t)(length - 8));
                found = slash == NULL ? 0 : find_site(arguments[1], url, slash - url, &site);
            }
            unsigned char fingerprint[16];
            Py_ssize_t key = found > 0 ? plain_key(url, length, &site, secret, max_segments, drop_slash, fingerprint) : 0;
            if (key > 0)
                address = nephila_made_address(arguments[6], whole, site.host, key, fingerprint);
        }
        if (address == NULL && !PyErr_Occurred()) {
            site.prefix = NULL; /* what Python does may change the sites */
            address = PyObject_CallOneArg(arguments[7], whole);
        }
        if (address == NULL)
            Py_CLEAR(answers);
        else
            PyList_SET_ITEM(answers, at, address);
    }
    Py_XDECREF(urls);
    return answers;
}

static int is_word(PyObject *text, const char *word) {
    return PyUnicode_Check(text) && PyUnicode_CompareWithASCIIString(text, word) == 0;
}

int nephila_answered(PyObject *answers, PyObject *ask, PyObject *text) {
    PyObject *known = PyDict_GetItemWithError(answers, text);
    if (known != NULL)
        return known == Py_True;
    PyObject *answer = PyErr_Occurred() ? NULL : PyObject_CallOneArg(ask, text);
    int yes = answer == NULL || PyDict_SetItem(answers, text, answer) < 0 ? -1 : answer == Py_True;
    Py_XDECREF(answer);
    return yes;
}

static int append_new(PyObject *list, PyObject *item) {
    int failed = item == NULL || PyList_Append(list, item) < 0;
    Py_XDECREF(item);
    return failed ? -1 : 0;
}

int nephila_read_rules(PyObject *given, Rules *rules) {
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 11)
        goto wrong;
    PyObject *const *fields = &PyTuple_GET_ITEM(given, 0);
    rules->sites = fields[0];
    rules->secret = PyLong_AsUnsignedLongLong(fields[1]);
    rules->max_length = PyErr_Occurred() ? -1 : PyLong_AsSsize_t(fields[2]);
    rules->max_segments = PyErr_Occurred() ? -1 : PyLong_AsSsize_t(fields[3]);
    rules->drop_slash = fields[4] == Py_True;
    rules->address_type = fields[5];
    rules->words = PyErr_Occurred() ? NULL : nephila_words(fields[6]);
    rules->repeats = PyErr_Occurred() ? -1 : PyLong_AsSsize_t(fields[7]);
    rules->hosts = fields[8];
    rules->ask_host = fields[9];
    rules->outside = fields[10];
    if (!PyErr_Occurred() && PyDict_Check(rules->sites) && PyDict_Check(rules->hosts) && is_noun_type(rules->address_type))
        return 0;
wrong:
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "the rules of the sieve were expected");
    return -1;
}

Py_ssize_t nephila_judge_plainly(const char *url, Py_ssize_t length, const Rules *rules, Site *site,
                                 unsigned char fingerprint[16]) {
    if (length <= 8 || length > rules->max_length)
        return 0;
    if (site->prefix == NULL || length < site->length || memcmp(url, site->prefix, (size_t)site->length) != 0) {
        const char *slash = memchr(url + 8, '/', (size_t)(length - 8));
        int found = slash == NULL ? 0 : find_site(rules->sites, url, slash - url, site);
        if (found <= 0)
            return found;
    }
    if (!nephila_is_plain_path(url, site->length - 1, length, rules->words, rules->repeats))
        return 0;
    if (site->inside < 0 && (site->inside = nephila_answered(rules->hosts, rules->ask_host, site->host)) < 0)
        return -1;
    return plain_key(url, length, site, rules->secret, rules->max_segments, rules->drop_slash, fingerprint);
}

/* What is known of a URL: address and verdict (new references). 1 where it is plain. */
static int judge_plainly(PyObject *whole, const Rules *rules, Site *site, PyObject **address, PyObject **verdict) {
    Py_ssize_t length;
    unsigned char fingerprint[16];
    const char *url = ascii_text(whole, &length);
    Py_ssize_t key = url == NULL ? 0 : nephila_judge_plainly(url, length, rules, site, fingerprint);
    if (key <= 0)
        return (int)key;
    *address = nephila_made_address(rules->address_type, whole, site->host, key, fingerprint);
    *verdict = Py_NewRef(site->inside ? Py_None : rules->outside);
    return *address == NULL ? -1 : 1;
}

int nephila_judge_slowly(PyObject *url, PyObject *known, PyObject *learn, PyObject **address, PyObject **verdict,
                        PyObject **bonus) {
    PyObject *entry = PyDict_GetItemWithError(known, url);
    Py_XINCREF(entry);
    if (entry == NULL && !PyErr_Occurred())
        entry = PyObject_CallOneArg(learn, url);
    if (entry == NULL)
        return -1;
    if (!PyTuple_Check(entry) || PyTuple_GET_SIZE(entry) != 3) {
        PyErr_SetString(PyExc_TypeError, "an address, a verdict and a bonus were expected");
        Py_DECREF(entry);
        return -1;
    }
    *address = Py_NewRef(PyTuple_GET_ITEM(entry, 0));
    *verdict = Py_NewRef(PyTuple_GET_ITEM(entry, 1));
    *bonus = Py_NewRef(PyTuple_GET_ITEM(entry, 2));
    Py_DECREF(entry);
    return 0;
}

typedef struct {
    PyObject *wanted, *candidates, *refused, *met, *zero;
} Sifted;

/* Puts one link where it belongs; -1 where that failed. */
static int place(Sifted *sifted, PyObject *link, PyObject *address, PyObject *verdict, PyObject *bonus, int forbidden,
                 PyObject *depth, PyObject *type) {
    if (address == Py_None) /* no address: the verdict is the reason */
        return append_new(sifted->refused, PyTuple_Pack(2, Py_None, verdict));
    if (!PyTuple_Check(address) || PyTuple_GET_SIZE(address) != 4) {
        PyErr_SetString(PyExc_TypeError, "an address was expected");
        return -1;
    }
    PyObject *fingerprint = PyTuple_GET_ITEM(address, 3);
    int again = PySet_Contains(sifted->met, fingerprint);
    if (again != 0)
        return again < 0 ? -1 : 0;
    if (PySet_Add(sifted->met, fingerprint) < 0)
        return -1;
    if (forbidden)
        return append_new(sifted->refused, PyTuple_Pack(2, address, Py_None));
    if (verdict != Py_None)
        return append_new(sifted->refused, PyTuple_Pack(2, address, verdict));
    PyObject *candidate = noun(type, 5);
    if (candidate == NULL)
        return -1;
    PyTuple_SET_ITEM(candidate, 0, Py_NewRef(address));
    PyTuple_SET_ITEM(candidate, 1, Py_NewRef(depth));
    PyTuple_SET_ITEM(candidate, 2, Py_NewRef(Py_None));
    PyTuple_SET_ITEM(candidate, 3, Py_NewRef(sifted->zero));
    PyTuple_SET_ITEM(candidate, 4, Py_NewRef(bonus));
    return append_new(sifted->candidates, candidate) < 0 || PyList_Append(sifted->wanted, link) < 0 ? -1 : 0;
}

static PyObject *sift(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    Rules rules = {0};
    if (count != 7 || !(PyTuple_Check(arguments[0]) || nephila_is_links(arguments[0])) || !PyDict_Check(arguments[1]) || !is_noun_type(arguments[4]) ||
        !PyTuple_Check(arguments[5]) || PyTuple_GET_SIZE(arguments[5]) != 4) {
        PyErr_SetString(PyExc_TypeError, "sift(links, known, learn, depth, Candidate, rels, rules)");
        return NULL;
    }
    PyObject *const *rels = &PyTuple_GET_ITEM(arguments[5], 0);
    if (!PyDict_Check(rels[0]) || !PyDict_Check(rels[2])) {
        PyErr_SetString(PyExc_TypeError, "what is known of rels was expected");
        return NULL;
    }
    int ruled = arguments[6] != Py_None;
    if (ruled && nephila_read_rules(arguments[6], &rules) < 0)
        return NULL;
    if (nephila_is_links(arguments[0])) {
        if (ruled)
            return nephila_sift_packed(arguments, &rules);
        PyObject *links = PySequence_Tuple(arguments[0]);
        if (links == NULL)
            return NULL;
        PyObject *const plain[7] = {links,        arguments[1], arguments[2], arguments[3],
                                    arguments[4], arguments[5], arguments[6]};
        PyObject *answer = sift(self, plain, count);
        Py_DECREF(links);
        return answer;
    }
    Sifted sifted = {PyList_New(0), PyList_New(0), PyList_New(0), PySet_New(NULL), PyLong_FromLong(0)};
    Site site = {NULL, 0, NULL, -1};
    PyObject *result = NULL;
    int failed = !sifted.wanted || !sifted.candidates || !sifted.refused || !sifted.met || !sifted.zero;
    for (Py_ssize_t at = 0; !failed && at < PyTuple_GET_SIZE(arguments[0]); at++) {
        PyObject *link = PyTuple_GET_ITEM(arguments[0], at), *address = NULL, *verdict = NULL, *bonus = NULL;
        if (!PyTuple_Check(link) || PyTuple_GET_SIZE(link) != 4 || !PyUnicode_Check(PyTuple_GET_ITEM(link, 2))) {
            PyErr_SetString(PyExc_TypeError, "a link was expected");
            failed = 1;
            break;
        }
        PyObject *url = PyTuple_GET_ITEM(link, 0), *rel = PyTuple_GET_ITEM(link, 2);
        int leads = is_word(PyTuple_GET_ITEM(link, 1), "link") ? nephila_answered(rels[0], rels[1], rel) : 1;
        int forbidden = leads > 0 && PyUnicode_GET_LENGTH(rel) ? nephila_answered(rels[2], rels[3], rel) : 0;
        if (leads <= 0 || forbidden < 0) {
            failed = leads < 0 || forbidden < 0;
            continue;
        }
        int judged = ruled ? judge_plainly(url, &rules, &site, &address, &verdict) : 0;
        if (judged == 0) {
            site.prefix = NULL; /* what Python does may change the sites */
            judged = nephila_judge_slowly(url, arguments[1], arguments[2], &address, &verdict, &bonus);
        }
        failed = judged < 0 || place(&sifted, link, address, verdict, bonus ? bonus : sifted.zero, forbidden,
                                     arguments[3], arguments[4]) < 0;
        Py_XDECREF(address);
        Py_XDECREF(verdict);
        Py_XDECREF(bonus);
    }
    if (!failed)
        result = PyTuple_Pack(3, sifted.wanted, sifted.candidates, sifted.refused);
    Py_XDECREF(sifted.zero);
    Py_XDECREF(sifted.met);
    Py_XDECREF(sifted.refused);
    Py_XDECREF(sifted.candidates);
    Py_XDECREF(sifted.wanted);
    return result;
}

#define FAST(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL

PyMethodDef nephila_sieve_methods[] = {
    {"identify", FAST(identify), "The addresses of resolved URLs, each in its place."},
    {"sift", FAST(sift), "Links that go on, as candidates, and those that do not."},
    {NULL, NULL, 0, NULL},
};
