/* Who a process is, by /proc: parent, start, arguments, rank; and whether it still is. */
#include <inttypes.h>
#include <stdio.h>

#include "record/internal.h"
#include "sampler/remote/internal.h"

enum { ENVIRONMENT_MAX = 1 << 17 };

struct facts {
    char state;
    uint64_t parent, start_time, start_stack;
};

/* Fields 3, 4, 22 and 28 of /proc/PID/stat, counted from the last parenthesis: the name may hold others. */
static bool read_facts(pid_t pid, struct facts *out)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const size_t len = marey__read_text(path, text, sizeof text);
    const char *at = memrchr(text, ')', len);
    if (at == NULL || at[1] != ' ')
        return false;
    *out = (struct facts){.state = at[2]};
    int field = 2;
    for (at++; *at == ' ' && field < 28; field++) {
        uint64_t number = 0;
        at++;
        marey__parse_number(at, strlen(at), &number);
        if (field + 1 == 4)
            out->parent = number;
        else if (field + 1 == 22)
            out->start_time = number;
        else if (field + 1 == 28)
            out->start_stack = number;
        at += strcspn(at, " ");
    }
    return field == 28;
}

static void take_command(pid_t pid, char *out, size_t size)
{
    char path[64], text[1024];
    struct marey__buf valid = {0};
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    size_t len = marey__read_text(path, text, sizeof text);
    if (len == 0) {
        snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
        len = marey__read_text(path, text, sizeof text);
    }
    while (len > 0 && (text[len - 1] == '\0' || text[len - 1] == '\n'))
        len--;
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\0' || text[i] == '\n')
            text[i] = ' ';
    marey__utf8_put(&valid, text, len);
    size_t n = 0;
    while (!valid.failed && n < valid.len) {
        const size_t step = marey__utf8_length(valid.data + n, valid.len - n);
        if (step == 0 || n + step >= size)
            break;
        n += step;
    }
    if (n > 0)
        memcpy(out, valid.data, n);
    out[n] = '\0';
    marey__buf_fini(&valid);
}

/* The number of a variable in an environment as /proc has it, NUL after each; -1 when there is none. */
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
    char path[64];
    int rank = -1;
    char *const text = marey__alloc(ENVIRONMENT_MAX);
    if (text == NULL)
        return -1;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    const size_t len = marey__read_text(path, text, ENVIRONMENT_MAX);
    for (const char *const *name = marey__rank_variables; *name != NULL && rank < 0; name++)
        rank = number_of(text, len, *name);
    marey__free(text);
    return rank;
}

bool marey__remote_process_fill(struct marey__remote *remote)
{
    struct facts facts;
    const pid_t pid = remote->process.pid;
    if (!read_facts(pid, &facts) || facts.state == 'Z' || facts.state == 'X')
        return false;
    remote->process.parent = (pid_t)facts.parent;
    remote->process.start_time = facts.start_time;
    remote->start_stack = facts.start_stack;
    take_command(pid, remote->process.command, sizeof remote->process.command);
    remote->process.rank = take_rank(pid);
    remote->process.worker = -1;
    return true;
}

enum marey__remote_fate marey__remote_fate(struct marey__remote *remote)
{
    struct facts facts;
    if (!read_facts(remote->process.pid, &facts) || facts.state == 'Z' || facts.state == 'X' ||
        facts.start_time != remote->process.start_time)
        return MAREY__REMOTE_GONE;
    return facts.start_stack == remote->start_stack ? MAREY__REMOTE_SAME : MAREY__REMOTE_REPLACED;
}
