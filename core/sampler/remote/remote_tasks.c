/*
 * The current asyncio task of a thread. From 3.14 on _asyncio has a section with a table of offsets. The module may be
 * a separate file or part of the program, and may be imported at any time, so the search is repeated occasionally.
 */
#include "sampler/remote/internal.h"

enum {
    FIRST_VERSION = 0x030e0000,
    AGAIN_S = 1,
    OFFSET_MAX = 1 << 16,
    TASK_MAX = 1024,
};

/*
 * Words of the table: for a task size, name, awaited_by, two flags, coroutine, node; two for an interpreter; for a
 * thread size, loop, task.
 */
enum { TASK_SIZE = 0, TASK_NAME = 1, TASK_COROUTINE = 5, THREAD_TASK = 11, N_WORDS = 12 };

static bool take_table(const uint64_t *words, struct marey__remote_task_layout *out)
{
    const uint64_t size = words[TASK_SIZE];
    if (size < 16 || size > TASK_MAX || words[TASK_NAME] > size - 8 ||
        words[TASK_COROUTINE] > size - 8 || words[THREAD_TASK] > OFFSET_MAX ||
        (words[TASK_NAME] | words[TASK_COROUTINE] | words[THREAD_TASK]) % 8 != 0)
        return false;
    out->size = (uint32_t)size;
    out->name = (uint32_t)words[TASK_NAME];
    out->coroutine = (uint32_t)words[TASK_COROUTINE];
    out->running = (uint32_t)words[THREAD_TASK];
    return true;
}

static bool is_known(struct marey__remote *remote)
{
    struct marey__remote_task_layout *const layout = &remote->tasks;
    uint64_t words[N_WORDS];
    if (layout->size != 0)
        return true;
    const uint64_t ns = marey__remote_now_ns();
    if (remote->layout.version < FIRST_VERSION ||
        (layout->looked_ns != 0 && ns - layout->looked_ns < AGAIN_S * 1000000000ull))
        return false;
    layout->looked_ns = ns;
    const uint64_t at = marey__remote_find_asyncio(remote);
    return at != 0 && marey__remote_read(remote, at, words, sizeof words) &&
           take_table(words, layout);
}

bool marey__remote_task(struct marey__remote *remote, uint64_t thread_state,
                        struct marey__remote_task *out)
{
    const struct marey__remote_task_layout *const layout = &remote->tasks;
    uint8_t bytes[TASK_MAX];
    if (!is_known(remote) ||
        !marey__remote_read_u64(remote, thread_state + layout->running, &out->address) ||
        out->address == 0 || !marey__remote_read(remote, out->address, bytes, layout->size))
        return false;
    out->name = marey__remote_u64(bytes, layout->name);
    out->coroutine = marey__remote_u64(bytes, layout->coroutine);
    return true;
}

/* A default name is stored as a number until it is requested: an int of at most two 30-bit digits. */
static size_t number_name(struct marey__remote *remote, uint64_t object, char *to, size_t cap)
{
    uint64_t words[2];
    const uint32_t tag = remote->layout.object.type + 8;
    if (!marey__remote_read(remote, object + tag, words, sizeof words) || words[0] >> 3 > 2)
        return 0;
    const uint64_t low = (uint32_t)words[1], high = words[0] >> 3 == 2 ? words[1] >> 32 : 0;
    const int len = snprintf(to, cap, "Task-%llu", (unsigned long long)(high << 30 | low));
    return len > 0 && (size_t)len < cap ? (size_t)len : 0;
}

size_t marey__remote_task_name(struct marey__remote *remote, const struct marey__remote_task *task,
                               char *to, size_t cap)
{
    if (marey__remote_is_type(remote, task->name, "int"))
        return number_name(remote, task->name, to, cap);
    return marey__remote_is_type(remote, task->name, "str")
               ? marey__remote_string(remote, task->name, to, cap)
               : 0;
}
