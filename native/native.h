/* What the parts of the extension share.
 *
 * `nephila_native` holds the hot loops that are called once a page: nothing in it is per crawl, nothing keeps state
 * between calls (but for `nouns.c`, which knows classes), and every function has a twin in Python that it is compared
 * with. Each part is one file that exports a table of methods; `module.c` puts them together.
 */
#ifndef NEPHILA_NATIVE_H
#define NEPHILA_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

extern PyMethodDef nephila_arenas_methods[];
extern PyMethodDef nephila_bundles_methods[];
extern PyMethodDef nephila_clock_methods[];
extern PyMethodDef nephila_digests_methods[];
extern PyMethodDef nephila_files_methods[];
extern PyMethodDef nephila_frontier_methods[];
extern PyMethodDef nephila_groups_methods[];
extern PyMethodDef nephila_near_methods[];
extern PyMethodDef nephila_head_methods[];
extern PyMethodDef nephila_nouns_methods[];
extern PyMethodDef nephila_joining_methods[];
extern PyMethodDef nephila_packed_methods[];
extern PyMethodDef nephila_paths_methods[];
extern PyMethodDef nephila_queueing_methods[];
extern PyMethodDef nephila_ranking_methods[];
extern PyMethodDef nephila_rising_methods[];
extern PyMethodDef nephila_sieve_methods[];
extern PyMethodDef nephila_scan_methods[];
extern PyMethodDef nephila_signs_methods[];
extern PyMethodDef nephila_sockets_methods[];
extern PyMethodDef nephila_store_methods[];

/* A tuple of a type whose fields are still to be filled in, or what else that type makes room for. Since 3.14 a tuple
 * keeps its hash, and only -1 means that it has none yet. */
static inline PyObject *unfilled(PyTypeObject *type, Py_ssize_t fields) {
    PyObject *made = type->tp_alloc(type, fields);
#if PY_VERSION_HEX >= 0x030E0000
    if (made != NULL && PyType_HasFeature(type, Py_TPFLAGS_TUPLE_SUBCLASS))
        ((PyTupleObject *)made)->ob_hash = -1;
#endif
    return made;
}

void nephila_joining_prepare(void);
int nephila_packed_prepare(void);
void nephila_scan_prepare(void);

#endif
