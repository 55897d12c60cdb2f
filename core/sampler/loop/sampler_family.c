/*
 * The sampled processes: those given by the user and, by default, their descendants.
 *
 * A child appears in /proc/PID/task/TID/children of the thread that created it. Reading that costs some microseconds
 * per thread, so it is done after the machine's newest pid (last in /proc/loadavg) has changed, and for threads that
 * have run; and for all of them ten times a second. While children are being born, that is every 2 ms and before each
 * round.
 *
 * A forked child is a Python from the start, and is read with its parent's data. A child of vfork shares its parent's
 * memory until it execs, so until then it counts as its parent. Other processes are tracked too: shells and launchers
 * may exec a Python or have one as a child.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/loop/internal.h"

static const uint64_t ms_ns = 1000000;
/* Between two searches for children while there are new ones and we are awake anyway. */
static const uint64_t awake_ns = 500000;
enum {
    PROGRAM_MS = 20, /* a process without Python is sampled after this time */
    START_MS = 500,  /* a program takes at most this long to become a Python */
    SHOW_MS = 10,    /* a new process appears as a child within this time after its pid */
    QUICK_MS = 2,    /* the same if we have to wake up for it, or are awake without births */
    QUIET_MS = 20,   /* otherwise */
    CALM_QUICK_MS = 10,
    CALM_MS = 50,        /* the last two, for a low-overhead sampler */
    BIRTHS_MS = 3000,    /* after a birth, expect more for this long */
    SEARCH_MS = 100,     /* between two searches in all threads */
    CALM_SEARCH_MS = 10, /* more for each process, if the sampler must cost next to nothing */
    MEMORY_MS = 5000, /* how long ended processes are remembered: their pids may still be in lists */
};

void marey__family_init(struct marey__family *family, struct marey__sampler_context *context,
                        bool has_children, uint32_t patience_ms)
{
    *family = (struct marey__family){
        .context = context,
        .has_children = has_children,
        .patience_ns = patience_ms == UINT32_MAX ? UINT64_MAX
                       : patience_ms == 0        ? 1000 * ms_ns
                                                 : patience_ms * ms_ns,
        .loadavg_fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC),
    };
}

void marey__family_fini(struct marey__family *family)
{
    for (size_t i = 0; i < family->n; i++)
        marey__target_destroy(family->context, family->members[i].target);
    marey__free(family->members);
    if (family->loadavg_fd >= 0)
        close(family->loadavg_fd);
    *family = (struct marey__family){.loadavg_fd = -1};
}

/* ---- data from /proc ---- */

/* A number that changes with exec. */
static uint64_t program_of(const struct marey__process_stat *stat)
{
    return stat->start_code ^ (stat->start_stack << 1);
}

/* Returns false if the process does not exist or is a zombie. */
static bool read_stat(pid_t pid, struct marey__process_stat *out)
{
    return marey__read_process_stat(pid, 0, out) && out->state != 'Z' && out->state != 'X';
}

/* ---- members ---- */

static struct marey__family_member *find_member(const struct marey__family *family, pid_t pid)
{
    for (size_t i = 0; i < family->n; i++)
        if (family->members[i].pid == pid)
            return &family->members[i];
    return NULL;
}

/* The lowest worker number that no living child of `parent` has. */
static int free_worker(const struct marey__family *family, pid_t parent)
{
    for (int number = 0;; number++) {
        size_t i = 0;
        while (i < family->n && !(family->members[i].parent == parent &&
                                  family->members[i].kind == MAREY__MEMBER_PYTHON &&
                                  family->members[i].worker == number))
            i++;
        if (i == family->n)
            return number;
    }
}

/* Whether it was forked from a Python and runs the same program, or was spawned by multiprocessing. */
static bool is_worker(const struct marey__remote *remote, const struct marey__target *parent)
{
    if (parent == NULL)
        return false;
    const char *command = marey__remote_process(remote)->command;
    return strcmp(command, marey__remote_process(parent->remote)->command) == 0 ||
           strstr(command, "--multiprocessing-fork") != NULL;
}

static void skip(struct marey__family *family, struct marey__family_member *member)
{
    member->kind = MAREY__MEMBER_OTHER;
    family->n_skipped += !member->is_counted;
    member->is_counted = true;
}

static void close_target(struct marey__family *family, struct marey__family_member *member)
{
    struct marey__target *target = member->target;
    if (target != NULL) {
        const struct marey_samples_counts *counts = &target->counts;
        marey__counts_add(&family->ended, counts);
        family->ended_target_ns +=
            target->at_ns > target->opened_ns ? target->at_ns - target->opened_ns : 0;
        marey__samples_set_counts(family->context->samples, target->number, counts);
    }

    marey__target_destroy(family->context, target);
    member->target = NULL;
}

