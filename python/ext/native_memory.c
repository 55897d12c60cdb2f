/*
 * native_memory.c: Python's allocations, and the Python stack of an allocation, for <marey/memory.h>.
 *
 * Small objects do not use malloc: Python takes them from arenas. While memory is measured, our allocator wraps
 * Python's, as tracemalloc does. It is called with the GIL held, so one counter serves all threads. Larger blocks go to
 * malloc, and are counted there if malloc is hooked.
 *
 * A thread's stack is read from its own frames, which no other thread changes, with or without the GIL. That must not
 * allocate, so it uses the interpreter's internal structures, which differ between versions; with an unknown version
 * there are no Python stacks.
 */
#include "native.h"

#include <marey/memory.h>

#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030e0000 && !defined(Py_GIL_DISABLED)
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#define HAS_FRAMES 1
#elif PY_VERSION_HEX < 0x030b0000
#include <frameobject.h>
#define HAS_FRAMES 1
#else
#define HAS_FRAMES 0
#endif

enum { SMALL = 512 }; /* limit in bytes for Python's own arenas */

/* ---- a thread's stack ---- */

#if PY_VERSION_HEX >= 0x030b0000 && HAS_FRAMES

static const _PyInterpreterFrame *first_frame(const PyThreadState *thread)
{
#if PY_VERSION_HEX >= 0x030d0000
    return thread->current_frame;
#else
    return thread->cframe->current_frame;
#endif
}

static PyCodeObject *code_of(const _PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030d0000
    return PyCode_Check(frame->f_executable) ? (PyCodeObject *)frame->f_executable : NULL;
#else
    return frame->f_code;
#endif
}

/* The offset of the instruction in bytes. */
static int place_in(const _PyInterpreterFrame *frame, const PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030d0000
    const char *const at = (const char *)frame->instr_ptr;
#else
    const char *const at = (const char *)frame->prev_instr;
#endif
    return (int)(at - (const char *)_PyCode_CODE(code));
}

static size_t places(struct marey_memory_place *out, size_t n)
{
    const PyThreadState *const thread = PyGILState_GetThisThreadState();
    size_t found = 0;
    if (thread == NULL)
        return 0;
    for (const _PyInterpreterFrame *frame = first_frame(thread); frame != NULL && found < n;
         frame = frame->previous) {
        PyCodeObject *const code = code_of(frame);
        const int at = code != NULL ? place_in(frame, code) : -1;
        /* A frame under construction has no valid offset; some internal ones have no code. */
        if (at < 0 || (size_t)at > (size_t)Py_SIZE(code) * sizeof(_Py_CODEUNIT))
            continue;
        out[found++] = (struct marey_memory_place){.code = code,
                                                   .name = code->co_qualname,
                                                   .file = code->co_filename,
                                                   .first_line = code->co_firstlineno,
                                                   .at = at};
    }
    return found;
}

#elif HAS_FRAMES

static size_t places(struct marey_memory_place *out, size_t n)
{
    const PyThreadState *const thread = PyGILState_GetThisThreadState();
    size_t found = 0;
    for (PyFrameObject *frame = thread != NULL ? thread->frame : NULL; frame != NULL && found < n;
         frame = frame->f_back) {
        const PyCodeObject *const code = frame->f_code;
        out[found++] = (struct marey_memory_place){.code = code,
                                                   .name = code->co_name,
                                                   .file = code->co_filename,
                                                   .first_line = code->co_firstlineno,
                                                   .at = 2 * frame->f_lasti};
    }
    return found;
}

#endif

#if HAS_FRAMES

/* Copies a str, with characters beyond ASCII as question marks: encoding would allocate. */
static void copy_text(const void *object, char *into, size_t size)
{
    PyObject *const text = (PyObject *)object;
    size_t n = 0;
    if (text != NULL && PyUnicode_Check(text)) {
        const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
        const int kind = PyUnicode_KIND(text);
        const void *const data = PyUnicode_DATA(text);
        /* The end of a path is more informative than its start. */
        const Py_ssize_t from = length >= (Py_ssize_t)size ? length - (Py_ssize_t)size + 1 : 0;
        for (Py_ssize_t i = from; i < length && n + 1 < size; i++) {
            const Py_UCS4 c = PyUnicode_READ(kind, data, i);
            into[n++] = c < 0x80 ? (char)c : '?';
        }
    }
    into[n] = '\0';
}

static void describe(const struct marey_memory_place *place, char *name, size_t name_size,
                     char *file, size_t file_size, uint32_t *line)
{
    const int number = PyCode_Addr2Line((PyCodeObject *)place->code, place->at);
    copy_text(place->name, name, name_size);
    copy_text(place->file, file, file_size);
    *line = number > 0 ? (uint32_t)number : (uint32_t)place->first_line;
}

static const struct marey_memory_interpreter interpreter = {
    .places = places, .describe = describe, .within = (const void *)PyEval_EvalCode};

#endif

/* ---- Python's allocators ---- */

static struct front {
    PyMemAllocatorEx behind;
} fronts[2];                             /* for PYMEM_DOMAIN_MEM and PYMEM_DOMAIN_OBJ */
static struct marey_memory_thread count; /* guarded by the GIL */
static const uint8_t *marks;             /* NULL until the first sample */
static size_t most_bytes = SIZE_MAX;     /* larger blocks are counted by malloc's hook */

static void *taken(void *block, size_t bytes)
{
    if ((marey_on() & MAREY_ON_MEMORY) && bytes <= most_bytes && block != NULL &&
        marey_memory_is_due(&count, bytes) && marey_memory_wants(&count, bytes)) {
        marks = marey_memory_marks();
        marey_memory_take(&count, block, bytes, MAREY_MEMORY_PYTHON, NULL, 0);
    }
    return block;
}

static void given(const void *block)
{
    if (marks != NULL && marey_memory_is_marked(marks, block))
        marey_memory_give(block);
}

static void *front_malloc(void *ctx, size_t bytes)
{
    const struct front *const front = ctx;
    return taken(front->behind.malloc(front->behind.ctx, bytes), bytes);
}

static void *front_calloc(void *ctx, size_t n, size_t bytes)
{
    const struct front *const front = ctx;
    return taken(front->behind.calloc(front->behind.ctx, n, bytes), n * bytes);
}

static void *front_realloc(void *ctx, void *block, size_t bytes)
{
    const struct front *const front = ctx;
    given(block);
    return taken(front->behind.realloc(front->behind.ctx, block, bytes), bytes);
}

static void front_free(void *ctx, void *block)
{
    const struct front *const front = ctx;
    given(block);
    front->behind.free(front->behind.ctx, block);
}

void native_memory_watch(void)
{
    static const PyMemAllocatorDomain domains[] = {PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
    static int is_watching;
    if (is_watching || (marey_on() & MAREY_ON_MEMORY) == 0)
        return;
    is_watching = 1;
    most_bytes = marey_memory_is_hooked() ? SMALL : SIZE_MAX;
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++) {
        PyMem_GetAllocator(domains[i], &fronts[i].behind);
        PyMemAllocatorEx front = {.ctx = &fronts[i],
                                  .malloc = front_malloc,
                                  .calloc = front_calloc,
                                  .realloc = front_realloc,
                                  .free = front_free};
        PyMem_SetAllocator(domains[i], &front);
    }
#if HAS_FRAMES
    marey_memory_set_interpreter(&interpreter);
#endif
}
