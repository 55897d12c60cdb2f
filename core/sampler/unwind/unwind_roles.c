/*
 * Readable names, and roles of CPython's functions: loop, call machinery, starts. By name, as samplers meet many
 * builds.
 */
#include <dlfcn.h>
#include <pthread.h>

#include "sampler/unwind/internal.h"

enum { MAX_MANGLED = 4096 };

typedef char *demangle_function(const char *name, char *to, size_t *len, int *status);

static demangle_function *demangler; /* written once below */
static pthread_once_t demangler_once = PTHREAD_ONCE_INIT;

/* __cxa_demangle, if a C++ runtime is installed. */
static void find_demangler(void)
{
    static const char *const libraries[] = {"libstdc++.so.6", "libc++abi.so.1"};
    for (size_t i = 0; i < MAREY__COUNT_OF(libraries) && demangler == NULL; i++) {
        void *const library = dlopen(libraries[i], RTLD_LAZY | RTLD_LOCAL);
        void *const found = library != NULL ? dlsym(library, "__cxa_demangle") : NULL;
        memcpy(&demangler, &found, sizeof demangler);
    }
}

/* Removes "(int, char const*) const" at the end, which is long and only distinguishes overloads. */
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
    /* "foo.cold", "foo.part.0", "foo.constprop.1": the compiler split foo. */
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
    free(readable); /* allocated by malloc in __cxa_demangle */
}

/* ---- roles ---- */

/* Names separated by blanks; a '*' at the end matches any rest. */

/* Functions through which one Python function calls another in C. */
static const char plumbing[] =
    "_PyEval_* PyEval_* _TAIL_CALL_* _PyFunction_* function_code_fastcall _PyObject_Call* "
    "_PyObject_FastCall* _PyObject_MakeTpCall _PyObject_Vectorcall* PyObject_Call* "
    "PyObject_Vectorcall* _PyVectorcall_* PyVectorcall_* _PyMethodDef_* _PyMethodDescr_* "
    "_PyCFunction* PyCFunction_* cfunction_* method_vectorcall* method_call vectorcall_* "
    "object_vacall call_function do_call_core type_call slot_tp_* slot_mp_* slot_sq_* slot_nb_* "
    "wrap_* wrapperdescr_* _PyGen_* gen_send_ex* gen_iternext gen_send";
/* Functions outside the first Python frame. A thread or a program starts with the outermost ones. */
static const char outermost[] = "_start clone clone3 __clone __clone3 thread_start";
static const char starts[] =
    "__libc_start_main* __libc_start_call_main main Py_BytesMain Py_Main Py_RunMain pymain_* "
    "PyRun_* "
    "_PyRun_* pyrun_* run_mod run_eval_code_obj start_thread pythread_wrapper thread_run "
    "t_bootstrap";

static bool is_one_of(const char *name, const char *patterns)
{
    for (const char *at = patterns; *at != '\0'; at += strspn(at, " ")) {
        const size_t len = strcspn(at, "* ");
        if (strncmp(name, at, len) == 0 && (at[len] == '*' || name[len] == '\0'))
            return true;
        at += strcspn(at, " ");
    }
    return false;
}

enum marey__native_role marey__native_role(const char *name, bool *is_outermost)
{
    if (strncmp(name, "__GI_", 5) == 0) /* the C library's prefix for internal calls */
        name += 5;
    *is_outermost = is_one_of(name, outermost);
    if (strcmp(name, "_PyEval_EvalFrameDefault") == 0)
        return MAREY__NATIVE_EVAL;
    if (is_one_of(name, plumbing))
        return MAREY__NATIVE_PLUMBING;
    return *is_outermost || is_one_of(name, starts) ? MAREY__NATIVE_START : MAREY__NATIVE_CODE;
}