static void end(struct marey__family *family, struct marey__family_member *member)
{
    if (member->kind == MAREY__MEMBER_YOUNG && member->target == NULL)
        skip(family, member); /* it never became a Python */
    close_target(family, member);
    member->kind = MAREY__MEMBER_ENDED;
    member->ended_ns = marey__clock_ns(CLOCK_MONOTONIC);
}

/* Tries to open it as a Python. Returns the status of that. */
static marey_status open_member(struct marey__family *family, struct marey__family_member *member)
{
    struct marey__family_member *parent = find_member(family, member->parent);
    const struct marey__target *from =
        parent != NULL && parent->kind == MAREY__MEMBER_PYTHON ? parent->target : NULL;
    if (from != NULL &&
        syscall(SYS_kcmp, member->pid, from->pid, KCMP_VM, 0, 0) == 0) /* shares its memory */
        return MAREY_ESTATE;
    struct marey__remote *remote;
    MAREY_TRY(marey__remote_open(member->pid, from != NULL ? from->remote : NULL, 0, &remote));
    if (!member->is_named && member->worker < 0 && is_worker(remote, from))
        member->worker = free_worker(family, member->parent);
    struct marey__target *target = NULL;
    MAREY_TRY(marey__target_create(family->context, remote, member->worker, &target));
    family->n_processes += member->target == NULL;
    close_target(family, member); /* a program that has exec'ed a Python */
    member->target = target;
    member->kind = MAREY__MEMBER_PYTHON;
    member->is_counted = true;
    return MAREY_OK;
}

/* Samples its native stacks, unless a Python is alive: then native members are launchers, compilers and similar. */
static void open_program(struct marey__family *family, struct marey__family_member *member,
                         uint64_t now_ns)
{
    struct marey__remote *remote;
    if (!family->has_programs || member->target != NULL ||
        now_ns - member->began_ns < PROGRAM_MS * ms_ns ||
        marey__family_count(family, MAREY__MEMBER_PYTHON) != 0 ||
        marey__remote_open_program(member->pid, &remote) != MAREY_OK ||
        marey__target_create(family->context, remote, -1, &member->target) != MAREY_OK)
        return;
    family->n_processes++;
    member->is_counted = true;
}

/* Opens it if possible, and updates its kind. */
static marey_status try_member(struct marey__family *family, struct marey__family_member *member,
                               uint64_t now_ns)
{
    struct marey__process_stat stat;
    if (!read_stat(member->pid, &stat)) {
        end(family, member);
        return marey__fail(MAREY_EUNAVAILABLE, "there is no process %d", (int)member->pid);
    }
    /* An exiting process reports program 0; that is not an exec. */
    const uint64_t program = program_of(&stat);
    if (program != 0 && program != member->program)
        member->is_counted = false;
    member->program = program;
    const marey_status status = open_member(family, member);
    if (status == MAREY_OK)
        return MAREY_OK;
    const uint64_t age_ns = now_ns > member->began_ns ? now_ns - member->began_ns : 0;
    /* It is there and does not exit, so it may not be read. */
    if (status == MAREY_EIO && read_stat(member->pid, &stat) && program_of(&stat) != 0)
        snprintf(family->refusal, sizeof family->refusal, "%s", marey_last_error());
    open_program(family, member, now_ns);
    const bool may_become_one =
        status == MAREY_ESTATE ? age_ns <= family->patience_ns : age_ns <= START_MS * ms_ns;
    if (!may_become_one && member->target != NULL)
        member->kind = MAREY__MEMBER_PROGRAM;
    else if (!may_become_one)
        skip(family, member);
    /* Checking a process that is not Python costs some 100 us, so do it less and less often. */
    member->retry_ns = now_ns + (status == MAREY_ESTATE ? QUICK_MS * ms_ns : age_ns);
    return status;
}

static struct marey__family_member *add_member(struct marey__family *family, pid_t pid, pid_t parent)
{
    struct marey__process_stat stat;
    struct marey__family_member *member = find_member(family, pid);
    const bool is_there = read_stat(pid, &stat);
    if (member != NULL &&
        (member->kind != MAREY__MEMBER_ENDED || !is_there || stat.start_time == member->start_time))
        return NULL;
    if (member == NULL) {
        if (!marey__grow(&family->members, &family->cap, family->n + 1, sizeof *member))
            return NULL;
        member = &family->members[family->n++];
    }
    *member = (struct marey__family_member){
        .pid = pid,
        .parent = parent,
        .worker = -1,
        .start_time = is_there ? stat.start_time : 0,
        .kind = is_there ? MAREY__MEMBER_YOUNG : MAREY__MEMBER_ENDED,
        .began_ns = marey__clock_ns(CLOCK_MONOTONIC),
    };
    member->ended_ns = member->began_ns;
    return member;
}

