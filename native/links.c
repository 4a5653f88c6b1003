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

static PyObject *joined(const char *head, Py_ssize_t head_length, const char *tail, Py_ssize_t tail_length) {
    PyObject *url = PyUnicode_New(head_length + tail_length, 127);
    if (url != NULL) {
        memcpy(PyUnicode_1BYTE_DATA(url), head, (size_t)head_length);
        memcpy(PyUnicode_1BYTE_DATA(url) + head_length, tail, (size_t)tail_length);
    }
    return url;
}

/* A link that names its host, behind a scheme that it may lack. */
static PyObject *plain_absolute(const char *scheme, Py_ssize_t scheme_length, const char *href, Py_ssize_t length,
                                Py_ssize_t authority, int secure) {
    Py_ssize_t slash = plain_authority_end(href, authority, length, secure);
    if (slash == 0)
        return NULL;
    if (slash < length) {
        Py_ssize_t end = plain_end(href, slash, length);
        return end < 0 ? NULL : joined(scheme, scheme_length, href, end);
    }
    PyObject *url = PyUnicode_New(scheme_length + length + 1, 127); /* without a path it leads to the root */
    if (url != NULL) {
        Py_UCS1 *put = PyUnicode_1BYTE_DATA(url);
        memcpy(put, scheme, (size_t)scheme_length);
        memcpy(put + scheme_length, href, (size_t)length);
        put[scheme_length + length] = '/';
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
        if (length > 1 && href[1] == '\\')
            return NULL;
        if (length > 1 && href[1] == '/') {
            int secure = base->text[4] == 's';
            return plain_absolute(base->text, secure ? 6 : 5, href, length, 2, secure);
        }
        Py_ssize_t end = plain_end(href, 0, length);
        return end < 0 ? NULL : joined(base->text, base->origin, href, end);
    }
    if (length > 8 && memcmp(href, "http", 4) == 0 && (href[4] == ':' || (href[4] == 's' && href[5] == ':'))) {
        Py_ssize_t authority = href[4] == ':' ? 7 : 8;
        if (href[authority - 2] != '/' || href[authority - 1] != '/')
            return NULL;
        if (length > base->origin && href[base->origin] == '/' && memcmp(href, base->text, (size_t)base->origin) == 0) {
            Py_ssize_t end = plain_end(href, base->origin, length); /* the page's own origin, spelled as it is */
            return end < 0 ? NULL : joined(href, end, "", 0);
        }
        return plain_absolute("", 0, href, length, authority, authority == 8);
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

static inline unsigned char lowered(char character) {
    return (unsigned char)(character >= 'A' && character <= 'Z' ? character | 32 : character);
}

#define HASH_START 0xCBF29CE484222325ULL /* FNV-1a */
#define HASH_STEP(hash, character) (((hash) ^ lowered(character)) * 0x100000001B3ULL)

static uint64_t word_hash(const char *word, Py_ssize_t length) {
    uint64_t hash = HASH_START;
    for (Py_ssize_t at = 0; at < length; at++)
        hash = HASH_STEP(hash, word[at]);
    return hash;
}

static int is_same_word(const char *slot, const char *word, Py_ssize_t length) {
    if (slot[0] != length)
        return 0;
    for (Py_ssize_t at = 0; at < length; at++)
        if ((unsigned char)slot[at + 1] != lowered(word[at]))
            return 0;
    return 1;
}

/* Where a word stands in the table, or would stand. Upper and lower case are the same. */
static char *word_slot(const Words *words, const char *word, Py_ssize_t length, uint64_t hash) {
    size_t at = (size_t)(hash ^ hash >> 32) & words->mask;
    while (words->slots[at][0] && !is_same_word(words->slots[at], word, length))
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
            char *slot = word_slot(words, word, length, word_hash(word, length));
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

static int holds_word(const Words *words, const char *text, Py_ssize_t length, uint64_t hash) {
    return length > 0 && length < LONGEST_WORD && word_slot(words, text, length, hash)[0] != 0;
}

/* Whether the file name at the end of a path has no ending, and no name before it, that means anything. */
static int is_plain_name(const char *from, const char *to, const Words *words) {
    const char *dot = to;
    while (dot > from && dot[-1] != '.')
        dot--;
    if (dot == from)
        return 1;
    return !holds_word(words, dot, to - dot, word_hash(dot, to - dot)) &&
           !holds_word(words, from, dot - 1 - from, word_hash(from, dot - 1 - from));
}

/* Whether nothing that the rules look at is in the path of a URL that begins at `path`. */
static int is_plain_path(const char *url, Py_ssize_t path, Py_ssize_t length, const Words *words, Py_ssize_t repeats) {
    const char *end = url + length, *from = url + path + 1;
    uint64_t seen[MOST_SEGMENTS], hash = HASH_START;
    Py_ssize_t segments = 0, same = 0;
    for (const char *at = from;; at++) {
        if (at < end && *at == ';')
            return 0;
        if (at < end && *at != '/' && *at != '?') {
            hash = HASH_STEP(hash, *at);
            continue;
        }
        if (segments == MOST_SEGMENTS || holds_word(words, from, at - from, hash))
            return 0;
        for (Py_ssize_t other = 0; other < segments; other++)
            if (seen[other] == hash) {
                same++;
                break;
            }
        seen[segments++] = hash;
        if (at == end || *at == '?')
            return same + 1 < repeats && is_plain_name(from, at, words);
        from = at + 1;
        hash = HASH_START;
    }
}

/* Sifting -------------------------------------------------------------------------------------------------------- */

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

/* What plain URLs are judged by, so that nothing has to be remembered of each: see `sifting.Rules`. */
typedef struct {
    PyObject *sites, *address_type, *hosts, *ask_host, *outside;
    const Words *words;
    uint64_t secret;
    Py_ssize_t max_length, max_segments, repeats;
    int drop_slash;
} Rules;

static int read_rules(PyObject *given, Rules *rules) {
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 11)
        goto wrong;
    PyObject *const *fields = &PyTuple_GET_ITEM(given, 0);
    rules->sites = fields[0];
    rules->secret = PyLong_AsUnsignedLongLong(fields[1]);
    rules->max_length = PyErr_Occurred() ? -1 : PyLong_AsSsize_t(fields[2]);
    rules->max_segments = PyErr_Occurred() ? -1 : PyLong_AsSsize_t(fields[3]);
    rules->drop_slash = fields[4] == Py_True;
    rules->address_type = fields[5];
    rules->words = PyErr_Occurred() ? NULL : PyCapsule_GetPointer(fields[6], TABLE_NAME);
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

/* What is known of a URL: address and verdict (new references) and bonus (borrowed, NULL for none). 1 where it is plain. */
static int judge_plainly(PyObject *whole, const Rules *rules, Site *site, PyObject **address, PyObject **verdict) {
    Py_ssize_t length;
    const char *url = ascii_text(whole, &length);
    if (url == NULL || length <= 8 || length > rules->max_length)
        return 0;
    if (site->prefix == NULL || length < site->length || memcmp(url, site->prefix, (size_t)site->length) != 0) {
        const char *slash = memchr(url + 8, '/', (size_t)(length - 8));
        int found = slash == NULL ? 0 : find_site(rules->sites, url, slash - url, site);
        if (found <= 0)
            return found;
    }
    if (!is_plain_path(url, site->length - 1, length, rules->words, rules->repeats))
        return 0;
    int inside = answered(rules->hosts, rules->ask_host, site->host);
    if (inside < 0)
        return -1;
    *address = plain_address(whole, url, length, site, rules->secret, rules->max_segments, rules->drop_slash,
                             rules->address_type);
    if (*address == NULL)
        return PyErr_Occurred() ? -1 : 0;
    *verdict = Py_NewRef(inside ? Py_None : rules->outside);
    return 1;
}

/* The same from memory, or by asking Python. */
static int judge_slowly(PyObject *url, PyObject *known, PyObject *learn, PyObject **address, PyObject **verdict,
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
    int elements;
} Sifted;

/* Puts one link where it belongs; -1 where that failed. */
static int place(Sifted *sifted, PyObject *link, PyObject *address, PyObject *verdict, PyObject *bonus, int forbidden,
                 int is_element, PyObject *depth, PyObject *type) {
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
    sifted->elements |= is_element;
    return append_new(sifted->candidates, candidate) < 0 || PyList_Append(sifted->wanted, link) < 0 ? -1 : 0;
}

static PyObject *sift(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    Rules rules = {0};
    if (count != 7 || !PyTuple_Check(arguments[0]) || !PyDict_Check(arguments[1]) || !is_noun_type(arguments[4]) ||
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
    if (ruled && read_rules(arguments[6], &rules) < 0)
        return NULL;
    Sifted sifted = {PyList_New(0), PyList_New(0), PyList_New(0), PySet_New(NULL), PyLong_FromLong(0), 0};
    Site site = {NULL, 0, NULL};
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
        int is_element = is_word(PyTuple_GET_ITEM(link, 1), "link");
        int leads = is_element ? answered(rels[0], rels[1], rel) : 1;
        int forbidden = leads > 0 && PyUnicode_GET_LENGTH(rel) ? answered(rels[2], rels[3], rel) : 0;
        if (leads <= 0 || forbidden < 0) {
            failed = leads < 0 || forbidden < 0;
            continue;
        }
        int judged = ruled ? judge_plainly(url, &rules, &site, &address, &verdict) : 0;
        if (judged == 0) {
            site.prefix = NULL; /* what Python does may change the sites */
            judged = judge_slowly(url, arguments[1], arguments[2], &address, &verdict, &bonus);
        }
        failed = judged < 0 || place(&sifted, link, address, verdict, bonus ? bonus : sifted.zero, forbidden, is_element,
                                     arguments[3], arguments[4]) < 0;
        Py_XDECREF(address);
        Py_XDECREF(verdict);
        Py_XDECREF(bonus);
    }
    if (!failed)
        result = Py_BuildValue("(OOOO)", sifted.wanted, sifted.candidates, sifted.refused,
                               sifted.elements ? Py_True : Py_False);
    Py_XDECREF(sifted.zero);
    Py_XDECREF(sifted.met);
    Py_XDECREF(sifted.refused);
    Py_XDECREF(sifted.candidates);
    Py_XDECREF(sifted.wanted);
    return result;
}

#define FAST(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL

PyMethodDef nephila_links_methods[] = {
    {"resolve_references", FAST(resolve_references), "What a page refers to as links, resolved, each URL once."},
    {"identify", FAST(identify), "The addresses of resolved URLs, each in its place."},
    {"word_table", word_table, METH_O, "A set of short words, for the rules of the sieve."},
    {"sift", FAST(sift), "Links that go on, as candidates, and those that do not."},
    {NULL, NULL, 0, NULL},
};
