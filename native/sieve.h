/* What the two ways of sifting share: see sieve.c and sifting.c. */
#ifndef NEPHILA_SIEVE_H
#define NEPHILA_SIEVE_H

#include "paths.h"
#include "plain.h"

/* Where links lead that have the same origin. */
typedef struct {
    const char *prefix; /* the origin and a slash */
    Py_ssize_t length;
    PyObject *host;
    int inside; /* whether it is in scope; -1: not asked yet */
} Site;

/* What plain URLs are judged by, so that nothing has to be remembered of each: see `sifting.Rules`. */
typedef struct {
    PyObject *sites, *address_type, *hosts, *ask_host, *outside;
    const Words *words;
    uint64_t secret;
    Py_ssize_t max_length, max_segments, repeats;
    int drop_slash;
} Rules;

/* Whether a memoised question has the answer yes: asked once for every rel there is. */
int nephila_answered(PyObject *answers, PyObject *ask, PyObject *text);

/* How much of a plain URL is its normal form, its fingerprint and its site; 0 where it is not plain, -1 if that failed. */
Py_ssize_t nephila_judge_plainly(const char *url, Py_ssize_t length, const Rules *rules, Site *site,
                                 unsigned char fingerprint[16]);

/* Address, verdict and bonus of a URL (new references) from memory, or by asking Python. */
int nephila_judge_slowly(PyObject *url, PyObject *known, PyObject *learn, PyObject **address, PyObject **verdict,
                         PyObject **bonus);

/* The address of a plain URL of a host; NULL with an exception where there is no memory. */
PyObject *nephila_made_address(PyObject *type, PyObject *whole, PyObject *host, Py_ssize_t key_length,
                               const unsigned char fingerprint[16]);

/* `sift` of links that are packed; the arguments are its own, and were looked at. */
PyObject *nephila_sift_packed(PyObject *const *arguments, const Rules *rules);

#endif
