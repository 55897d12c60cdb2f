/*
 * Memory maps of files that other programs may truncate while we read. The kernel then sends SIGBUS on access to a lost
 * page. Our handler maps zeros over such pages of listed mappings; readers of these files accept any bytes. SIGBUS for
 * another reason goes to the previous handler.
 *
 * The handler reads the list without a lock: slots are filled and emptied under the lock, and their memory is never
 * freed.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/internal.h"

enum { N_SLOTS = 256 };

struct slots {
    struct {
        _Atomic uintptr_t begin, end; /* begin 0: free */
    } slots[N_SLOTS];
    _Atomic(struct slots *) next;
};

static struct slots first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards changes to the list */
static struct sigaction before; /* the previous SIGBUS handler; under the lock */
static atomic_bool was_passed_on;

static size_t whole_pages(size_t len)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (len + page - 1) / page * page;
}

/*
 * Replaces the mapping that contains `at` by zeros, from that page to the end. Returns false if no mapping contains it.
 */
static bool put_zeros(uintptr_t at)
{
    const uintptr_t page = at & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    for (struct slots *list = &first; list != NULL;
         list = atomic_load_explicit(&list->next, memory_order_acquire))
        for (size_t i = 0; i < N_SLOTS; i++) {
            const uintptr_t begin = atomic_load_explicit(&list->slots[i].begin, memory_order_acquire);
            const uintptr_t end = atomic_load_explicit(&list->slots[i].end, memory_order_relaxed);
            if (begin != 0 && begin <= at && at < end)
                return mmap((void *)page, end - page, PROT_READ | PROT_WRITE,
                            MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                            0) != MAP_FAILED;
        }
    return false;
}

static void on_bus_error(int sig, siginfo_t *info, void *context)
{
    const int error = errno;
    (void)context;
    if (info->si_code != BUS_ADRERR || !put_zeros((uintptr_t)info->si_addr)) {
        /* The second time, that handler has passed the signal back to us: take the default action. */
        struct sigaction other = before;
        if (atomic_exchange(&was_passed_on, true)) {
            other = (struct sigaction){.sa_flags = 0};
            other.sa_handler = SIG_DFL;
        }
        sigaction(sig, &other, NULL); /* the fault repeats when we return */
        if (info->si_code <= 0)
            raise(sig);
    }
    errno = error;
}

/* Caller holds the lock. Another library may have replaced the handler since the last call. */
static void take_signal(void)
{
    struct sigaction now, ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    ours.sa_sigaction = on_bus_error;
    if (sigaction(SIGBUS, NULL, &now) != 0 ||
        ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_bus_error))
        return;
    before = now;
    sigaction(SIGBUS, &ours, NULL);
}

static bool add(uintptr_t begin, uintptr_t end)
{
    for (struct slots *list = &first;; list = list->next) {
        for (size_t i = 0; i < N_SLOTS; i++)
            if (list->slots[i].begin == 0) {
                list->slots[i].end = end;
                atomic_store_explicit(&list->slots[i].begin, begin, memory_order_release);
                return true;
            }
        if (list->next == NULL) {
            struct slots *const more = marey__calloc(1, sizeof *more);
            if (more == NULL)
                return false;
            atomic_store_explicit(&list->next, more, memory_order_release);
        }
    }
}

bool marey__map_guard(const void *begin, size_t len)
{
    MAREY__HOLD(&lock);
    const bool is_added = add((uintptr_t)begin, (uintptr_t)begin + whole_pages(len));
    if (is_added)
        take_signal();
    return is_added;
}

void marey__map_unguard(const void *begin)
{
    MAREY__HOLD(&lock);
    for (struct slots *list = &first; list != NULL; list = list->next)
        for (size_t i = 0; i < N_SLOTS; i++)
            if (list->slots[i].begin == (uintptr_t)begin)
                atomic_store_explicit(&list->slots[i].begin, 0, memory_order_release);
}

void *marey__map_file(int fd, size_t *len)
{
    struct stat about;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size <= 0)
        return NULL;
    *len = (size_t)about.st_size;
    /* A page of zeros after the file terminates every string. */
    const size_t room = whole_pages(*len) + whole_pages(1);
    char *const bytes = mmap(NULL, room, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        return NULL;
    if (mmap(bytes, *len, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED ||
        !marey__map_guard(bytes, *len)) {
        munmap(bytes, room);
        return NULL;
    }
    return bytes;
}

void marey__unmap_file(void *bytes, size_t len)
{
    if (bytes == NULL)
        return;
    marey__map_unguard(bytes);
    munmap(bytes, whole_pages(len) + whole_pages(1));
}
