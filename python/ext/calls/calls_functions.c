/* calls_functions.c: numbers of a profile for code objects and built-in functions. */
#include "calls/calls_hook.h"

#include <string.h>

#if PY_VERSION_HEX >= 0x030c0000
#define request_extra PyUnstable_Eval_RequestCodeExtraIndex
#define get_extra PyUnstable_Code_GetExtra
#define set_extra PyUnstable_Code_SetExtra
#else
#define request_extra _PyEval_RequestCodeExtraIndex
#define get_extra _PyCode_GetExtra
#define set_extra _PyCode_SetExtra
#endif

/* ---- the table ---- */

enum { FIRST = 512 };

bool calls_table_reserve(struct calls_table *table)
{
    if (table->n_used * 2 < table->n_entries)
        return true;
    const size_t n = table->n_entries != 0 ? table->n_entries * 2 : FIRST;
    struct calls_entry *const entries = PyMem_Calloc(n, sizeof *entries);
    if (entries == NULL)
        return false;
    for (size_t i = 0; i < table->n_entries; i++) {
        size_t at = calls_hash(table->entries[i].key) & (n - 1);
        if (table->entries[i].key == NULL)
            continue;
        while (entries[at].key != NULL)
            at = (at + 1) & (n - 1);
        entries[at] = table->entries[i];
    }
    PyMem_Free(table->entries);
    table->entries = entries;
    table->n_entries = n;
    return true;
}

/* The table has room. */
static void table_put(struct calls_table *table, const void *key, uint32_t number)
{
    const size_t mask = table->n_entries - 1;
    size_t at = calls_hash(key) & mask;
    while (table->entries[at].key != NULL)
        at = (at + 1) & mask;
    table->entries[at] = (struct calls_entry){key, number};
    table->n_used++;
}

bool calls_table_set(struct calls_table *table, const void *key, uint32_t number)
{
    if (!calls_table_reserve(table))
        return false;
    calls_table_remove(table, key);
    table_put(table, key, number);
    return true;
}

/* Later entries move up, so that no search ends early. */
void calls_table_remove(struct calls_table *table, const void *key)
{
    const size_t mask = table->n_entries - 1;
    size_t hole = calls_hash(key) & mask;
    while (table->entries[hole].key != key) {
        if (table->entries[hole].key == NULL)
            return;
        hole = (hole + 1) & mask;
    }
    for (size_t at = (hole + 1) & mask; table->entries[at].key != NULL; at = (at + 1) & mask) {
        const size_t home = calls_hash(table->entries[at].key) & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->entries[hole] = table->entries[at];
            hole = at;
        }
    }
    table->entries[hole] = (struct calls_entry){0};
    table->n_used--;
}

/* ---- freed code objects ---- */

static struct calls_profile *all_profiles;
static Py_ssize_t extra_index = -1; /* of our extra data in code objects */

/* A code object is freed; its extra data is its own address. */
static void code_is_gone(void *code)
{
    if (code == NULL)
        return;
    for (struct calls_profile *p = all_profiles; p != NULL; p = p->next) {
        const uint32_t number = calls_table_get(&p->functions, code);
        if (number == 0)
            continue;
        calls_table_remove(&p->functions, code);
        if (number < p->n_codes)
            p->codes[number] = NULL;
        if (number != CALLS_IGNORED)
            marey_calls_release_function(p->calls, number);
    }
}

/* Requests a call when it is freed; if that fails, the code object is kept alive. */
static void watch_code(struct calls_profile *profile, PyObject *code)
{
    void *extra = NULL;
    if (extra_index < 0)
        extra_index = request_extra(code_is_gone);
    if (extra_index >= 0 && get_extra(code, extra_index, &extra) == 0 &&
        (extra == code || set_extra(code, extra_index, code) == 0))
        return;
    PyErr_Clear();
    if (PyList_Append(profile->kept, code) < 0)
        PyErr_Clear();
}

int calls_numbers_init(struct calls_profile *profile)
{
    profile->kept = PyList_New(0);
    if (profile->kept == NULL)
        return -1;
    if (!calls_table_reserve(&profile->functions) || !calls_table_reserve(&profile->generators))
        return EXT_NO_MEMORY();
    profile->next = all_profiles;
    all_profiles = profile;
    return 0;
}

void calls_numbers_fini(struct calls_profile *profile)
{
    for (struct calls_profile **link = &all_profiles; *link != NULL; link = &(*link)->next)
        if (*link == profile) {
            *link = profile->next;
            break;
        }
    PyMem_Free(profile->functions.entries);
    PyMem_Free(profile->generators.entries);
    PyMem_Free(profile->codes);
    profile->functions = profile->generators = (struct calls_table){0};
    profile->codes = NULL;
    profile->n_codes = 0;
}

