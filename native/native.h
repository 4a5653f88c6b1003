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
extern PyMethodDef nephila_sieve_methods[];
extern PyMethodDef nephila_scan_methods[];
extern PyMethodDef nephila_signs_methods[];
extern PyMethodDef nephila_sockets_methods[];
extern PyMethodDef nephila_store_methods[];
void nephila_joining_prepare(void);
int nephila_packed_prepare(void);
void nephila_scan_prepare(void);

#endif
