/* Making nouns: what the constructor of a slotted dataclass or of a named tuple does, without a frame of Python.
 *
 * A page makes some forty of them, many of a dozen fields and more, and a generated `__init__` stores field by field.
 * `quicken` gives a class another way of being called (`tp_vectorcall`), which allocates and fills at once. Whatever is
 * given wrongly goes to the constructor in Python, which words the complaint. A derived class is not quickened with its
 * base: it has no plan.
 *
 * The plans are the one thing that the extension keeps: a class that is called brings nothing along but itself. They are
 * made while modules are imported and stay, as their classes do; one that finds no room leaves its class as it was.
 */
#include "native.h"

#include <stdatomic.h>
#include <structmember.h>

#ifndef Py_T_OBJECT_EX
#define Py_T_OBJECT_EX T_OBJECT_EX
#endif

enum { REQUIRED, DEFAULT, FACTORY };

typedef struct {
    PyObject *name, *value; /* the value where none is given, or who makes it */
    Py_ssize_t offset;      /* of its slot from the object */
    int how;
} Field;

typedef struct {
    Py_ssize_t count, given; /* fields, and how many of them, the first ones, can be given */
    Py_ssize_t items;        /* of a tuple; 0 for an object with slots */
    Field fields[];
} Plan;

#define PLANS 512 /* a power of two, some times what there is */

static struct {
    _Atomic(PyTypeObject *) type; /* of one interpreter: no other asks for its plan */
    Plan *plan;
} plans[PLANS];

/* Where the plan of a class is, or would be. */
static size_t place_of(PyTypeObject *type) {
    size_t place = ((uintptr_t)type >> 4) * 0x9E3779B97F4A7C15u >> 32 & (PLANS - 1);
    for (size_t tried = 0; tried < PLANS; tried++, place = (place + 1) & (PLANS - 1)) {
        PyTypeObject *held = atomic_load_explicit(&plans[place].type, memory_order_relaxed);
        if (held == type || held == NULL)
            return place;
    }
    return PLANS;
}

static inline PyObject **slot_of(PyObject *made, const Field *field) {
    return (PyObject **)((char *)made + field->offset);
}

/* The field of a name; names that are given come in the order of the fields, more often than not. */
static Py_ssize_t field_of(const Plan *plan, PyObject *name, Py_ssize_t expected) {
    for (Py_ssize_t tried = 0; tried < plan->given; tried++) {
        Py_ssize_t at = expected + tried < plan->given ? expected + tried : expected + tried - plan->given;
        if (plan->fields[at].name == name)
            return at;
    }
    return -1;
}

/* Stores what was given; -1 where it does not fit, and that is for the constructor in Python to say. */
static int fill(const Plan *plan, PyObject *made, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
    if (count > plan->given)
        return -1;
    for (Py_ssize_t at = 0; at < count; at++)
        *slot_of(made, &plan->fields[at]) = Py_NewRef(arguments[at]);
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names), expected = count < plan->given ? count : 0;
    for (Py_ssize_t at = 0; at < named; at++) {
        Py_ssize_t field = field_of(plan, PyTuple_GET_ITEM(names, at), expected);
        if (field < 0 || *slot_of(made, &plan->fields[field]) != NULL)
            return -1;
        *slot_of(made, &plan->fields[field]) = Py_NewRef(arguments[count + at]);
        expected = field + 1 < plan->given ? field + 1 : 0;
    }
    if (count + named == plan->count)
        return 0;
    for (Py_ssize_t at = count; at < plan->count; at++) {
        const Field *field = &plan->fields[at];
        PyObject **slot = slot_of(made, field);
        if (*slot != NULL)
            continue;
        if (field->how == REQUIRED)
            return -1;
        *slot = field->how == DEFAULT ? Py_NewRef(field->value) : PyObject_CallNoArgs(field->value);
        if (*slot == NULL)
            return -1;
    }
    return 0;
}

