/* Return addresses by the unwind tables, without allocating: since 2.35, glibc finds the tables without a lock. */
#include <stdint.h>
#include <unwind.h>

#include "memory_hook.h"

struct walk {
    void **frames;
    size_t n, most;
    unsigned skip; /* frames of this library */
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
    struct walk *const walk = arg;
    if (walk->skip > 0) {
        walk->skip--;
        return _URC_NO_REASON;
    }
    void *const at = (void *)(uintptr_t)_Unwind_GetIP(context);
    if (at == NULL || walk->n == walk->most)
        return _URC_END_OF_STACK;
    walk->frames[walk->n++] = at;
    return _URC_NO_REASON;
}

size_t unwind(void **frames, size_t n)
{
    enum { OURS = 3 }; /* this function, tell() and the hook itself */
    struct walk walk = {.frames = frames, .most = n, .skip = OURS};
    _Unwind_Backtrace(step, &walk);
    return walk.n;
}