/* ---- children ---- */

static void take_children(struct marey__family *family, pid_t pid, pid_t tid)
{
    char text[4096];
    const size_t len = marey__read_proc(pid, tid, "children", text, sizeof text);
    for (const char *at = text, *stop = text + len; at < stop;) {
        uint64_t child;
        if (!marey__parse_number(at, (size_t)(stop - at), &child))
            return;
        at += strspn(at, "0123456789");
        if (*at != ' ' || child > INT32_MAX)
            return; /* the last number may be truncated */
        at++;
        struct marey__family_member *member = add_member(family, (pid_t)child, pid);
        if (member == NULL)
            continue;
        family->n_born++;
        family->born_ns = member->began_ns;
        if (member->kind == MAREY__MEMBER_YOUNG)
            (void)try_member(family, member, member->began_ns);
    }
}

static void take_children_of_all_threads(struct marey__family *family, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        uint64_t tid;
        if (marey__parse_number(entry->d_name, strlen(entry->d_name), &tid))
            take_children(family, pid, (pid_t)tid);
    }
    closedir(tasks);
}

/* Uses indices, because adding members may move the array. */
static void look_for_children(struct marey__family *family, bool in_all_threads)
{
    for (size_t i = 0; i < family->n; i++) {
        const pid_t pid = family->members[i].pid;
        if (family->members[i].kind == MAREY__MEMBER_ENDED)
            continue;
        if (in_all_threads) {
            take_children_of_all_threads(family, pid);
            continue;
        }
        take_children(family, pid, pid);
        const struct marey__target *target = family->members[i].target;
        for (size_t k = 0; target != NULL && k < target->n_threads; k++)
            if (target->threads[k].tid != pid && !target->threads[k].state.has_slept)
                take_children(family, pid, target->threads[k].tid);
    }
}

/* Whether processes or threads were created on this machine recently enough that their children may not be listed yet. */
static bool may_have_children(struct marey__family *family, uint64_t now_ns)
{
    char text[128];
    const ssize_t n =
        family->loadavg_fd < 0 ? 0 : pread(family->loadavg_fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return true;
    text[n] = '\0';
    const char *last = strrchr(text, ' ');
    uint64_t pid;
    if (last == NULL || !marey__parse_number(last + 1, strlen(last + 1), &pid))
        return true;
    if (pid != family->last_pid) {
        family->last_pid = pid;
        family->changed_ns = now_ns;
    }
    return now_ns - family->changed_ns < SHOW_MS * ms_ns;
}

/* ---- processes that are not Python yet ---- */

static void try_again(struct marey__family *family, uint64_t now_ns, bool is_search)
{
    for (size_t i = 0; i < family->n; i++) {
        struct marey__family_member *member = &family->members[i];
        struct marey__process_stat stat;
        if (member->kind == MAREY__MEMBER_YOUNG) {
            if (now_ns >= member->retry_ns)
                (void)try_member(family, member, now_ns);
        } else if ((member->kind == MAREY__MEMBER_OTHER || member->kind == MAREY__MEMBER_PROGRAM) &&
                   is_search) {
            if (!read_stat(member->pid, &stat) || stat.start_time != member->start_time) {
                end(family, member);
            } else if (program_of(&stat) != member->program) {
                close_target(family, member);
                member->kind = MAREY__MEMBER_YOUNG;
                member->began_ns = now_ns;
                (void)try_member(family, member, now_ns);
            }
        }
    }
}

static void forget_ended(struct marey__family *family, uint64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < family->n; i++)
        if (family->members[i].kind != MAREY__MEMBER_ENDED ||
            now_ns - family->members[i].ended_ns < MEMORY_MS * ms_ns)
            family->members[kept++] = family->members[i];
    family->n = kept;
}

/* ---- for the loop ---- */

static bool is_quick(const struct marey__family *family)
{
    if (family->born_ns != 0 && family->polled_ns - family->born_ns < BIRTHS_MS * ms_ns)
        return true;
    for (size_t i = 0; i < family->n; i++)
        if (family->members[i].kind == MAREY__MEMBER_YOUNG)
            return true;
    return false;
}

