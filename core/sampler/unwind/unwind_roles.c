/*
 * Names for readers, and what CPython's functions are for: the evaluation loop, the machinery of calls around it, and what
 * programs and threads begin with. By name alone, for a sampler meets interpreters of many builds.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "sampler/unwind/internal.h"

enum { MAX_MANGLED = 4096 };

typedef char *demangle_function(const char *name, char *to, size_t *len, int *status);

static demangle_function *demangler; /* written once below */
static pthread_once_t demangler_once = PTHREAD_ONCE_INIT;

/* The compiler's own, where a libstdc++ is installed: no library in C can do it. */
static void find_demangler(void)
{
    static const char *const libraries[] = {"libstdc++.so.6", "libc++abi.so.1"};
    for (size_t i = 0; i < MAREY__COUNT_OF(libraries) && demangler == NULL; i++) {
        void *const library = dlopen(libraries[i], RTLD_LAZY | RTLD_LOCAL);
        void *const found = library != NULL ? dlsym(library, "__cxa_demangle") : NULL;
        memcpy(&demangler, &found, sizeof demangler);
    }
}

/* Without "(int, char const*) const" at the end, which makes names long and tells overloads apart that few care for. */
static size_t without_parameters(const char *name)
{
    size_t len = strlen(name), depth = 0;
    for (;;) {
        static const char *const endings[] = {" const", " &", "&", " volatile"};
        size_t cut = 0;
        for (size_t i = 0; i < MAREY__COUNT_OF(endings) && cut == 0; i++) {
            const size_t n = strlen(endings[i]);
            if (len > n && memcmp(name + len - n, endings[i], n) == 0)
                cut = n;
        }
        if (cut == 0)
            break;
        len -= cut;
    }
    if (len == 0 || name[len - 1] != ')')
        return strlen(name);
    for (size_t i = len; i-- > 0;) {
        depth += name[i] == ')';
        if (name[i] == '(' && --depth == 0)
            return i > 0 ? i : strlen(name);
    }
    return strlen(name);
}

void marey__native_clean(const char *text, size_t len, char *to, size_t cap)
{
    len = MAREY__MIN(len, cap - 1);
    for (size_t i = 0; i < len; i++)
        to[i] = (unsigned char)text[i] >= ' ' && (unsigned char)text[i] < 127 ? text[i] : '?';
    to[len] = '\0';
}

void marey__demangle(const char *name, char *to, size_t cap)
{
    char plain[MAX_MANGLED];
    /* "foo.cold", "foo.part.0", "foo.constprop.1": the compiler cut foo into pieces. */
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$@");
    if (len == 0 || name[len] != '.')
        len = strlen(name);
    char *readable = NULL;
    if (len < sizeof plain && len > 2 && memcmp(name, "_Z", 2) == 0) {
        int status = 0;
        memcpy(plain, name, len);
        plain[len] = '\0';
        pthread_once(&demangler_once, find_demangler);
        readable = demangler != NULL ? demangler(plain, NULL, NULL, &status) : NULL;
    }
    const char *const text = readable != NULL ? readable : name;
    if (readable != NULL)
        len = without_parameters(readable);
    marey__native_clean(text, len, to, cap);
    free(readable); /* by malloc, as __cxa_demangle promises */
}

/* ---- roles ---- */

struct named {
    const char *name; /* with a '*' at its end: what begins so */
    enum marey__native_role role;
    bool is_outermost;
};

