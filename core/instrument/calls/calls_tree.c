/* A thread's stack and nodes: the work at each call. */
#include <string.h>

#include "instrument/calls/internal.h"

enum { STACK = 64, SLOTS = 64, LINE = 64 }; /* 8 KiB for a thread with few calls */

__thread void *marey_calls_own;

/* ---- time ---- */

static uint64_t cpu_ns(int64_t tid)
{
    /* The kernel's id for the CPU clock of a thread of this process; valid while the thread lives. */
    const clockid_t clock = (clockid_t)((~(uint32_t)tid << 3) | 6u);
    struct timespec ts;
    if (clock_gettime(clock, &ts) != 0)
        return 0;
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t marey__calls_now(struct marey_calls_thread *thread)
{
    if (thread->timer != MAREY__TIMER_CPU)
        return marey__clock_ticks_of(thread->timer == MAREY__TIMER_TSC);
    const uint64_t now = cpu_ns(thread->tid);
    return MAREY__MAX(now, thread->last); /* an ended thread has no clock */
}

static uint64_t now_cpu(struct marey_calls_thread *thread)
{
    return thread->last = marey__clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline uint64_t now_here(struct marey_calls_thread *thread)
{
    if (MAREY_LIKELY(thread->timer == MAREY__TIMER_TSC))
        return marey__clock_ticks_of(true);
    return thread->timer == MAREY__TIMER_CPU ? now_cpu(thread) : marey__clock_ticks_of(false);
}

/* ---- nodes ---- */

static size_t hash_of(uint32_t parent, uint32_t function, uint32_t signature)
{
    const uint64_t key = ((uint64_t)parent << 32 | function) ^ (uint64_t)signature << 20;
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 24);
}

static struct marey__calls_node **slot_of(const struct marey_calls_thread *thread, uint32_t parent,
                                          uint32_t function, uint32_t signature)
{
    const size_t mask = thread->n_slots - 1;
    for (size_t i = hash_of(parent, function, signature) & mask;; i = (i + 1) & mask) {
        const struct marey__calls_node *const node = thread->slots[i];
        if (node == NULL ||
            (node->parent == parent && node->function == function && node->signature == signature))
            return &thread->slots[i];
    }
}

static bool grow_slots(struct marey_calls_thread *thread, bool must)
{
    const size_t n_before = thread->n_slots;
    struct marey__calls_node **const before = thread->slots;
    if (!marey__calls_spend(thread->calls, n_before * sizeof *before, must))
        return false;
    struct marey__calls_node **const slots = marey__calloc(n_before * 2, sizeof *slots);
    if (slots == NULL)
        return false;
    thread->slots = slots;
    thread->n_slots = n_before * 2;
    for (size_t i = 0; i < n_before; i++)
        if (before[i] != NULL)
            *slot_of(thread, before[i]->parent, before[i]->function, before[i]->signature) =
                before[i];
    marey__free(before);
    return true;
}

static bool add_chunk(struct marey_calls_thread *thread, bool must)
{
    if (!marey__calls_spend(thread->calls, sizeof(struct marey__calls_chunk) + LINE, must))
        return false;
    char *const block = marey__calloc(1, sizeof(struct marey__calls_chunk) + LINE);
    if (block == NULL)
        return false;
    struct marey__calls_chunk *const chunk =
        (struct marey__calls_chunk *)(block + (-(uintptr_t)block & (LINE - 1)));
    chunk->block = block;
    /* Release: pairs with the acquire of readers that walk the nodes. */
    __atomic_store_n(thread->last_chunk != NULL ? &thread->last_chunk->next : &thread->chunks,
                     chunk, __ATOMIC_RELEASE);
    thread->last_chunk = chunk;
    return true;
}

/* A new node; NULL on out of memory or, unless `must`, over the budget. */
static struct marey__calls_node *add_node(struct marey_calls_thread *thread, uint32_t parent,
                                          uint32_t function, uint32_t signature, bool must)
{
    const size_t at = (size_t)(thread->n_nodes % MAREY__CALLS_CHUNK);
    if (thread->n_used >= thread->n_slots / 2 && !grow_slots(thread, must))
        return NULL;
    if (at == 0 && !add_chunk(thread, must))
        return NULL;
    struct marey__calls_node *const node = &thread->last_chunk->nodes[at];
    node->number = __atomic_add_fetch(&thread->calls->last_node, 1, __ATOMIC_RELAXED);
    node->parent = parent;
    node->function = function;
    node->signature = signature;
    *slot_of(thread, parent, function, signature) = node;
    thread->n_used++;
    __atomic_fetch_add(&thread->calls->n_nodes, 1, __ATOMIC_RELAXED);
    /* Release: pairs with the acquire of readers that walk the nodes. */
    __atomic_store_n(&thread->n_nodes, thread->n_nodes + 1, __ATOMIC_RELEASE);
    return node;
}

/* The node for paths over the budget: one per function and signature, for all callers. */
static struct marey__calls_node *other_child(struct marey_calls_thread *thread, uint32_t function,
                                             uint32_t signature)
{
    if (thread->other == NULL)
        thread->other = add_node(thread, 0, 0, 0, true);
    struct marey__calls_node *const other = thread->other;
    if (other == NULL)
        return &thread->root;
    struct marey__calls_node *node = *slot_of(thread, other->number, function, signature);
    if (node == NULL)
        node = add_node(thread, other->number, function, signature, true);
    return node != NULL ? node : other;
}

/* The slow path: the callee differs from the last one. */
__attribute__((noinline)) static struct marey__calls_node *
child_of(struct marey_calls_thread *thread, struct marey__calls_node *parent, uint32_t function,
         uint32_t signature)
{
    const struct marey__calls_node *const other = thread->other;
    const bool is_other = other != NULL && (parent->parent == other->number || parent == other);
    struct marey__calls_node *node =
        is_other ? NULL : *slot_of(thread, parent->number, function, signature);
    if (node == NULL && !is_other)
        node = add_node(thread, parent->number, function, signature, false);
    if (node == NULL)
        node = other_child(thread, function, signature);
    return parent->last_child = node;
}

/* ---- stack ---- */

__attribute__((noinline)) static bool grow_stack(struct marey_calls_thread *thread)
{
    const size_t n = thread->n_stack;
    struct marey__calls_frame *const stack =
        marey__calls_spend(thread->calls, n * sizeof *stack, true)
            ? marey__realloc(thread->stack, n * 2 * sizeof *stack)
            : NULL;
    if (stack == NULL)
        return false;
    thread->top = stack + (thread->top - thread->stack);
    thread->stack = stack;
    thread->n_stack = n * 2;
    thread->limit = stack + thread->n_stack - 1;
    return true;
}

/* The caller stores the time. */
static inline struct marey__calls_frame *put_frame(struct marey_calls_thread *thread,
                                                   struct marey__calls_node *node,
                                                   uint32_t function, bool is_resumed)
{
    struct marey__calls_frame *const frame = ++thread->top;
    frame->node = node;
    frame->callees = 0;
    frame->function = function;
    frame->is_resumed = is_resumed;
    return frame;
}

static inline bool is_call_of(const struct marey__calls_node *node, uint32_t function,
                              uint32_t signature)
{
    return node != NULL && node->function == function && node->signature == signature;
}

/* Finds the callee's node and pushes it; NULL if there is no room. */
static inline struct marey__calls_frame *push(struct marey_calls_thread *thread, uint32_t function,
                                              uint32_t signature, bool is_resumed)
{
    struct marey__calls_node *const parent = thread->top->node;
    struct marey__calls_node *node = parent->last_child;
    if (MAREY_UNLIKELY(!is_call_of(node, function, signature)))
        node = child_of(thread, parent, function, signature);
    /* Skipped calls are above a full stack. */
    if (MAREY_UNLIKELY(thread->top == thread->limit &&
                       (thread->n_skipped != 0 || !grow_stack(thread)))) {
        thread->n_skipped++;
        return NULL;
    }
    return put_frame(thread, node, function, is_resumed);
}

/* Ends the innermost call. */
static inline void pop(struct marey_calls_thread *thread, uint64_t now)
{
    const struct marey__calls_frame *const frame = thread->top;
    struct marey__calls_sums *const sums = &frame->node->sums;
    const uint64_t total =
        now > frame->start ? now - frame->start : 0; /* a user's clock may go backwards */
    const uint64_t self = total > frame->callees ? total - frame->callees : 0;
    const uint32_t sequence = thread->sequence;
    __atomic_store_n(&thread->sequence, sequence + 1, __ATOMIC_RELAXED);
    /* Release for each: a reader that sees one of these stores sees the odd sequence. */
    __atomic_store_n(&sums->calls, sums->calls + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&sums->self, sums->self + self, __ATOMIC_RELEASE);
    __atomic_store_n(&sums->total, sums->total + total, __ATOMIC_RELEASE);
    if (total > sums->max)
        __atomic_store_n(&sums->max, total, __ATOMIC_RELEASE);
    if (frame->is_resumed)
        __atomic_store_n(&sums->resumes, sums->resumes + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&thread->sequence, sequence + 2, __ATOMIC_RELEASE);
    if (MAREY_UNLIKELY(thread->other != NULL) &&
        (frame->node == thread->other || frame->node->parent == thread->other->number))
        __atomic_store_n(&thread->n_other, thread->n_other + 1, __ATOMIC_RELAXED);
    thread->top--;
    thread->top->callees += total;
}

/* The function that ends is not the innermost: either later ones never reported their end, or it is not on the stack. */
__attribute__((noinline)) static void pop_to(struct marey_calls_thread *thread, uint32_t function,
                                             uint64_t now)
{
    const struct marey__calls_frame *frame = thread->top;
    while (frame > thread->stack && frame->function != function)
        frame--;
    if (frame == thread->stack)
        return;
    for (size_t n = (size_t)(thread->top - frame) + 1; n > 0; n--)
        pop(thread, now);
}

static inline void leave(struct marey_calls_thread *thread, uint32_t function, uint64_t now)
{
    if (MAREY_UNLIKELY(thread->n_skipped != 0))
        thread->n_skipped--;
    else if (MAREY_UNLIKELY(thread->top->function != function))
        pop_to(thread, function, now);
    else
        pop(thread, now);
}

/* The clock is read last at a call's begin and first at its end: the cost of this code goes to the caller. */
__attribute__((noinline)) static void enter_slowly(struct marey_calls_thread *thread,
                                                   uint32_t function, uint32_t signature)
{
    struct marey__calls_frame *const frame = push(thread, function, signature, false);
    if (MAREY_LIKELY(frame != NULL))
        frame->start = now_here(thread);
}

/* Rare cases branch out first, so that the common path makes no calls and saves no registers. */
void marey_calls_enter(struct marey_calls_thread *thread, uint32_t function, uint32_t signature)
{
    struct marey__calls_node *const node = thread->top->node->last_child;
    if (MAREY_UNLIKELY(!is_call_of(node, function, signature) || thread->top == thread->limit ||
                       thread->timer != MAREY__TIMER_TSC))
        enter_slowly(thread, function, signature);
    else
        put_frame(thread, node, function, false)->start = marey__clock_ticks_of(true);
}

void marey_calls_resume(struct marey_calls_thread *thread, uint32_t function, uint32_t signature)
{
    struct marey__calls_frame *const frame = push(thread, function, signature, true);
    if (MAREY_LIKELY(frame != NULL))
        frame->start = now_here(thread);
}

__attribute__((noinline)) static void leave_slowly(struct marey_calls_thread *thread,
                                                   uint32_t function)
{
    leave(thread, function, now_here(thread));
}

void marey_calls_leave(struct marey_calls_thread *thread, uint32_t function)
{
    if (MAREY_UNLIKELY(thread->timer != MAREY__TIMER_TSC))
        leave_slowly(thread, function);
    else
        leave(thread, function, marey__clock_ticks_of(true));
}

void marey_calls_enter_at(struct marey_calls_thread *thread, uint32_t function, uint32_t signature,
                          uint64_t now)
{
    struct marey__calls_frame *const frame = push(thread, function, signature, false);
    if (frame != NULL)
        frame->start = now;
}

void marey_calls_resume_at(struct marey_calls_thread *thread, uint32_t function, uint32_t signature,
                           uint64_t now)
{
    struct marey__calls_frame *const frame = push(thread, function, signature, true);
    if (frame != NULL)
        frame->start = now;
}

void marey_calls_leave_at(struct marey_calls_thread *thread, uint32_t function, uint64_t now)
{
    leave(thread, function, now);
}

size_t marey_calls_depth(const struct marey_calls_thread *thread)
{
    return (size_t)(thread->top - thread->stack);
}

void marey__calls_tree_settle(struct marey_calls_thread *thread, uint64_t now)
{
    thread->n_skipped = 0;
    while (thread->top > thread->stack)
        pop(thread, now);
}

/* ---- begin and end of a tree ---- */

bool marey__calls_tree_init(struct marey_calls_thread *thread)
{
    thread->stack = marey__calloc(STACK, sizeof *thread->stack);
    thread->slots = marey__calloc(SLOTS, sizeof(struct marey__calls_node *));
    if (thread->stack == NULL || thread->slots == NULL)
        return false;
    thread->n_stack = STACK;
    thread->n_slots = SLOTS;
    thread->top = thread->stack;
    thread->limit = thread->stack + STACK - 1;
    thread->stack->node = &thread->root;
    thread->stack->function = UINT32_MAX; /* not a function's number, so nothing ends it */
    return true;
}

static void free_chunks(struct marey_calls_thread *thread)
{
    for (struct marey__calls_chunk *chunk = thread->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        MAREY__FREE_ALL(chunk->written, chunk->block);
        __atomic_fetch_sub(&thread->calls->n_bytes, sizeof *chunk + LINE, __ATOMIC_RELAXED);
    }
    thread->chunks = thread->last_chunk = NULL;
}

void marey__calls_tree_clear(struct marey_calls_thread *thread)
{
    free_chunks(thread);
    memset(thread->slots, 0, thread->n_slots * sizeof(struct marey__calls_node *));
    __atomic_fetch_sub(&thread->calls->n_nodes, thread->n_nodes, __ATOMIC_RELAXED);
    thread->n_used = 0;
    thread->n_nodes = thread->n_other = thread->n_skipped = 0;
    thread->other = NULL;
    thread->root = (struct marey__calls_node){0};
    thread->top = thread->stack;
}

void marey__calls_tree_fini(struct marey_calls_thread *thread)
{
    free_chunks(thread);
    MAREY__FREE_ALL(thread->slots, thread->stack);
}

bool marey__calls_sums_get(const struct marey_calls_thread *thread,
                           const struct marey__calls_node *node, struct marey__calls_sums *out)
{
    enum { TRIES = 1000 };
    const struct marey__calls_sums *const sums = &node->sums;
    for (int i = 0; i < TRIES; i++) {
        const uint32_t before = __atomic_load_n(&thread->sequence, __ATOMIC_ACQUIRE);
        /* Acquire for each: the sequence must be loaded again after them. */
        const struct marey__calls_sums copy = {
            .calls = __atomic_load_n(&sums->calls, __ATOMIC_ACQUIRE),
            .resumes = __atomic_load_n(&sums->resumes, __ATOMIC_ACQUIRE),
            .self = __atomic_load_n(&sums->self, __ATOMIC_ACQUIRE),
            .total = __atomic_load_n(&sums->total, __ATOMIC_ACQUIRE),
            .max = __atomic_load_n(&sums->max, __ATOMIC_ACQUIRE)};
        if (before % 2 == 0 && __atomic_load_n(&thread->sequence, __ATOMIC_RELAXED) == before) {
            *out = copy;
            return true;
        }
    }
    return false;
}
