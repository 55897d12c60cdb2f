/*
 * stack: what each thread has begun and not ended, while somebody wants to know: a check of nesting, an NVTX tool (whose
 * domains pop one by one), the range wrapper. A recording alone needs no stack; its reader finds out by itself.
 *
 * Nobody looks means nobody pushes, so a stack is only true from the moment on at which somebody began to look. Whoever
 * sets one of MAREY__STACK_USERS tells marey__stack_needed(), and stacks from before that count as empty.
 */
#ifndef MAREY_STACK_INTERNAL_H
#define MAREY_STACK_INTERNAL_H

#include <pthread.h>

#include "base/base_internal.h"
#include <marey/range.h>

/* The bits of the enable word whose owners use stacks. */
#define MAREY__STACK_USERS (MAREY_ON_CHECKED | MAREY_ON_NVTX | MAREY_ON_WRAPPER)

/* An entry is an id with flags above it. */
typedef uint32_t marey__entry;
enum {
    MAREY__ENTRY_ID = 0xfffff,
    MAREY__ENTRY_WRAPPER = 1 << 20, /* pushed by the range wrapper */
    MAREY__ENTRY_NVTX = 1 << 21,    /* told to an NVTX tool */
};

struct marey__stack {
    marey__entry *entries; /* the owner's; moves under `lock` */
    size_t depth;          /* the owner's; others load it */
    size_t cap;            /* the owner's */
    uint32_t generation;   /* the owner's; others load it */
    int64_t tid;
    pthread_mutex_t lock;              /* the owner when entries move, and whoever visits */
    struct marey__stack *next, **link; /* the registry; guarded by its lock */
};

extern __thread struct marey__stack *marey__stack_self __attribute__((tls_model("initial-exec")));

/* A bit of MAREY__STACK_USERS was set; `before` is the enable word as it was. */
void marey__stack_needed(uint32_t before);

/* This thread's stack, empty when it is from before somebody needed it; NULL without memory, which is said. */
struct marey__stack *marey__stack_renew(void);
extern uint32_t marey__stack_generation; /* written by marey__stack_needed alone. Relaxed */

static inline struct marey__stack *marey__stack_get(void)
{
    struct marey__stack *const stack = marey__stack_self;
    if (MAREY_LIKELY(stack != NULL && stack->generation == __atomic_load_n(&marey__stack_generation,
                                                                           __ATOMIC_RELAXED)))
        return stack;
    return marey__stack_renew();
}

/* Make room for one more; false without memory. */
bool marey__stack_grow(struct marey__stack *stack);

/* Without memory the entry is left out, which was said. */
static inline void marey__stack_push(marey__entry entry)
{
    struct marey__stack *const stack = marey__stack_get();
    if (MAREY_UNLIKELY(stack == NULL || (stack->depth == stack->cap && !marey__stack_grow(stack))))
        return;
    __atomic_store_n(&stack->entries[stack->depth], entry, __ATOMIC_RELAXED);
    /* Release: meets the acquire in visit_stack(). */
    __atomic_store_n(&stack->depth, stack->depth + 1, __ATOMIC_RELEASE);
}

/* Take the entry at `place` out; those above it move down. */
static inline marey__entry marey__stack_remove(struct marey__stack *stack, size_t place)
{
    const marey__entry entry = stack->entries[place];
    const size_t depth = stack->depth - 1;
    for (size_t i = place; i < depth; i++)
        __atomic_store_n(&stack->entries[i], stack->entries[i + 1], __ATOMIC_RELAXED);
    __atomic_store_n(&stack->depth, depth, __ATOMIC_RELAXED);
    return entry;
}

/*
 * Take out what the end of `id` means: the topmost entry of that id, else of that name; for 0 the topmost. 0 comes back
 * when there is none, because it began before anybody looked.
 */
marey__entry marey__stack_take(marey_id id);

/*
 * Call `visit` for each thread that has begun `depth` ranges which it has not ended; the outermost `n` of them are in
 * `stack`. Locks are held: the visitor must not begin or end ranges.
 */
typedef void marey__stack_visitor(void *ctx, int64_t tid, const marey_id *stack, size_t n,
                                  size_t depth);
void marey__stacks_visit(marey__stack_visitor *visit, void *ctx);

/* The child keeps the stack of the thread that forked, because it will end what that thread has begun. */
void marey__stacks_before_fork(void);
void marey__stacks_after_fork(bool in_child);

#endif
