/* Stacks of threads: created with the first push, destroyed with their thread. */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/internal.h"

__thread struct marey__stack *marey__stack_self __attribute__((tls_model("initial-exec")));
uint32_t marey__stack_generation = 1;

static struct {
    pthread_mutex_t lock; /* guards the list */
    struct marey__stack *first;
    pthread_key_t exit_key;
    pthread_once_t once;
} stacks = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

void marey__stack_needed(uint32_t before)
{
    if ((before & MAREY__STACK_USERS) == 0)
        __atomic_fetch_add(&marey__stack_generation, 1, __ATOMIC_RELAXED);
}

/* ---- threads ---- */

static void thread_exits(void *arg)
{
    struct marey__stack *stack = arg;
    marey__stack_self = NULL; /* ranges begun by later destructors get a new stack */
    pthread_mutex_lock(&stacks.lock);
    *stack->link = stack->next;
    if (stack->next != NULL)
        stack->next->link = stack->link;
    pthread_mutex_unlock(&stacks.lock);
    MAREY__FREE_ALL(stack->entries, stack);
}

static void make_exit_key(void)
{
    pthread_key_create(&stacks.exit_key, thread_exits);
}

static struct marey__stack *stack_create(void)
{
    struct marey__stack *stack = marey__calloc(1, sizeof *stack);
    if (stack == NULL)
        return NULL;
    pthread_once(&stacks.once, make_exit_key);
    pthread_mutex_init(&stack->lock, NULL);
    stack->tid = syscall(SYS_gettid);
    pthread_mutex_lock(&stacks.lock);
    stack->next = stacks.first;
    stack->link = &stacks.first;
    if (stack->next != NULL)
        stack->next->link = &stack->next;
    stacks.first = stack;
    pthread_mutex_unlock(&stacks.lock);
    pthread_setspecific(stacks.exit_key, stack);
    return stack;
}

static void say_no_memory(void)
{
    marey__say(
        "out of memory for the stack of open ranges: matching ends may be reported as wrong");
}

struct marey__stack *marey__stack_renew(void)
{
    if (marey__stack_self == NULL && (marey__stack_self = stack_create()) == NULL) {
        say_no_memory();
        return NULL;
    }
    struct marey__stack *const stack = marey__stack_self;
    __atomic_store_n(&stack->depth, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&stack->generation,
                     __atomic_load_n(&marey__stack_generation, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    return stack;
}

bool marey__stack_grow(struct marey__stack *stack)
{
    pthread_mutex_lock(&stack->lock); /* a visitor may be reading the entries */
    const bool grown =
        marey__grow(&stack->entries, &stack->cap, stack->depth + 1, sizeof *stack->entries);
    pthread_mutex_unlock(&stack->lock);
    if (!grown)
        say_no_memory();
    return grown;
}

/* ---- ends ---- */

static bool same_name(marey_id a, marey_id b)
{
    size_t a_len, b_len;
    const char *a_name = marey_site_name(a, &a_len), *b_name = marey_site_name(b, &b_len);
    return a_len == b_len && memcmp(a_name, b_name, a_len) == 0;
}

/* Compare names rather than ids: a range may begin in one file and end in another. */
static size_t find(const struct marey__stack *stack, marey_id id)
{
    for (size_t i = stack->depth; i-- > 0;)
        if ((stack->entries[i] & MAREY__ENTRY_ID) == id)
            return i;
    for (size_t i = stack->depth; i-- > 0;)
        if (same_name(stack->entries[i] & MAREY__ENTRY_ID, id))
            return i;
    return SIZE_MAX;
}

marey__entry marey__stack_take(marey_id id)
{
    struct marey__stack *const stack = marey__stack_get();
    if (stack == NULL || stack->depth == 0)
        return 0;
    const size_t top = stack->depth - 1;
    if (id == 0 || (stack->entries[top] & MAREY__ENTRY_ID) == id)
        return marey__stack_remove(stack, top);
    const size_t place = find(stack, id);
    return place != SIZE_MAX ? marey__stack_remove(stack, place) : 0;
}

/* ---- all stacks ---- */

/* Caller holds the stack's lock, so the entries do not move; their owner may go on pushing and popping. */
static void visit_stack(const struct marey__stack *stack, marey__stack_visitor *visit, void *ctx)
{
    enum { MOST = 64 };
    marey_id ids[MOST];
    const size_t depth = __atomic_load_n(&stack->depth, __ATOMIC_ACQUIRE);
    const size_t n = MAREY__MIN(depth, (size_t)MOST);
    for (size_t i = 0; i < n; i++)
        ids[i] = __atomic_load_n(&stack->entries[i], __ATOMIC_RELAXED) & MAREY__ENTRY_ID;
    if (depth > 0)
        visit(ctx, stack->tid, ids, n, depth);
}

void marey__stacks_visit(marey__stack_visitor *visit, void *ctx)
{
    const uint32_t generation = __atomic_load_n(&marey__stack_generation, __ATOMIC_RELAXED);
    MAREY__HOLD(&stacks.lock);
    for (struct marey__stack *stack = stacks.first; stack != NULL; stack = stack->next) {
        pthread_mutex_lock(&stack->lock);
        if (__atomic_load_n(&stack->generation, __ATOMIC_RELAXED) == generation)
            visit_stack(stack, visit, ctx);
        pthread_mutex_unlock(&stack->lock);
    }
}

void marey__stacks_before_fork(void)
{
    pthread_mutex_lock(&stacks.lock);
}

void marey__stacks_after_fork(bool in_child)
{
    struct marey__stack *const self = marey__stack_self;
    if (in_child) {
        for (struct marey__stack *stack = stacks.first, *next; stack != NULL; stack = next) {
            next = stack->next;
            if (stack != self) /* the owner may have been about to move the entries: do not free them */
                marey__free(stack);
        }
        stacks.first = self;
        if (self != NULL) {
            self->next = NULL;
            self->link = &stacks.first;
            self->tid = syscall(SYS_gettid);
        }
    }
    pthread_mutex_unlock(&stacks.lock);
}
