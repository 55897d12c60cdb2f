/* Bytes of another process: process_vm_readv, or /proc/PID/mem if a seccomp filter forbids that. */
#include <sys/uio.h>
#include <unistd.h>

#include "record/internal.h"
#include "sampler/remote/internal.h"

enum { SPANS_AT_ONCE = 1024 };

static size_t read_by_file(struct marey__remote *remote, const struct marey__remote_span *spans,
                           size_t n)
{
    for (size_t i = 0; i < n; i++) {
        remote->reads.calls++;
        if (spans[i].at > INT64_MAX || pread(remote->mem_fd, spans[i].to, spans[i].n_bytes,
                                             (off_t)spans[i].at) != (ssize_t)spans[i].n_bytes)
            return i;
        remote->reads.bytes += spans[i].n_bytes;
    }
    return n;
}

/* How many of `n` spans are covered by the first `n_bytes` bytes. */
static size_t whole_spans(const struct marey__remote_span *spans, size_t n, size_t n_bytes)
{
    for (size_t i = 0; i < n; i++) {
        if (spans[i].n_bytes > n_bytes)
            return i;
        n_bytes -= spans[i].n_bytes;
    }
    return n;
}

size_t marey__remote_process_spans(void *self, const struct marey__remote_span *spans, size_t n)
{
    struct marey__remote *const remote = self;
    size_t done = 0;
    if (remote->mem_fd >= 0)
        return read_by_file(remote, spans, n);
    while (done < n) {
        struct iovec to[SPANS_AT_ONCE], from[SPANS_AT_ONCE];
        const size_t some = MAREY__MIN(n - done, (size_t)SPANS_AT_ONCE);
        for (size_t i = 0; i < some; i++) {
            to[i] = (struct iovec){spans[done + i].to, spans[done + i].n_bytes};
            from[i] = (struct iovec){(void *)(uintptr_t)spans[done + i].at, spans[done + i].n_bytes};
        }
        remote->reads.calls++;
        const ssize_t got = process_vm_readv(remote->process.pid, to, some, from, some, 0);
        const size_t whole = got < 0 ? 0 : whole_spans(spans + done, some, (size_t)got);
        remote->reads.bytes += got < 0 ? 0 : (uint64_t)got;
        done += whole;
        if (whole < some)
            break;
    }
    return done;
}

size_t marey__remote_read_spans(struct marey__remote *remote,
                                const struct marey__remote_span *spans, size_t n)
{
    return remote->memory.read_spans(remote->memory.self, spans, n);
}

bool marey__remote_read(struct marey__remote *remote, uint64_t at, void *to, size_t n_bytes)
{
    const struct marey__remote_span span = {at, to, n_bytes};
    return marey__remote_read_spans(remote, &span, 1) == 1;
}

bool marey__remote_read_u64(struct marey__remote *remote, uint64_t at, uint64_t *out)
{
    return marey__remote_read(remote, at, out, sizeof *out);
}

struct marey__remote_reads marey__remote_reads(const struct marey__remote *remote)
{
    return remote->reads;
}

bool marey__remote_read_text(struct marey__remote *remote, uint64_t at, char *to, size_t cap)
{
    /* The string may end just before an unmapped page, so read at most up to the next page boundary. */
    for (size_t len = 0; len < cap;) {
        const size_t some = MAREY__MIN(cap - len, (size_t)(4096 - (at + len) % 4096));
        if (!marey__remote_read(remote, at + len, to + len, some))
            return false;
        if (memchr(to + len, '\0', some) != NULL)
            return true;
        len += some;
    }
    return false;
}

uint64_t marey__remote_now_ns(void)
{
    return marey__clock_ns(CLOCK_MONOTONIC_COARSE);
}
