/*
 * Selects the frames of a stack to show. Users can change their own lines, so if Python is running, only its functions
 * are shown; otherwise compiled functions, without those of the allocator and torch's dispatch. Shows two frames from
 * inside, and the first frame of the program, preceded by library frames. Blocks are grouped by this text.
 */
#include "analyze/memory/internal.h"

#define BETWEEN " < "

enum { N_SHOWN = 3, MAX_FRAMES = 256 };

static bool contains(const char *text, size_t len, const char *part)
{
    return memmem(text, len, part, strlen(part)) != NULL;
}

/* ---- frames ---- */

static enum marey__frame_code code_of(const char *path, size_t len)
{
    static const char *const libraries[] = {"site-packages/", "dist-packages/", "/lib/python",
                                            "<frozen "};
    if (!contains(path, len, ".py") && !contains(path, len, "<frozen ") &&
        !contains(path, len, "<string>"))
        return MAREY__FRAME_NATIVE;
    for (size_t i = 0; i < MAREY__COUNT_OF(libraries); i++)
        if (contains(path, len, libraries[i]))
            return MAREY__FRAME_LIBRARY;
    /* torch.profiler's paths start after the folder of packages. */
    return marey__starts_with(path, len, "torch/") ? MAREY__FRAME_LIBRARY : MAREY__FRAME_OWN;
}

static uint32_t name_frame(struct marey__memory_report *report, const char *text, size_t len,
                           enum marey__frame_code code)
{
    const uint32_t name = marey__memory_name(report, text, len);
    const size_t before = report->codes_cap;
    if (name == MAREY__NO_NAME ||
        !marey__grow(&report->codes, &report->codes_cap, (size_t)name + 1, sizeof *report->codes))
        return MAREY__NO_NAME;
    memset(report->codes + before, 0, report->codes_cap - before);
    report->codes[name] = (uint8_t)code;
    return name;
}

uint32_t marey__memory_frame(struct marey__memory_report *report, const char *function, size_t len,
                             const char *file, int64_t line)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    const char *const slash = strrchr(file, '/'), *const base = slash != NULL ? slash + 1 : file;
    marey__buf_put(&text, function, len);
    if (base[0] != '\0')
        marey__buf_printf(&text, line > 0 ? " (%s:%lld)" : " (%s)", base, (long long)line);
    return text.failed ? MAREY__NO_NAME
                       : name_frame(report, text.data != NULL ? text.data : "", text.len,
                                    code_of(file, strlen(file)));
}

uint32_t marey__memory_frame_text(struct marey__memory_report *report, const char *text, size_t len)
{
    return name_frame(report, text, len,
                      contains(text, len, ".py(") ? code_of(text, len) : MAREY__FRAME_NATIVE);
}

/* ---- selection ---- */

/* The unwinder, the allocator, and torch's dispatch from an operator's name to its code. */
static bool is_plumbing(const struct marey__name *name)
{
    static const char *const parts[] = {"torch::unwind::",
                                        "torch::CapturedTraceback::",
                                        "torch::cuda::(anonymous namespace)::gather",
                                        "c10::cuda::CUDACachingAllocator::",
                                        "c10::impl::",
                                        "at::detail::empty_",
                                        "at::(anonymous namespace)::create_out",
                                        "at::_ops::",
                                        "operator new",
                                        "_PyObject_Malloc",
                                        "_PyObject_Calloc",
                                        "_PyObject_Realloc",
                                        "PyObject_Malloc",
                                        "arena_map_mark_used",
                                        "_Znw",
                                        "_Zna"};
    for (size_t i = 0; i < MAREY__COUNT_OF(parts); i++)
        if (marey__starts_with(name->text, name->len, parts[i]))
            return true;
    return contains(name->text, name->len, "::set_output_");
}

static enum marey__frame_code code_at(const struct marey__memory_report *report, uint32_t name)
{
    return name < report->codes_cap ? (enum marey__frame_code)report->codes[name]
                                    : MAREY__FRAME_NATIVE;
}

/* Whether it identifies a line of the program; on an autograd thread, the operator whose gradient is computed. */
static bool is_own(const struct marey__memory_report *report, uint32_t name)
{
    const struct marey__name *const frame = &report->names.names[name];
    return code_at(report, name) == MAREY__FRAME_OWN ||
           (marey__starts_with(frame->text, frame->len, "torch::autograd::generated::") &&
            contains(frame->text, frame->len, "::apply("));
}

