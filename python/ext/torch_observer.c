/*
 * Operators as ranges of the recording: "aten::linear" of the category "operator", with a payload in PyTorch's format
 * for NVTX, "seq = 7, sizes = [[4, 8], [8, 8], [8]]". User annotations from record_function have the category
 * "annotation". The callbacks run on the operator's thread, without the GIL.
 *
 * A thread remembers what it has begun, so that an end needs no lookup, and one without a recorded begin is skipped.
 * Work that may end on another thread, especially a collective, is an async range.
 */
#include "torch_abi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <marey/range.h>

enum { MAX_DEPTH = 256, N_RECENT = 256, MAX_TEXT = 4096, MAX_ANNOTATIONS = 4096, MAX_LIST = 30 };

/* A name by its address; the content may have changed, so it is compared with `known`. */
struct recent {
    const char *text, *known;
    marey_id id;
};

/* Per-thread data. Passed as an argument, because looking it up is a call. */
struct thread {
    uint32_t depth; /* may exceed the array: those are not recorded */
    marey_id open[MAX_DEPTH];
    struct recent recent[N_RECENT];
};
static __thread struct thread here;

/* Operations that may end on another thread. */
struct pending {
    struct pending *next;
    const void *record;
    marey_async range;
};

static struct {
    bool is_on;                      /* relaxed; a forked child is off */
    bool has_shapes;                 /* constant while observing */
    uint64_t operators, annotations; /* handles of the callbacks */
    uint32_t n_annotations;          /* assigned names so far. Relaxed: a few more are harmless */
    pthread_mutex_t lock;            /* guards the list */
    struct pending *pending;
} observer = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- shapes ---- */

struct text {
    char *at, *end; /* bytes from `end` on are reserved for the end of the text */
};

static inline void put(struct text *text, const char *bytes, size_t n)
{
    if ((size_t)(text->end - text->at) < n)
        return;
    memcpy(text->at, bytes, n);
    text->at += n;
}

