/* Threads of the process as the kernel knows them. */
#include <stdio.h>

#include "remote/remote_internal.h"

pid_t kymo__remote_tid(struct kymo__remote *remote, const void *thread_state_bytes)
{
    return (pid_t)kymo__remote_u64(thread_state_bytes, remote->layout.thread.native_thread_id);
}

size_t kymo__remote_thread_name(struct kymo__remote *remote, pid_t tid, uint64_t thread_state,
                                char *to, size_t cap)
{
    char path[96], text[64];
    struct kymo__buf valid = {0};
    (void)thread_state;
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)remote->process.pid, (int)tid);
    size_t len = kymo__read_text(path, text, sizeof text);
    while (len > 0 && text[len - 1] == '\n')
        len--;
    kymo__utf8_put(&valid, text, len);
    len = valid.failed || valid.len >= cap ? 0 : valid.len;
    if (len > 0)
        memcpy(to, valid.data, len);
    if (cap > 0)
        to[len] = '\0';
    kymo__buf_fini(&valid);
    return len;
}

void kymo__remote_threads_fini(struct kymo__remote_threads *threads)
{
    for (size_t i = 0; i < threads->n; i++)
        kymo__free(threads->names[i].name);
    kymo__free(threads->names);
    kymo__free(threads->tids);
}