/* Frames that may be shown, the innermost first. */
static size_t choose(const struct marey__memory_report *report, const uint32_t *frames, size_t n,
                     uint32_t chosen[MAX_FRAMES])
{
    size_t n_python = 0, n_native = 0;
    n = MAREY__MIN(n, (size_t)MAX_FRAMES);
    for (size_t i = 0; i < n; i++)
        if (code_at(report, frames[i]) != MAREY__FRAME_NATIVE)
            chosen[n_python++] = frames[i];
    if (n_python != 0)
        return n_python;
    for (size_t i = 0; i < n; i++)
        if (!is_plumbing(&report->names.names[frames[i]]))
            chosen[n_native++] = frames[i];
    if (n_native == 0 && n != 0)
        memcpy(chosen, frames, n * sizeof *chosen);
    return n_native != 0 ? n_native : n;
}

/* ---- text ---- */

/* The position after the arguments of a template; `at` is after their opening bracket. */
static size_t skip_arguments(const char *text, size_t len, size_t at)
{
    for (size_t depth = 1; at < len && depth != 0; at++)
        if (text[at] == '<')
            depth++;
        else if (text[at] == '>' && text[at - 1] != '-')
            depth--;
    return at;
}

/* "at::native::sum" of a C++ function with template arguments, parameters and a file. */
static void put_native(struct marey__buf *out, const char *text, size_t len)
{
    static const char nameless[] = "(anonymous namespace)::", operator[] = "operator";
    for (size_t at = 0; at < len;) {
        const bool is_named =
            at >= sizeof operator- 1 &&
                memcmp(text + at - (sizeof operator- 1), operator, sizeof operator- 1) ==
            0;
        if (marey__starts_with(text + at, len - at, nameless)) {
            at += sizeof nameless - 1;
        } else if (text[at] == '<' && at != 0 && !is_named) {
            at = skip_arguments(text, len, at + 1);
        } else if (text[at] == '(' && at != 0 && text[at - 1] != ' ' && !is_named) {
            return; /* the rest is "const", "[clone .part.0]", the file */
        } else {
            const size_t n = is_named && marey__starts_with(text + at, len - at, "()") ? 2 : 1;
            marey__buf_put(out, text + at, n);
            at += n;
        }
    }
}

static void put_frame(struct marey__buf *out, const struct marey__memory_report *report, uint32_t name)
{
    const struct marey__name *const frame = &report->names.names[name];
    if (code_at(report, name) == MAREY__FRAME_NATIVE && contains(frame->text, frame->len, "::"))
        put_native(out, frame->text, frame->len);
    else
        marey__buf_put(out, frame->text, frame->len);
}

static void put_where(struct marey__buf *out, const struct marey__memory_report *report,
                      const uint32_t *chosen, size_t n)
{
    size_t own = 0;
    while (own < n && !is_own(report, chosen[own]))
        own++;
    const size_t third = own > N_SHOWN - 1 && own < n ? own : N_SHOWN - 1;
    for (size_t i = 0; i < MAREY__MIN(n, (size_t)N_SHOWN - 1); i++) {
        marey__buf_puts(out, i > 0 ? BETWEEN : "");
        put_frame(out, report, chosen[i]);
    }
    if (n < N_SHOWN)
        return;
    marey__buf_puts(out, third >= N_SHOWN ? BETWEEN "..." BETWEEN : BETWEEN);
    put_frame(out, report, chosen[third]);
    marey__buf_puts(out, third + 1 < n ? BETWEEN "..." : "");
}

/* The number of a stack's text; MAREY__NO_NAME on out of memory. */
static uint32_t name_where(struct marey__memory_report *report,
                           const struct marey__memory_stack *stack)
{
    uint32_t chosen[MAX_FRAMES];
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    put_where(&text, report, chosen, choose(report, report->frames + stack->first, stack->n, chosen));
    return text.failed ? MAREY__NO_NAME
                       : marey__memory_name(report, text.data != NULL ? text.data : "", text.len);
}

bool marey__memory_find_where(struct marey__memory_report *report)
{
    static const char before[] = "(allocated before recording)", none[] = "(no stack)";
    const uint32_t name_before = marey__memory_name(report, before, sizeof before - 1),
                   name_none = marey__memory_name(report, none, sizeof none - 1);
    uint32_t *const names MAREY__FREED = marey__alloc((report->n_stacks + 1) * sizeof *names);
    if (names == NULL || name_before == MAREY__NO_NAME || name_none == MAREY__NO_NAME)
        return false;
    for (size_t i = 0; i < report->n_stacks; i++) {
        names[i] = report->stacks[i].n != 0 ? name_where(report, &report->stacks[i]) : name_none;
        if (names[i] == MAREY__NO_NAME)
            return false;
    }
    for (size_t p = 0; p < report->n_pools; p++)
        for (size_t i = 0; i < report->pools[p].n_blocks; i++) {
            struct marey__held_block *const block = &report->pools[p].blocks[i];
            block->where = block->stack < report->n_stacks ? names[block->stack]
                           : block->is_before              ? name_before
                                                           : name_none;
        }
    return true;
}