static PyObject *construct(PyObject *type, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
    PyObject *given = PyTuple_New(count), *named = PyDict_New(), *made = NULL;
    int failed = given == NULL || named == NULL;
    for (Py_ssize_t at = 0; !failed && at < count; at++)
        PyTuple_SET_ITEM(given, at, Py_NewRef(arguments[at]));
    for (Py_ssize_t at = 0; !failed && names != NULL && at < PyTuple_GET_SIZE(names); at++)
        failed = PyDict_SetItem(named, PyTuple_GET_ITEM(names, at), arguments[count + at]) < 0;
    if (!failed)
        made = PyType_Type.tp_call(type, given, named);
    Py_XDECREF(given);
    Py_XDECREF(named);
    return made;
}

static PyObject *make(PyObject *callable, PyObject *const *arguments, size_t flagged, PyObject *names) {
    PyTypeObject *type = (PyTypeObject *)callable;
    size_t place = place_of(type);
    Py_ssize_t count = PyVectorcall_NARGS(flagged);
    if (place == PLANS || plans[place].type != type)
        return construct(callable, arguments, count, names);
    const Plan *plan = plans[place].plan;
    PyObject *made = unfilled(type, plan->items);
    if (made == NULL || fill(plan, made, arguments, count, names) == 0)
        return made;
    Py_DECREF(made);
    return PyErr_Occurred() ? NULL : construct(callable, arguments, count, names);
}

/* Reads one field as `noun.py` describes it; -1 where it is not one that can be filled from here. */
static int read_field(PyTypeObject *type, PyObject *told, Py_ssize_t at, Plan *plan) {
    Field *field = &plan->fields[at];
    int is_given;
    if (!PyArg_ParseTuple(told, "UiOp", &field->name, &field->how, &field->value, &is_given))
        return -1;
    if (plan->items)
        field->offset = (Py_ssize_t)offsetof(PyTupleObject, ob_item) + at * (Py_ssize_t)sizeof(PyObject *);
    else {
        PyObject *slot = PyDict_GetItemWithError(type->tp_dict, field->name);
        if (slot == NULL || !Py_IS_TYPE(slot, &PyMemberDescr_Type) ||
            ((PyMemberDescrObject *)slot)->d_member->type != Py_T_OBJECT_EX) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_TypeError, "%R is no slot of %R", field->name, type);
            return -1;
        }
        field->offset = ((PyMemberDescrObject *)slot)->d_member->offset;
    }
    if (is_given && plan->given != at) {
        PyErr_SetString(PyExc_TypeError, "fields that can be given come first");
        return -1;
    }
    plan->given += is_given;
    return 0;
}

static PyObject *quicken(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 2 || !PyType_Check(arguments[0]) || !PyTuple_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "quicken(class, fields)");
        return NULL;
    }
    PyTypeObject *type = (PyTypeObject *)arguments[0];
    Py_ssize_t fields = PyTuple_GET_SIZE(arguments[1]);
    Plan *plan = PyMem_Calloc(1, sizeof(Plan) + (size_t)fields * sizeof(Field));
    if (plan == NULL)
        return PyErr_NoMemory();
    plan->count = fields;
    plan->items = PyType_IsSubtype(type, &PyTuple_Type) ? fields : 0;
    for (Py_ssize_t at = 0; at < fields; at++)
        if (read_field(type, PyTuple_GET_ITEM(arguments[1], at), at, plan) < 0) {
            PyMem_Free(plan);
            return NULL;
        }
    size_t place;
    PyTypeObject *none;
    do {
        place = place_of(type);
        none = NULL;
    } while (place < PLANS && !atomic_compare_exchange_strong(&plans[place].type, &none, type) && none != type);
    if (place == PLANS || none == type) { /* no room, or quickened before */
        PyMem_Free(plan);
        Py_RETURN_FALSE;
    }
    Py_INCREF(type);
    Py_INCREF(arguments[1]); /* names and values are borrowed from it */
    plans[place].plan = plan;
    type->tp_vectorcall = make;
    Py_RETURN_TRUE;
}

PyMethodDef nephila_nouns_methods[] = {
    {"quicken", (PyCFunction)(void (*)(void))quicken, METH_FASTCALL, "Lets a class be made in C; whether it will be."},
    {NULL, NULL, 0, NULL},
};
