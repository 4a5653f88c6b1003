/* The links of a page, from what it wrote to candidates (see `parse/html.py`, `urls/identity.py`, `frontier/sieve.py`).
 *
 * Each function takes the plain cases, which are nearly all: ASCII, no character that the URL standard would encode or
 * read in a special way, no dot segments, no query to put in order. Whatever is not plain is handed to the twin in Python,
 * link by link, so that there is one place where the rules of URLs stand, and it is not this one.
 */
#include "native.h"
#include "xxh3.h"

/* Characters by where they may stand unchanged. */
enum { IN_PATH = 1, IN_QUERY = 2, IN_HOST = 4, IN_KEY = 8 };

static unsigned char PLAIN[256];

static void set_plain(const char *characters, int where) {
    for (; *characters; characters++)
        PLAIN[(unsigned char)*characters] |= (unsigned char)where;
}

void nephila_links_prepare(void) {
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

static const char *ascii_text(PyObject *text, Py_ssize_t *length) {
    if (!PyUnicode_Check(text) || !PyUnicode_IS_COMPACT_ASCII(text))
        return NULL;
    *length = PyUnicode_GET_LENGTH(text);
    return (const char *)PyUnicode_1BYTE_DATA(text);
}

/* A tuple of a named type, which holds the fields. */
static PyObject *noun(PyObject *type, Py_ssize_t fields) {
    return ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, fields);
}

static int is_noun_type(PyObject *object) {
    return PyType_Check(object) && PyType_IsSubtype((PyTypeObject *)object, &PyTuple_Type);
}

/* Joining -------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *text;
    Py_ssize_t origin;    /* where the origin ends: at the slash of the path */
    Py_ssize_t directory; /* behind the last slash of the path */
    Py_ssize_t length;    /* without the fragment */
} Base;