/* ---- names ---- */

/* Escapes NUL bytes. Takes ownership of `bytes`, which may be NULL. */
static PyObject *without_zeros(PyObject *bytes)
{
    if (bytes == NULL || strlen(PyBytes_AS_STRING(bytes)) == (size_t)PyBytes_GET_SIZE(bytes))
        return bytes;
    PyObject *const escaped =
        PyObject_CallMethod(bytes, "replace", "y#y", "", (Py_ssize_t)1, "\\x00");
    Py_DECREF(bytes);
    return escaped;
}

/* The text of a str as a C string, with anything not representable escaped; "" otherwise. `owner` keeps it. */
static const char *utf8_of(PyObject *text, PyObject **owner)
{
    *owner = text != NULL && PyUnicode_Check(text)
                 ? without_zeros(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"))
                 : NULL;
    if (*owner == NULL)
        PyErr_Clear();
    return *owner != NULL ? PyBytes_AS_STRING(*owner) : "";
}

/* Defines a function by strings that are str or NULL. */
static uint32_t define(struct calls_profile *profile, PyObject *name, PyObject *qualified,
                       PyObject *file, PyObject *module, int line, enum marey_calls_kind kind)
{
    PyObject *owners[4];
    const struct marey_calls_function function = {.name = utf8_of(name, &owners[0]),
                                                  .qualified = utf8_of(qualified, &owners[1]),
                                                  .file = utf8_of(file, &owners[2]),
                                                  .module = utf8_of(module, &owners[3]),
                                                  .line = line > 0 ? (uint32_t)line : 0,
                                                  .kind = kind};
    const uint32_t number = marey_calls_define(profile->calls, &function);
    for (size_t i = 0; i < 4; i++)
        Py_XDECREF(owners[i]);
    return number;
}

static bool is_module_watched(const struct calls_profile *profile, PyObject *module)
{
    if (profile->modules == NULL)
        return true;
    if (module == NULL || !PyUnicode_Check(module))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(profile->modules); i++) {
        PyObject *const name = PyTuple_GET_ITEM(profile->modules, i);
        const Py_ssize_t n = PyUnicode_GET_LENGTH(name);
        if (PyUnicode_Tailmatch(module, name, 0, PY_SSIZE_T_MAX, -1) == 1 &&
            (PyUnicode_GET_LENGTH(module) == n || PyUnicode_READ_CHAR(module, n) == '.'))
            return true;
    }
    return false;
}

static PyObject *module_of(PyObject *globals)
{
    PyObject *const name =
        globals != NULL && PyDict_Check(globals) ? PyDict_GetItemString(globals, "__name__") : NULL;
    return name != NULL && PyUnicode_Check(name) ? name : NULL;
}

static bool remember_code(struct calls_profile *profile, uint32_t number, PyObject *code)
{
    if (number >= profile->n_codes) {
        const size_t n = ((size_t)number + 1) * 2;
        PyObject **const codes = PyMem_Realloc(profile->codes, n * sizeof(PyObject *));
        if (codes == NULL)
            return false;
        memset(codes + profile->n_codes, 0, (n - profile->n_codes) * sizeof(PyObject *));
        profile->codes = codes;
        profile->n_codes = n;
    }
    profile->codes[number] = code;
    return true;
}

static uint32_t define_code(struct calls_profile *profile, PyCodeObject *code, PyObject *globals)
{
    PyObject *const module = module_of(globals);
    if (!is_module_watched(profile, module))
        return CALLS_IGNORED;
#if PY_VERSION_HEX >= 0x030b0000
    PyObject *const qualified = code->co_qualname;
#else
    PyObject *const qualified = code->co_name; /* code objects have nothing more */
#endif
    const uint32_t number = define(profile, code->co_name, qualified, code->co_filename, module,
                                   code->co_firstlineno, MAREY_CALLS_PYTHON);
    if (number != 0)
        remember_code(profile, number, (PyObject *)code);
    return number;
}

uint32_t calls_function_of_code(struct calls_profile *profile, PyObject *code, PyObject *globals)
{
    uint32_t number = calls_table_get(&profile->functions, code);
    if (number != 0 || !calls_table_reserve(&profile->functions))
        return number;
    EXT_KEEP_ERROR(); /* a function may end with an exception set */
    number = define_code(profile, (PyCodeObject *)code, globals);
    if (number != 0) {
        table_put(&profile->functions, code, number);
        watch_code(profile, code);
    }
    return number;
}