static void put_number(struct text *text, uint64_t value)
{
    char digits[20];
    size_t n = sizeof digits;
    do {
        digits[--n] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    put(text, digits + n, sizeof digits - n);
}

static void put_sizes(struct text *text, const void *tensor)
{
    put(text, "[", 1);
    if (tensor != torch_api.undefined) {
        const uint64_t *const words = (const uint64_t *)tensor + torch_layout.sizes;
        const uint64_t n = words[0] <= TORCH_MAX_DIMENSIONS ? words[0] : 0;
        const uint64_t *const sizes =
            n <= TORCH_INLINE_DIMENSIONS ? words + 1 : (const uint64_t *)(uintptr_t)words[1];
        for (uint64_t i = 0; i < n; i++) {
            if (i > 0)
                put(text, ", ", 2);
            put_number(text, sizes[i]);
        }
    }
    put(text, "]", 1);
}

/* A short list of tensors has a list of shapes; other lists have none, as in PyTorch. */
static void put_list(struct text *text, const void *list)
{
    const struct torch_value *const *const ends =
        (const struct torch_value *const *)list + torch_layout.elements;
    const bool is_of_tensors = (uint64_t)(uintptr_t)ends[3] == torch_layout.element_type;
    const size_t n = is_of_tensors ? (size_t)(ends[1] - ends[0]) : 0;
    put(text, "[", 1);
    for (size_t i = 0; n <= MAX_LIST && i < n; i++) {
        if (ends[0][i].tag != torch_layout.tensor_tag)
            break;
        if (i > 0)
            put(text, ", ", 2);
        put_sizes(text, ends[0][i].payload);
    }
    put(text, "]", 1);
}

/* Adds one input entirely or, without room for it, not at all. */
static void put_input(struct text *text, const struct torch_value *value)
{
    char *const begin = text->at;
    if (value->tag == torch_layout.tensor_tag)
        put_sizes(text, value->payload);
    else if (value->tag == torch_layout.list_tag)
        put_list(text, value->payload);
    else
        put(text, "[]", 2);
    if (text->end - text->at < 80) { /* it may be incomplete */
        text->at = begin;
        text->end = begin;
    }
}

/* Writes "seq = 7, sizes = [...]"; returns its length. */
static size_t describe(const void *record, char into[MAX_TEXT])
{
    struct text text = {into, into + MAX_TEXT - 8};
    const uint64_t *const words = (const uint64_t *)record;
    if (torch_layout.sequence != 0 && (int64_t)words[torch_layout.sequence] >= 0) {
        put(&text, "seq = ", 6);
        put_number(&text, words[torch_layout.sequence]);
        put(&text, ", ", 2);
    }
    const struct torch_value *const inputs =
        (const struct torch_value *)(uintptr_t)words[torch_layout.inputs];
    const uint64_t n = words[torch_layout.inputs + 1];
    put(&text, "sizes = [", 9);
    for (uint64_t i = 0; i < n && text.end > text.at; i++) {
        if (i > 0)
            put(&text, ", ", 2);
        put_input(&text, &inputs[i]);
    }
    *text.at++ = ']';
    return (size_t)(text.at - into);
}

/* ---- names ---- */

static marey_id id_of(struct thread *self, const char *name, bool is_operator)
{
    struct recent *const recent = &self->recent[((uintptr_t)name ^ (uintptr_t)name >> 8) % N_RECENT];
    if (MAREY_LIKELY(recent->text == name && strcmp(recent->known, name) == 0))
        return recent->id;
    const bool is_full = !is_operator && __atomic_load_n(&observer.n_annotations,
                                                         __ATOMIC_RELAXED) >= MAX_ANNOTATIONS;
    if (is_full)
        return marey_site_intern("(more annotations)", 18, "annotation", 0, NULL, 0);
    if (!is_operator)
        __atomic_fetch_add(&observer.n_annotations, 1, __ATOMIC_RELAXED);
    const marey_id id =
        marey_site_intern(name, strlen(name), is_operator ? "operator" : "annotation", 0, NULL, 0);
    *recent = (struct recent){name, marey_site_name(id, NULL), id};
    return id;
}

/* ---- begin and end ---- */

static void begin_async(const void *record, marey_id id)
{
    struct pending *const pending = malloc(sizeof *pending);
    if (pending == NULL)
        return;
    *pending = (struct pending){NULL, record, marey_put_async_begin(id)};
    pthread_mutex_lock(&observer.lock);
    pending->next = observer.pending;
    observer.pending = pending;
    pthread_mutex_unlock(&observer.lock);
}

static void end_async(const void *record)
{
    pthread_mutex_lock(&observer.lock);
    struct pending **link = &observer.pending;
    while (*link != NULL && (*link)->record != record)
        link = &(*link)->next;
    struct pending *const found = *link;
    if (found != NULL)
        *link = found->next;
    pthread_mutex_unlock(&observer.lock);
    if (found != NULL)
        marey_put_async_end(found->range);
    free(found);
}

static bool is_recorded(void)
{
    return marey_on() && __atomic_load_n(&observer.is_on, __ATOMIC_RELAXED);
}

static void begin_here(const void *record, bool is_operator)
{
    struct thread *const self = &here;
    const uint32_t depth = self->depth++;
    if (MAREY_UNLIKELY(depth >= MAX_DEPTH))
        return;
    self->open[depth] = 0;
    if (!is_recorded())
        return;
    const marey_id id = self->open[depth] = id_of(self, torch_api.name(record), is_operator);
    if (!is_operator || !observer.has_shapes) {
        marey_put_begin(id);
        return;
    }
    char text[MAX_TEXT];
    const struct marey_payload payload = {
        .type = MAREY_PAYLOAD_TEXT, .len = (uint32_t)describe(record, text), .as.text = text};
    marey_put_begin_payload(id, &payload);
}

static void **begin(void **context, const void *record, bool is_operator)
{
    *context = NULL;
    if (MAREY_UNLIKELY(torch_api.is_async(record))) {
        if (is_recorded())
            begin_async(record, id_of(&here, torch_api.name(record), is_operator));
    } else {
        begin_here(record, is_operator);
    }
    return context;
}

static void **on_operator(void **context, const void *record)
{
    return begin(context, record, true);
}

static void **on_annotation(void **context, const void *record)
{
    return begin(context, record, false);
}

static void on_end(const void *record, void *context)
{
    (void)context;
    if (MAREY_UNLIKELY(torch_api.is_async(record))) {
        end_async(record);
        return;
    }
    struct thread *const self = &here;
    if (self->depth == 0) /* begun before a fork */
        return;
    const uint32_t depth = --self->depth;
    if (depth < MAX_DEPTH && self->open[depth] != 0)
        marey_put_end(self->open[depth]);
}

/* ---- switches ---- */

/* The child's recording has no begins of the parent; nor does a window of the parent continue in the child. */
static void forked(void)
{
    here.depth = 0;
    observer.is_on = false;
    pthread_mutex_init(&observer.lock, NULL);
}

void torch_observer_start(bool with_shapes)
{
    static bool knows_forks; /* under the GIL */
    struct torch_callback operators = {on_operator, on_end, 1.0, {false}, false, false, false};
    struct torch_callback annotations = {on_annotation, on_end, 1.0, {false}, false, false, false};
    if (!knows_forks)
        pthread_atfork(NULL, NULL, forked);
    knows_forks = true;
    torch_observer_stop();
    observer.has_shapes = operators.needs_inputs = with_shapes && torch_layout.inputs != 0;
    memset(operators.scopes, true, sizeof operators.scopes);
    operators.scopes[TORCH_SCOPE_USER] = false;
    annotations.scopes[TORCH_SCOPE_USER] = true;
    __atomic_store_n(&observer.is_on, true, __ATOMIC_RELAXED);
    observer.annotations = torch_api.add(annotations);
    observer.operators = torch_api.add(operators);
}

void torch_observer_stop(void)
{
    if (observer.operators == 0)
        return;
    __atomic_store_n(&observer.is_on, false, __ATOMIC_RELAXED);
    torch_api.remove(observer.operators);
    torch_api.remove(observer.annotations);
    observer.operators = observer.annotations = 0;
}
