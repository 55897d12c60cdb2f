/* Identity of a process from /proc: parent, start time, arguments, rank; and whether it is still the same. */
#include <inttypes.h>

#include "record/internal.h"
#include "sampler/remote/internal.h"

enum { ENVIRONMENT_MAX = 1 << 17 };

static bool read_stat(pid_t pid, struct marey__process_stat *out)
{
    return marey__read_process_stat(pid, 0, out) && out->state != 'Z' && out->state != 'X';
}

static void take_command(pid_t pid, char *out, size_t size)
{
    char text[1024];
    size_t len = marey__read_proc(pid, 0, "cmdline", text, sizeof text);
    if (len == 0)
        len = marey__read_proc(pid, 0, "comm", text, sizeof text);
    while (len > 0 && (text[len - 1] == '\0' || text[len - 1] == '\n'))
        len--;
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\0' || text[i] == '\n')
            text[i] = ' ';
    marey__utf8_copy(text, len, out, size);
}

/* The number in a variable of a NUL-separated environment from /proc; -1 if missing. */
static int number_of(const char *environment, size_t len, const char *name)
{
    const size_t n_name = strlen(name);
    for (const char *at = environment, *end = environment + len; at < end;
         at += strnlen(at, (size_t)(end - at)) + 1) {
        uint64_t number;
        const size_t n = strnlen(at, (size_t)(end - at));
        if (n > n_name + 1 && memcmp(at, name, n_name) == 0 && at[n_name] == '=' &&
            marey__parse_number(at + n_name + 1, n - n_name - 1, &number) && number <= INT32_MAX)
            return (int)number;
    }
    return -1;
}

static int take_rank(pid_t pid)
{
    int rank = -1;
    char *const text = marey__alloc(ENVIRONMENT_MAX);
    if (text == NULL)
        return -1;
    const size_t len = marey__read_proc(pid, 0, "environ", text, ENVIRONMENT_MAX);
    for (const char *const *name = marey__rank_variables; *name != NULL && rank < 0; name++)
        rank = number_of(text, len, *name);
    marey__free(text);
    return rank;
}

bool marey__remote_process_fill(struct marey__remote *remote)
{
    struct marey__process_stat stat;
    const pid_t pid = remote->process.pid;
    if (!read_stat(pid, &stat))
        return false;
    remote->process.parent = (pid_t)stat.parent;
    remote->process.start_time = stat.start_time;
    remote->start_stack = stat.start_stack;
    take_command(pid, remote->process.command, sizeof remote->process.command);
    remote->process.rank = take_rank(pid);
    remote->process.worker = -1;
    return true;
}

enum marey__remote_state marey__remote_state(struct marey__remote *remote)
{
    struct marey__process_stat stat;
    if (!read_stat(remote->process.pid, &stat) || stat.start_time != remote->process.start_time)
        return MAREY__REMOTE_GONE;
    return stat.start_stack == remote->start_stack ? MAREY__REMOTE_SAME : MAREY__REMOTE_REPLACED;
}
