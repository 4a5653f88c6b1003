/* A link and the base of its page, put together: see joining.c. */
#ifndef NEPHILA_JOINING_H
#define NEPHILA_JOINING_H

#include "plain.h"

typedef struct {
    const char *text;
    Py_ssize_t origin;    /* where the origin ends: at the slash of the path */
    Py_ssize_t directory; /* behind the last slash of the path */
    Py_ssize_t length;    /* without the fragment */
} Base;

/* An absolute URL without its fragment, in two pieces that lie elsewhere; with a slash behind them or not. */
typedef struct {
    const char *head, *tail;
    Py_ssize_t head_length, tail_length;
    int slash;
} Joined;

/* Whether links can be joined to it here. */
int nephila_read_base(PyObject *url, Base *base);

/* Whether a link is plain; then it is joined. */
int nephila_plain_join(const Base *base, const char *href, Py_ssize_t length, Joined *out);

/* Whether a link names a scheme of letters that is not http(s), as mailto and javascript: whatever it is, no page. */
int nephila_leads_elsewhere(const char *href, Py_ssize_t length);

/* The URL without fragment that the twin makes of a link; None if it is no http(s) one. */
PyObject *nephila_slow_join(PyObject *join, PyObject *href);

static inline Py_ssize_t joined_size(const Joined *self) {
    return self->head_length + self->tail_length + self->slash;
}

static inline void put_joined(char *to, const Joined *self) {
    memcpy(to, self->head, (size_t)self->head_length);
    memcpy(to + self->head_length, self->tail, (size_t)self->tail_length);
    if (self->slash)
        to[self->head_length + self->tail_length] = '/';
}

#endif