/* ---- built-in functions, named as in cProfile ---- */

/* A function may have no name. */
static const char *own_name(const PyMethodDef *method)
{
    return method->ml_name != NULL ? method->ml_name : "?";
}

static PyObject *module_name(const PyCFunctionObject *function)
{
    PyObject *const module = function->m_module;
    if (module != NULL && PyUnicode_Check(module))
        return Py_NewRef(module);
    PyObject *const name =
        module != NULL && PyModule_Check(module) ? PyModule_GetNameObject(module) : NULL;
    if (name == NULL)
        PyErr_Clear();
    return name;
}

/* The name of a function without `self`. */
static PyObject *name_of_function(const PyCFunctionObject *function)
{
    const char *const own = own_name(function->m_ml);
    PyObject *const module EXT_OWNED = module_name(function);
    return module != NULL && PyUnicode_CompareWithASCIIString(module, "builtins") != 0
               ? PyUnicode_FromFormat("<%U.%s>", module, own)
               : PyUnicode_FromFormat("<%s>", own);
}

/* cProfile uses the repr of the method object; for objects not implemented in C that would run the program's code. */
static bool has_safe_repr(PyObject *found)
{
    return Py_IS_TYPE(found, &PyMethodDescr_Type) || Py_IS_TYPE(found, &PyClassMethodDescr_Type) ||
           Py_IS_TYPE(found, &PyWrapperDescr_Type) || PyCFunction_CheckExact(found) ||
           PyFunction_Check(found);
}

/* The name of a method of `self`: its type's repr if that is safe, else module and name. */
static PyObject *name_of_method(const PyMethodDef *method, PyObject *self, PyObject *module)
{
    PyObject *const own EXT_OWNED = PyUnicode_FromString(own_name(method));
    PyObject *const found = own != NULL ? _PyType_Lookup(Py_TYPE(self), own) : NULL;
    if (found != NULL && has_safe_repr(found))
        return PyObject_Repr(found);
    PyErr_Clear();
    if (module != NULL && PyUnicode_Check(module))
        return PyUnicode_FromFormat("<built-in method %S.%s>", module, own_name(method));
    return PyUnicode_FromFormat("<built-in method %s>", own_name(method));
}

/* The object to keep alive so that no other function gets the address `key`. */
static PyObject *owner_of(PyObject *callable)
{
    if (!PyCFunction_Check(callable))
        return callable;
    PyObject *const self = ((PyCFunctionObject *)callable)->m_self;
    if (self == NULL || PyModule_Check(self) || PyType_Check(self) || PyCapsule_CheckExact(self))
        return callable;
    return (PyObject *)Py_TYPE(self);
}

static PyObject *name_of_builtin(const PyMethodDef *key, PyObject *callable, PyObject *self)
{
    if (!PyCFunction_Check(callable))
        return name_of_method(key, self, NULL);
    const PyCFunctionObject *const function = (PyCFunctionObject *)callable;
    return function->m_self == NULL ? name_of_function(function)
                                    : name_of_method(key, function->m_self, function->m_module);
}

static uint32_t define_builtin(struct calls_profile *profile, const PyMethodDef *key,
                               PyObject *callable, PyObject *self)
{
    if (PyList_Append(profile->kept, owner_of(callable)) < 0)
        return 0;
    PyObject *name EXT_OWNED = name_of_builtin(key, callable, self);
    if (name == NULL) {
        PyErr_Clear();
        name = PyUnicode_FromFormat("<%s>", own_name(key));
    }
    PyObject *const own EXT_OWNED =
        PyUnicode_FromFormat("%s", own_name(key)); /* %s accepts bytes that are not UTF-8 */
    PyObject *const file EXT_OWNED = PyUnicode_FromString("~");
    PyObject *const module EXT_OWNED =
        PyCFunction_Check(callable) ? module_name((PyCFunctionObject *)callable) : NULL;
    return define(profile, name, own, file, module, 0, MAREY_CALLS_BUILTIN);
}

uint32_t calls_function_of_builtin(struct calls_profile *profile, const PyMethodDef *key,
                                   PyObject *callable, PyObject *self)
{
    uint32_t number = calls_table_get(&profile->functions, key);
    if (number != 0 || !calls_table_reserve(&profile->functions))
        return number;
    EXT_KEEP_ERROR();
    number = define_builtin(profile, key, callable, self);
    if (number != 0)
        table_put(&profile->functions, key, number);
    PyErr_Clear();
    return number;
}
