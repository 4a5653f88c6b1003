/* Whether the path of a URL has to be looked at by the rules about paths: see paths.c. */
#ifndef NEPHILA_PATHS_H
#define NEPHILA_PATHS_H

#include "native.h"

#define LONGEST_WORD 32

typedef struct {
    size_t mask;
    char (*slots)[LONGEST_WORD]; /* length first; empty where there is none */
} Words;

/* The table that `word_table` made; NULL with an exception for anything else. */
const Words *nephila_words(PyObject *table);

/* Whether nothing that the rules look at is in the path of a URL that begins at `path`. */
int nephila_is_plain_path(const char *url, Py_ssize_t path, Py_ssize_t length, const Words *words, Py_ssize_t repeats);

#endif
