/* The module itself: the methods of all parts under one name. */
#include "native.h"

static PyMethodDef *const PARTS[] = {
    nephila_arenas_methods, nephila_bundles_methods, nephila_clock_methods, nephila_digests_methods,
    nephila_files_methods, nephila_frontier_methods, nephila_groups_methods, nephila_head_methods,
    nephila_joining_methods, nephila_near_methods, nephila_nouns_methods, nephila_packed_methods,
    nephila_paths_methods, nephila_queueing_methods, nephila_ranking_methods, nephila_rising_methods,
    nephila_scan_methods, nephila_sieve_methods, nephila_signs_methods, nephila_sockets_methods,
    nephila_store_methods,
};

static int add_parts(PyObject *module) {
    nephila_joining_prepare();
    nephila_scan_prepare();
    if (nephila_packed_prepare() < 0)
        return -1;
    for (size_t part = 0; part < sizeof PARTS / sizeof *PARTS; part++)
        if (PyModule_AddFunctions(module, PARTS[part]) < 0)
            return -1;
    return 0;
}

static PyModuleDef_Slot SLOTS[] = {
    {Py_mod_exec, (void *)add_parts},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef DEFINITION = {
    PyModuleDef_HEAD_INIT,
    .m_name = "nephila_native",
    .m_doc = "The hot loops of Nephila, once a page.",
    .m_size = 0,
    .m_slots = SLOTS,
};

PyMODINIT_FUNC PyInit_nephila_native(void) {
    return PyModuleDef_Init(&DEFINITION);
}