static int read_base(PyObject *url, Base *base) {
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

/* Where the host of an absolute URL ends, if its spelling is the standard's own; else 0. */
static Py_ssize_t plain_host_end(const char *href, Py_ssize_t from, Py_ssize_t length) {
    Py_ssize_t at = from, label = from;
    for (; at < length && href[at] != '/'; at++) {
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
    if (at >= length || at == label || href[label] < 'a' || href[label] > 'z' || at - from > 253)
        return 0;
    return at;
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

static PyObject *joined(const char *head, Py_ssize_t head_length, const char *tail, Py_ssize_t tail_length) {
    PyObject *url = PyUnicode_New(head_length + tail_length, 127);
    if (url != NULL) {
        memcpy(PyUnicode_1BYTE_DATA(url), head, (size_t)head_length);
        memcpy(PyUnicode_1BYTE_DATA(url) + head_length, tail, (size_t)tail_length);
    }
    return url;
}

/* The absolute URL without fragment, NULL where the link is not plain (without an exception) or memory is out. */
static PyObject *plain_join(const Base *base, const char *href, Py_ssize_t length) {
    if (length == 0)
        return NULL;
    if (href[0] == '#')
        return joined(base->text, base->length, "", 0);
    if (href[0] == '/') {
        if (length > 1 && (href[1] == '/' || href[1] == '\\'))
            return NULL;
        Py_ssize_t end = plain_end(href, 0, length);
        return end < 0 ? NULL : joined(base->text, base->origin, href, end);
    }
    if (length > 8 && memcmp(href, "http", 4) == 0 && (href[4] == ':' || (href[4] == 's' && href[5] == ':'))) {
        Py_ssize_t authority = href[4] == ':' ? 7 : 8, slash;
        if (href[authority - 2] != '/' || href[authority - 1] != '/')
            return NULL;
        if (length > base->origin && href[base->origin] == '/' && memcmp(href, base->text, (size_t)base->origin) == 0)
            slash = base->origin; /* the page's own origin, spelled as it is */
        else
            slash = plain_host_end(href, authority, length);
        Py_ssize_t end = slash <= 0 ? -1 : plain_end(href, slash, length);
        return end < 0 ? NULL : joined(href, end, "", 0);
    }
    if (href[0] == '?' || !(PLAIN[(unsigned char)href[0]] & IN_PATH) || memchr(href, ':', (size_t)length) != NULL)
        return NULL;
    Py_ssize_t end = plain_end(href, 0, length);
    return end < 0 ? NULL : joined(base->text, base->directory, href, end);
}

/* The URL without fragment that the twin makes of a link; None if it is no http(s) one. */
static PyObject *slow_join(PyObject *join, PyObject *href) {
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

static PyObject *resolve_references(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 5 || !PyDict_Check(arguments[0]) || !is_noun_type(arguments[4])) {
        PyErr_SetString(PyExc_TypeError, "resolve_references(references, base, join, outranked, Link)");
        return NULL;
    }
    Base base = {NULL, 0, 0, 0};
    int based = read_base(arguments[1], &base);
    PyObject *links = PyDict_New(), *href, *reference, *result = NULL;
    Py_ssize_t position = 0;
    while (links != NULL && PyDict_Next(arguments[0], &position, &href, &reference)) {
        Py_ssize_t length;
        const char *text = based ? ascii_text(href, &length) : NULL;
        PyObject *url = text == NULL ? NULL : plain_join(&base, text, length);
        if (url == NULL && !PyErr_Occurred())
            url = slow_join(arguments[2], href);
        int failed = url == NULL || !PyTuple_Check(reference) || PyTuple_GET_SIZE(reference) != 3;
        if (!failed && url != Py_None) {
            PyObject *known = PyDict_GetItemWithError(links, url);
            int replaces = known == NULL;
            if (known != NULL) {
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

/* Identity ------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *prefix; /* the origin and a slash */
    Py_ssize_t length;
    PyObject *host;
} Site;

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
    *site = (Site){prefix, length, PyTuple_GET_ITEM(known, 1)};
    return 1;
}

/* The address of a plain URL on a site; NULL without an exception where it is not plain. */
static PyObject *plain_address(PyObject *whole, const char *url, Py_ssize_t length, const Site *site, uint64_t secret,
                               Py_ssize_t max_segments, int drop_slash, PyObject *type) {
    Py_ssize_t slashes = 0, key_length = length;
    for (Py_ssize_t at = site->length - 1; at < length; at++) {
        if (!(PLAIN[(unsigned char)url[at]] & IN_KEY))
            return NULL;
        slashes += url[at] == '/';
    }
    if (slashes > max_segments)
        return NULL;
    if (length > site->length && url[length - 1] == '/') {
        if (url[length - 2] == '/' || !drop_slash)
            return NULL;
        key_length--;
    }
    if (key_length > XXH3_LONGEST)
        return NULL;
    unsigned char digest[16];
    nephila_xxh3_digest(nephila_xxh3_128((const unsigned char *)url, (size_t)key_length, secret), digest);
    PyObject *address = noun(type, 4);
    PyObject *key = key_length == length ? Py_NewRef(whole) : PyUnicode_FromKindAndData(PyUnicode_1BYTE_KIND, url, key_length);
    PyObject *fingerprint = PyBytes_FromStringAndSize((const char *)digest, 16);
    if (address == NULL || key == NULL || fingerprint == NULL) {
        Py_XDECREF(address);
        Py_XDECREF(key);
        Py_XDECREF(fingerprint);
        return NULL;
    }
    PyTuple_SET_ITEM(address, 0, Py_NewRef(whole));
    PyTuple_SET_ITEM(address, 1, Py_NewRef(site->host));
    PyTuple_SET_ITEM(address, 2, key);
    PyTuple_SET_ITEM(address, 3, fingerprint);
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
    Site site = {NULL, 0, NULL};
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
            if (found > 0)
                address = plain_address(whole, url, length, &site, secret, max_segments, drop_slash, arguments[6]);
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

/* Paths ---------------------------------------------------------------------------------------------------------- */

#define LONGEST_WORD 32
#define MOST_SEGMENTS 24
static const char *const TABLE_NAME = "nephila_native.words";

typedef struct {
    size_t mask;
    char (*slots)[LONGEST_WORD]; /* length first; empty where there is none */
} Words;

static size_t word_hash(const char *word, size_t length) {
    uint64_t hash = 0xCBF29CE484222325ULL; /* FNV-1a */
    for (size_t at = 0; at < length; at++)
        hash = (hash ^ (unsigned char)word[at]) * 0x100000001B3ULL;
    return (size_t)(hash ^ hash >> 32);
}

static char *word_slot(const Words *words, const char *word, size_t length) {
    size_t at = word_hash(word, length) & words->mask;
    while (words->slots[at][0] && !((size_t)words->slots[at][0] == length && memcmp(words->slots[at] + 1, word, length) == 0))
        at = (at + 1) & words->mask;
    return words->slots[at];
}

static void free_words(PyObject *capsule) {
    Words *words = PyCapsule_GetPointer(capsule, TABLE_NAME);
    if (words != NULL) {
        PyMem_Free(words->slots);
        PyMem_Free(words);
    }
}

static PyObject *word_table(PyObject *self, PyObject *argument) {
    PyObject *given = PySequence_Fast(argument, "words must be a sequence");
    if (given == NULL)
        return NULL;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(given);
    size_t size = 16;
    while (size < (size_t)count * 4)
        size *= 2;
    Words *words = PyMem_Malloc(sizeof *words);
    char(*slots)[LONGEST_WORD] = PyMem_Calloc(size, LONGEST_WORD);
    PyObject *capsule = NULL;
    if (words == NULL || slots == NULL) {
        PyErr_NoMemory();
    } else {
        *words = (Words){size - 1, slots};
        Py_ssize_t at = 0;
        for (; at < count; at++) {
            Py_ssize_t length;
            const char *word = ascii_text(PySequence_Fast_GET_ITEM(given, at), &length);
            if (word == NULL || length < 1 || length >= LONGEST_WORD) {
                PyErr_SetString(PyExc_ValueError, "a word of the table has 1 to 31 ASCII characters");
                break;
            }
            char *slot = word_slot(words, word, (size_t)length);
            slot[0] = (char)length;
            memcpy(slot + 1, word, (size_t)length);
        }
        if (at == count)
            capsule = PyCapsule_New(words, TABLE_NAME, free_words);
    }
    if (capsule == NULL) {
        PyMem_Free(words);
        PyMem_Free(slots);
    }
    Py_DECREF(given);
    return capsule;
}

static int holds_word(const Words *words, const char *text, Py_ssize_t length) {
    char lowered[LONGEST_WORD];
    if (length < 1 || length >= LONGEST_WORD)
        return 0;
    for (Py_ssize_t at = 0; at < length; at++)
        lowered[at] = (char)(text[at] >= 'A' && text[at] <= 'Z' ? text[at] | 32 : text[at]);
    return word_slot(words, lowered, (size_t)length)[0] != 0;
}

/* Whether nothing that the rules look at is in the path of a URL. */
static int is_plain_path(const char *url, Py_ssize_t length, const Words *words, Py_ssize_t repeats) {
    const char *end = url + length, *query = memchr(url, '?', (size_t)length);
    if (query != NULL)
        end = query;
    const char *at = end - url > 8 ? memchr(url + 8, '/', (size_t)(end - url - 8)) : NULL;
    size_t seen[MOST_SEGMENTS];
    Py_ssize_t segments = 0, same = 0;
    if (at == NULL || memchr(at, ';', (size_t)(end - at)) != NULL)
        return 0;
    while (at < end) {
        const char *from = at + 1, *to = memchr(from, '/', (size_t)(end - from));
        if (to == NULL)
            to = end;
        if (holds_word(words, from, to - from))
            return 0;
        if (to == end) { /* the last one: its ending counts, and what stands before it */
            const char *dot = to;
            while (dot > from && dot[-1] != '.')
                dot--;
            if (dot > from && (holds_word(words, dot, to - dot) || holds_word(words, from, dot - 1 - from)))
                return 0;
        }
        if (segments == MOST_SEGMENTS)
            return 0;
        char lowered[256];
        Py_ssize_t size = to - from;
        if (size > (Py_ssize_t)sizeof lowered)
            return 0;
        for (Py_ssize_t character = 0; character < size; character++)
            lowered[character] = (char)(from[character] >= 'A' && from[character] <= 'Z' ? from[character] | 32 : from[character]);
        seen[segments] = word_hash(lowered, (size_t)size);
        for (Py_ssize_t other = 0; other < segments; other++)
            if (seen[other] == seen[segments]) {
                same++;
                break;
            }
        segments++;
        at = to;
    }
    return same + 1 < repeats;
}

static PyObject *plain_paths(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "plain_paths(addresses, words, repeats)");
        return NULL;
    }
    const Words *words = PyCapsule_GetPointer(arguments[1], TABLE_NAME);
    Py_ssize_t repeats = words == NULL ? 0 : PyLong_AsSsize_t(arguments[2]);
    if (words == NULL || PyErr_Occurred())
        return NULL;
    PyObject *addresses = PySequence_Fast(arguments[0], "addresses must be a sequence");
    PyObject *answers = addresses == NULL ? NULL : PyList_New(PySequence_Fast_GET_SIZE(addresses));
    for (Py_ssize_t at = 0; answers != NULL && at < PyList_GET_SIZE(answers); at++) {
        PyObject *address = PySequence_Fast_GET_ITEM(addresses, at);
        Py_ssize_t length;
        const char *url = PyTuple_Check(address) && PyTuple_GET_SIZE(address) ? ascii_text(PyTuple_GET_ITEM(address, 0), &length) : NULL;
        PyObject *answer = url != NULL && is_plain_path(url, length, words, repeats) ? Py_True : Py_False;
        PyList_SET_ITEM(answers, at, Py_NewRef(answer));
    }
    Py_XDECREF(addresses);
    return answers;
}

/* Sifting -------------------------------------------------------------------------------------------------------- */

static PyObject *unknown_urls(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 2 || !PyTuple_Check(arguments[0]) || !PyDict_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "unknown_urls(links, known)");
        return NULL;
    }
    PyObject *urls = PyList_New(0);
    for (Py_ssize_t at = 0; urls != NULL && at < PyTuple_GET_SIZE(arguments[0]); at++) {
        PyObject *link = PyTuple_GET_ITEM(arguments[0], at);
        if (!PyTuple_Check(link) || PyTuple_GET_SIZE(link) != 4) {
            PyErr_SetString(PyExc_TypeError, "a link was expected");
            Py_CLEAR(urls);
            break;
        }
        int known = PyDict_Contains(arguments[1], PyTuple_GET_ITEM(link, 0));
        if (known < 0 || (known == 0 && PyList_Append(urls, PyTuple_GET_ITEM(link, 0)) < 0))
            Py_CLEAR(urls);
    }
    return urls;
}

static int is_word(PyObject *text, const char *word) {
    return PyUnicode_Check(text) && PyUnicode_CompareWithASCIIString(text, word) == 0;
}

/* Whether a memoised question has the answer yes: asked once for every rel there is. */
static int answered(PyObject *answers, PyObject *ask, PyObject *text) {
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

static PyObject *sift(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 8 || !PyTuple_Check(arguments[0]) || !PyDict_Check(arguments[1]) || !PyDict_Check(arguments[4]) ||
        !PyDict_Check(arguments[6]) || !is_noun_type(arguments[3])) {
        PyErr_SetString(PyExc_TypeError, "sift(links, known, depth, Candidate, leads, ask_leads, forbids, ask_forbids)");
        return NULL;
    }
    PyObject *wanted = PyList_New(0), *candidates = PyList_New(0), *refused = PyList_New(0), *met = PySet_New(NULL);
    PyObject *zero = PyLong_FromLong(0), *result = NULL;
    int failed = wanted == NULL || candidates == NULL || refused == NULL || met == NULL || zero == NULL, elements = 0;
    for (Py_ssize_t at = 0; !failed && at < PyTuple_GET_SIZE(arguments[0]); at++) {
        PyObject *link = PyTuple_GET_ITEM(arguments[0], at), *entry;
        if (!PyTuple_Check(link) || PyTuple_GET_SIZE(link) != 4 || !PyUnicode_Check(PyTuple_GET_ITEM(link, 2))) {
            failed = 1;
            break;
        }
        PyObject *rel = PyTuple_GET_ITEM(link, 2);
        int is_element = is_word(PyTuple_GET_ITEM(link, 1), "link");
        if (is_element) {
            int leads = answered(arguments[4], arguments[5], rel);
            if (leads <= 0) {
                failed = leads < 0;
                continue;
            }
        }
        entry = PyDict_GetItemWithError(arguments[1], PyTuple_GET_ITEM(link, 0));
        if (entry == NULL || !PyTuple_Check(entry) || PyTuple_GET_SIZE(entry) != 3) {
            failed = 1;
            break;
        }
        PyObject *address = PyTuple_GET_ITEM(entry, 0), *verdict = PyTuple_GET_ITEM(entry, 1);
        if (address == Py_None) { /* no address: the verdict is the reason */
            failed = append_new(refused, PyTuple_Pack(2, Py_None, verdict)) < 0;
            continue;
        }
        if (!PyTuple_Check(address) || PyTuple_GET_SIZE(address) != 4) {
            failed = 1;
            break;
        }
        PyObject *fingerprint = PyTuple_GET_ITEM(address, 3);
        int again = PySet_Contains(met, fingerprint);
        if (again != 0) {
            failed = again < 0;
            continue;
        }
        int forbidden = PyUnicode_GET_LENGTH(rel) ? answered(arguments[6], arguments[7], rel) : 0;
        failed = forbidden < 0 || PySet_Add(met, fingerprint) < 0;
        if (failed)
            break;
        if (forbidden) {
            failed = append_new(refused, PyTuple_Pack(2, address, Py_None)) < 0;
        } else if (verdict != Py_None) {
            failed = append_new(refused, PyTuple_Pack(2, address, verdict)) < 0;
        } else {
            PyObject *candidate = noun(arguments[3], 5);
            if (candidate == NULL) {
                failed = 1;
                break;
            }
            PyTuple_SET_ITEM(candidate, 0, Py_NewRef(address));
            PyTuple_SET_ITEM(candidate, 1, Py_NewRef(arguments[2]));
            PyTuple_SET_ITEM(candidate, 2, Py_NewRef(Py_None));
            PyTuple_SET_ITEM(candidate, 3, Py_NewRef(zero));
            PyTuple_SET_ITEM(candidate, 4, Py_NewRef(PyTuple_GET_ITEM(entry, 2)));
            elements |= is_element;
            failed = append_new(candidates, candidate) < 0 || PyList_Append(wanted, link) < 0;
        }
    }
    if (!failed)
        result = Py_BuildValue("(OOOO)", wanted, candidates, refused, elements ? Py_True : Py_False);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "links and what is known of them were expected");
    Py_XDECREF(zero);
    Py_XDECREF(met);
    Py_XDECREF(refused);
    Py_XDECREF(candidates);
    Py_XDECREF(wanted);
    return result;
}

#define FAST(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL

PyMethodDef nephila_links_methods[] = {
    {"resolve_references", FAST(resolve_references), "What a page refers to as links, resolved, each URL once."},
    {"identify", FAST(identify), "The addresses of resolved URLs, each in its place."},
    {"word_table", word_table, METH_O, "A set of short words, for plain_paths."},
    {"plain_paths", FAST(plain_paths), "Of each address whether no rule about paths has to be asked."},
    {"unknown_urls", FAST(unknown_urls), "The URLs of links that a memory does not hold."},
    {"sift", FAST(sift), "Links that go on, as candidates, and those that do not."},
    {NULL, NULL, 0, NULL},
};
