/*
 * Phases and iterations in a snapshot of torch's allocator: the annotations that its history was told of. An optimizer's step
 * is one by itself, so that each training has iterations.
 */
#include <string.h>

#include "analyze/memory/internal.h"
#include "base/internal.h"

typedef const struct marey__unpickled_value *value;

enum { MAX_OPEN = 64 };

struct marks {
    struct marey__memory_report *report;
    const struct marey__unpickled *pickle;
    struct marey__memory_pool *pool;
    struct begun {
        uint64_t ns;
        const char *name;
        size_t len;
    } begun[MAX_OPEN];
    size_t n_begun;
    struct begun step;     /* the name of iterations, once it is known */
    bool has_profiler;     /* iterations are those of torch.profiler */
    uint64_t last_step_ns; /* the end of the last iteration */
};

static bool begins(const struct begun *mark, const char *text)
{
    const size_t n = strlen(text);
    return mark->len > n && memcmp(mark->name, text, n) == 0;
}

static bool is_equal(const struct begun *a, const struct begun *b)
{
    return a->len == b->len && memcmp(a->name, b->name, a->len) == 0;
}

/* An iteration ends with the step of the first optimizer that is met. */
static bool take_step(struct marks *marks, const struct begun *mark, uint64_t end_ns)
{
    if (marks->step.name == NULL)
        marks->step = *mark;
    if (!is_equal(&marks->step, mark))
        return true;
    const uint64_t begin_ns = MAREY__MIN(marks->last_step_ns, end_ns);
    marks->last_step_ns = end_ns;
    return marey__memory_span_add(&marks->pool->iterations, begin_ns, end_ns, MAREY__NO_NAME);
}

static bool take_span(struct marks *marks, const struct begun *mark, uint64_t end_ns)
{
    const size_t skipped = marey__phase_prefix(mark->name, mark->len);
    if (begins(mark, "ProfilerStep#"))
        return marey__memory_span_add(&marks->pool->iterations, mark->ns, end_ns, MAREY__NO_NAME);
    if (!marks->has_profiler && begins(mark, "Optimizer.step#") && !take_step(marks, mark, end_ns))
        return false;
    const uint32_t name =
        marey__memory_name(marks->report, mark->name + skipped, mark->len - skipped);
    return name != MAREY__NO_NAME &&
           marey__memory_span_add(&marks->pool->phases, mark->ns, end_ns, name);
}

static bool take_mark(struct marks *marks, value entry)
{
    int64_t us = 0;
    struct begun mark = {0};
    const value stage = marey__unpickled_get(marks->pickle, entry, "stage");
    mark.name = marey__unpickled_text(marey__unpickled_get(marks->pickle, entry, "name"), &mark.len);
    if (mark.name == NULL ||
        !marey__unpickled_whole(marey__unpickled_get(marks->pickle, entry, "time_us"), &us) ||
        us <= 0 || us >= INT64_MAX / 1000)
        return true;
    mark.ns = (uint64_t)us * 1000;
    if (marey__unpickled_is(stage, "START")) {
        if (marks->n_begun < MAX_OPEN)
            marks->begun[marks->n_begun++] = mark;
        return true;
    }
    /* Threads have one list: the last of that name is it. */
    for (size_t i = marks->n_begun; i-- > 0;) {
        if (!is_equal(&marks->begun[i], &mark))
            continue;
        const struct begun begun = marks->begun[i];
        marks->n_begun--;
        memmove(&marks->begun[i], &marks->begun[i + 1], (marks->n_begun - i) * sizeof *marks->begun);
        return take_span(marks, &begun, MAREY__MAX(mark.ns, begun.ns));
    }
    return true;
}

bool marey__memory_take_marks(struct marey__memory_report *report,
                              const struct marey__unpickled *pickle,
                              struct marey__memory_pool *pool, value annotations, size_t device)
{
    struct marks marks = {
        .report = report, .pickle = pickle, .pool = pool, .last_step_ns = pool->first_ns};
    const size_t n = marey__unpickled_length(annotations);
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n; i++) {
            const value entry = marey__unpickled_item(pickle, annotations, i),
                        name = marey__unpickled_get(pickle, entry, "name");
            int64_t of = 0;
            size_t len = 0;
            const char *const text = marey__unpickled_text(name, &len);
            const struct begun mark = {.name = text, .len = len};
            marey__unpickled_whole(marey__unpickled_get(pickle, entry, "device"), &of);
            if (of != (int64_t)device)
                continue;
            if (pass == 0)
                marks.has_profiler |= text != NULL && begins(&mark, "ProfilerStep#");
            else if (!take_mark(&marks, entry))
                return false;
        }
    return true;
}