/* Not so often that searching costs more than sampling: a wakeup is more expensive than the search. */
uint64_t marey__family_due_ns(const struct marey__family *family, bool is_awake)
{
    const bool quick = is_quick(family);
    if (family->is_calm)
        return family->polled_ns + (quick ? CALM_QUICK_MS : CALM_MS) * ms_ns;
    if (is_awake && quick)
        return family->polled_ns + awake_ns;
    return family->polled_ns + (is_awake || quick ? QUICK_MS : QUIET_MS) * ms_ns;
}

void marey__family_poll(struct marey__family *family, uint64_t now_ns)
{
    const uint64_t search_ms = SEARCH_MS + (family->is_calm ? family->n * CALM_SEARCH_MS : 0);
    const bool is_search = now_ns - family->searched_ns >= search_ms * ms_ns;
    family->polled_ns = now_ns;
    if (is_search) {
        family->searched_ns = now_ns;
        forget_ended(family, now_ns);
    }
    if (family->has_children && (may_have_children(family, now_ns) || is_search))
        look_for_children(family, is_search);
    try_again(family, now_ns, is_search || is_quick(family));
}

void marey__family_recheck(struct marey__family *family, struct marey__family_member *member)
{
    const bool is_replaced = member->target->is_replaced;
    end(family, member);
    if (!is_replaced)
        return;
    member->kind = MAREY__MEMBER_YOUNG;
    member->worker = -1;
    member->began_ns = member->ended_ns;
    member->retry_ns = 0;
}

marey_status marey__family_join(struct marey__family *family, pid_t pid)
{
    struct marey__family_member *member = find_member(family, pid);
    if (member == NULL || member->kind == MAREY__MEMBER_ENDED)
        member = add_member(family, pid, 0);
    if (member == NULL || member->kind == MAREY__MEMBER_ENDED)
        return marey__fail(MAREY_EUNAVAILABLE, "there is no process %d", (int)pid);
    member->is_named = true;
    if (member->kind != MAREY__MEMBER_YOUNG)
        return MAREY_OK;
    const uint64_t now_ns = member->began_ns;
    member->began_ns -= MAREY__MIN(now_ns, (START_MS + 1) * ms_ns); /* it did not start just now */
    const marey_status status = try_member(family, member, now_ns);
    member->began_ns = now_ns;
    return status;
}

/* Whether `pid` or one of its descendants is a Python. */
static bool has_python(const struct marey__family *family, pid_t pid)
{
    for (size_t i = 0; i < family->n; i++) {
        if (family->members[i].kind != MAREY__MEMBER_PYTHON)
            continue;
        const struct marey__family_member *member = &family->members[i];
        for (size_t up = 0; member != NULL && up <= family->n; up++) {
            if (member->pid == pid)
                return true;
            member = find_member(family, member->parent);
        }
    }
    return false;
}

marey_status marey__family_name(struct marey__family *family, pid_t pid)
{
    marey_status status = marey__family_join(family, pid);
    const uint64_t begin_ns = marey__clock_ns(CLOCK_MONOTONIC);
    for (;;) {
        char why[1024];
        snprintf(why, sizeof why, "%s", marey_last_error());
        if (family->has_children)
            look_for_children(family, true);
        if (status == MAREY_OK || has_python(family, pid))
            return MAREY_OK;
        struct marey__family_member *member = find_member(family, pid);
        const uint64_t now_ns = marey__clock_ns(CLOCK_MONOTONIC);
        const bool is_young = member != NULL && member->kind == MAREY__MEMBER_YOUNG;
        if (is_young && family->patience_ns == UINT64_MAX)
            return MAREY_OK;
        if (!is_young || now_ns - begin_ns > family->patience_ns)
            return marey__fail(status == MAREY_ENOMEM ? MAREY_ENOMEM : MAREY_EUNAVAILABLE, "%s", why);
        nanosleep(&(struct timespec){.tv_nsec = (long)ms_ns}, NULL);
        status = try_member(family, member, now_ns);
    }
}

size_t marey__family_count(const struct marey__family *family, enum marey__member_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < family->n; i++)
        n += family->members[i].kind == kind;
    return n;
}

bool marey__family_is_over(const struct marey__family *family)
{
    for (size_t i = 0; i < family->n; i++) {
        const struct marey__family_member *member = &family->members[i];
        if (member->kind == MAREY__MEMBER_PYTHON || member->kind == MAREY__MEMBER_YOUNG ||
            member->kind == MAREY__MEMBER_PROGRAM ||
            (member->kind == MAREY__MEMBER_OTHER && member->is_named && family->has_children))
            return false;
    }
    return true;
}