static const struct named roles[] = {
    {"_PyEval_EvalFrameDefault", MAREY__NATIVE_EVAL, false},
    /* How one Python function comes to call another through C. */
    {"_PyEval_*", MAREY__NATIVE_PLUMBING, false},
    {"PyEval_*", MAREY__NATIVE_PLUMBING, false},
    {"_TAIL_CALL_*", MAREY__NATIVE_PLUMBING, false},
    {"_PyFunction_*", MAREY__NATIVE_PLUMBING, false},
    {"function_code_fastcall", MAREY__NATIVE_PLUMBING, false},
    {"_PyObject_Call*", MAREY__NATIVE_PLUMBING, false},
    {"_PyObject_FastCall*", MAREY__NATIVE_PLUMBING, false},
    {"_PyObject_MakeTpCall", MAREY__NATIVE_PLUMBING, false},
    {"_PyObject_Vectorcall*", MAREY__NATIVE_PLUMBING, false},
    {"PyObject_Call*", MAREY__NATIVE_PLUMBING, false},
    {"PyObject_Vectorcall*", MAREY__NATIVE_PLUMBING, false},
    {"_PyVectorcall_*", MAREY__NATIVE_PLUMBING, false},
    {"PyVectorcall_*", MAREY__NATIVE_PLUMBING, false},
    {"_PyMethodDef_*", MAREY__NATIVE_PLUMBING, false},
    {"_PyMethodDescr_*", MAREY__NATIVE_PLUMBING, false},
    {"_PyCFunction*", MAREY__NATIVE_PLUMBING, false},
    {"PyCFunction_*", MAREY__NATIVE_PLUMBING, false},
    {"cfunction_*", MAREY__NATIVE_PLUMBING, false},
    {"method_vectorcall*", MAREY__NATIVE_PLUMBING, false},
    {"method_call", MAREY__NATIVE_PLUMBING, false},
    {"vectorcall_*", MAREY__NATIVE_PLUMBING, false},
    {"object_vacall", MAREY__NATIVE_PLUMBING, false},
    {"call_function", MAREY__NATIVE_PLUMBING, false},
    {"do_call_core", MAREY__NATIVE_PLUMBING, false},
    {"type_call", MAREY__NATIVE_PLUMBING, false},
    {"slot_tp_*", MAREY__NATIVE_PLUMBING, false},
    {"slot_mp_*", MAREY__NATIVE_PLUMBING, false},
    {"slot_sq_*", MAREY__NATIVE_PLUMBING, false},
    {"slot_nb_*", MAREY__NATIVE_PLUMBING, false},
    {"wrap_*", MAREY__NATIVE_PLUMBING, false},
    {"wrapperdescr_*", MAREY__NATIVE_PLUMBING, false},
    {"_PyGen_*", MAREY__NATIVE_PLUMBING, false},
    {"gen_send_ex*", MAREY__NATIVE_PLUMBING, false},
    {"gen_iternext", MAREY__NATIVE_PLUMBING, false},
    {"gen_send", MAREY__NATIVE_PLUMBING, false},
    /* What is there before the first line of Python. */
    {"_start", MAREY__NATIVE_START, true},
    {"clone", MAREY__NATIVE_START, true},
    {"clone3", MAREY__NATIVE_START, true},
    {"__clone", MAREY__NATIVE_START, true},
    {"__clone3", MAREY__NATIVE_START, true},
    {"thread_start", MAREY__NATIVE_START, true},
    {"__libc_start_main*", MAREY__NATIVE_START, false},
    {"__libc_start_call_main", MAREY__NATIVE_START, false},
    {"main", MAREY__NATIVE_START, false},
    {"Py_BytesMain", MAREY__NATIVE_START, false},
    {"Py_Main", MAREY__NATIVE_START, false},
    {"Py_RunMain", MAREY__NATIVE_START, false},
    {"pymain_*", MAREY__NATIVE_START, false},
    {"PyRun_*", MAREY__NATIVE_START, false},
    {"_PyRun_*", MAREY__NATIVE_START, false},
    {"pyrun_*", MAREY__NATIVE_START, false},
    {"run_mod", MAREY__NATIVE_START, false},
    {"run_eval_code_obj", MAREY__NATIVE_START, false},
    {"start_thread", MAREY__NATIVE_START, false},
    {"pythread_wrapper", MAREY__NATIVE_START, false},
    {"thread_run", MAREY__NATIVE_START, false},
    {"t_bootstrap", MAREY__NATIVE_START, false},
};

enum marey__native_role marey__native_role(const char *name, bool *is_outermost)
{
    *is_outermost = false;
    if (strncmp(name, "__GI_", 5) == 0) /* how the C library calls its own */
        name += 5;
    for (size_t i = 0; i < MAREY__COUNT_OF(roles); i++) {
        const size_t len = strcspn(roles[i].name, "*");
        if (strncmp(name, roles[i].name, len) != 0 ||
            (roles[i].name[len] == '\0' && name[len] != '\0'))
            continue;
        *is_outermost = roles[i].is_outermost;
        return roles[i].role;
    }
    return MAREY__NATIVE_CODE;
}
