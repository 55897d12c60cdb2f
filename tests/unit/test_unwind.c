/* Native frames of a child of this test, whose functions are known; parts that need no process on made-up input. */
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampler/unwind/internal.h"

/* ---- functions to be found in ---- */

#if defined(__clang__)
#define KEPT __attribute__((noinline, used))
#else
#define KEPT __attribute__((noinline, noclone, used))
#endif

int marey_test_wait(void);
KEPT int marey_test_wait(void)
{
    return pause() + 1;
}

int marey_test_inner(int (*wait)(void));
KEPT int marey_test_inner(int (*wait)(void))
{
    return wait() + 1; /* the addition: it is no jump */
}

int marey_test_outer(int (*wait)(void));
KEPT int marey_test_outer(int (*wait)(void))
{
    return marey_test_inner(wait) + 1;
}

static volatile int n_signals;

static void on_signal(int number)
{
    n_signals =
        marey_test_outer(marey_test_wait) + number; /* the store behind it: it is no jump either */
}

int marey_test_signal(void);
KEPT int marey_test_signal(void)
{
    signal(SIGUSR1, on_signal);
    return raise(SIGUSR1) + 1;
}

#if defined(__x86_64__)
/* Without call frame information, as in MKL: one frame by its first instructions, one by rbp, one to be searched for. */
int marey_test_bare(void);
int marey_test_bare_pointer(void);
int marey_test_bare_odd(void);
__asm__(
    ".text\n"
    ".type marey_test_bare,@function\n"
    "marey_test_bare:\n"
    "  endbr64\n  push %r12\n  push %rbp\n  sub $0x98,%rsp\n  mov %rbx,8(%rsp)\n  xor %ebp,%ebp\n"
    "  call marey_test_wait\n"
    "  mov 8(%rsp),%rbx\n  add $0x98,%rsp\n  pop %rbp\n  pop %r12\n  ret\n"
    ".size marey_test_bare,.-marey_test_bare\n"
    ".type marey_test_bare_pointer,@function\n"
    "marey_test_bare_pointer:\n"
    "  push %rbp\n  mov %rsp,%rbp\n  and $-64,%rsp\n  sub $0x140,%rsp\n"
    "  call marey_test_wait\n"
    "  leave\n  ret\n"
    ".size marey_test_bare_pointer,.-marey_test_bare_pointer\n"
    ".type marey_test_bare_odd,@function\n"
    "marey_test_bare_odd:\n" /* nothing that was left on the stack, and no frame pointer, leads on */
    "  push $0\n  push $0\n  push $0\n  push $0\n  push %rbp\n  xor %ebp,%ebp\n"
    "  call marey_test_wait\n"
    "  pop %rbp\n  add $0x20,%rsp\n  ret\n"
    ".size marey_test_bare_odd,.-marey_test_bare_odd\n");
#endif

/* ---- a child that waits in them ---- */

struct child {
    pid_t pid;
    struct marey__unwind_input input;
    uint8_t stack[MAREY__UNWIND_MAX_STACK];
    struct marey__native_frame frames[MAREY__UNWIND_MAX_FRAMES];
    size_t n;
    bool is_complete;
};

static void child_start(struct child *child, int (*wait)(void))
{
    if (getenv("MAREY_VALGRIND") != NULL)
        skip(); /* the registers of a child are valgrind's */
    memset(child, 0, sizeof *child);
    child->pid = fork();
    assert_true(child->pid >= 0);
    if (child->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)marey_test_outer(wait);
        _exit(0);
    }
    char text[64];
    while (strcmp(marey__wait_text(marey__wait_reason(child->pid, child->pid), text, sizeof text),
                  "wait for a signal") != 0)
        usleep(1000);
}

static void child_end(struct child *child)
{
    kill(child->pid, SIGKILL);
    assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
}

/* Registers and stack, as the sampler takes them. */
static void child_copy(struct child *child, struct marey__unwind *unwind)
{
    assert_int_equal(ptrace(PTRACE_SEIZE, child->pid, NULL, NULL), 0);
    assert_int_equal(ptrace(PTRACE_INTERRUPT, child->pid, NULL, NULL), 0);
    assert_int_equal(waitpid(child->pid, NULL, __WALL), child->pid);
    assert_true(marey__unwind_registers(child->pid, &child->input));
    const uint64_t sp = child->input.registers[MAREY__UNWIND_SP];
    const size_t size = marey__unwind_stack_size(unwind, sp, sizeof child->stack);
    const struct iovec ours = {child->stack, size}, theirs = {(void *)(uintptr_t)sp, size};
    assert_true(size > 0);
    assert_int_equal(process_vm_readv(child->pid, &ours, 1, &theirs, 1, 0), size);
    assert_int_equal(ptrace(PTRACE_DETACH, child->pid, NULL, NULL), 0);
    child->input.stack = child->stack;
    child->input.stack_at = sp;
    child->input.n_stack = size;
}

static size_t find(const struct child *child, struct marey__unwind *unwind, const char *name)
{
    for (size_t i = 0; i < child->n; i++)
        if (strcmp(marey__unwind_symbol(unwind, child->frames[i].pc)->name, name) == 0)
            return i;
    return SIZE_MAX;
}

static void walk(struct child *child, struct marey__unwind *unwind)
{
    child->n = marey__unwind_stack(unwind, &child->input, child->frames, MAREY__UNWIND_MAX_FRAMES,
                                   &child->is_complete);
}

/* The three functions, next to one another, and whatever is outside of them up to the start of the program. */
static void expect_whole(const struct child *child, struct marey__unwind *unwind,
                         const char *innermost)
{
    const size_t at = find(child, unwind, innermost);
    assert_true(at != SIZE_MAX);
    assert_int_equal(find(child, unwind, "marey_test_inner"), at + 1);
    assert_int_equal(find(child, unwind, "marey_test_outer"), at + 2);
    assert_true(find(child, unwind, "main") != SIZE_MAX);
    assert_true(child->is_complete);
    for (size_t i = 1; i < child->n; i++)
        assert_true(child->frames[i].sp >= child->frames[i - 1].sp);
}

static struct marey__unwind_files *files;
static struct marey__unwind *unwind;
static struct child child;

static void open_child(int (*wait)(void))
{
    child_start(&child, wait);
    assert_int_equal(marey__unwind_files_create(&files), MAREY_OK);
    assert_int_equal(marey__unwind_create(child.pid, files, &unwind), MAREY_OK);
    child_copy(&child, unwind);
    walk(&child, unwind);
}

static void close_child(void)
{
    marey__unwind_destroy(unwind);
    marey__unwind_files_destroy(files);
    child_end(&child);
}

static void a_stack_reaches_the_start_of_the_program(void **state)
{
    (void)state;
    if (!marey__unwind_has_rules())
        skip();
    open_child(marey_test_wait);
    expect_whole(&child, unwind, "marey_test_wait");
    const struct marey__native_symbol *const symbol =
        marey__unwind_symbol(unwind, child.frames[find(&child, unwind, "marey_test_wait")].pc);
    assert_string_equal(symbol->library, "test_unwind");
    assert_int_equal(symbol->role, MAREY__NATIVE_CODE);
    for (size_t i = 1; i < child.n; i++)
        assert_int_equal(child.frames[i].by, MAREY__BY_RULE);
    close_child();
}

static void the_second_walk_asks_nobody(void **state)
{
    (void)state;
    struct marey__unwind_counts first, second;
    open_child(marey_test_wait);
    marey__unwind_counts(unwind, &first);
    walk(&child, unwind);
    marey__unwind_counts(unwind, &second);
    assert_true(first.n_asked > 0 || !marey__unwind_has_rules());
    assert_int_equal(second.n_asked, first.n_asked);
    assert_int_equal(second.n_maps_reads, first.n_maps_reads);
    assert_int_equal(second.n_stacks, 2);

    /* Another process with the same programs: its addresses are new, the rules are not. */
    struct marey__unwind *other;
    assert_int_equal(marey__unwind_create(child.pid, files, &other), MAREY_OK);
    walk(&child, other);
    marey__unwind_counts(other, &second);
    assert_int_equal(second.n_asked, 0);
    marey__unwind_destroy(other);
    close_child();
}

/* The rules of all addresses of a function, asked for in an order; each is the same in another one. */
static void rules_do_not_depend_on_what_was_asked_before(void **state)
{
    (void)state;
    enum { N = 2048 };
    static struct marey__cfi_rule first[N];
    Dl_info library;
    assert_int_not_equal(dladdr((void *)(uintptr_t)marey__demangle, &library), 0);
    const int fd = open(library.dli_fname, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (unsigned step = 1; step < N; step += 722) { /* 1, 723, 1445: odd, so that each comes once */
        struct marey__unwind_files *own;
        bool has_asked;
        assert_int_equal(marey__unwind_files_create(&own), MAREY_OK);
        struct marey__program *const program = marey__program_open(own, fd, "test");
        assert_non_null(program);
        marey__program_read_symbols(program, NULL);
        uint64_t begin = 0;
        for (size_t i = 0; i < program->symbols[0].n; i++)
            if (strcmp(program->symbols[0].symbols[i].name, "marey__demangle") == 0)
                begin = program->symbols[0].symbols[i].begin;
        assert_true(begin != 0);
        for (unsigned i = 0; i < N; i++) {
            const unsigned at = i * step % N;
            const uint32_t rule = marey__program_rule(own, program, begin + at, &has_asked);
            const struct marey__cfi_rule found =
                rule != 0 ? own->rules.rules[rule - 1] : (struct marey__cfi_rule){0};
            if (step == 1)
                first[at] = found;
            assert_int_equal(found.cfa_offset, first[at].cfa_offset);
            assert_int_equal(found.n_saved, first[at].n_saved);
        }
        marey__unwind_files_destroy(own);
    }
    close(fd);
}

static void a_signal_handler_leads_to_what_it_interrupted(void **state)
{
    (void)state;
    if (!marey__unwind_has_rules())
        skip();
    open_child(marey_test_signal);
    const size_t handler = find(&child, unwind, "on_signal");
    const size_t below = find(&child, unwind, "marey_test_signal");
    assert_true(handler != SIZE_MAX && below != SIZE_MAX && handler < below);
    assert_true(child.is_complete);
    close_child();
}

#if defined(__x86_64__)
static void expect_found_by(int (*wait)(void), const char *name, enum marey__unwind_by by)
{
    open_child(wait);
    expect_whole(&child, unwind, name);
    assert_int_equal(child.frames[find(&child, unwind, name) + 1].by, by);
    close_child();
}

static void functions_without_rules_are_read_followed_or_searched(void **state)
{
    (void)state;
    if (!marey__unwind_has_rules())
        skip();
    expect_found_by(marey_test_bare, "marey_test_bare", MAREY__BY_PROLOGUE);
    expect_found_by(marey_test_bare_pointer, "marey_test_bare_pointer", MAREY__BY_FRAME_POINTER);
    expect_found_by(marey_test_bare_odd, "marey_test_bare_odd", MAREY__BY_SCAN);
}
#endif

static void a_copy_that_is_too_small_is_no_whole_stack(void **state)
{
    (void)state;
    open_child(marey_test_wait);
    const size_t whole = child.n;
    for (size_t n = 0; n < child.input.n_stack; n = n * 2 + 8) {
        child.input.n_stack = n;
        walk(&child, unwind);
        assert_true(child.n >= 1 && child.n <= whole);
        assert_true(!child.is_complete || child.n == whole);
    }
    close_child();
}

static void the_kernels_own_library_has_names(void **state)
{
    (void)state;
    const uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
    if (vdso == 0)
        skip();
    struct marey__program *program = NULL;
    uint64_t address;
    open_child(marey_test_wait);
    program = marey__unwind_program_at(unwind, vdso, &address);
    assert_non_null(program); /* The child was forked: the same address. */
    marey__program_read_symbols(program, &unwind->source);
    assert_true(program->symbols[0].n > 0);
    const uint64_t begin = program->symbols[0].symbols[0].begin;
    assert_string_not_equal(marey__unwind_symbol(unwind, vdso + begin)->name, "[unknown]");
    assert_string_equal(marey__unwind_symbol(unwind, vdso + begin)->library, "[vdso]");
    close_child();
}

static int fake_map(void *self, const struct marey__remote_map *map);

static void programs_that_cannot_be_opened_are_read_from_memory(void **state)
{
    (void)state;
    struct marey__unwind_source source;
    if (!marey__unwind_has_rules())
        skip();
    child_start(&child, marey_test_wait);
    assert_int_equal(marey__unwind_source_open(child.pid, &source), MAREY_OK);
    source.open_map = fake_map; /* opens none */
    assert_int_equal(marey__unwind_files_create(&files), MAREY_OK);
    assert_int_equal(marey__unwind_create_from(&source, files, &unwind), MAREY_OK);
    child_copy(&child, unwind);
    walk(&child, unwind);
    assert_true(child.is_complete);
    assert_true(child.n > 5);
    assert_true(find(&child, unwind, "marey_test_inner") == SIZE_MAX); /* no names, but places */
    assert_memory_equal(marey__unwind_symbol(unwind, child.frames[1].pc)->name, "[test_unwind+0x",
                        15);
    for (size_t i = 1; i < child.n; i++)
        assert_int_equal(child.frames[i].by, MAREY__BY_RULE);
    close_child();
}

static void without_memory_there_are_fewer_frames_and_no_leak(void **state)
{
    (void)state;
    child_start(&child, marey_test_wait);
    assert_int_equal(marey__unwind_files_create(&files), MAREY_OK);
    assert_int_equal(marey__unwind_create(child.pid, files, &unwind), MAREY_OK);
    child_copy(&child, unwind);
    walk(&child, unwind);
    const size_t whole = child.n;
    const bool is_whole = child.is_complete;
    marey__unwind_destroy(unwind);
    marey__unwind_files_destroy(files);
    bool is_done = false;
    for (uint64_t nth = 1; !is_done; nth++) {
        files = NULL;
        unwind = NULL;
        child.n = 0;
        marey__alloc_fail_nth(nth);
        marey_status status = marey__unwind_files_create(&files);
        if (status == MAREY_OK)
            status = marey__unwind_create(child.pid, files, &unwind);
        if (status == MAREY_OK) {
            walk(&child, unwind);
            for (size_t i = 0; i < child.n; i++)
                assert_non_null(marey__unwind_symbol(unwind, child.frames[i].pc));
        }
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM || status == MAREY_EUNAVAILABLE);
        assert_true(nth < 10000);
        /* All is as it was, and so no allocation was left to fail. */
        is_done =
            status == MAREY_OK && child.n == whole && child.is_complete == is_whole && nth > 500;
        marey__unwind_destroy(unwind);
        marey__unwind_files_destroy(files);
    }
    child_end(&child);
}

/* ---- mappings ---- */

static void lines_that_are_no_mappings_are_left_out(void **state)
{
    (void)state;
    char text[] = "00400000-00401000 r-xp 00000000 08:01 123   /usr/bin/a b (deleted)\n"
                  "zzz\n"
                  "00402000-00401000 r-xp 00000000 08:01 123 /backwards\n"
                  "00300000-00301000 r-xp 00000000 08:01 123 /out of order\n"
                  "fffffffffffffffff-1 r-xp 0 0:0 1 /too large\n"
                  "7f0000000000-7f0000001000 rw-p 00002000 00:00 0 \n"
                  "7f0000002000-7f0000003000 r-xp 00000000 00:00 0 [vdso]\n"
                  "7f0000004000-7f0000005000 r-xp 0000";
    struct marey__remote_maps parsed = {0};
    marey__buf_put(&parsed.text, text, sizeof text - 1);
    assert_true(marey__remote_maps_parse(&parsed));
    assert_int_equal(parsed.n, 3);
    const struct marey__remote_map *const maps = parsed.maps;
    assert_string_equal(maps[0].path, "/usr/bin/a b");
    assert_true(maps[0].is_deleted);
    assert_true(maps[0].is_executable);
    assert_int_equal(maps[0].inode, 123);
    assert_string_equal(maps[1].path, "");
    assert_int_equal(maps[1].offset, 0x2000);
    assert_false(maps[1].is_executable);
    assert_string_equal(maps[2].path, "[vdso]");
    marey__remote_maps_fini(&parsed);
}

/* ---- a made-up process: its mappings and its perf map ---- */

static const char *fake_maps_text, *fake_perf_text;

static bool fake_maps(void *self, struct marey__buf *to)
{
    (void)self;
    marey__buf_puts(to, fake_maps_text);
    return !to->failed;
}
static bool fake_memory(void *self, uint64_t at, void *to, size_t n_bytes)
{
    (void)self, (void)at, (void)to, (void)n_bytes;
    return false;
}
static int fake_map(void *self, const struct marey__remote_map *map)
{
    (void)self, (void)map;
    return -1;
}
static int fake_path(void *self, const char *path)
{
    (void)self, (void)path;
    return -1;
}
static int fake_perf(void *self)
{
    (void)self;
    FILE *const file = tmpfile();
    assert_non_null(file);
    fputs(fake_perf_text, file);
    fflush(file);
    const int fd = dup(fileno(file));
    fclose(file);
    return fd;
}
static void fake_close(void *self)
{
    (void)self;
}

static void open_fake(void)
{
    const struct marey__unwind_source source = {.maps = fake_maps,
                                                .memory = fake_memory,
                                                .open_map = fake_map,
                                                .open_path = fake_path,
                                                .open_perf_map = fake_perf,
                                                .close = fake_close};
    assert_int_equal(marey__unwind_files_create(&files), MAREY_OK);
    assert_int_equal(marey__unwind_create_from(&source, files, &unwind), MAREY_OK);
}

static void close_fake(void)
{
    marey__unwind_destroy(unwind);
    marey__unwind_files_destroy(files);
}

static void a_stack_that_is_new_is_copied_to_the_end_of_its_page(void **state)
{
    (void)state;
    fake_maps_text = "10000-20000 rwxp 00000000 00:00 0 \n";
    fake_perf_text = "";
    open_fake();
    assert_int_equal(marey__unwind_stack_size(unwind, 0x10ff0, 65536), 0xf010);
    assert_int_equal(marey__unwind_stack_size(unwind, 0x10ff0, 64), 64);
    assert_int_equal(marey__unwind_stack_size(unwind, 0x90ff0, 65536), 16);
    const struct marey__unwind_input input = {.registers = {[MAREY__UNWIND_SP] = 0x90ff0}};
    struct marey__native_frame frames[4];
    bool is_complete;
    fake_maps_text = "10000-20000 rwxp 00000000 00:00 0 \n90000-a0000 rw-p 00000000 00:00 0 \n";
    usleep(30000); /* they are not read all the time */
    assert_int_equal(marey__unwind_stack(unwind, &input, frames, 4, &is_complete), 1);
    assert_int_equal(marey__unwind_stack_size(unwind, 0x90ff0, 65536), 0xf010);
    close_fake();
}

static void generated_code_has_the_names_of_its_perf_map(void **state)
{
    (void)state;
    fake_maps_text = "10000-20000 rwxp 00000000 00:00 0 \n";
    fake_perf_text =
        "10100 40 py::train:/a.py\n10140 10 second\nnonsense\n10110 8 overlaps\n10200 10 cut off";
    open_fake();
    assert_string_equal(marey__unwind_symbol(unwind, 0x10120)->name, "py::train:/a.py");
    assert_string_equal(marey__unwind_symbol(unwind, 0x10120)->library, "[jit]");
    assert_string_equal(marey__unwind_symbol(unwind, 0x10140)->name, "second");
    assert_string_equal(marey__unwind_symbol(unwind, 0x10205)->name, "[unknown]");
    assert_string_equal(marey__unwind_symbol(unwind, 0x90000)->name, "[unknown]");
    close_fake();
}

/* A file of 8 TB without a single line: only so much of it is read. */
static int endless_perf(void *self)
{
    (void)self;
    FILE *const file = tmpfile();
    assert_non_null(file);
    const int fd = dup(fileno(file));
    if (ftruncate(fd, (off_t)8 << 40) != 0) /* a file system that has no such files */
        assert_int_equal(ftruncate(fd, (off_t)8 << 30), 0);
    fclose(file);
    return fd;
}

static void a_perf_map_without_end_is_read_for_a_while(void **state)
{
    const struct marey__unwind_source source = {.maps = fake_maps,
                                                .memory = fake_memory,
                                                .open_map = fake_map,
                                                .open_path = fake_path,
                                                .open_perf_map = endless_perf,
                                                .close = fake_close};
    (void)state;
    fake_maps_text = "10000-20000 rwxp 00000000 00:00 0 \n";
    assert_int_equal(marey__unwind_files_create(&files), MAREY_OK);
    assert_int_equal(marey__unwind_create_from(&source, files, &unwind), MAREY_OK);
    assert_string_equal(marey__unwind_symbol(unwind, 0x10120)->name, "[unknown]");
    assert_int_equal(unwind->jit_at, 64 << 20);
    close_fake();
}

static void a_perf_map_counts_when_the_process_or_root_wrote_it(void **state)
{
    struct marey__unwind_source source;
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    assert_int_equal(marey__unwind_source_open(getpid(), &source), MAREY_OK);
    unlink(path);
    assert_int_equal(source.open_perf_map(source.self), -1);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    close(fd);
    assert_true((fd = source.open_perf_map(source.self)) >= 0);
    close(fd);
    if (chown(path, 12345, (gid_t)-1) == 0) /* only root can make somebody else's */
        assert_int_equal(source.open_perf_map(source.self), -1);
    unlink(path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(source.open_perf_map(source.self), -1);
    unlink(path);
    assert_int_equal(mkfifo(path, 0666), 0);
    assert_int_equal(source.open_perf_map(source.self), -1);
    unlink(path);
    source.close(source.self);
}

/* ---- merging ---- */

/* Addresses in a perf map whose names have the roles that are wanted: e loop, p plumbing, s start, n any other. */
static size_t make_frames(const char *roles, struct marey__native_frame *frames)
{
    static const char letters[] = "epsn";
    const size_t n = strlen(roles);
    for (size_t i = 0; i < n; i++)
        frames[i] = (struct marey__native_frame){
            .pc = 0x10000 + 0x100 * (uint64_t)(strchr(letters, roles[i]) - letters),
            .sp = 0x1000 * (i + 1),
            .cfa = 0x1000 * (i + 2),
            .is_eval = roles[i] == 'e'};
    return n;
}

/* What becomes of them, innermost first: Python's frames as digits, native ones as the letters above. */
static void expect_merged(const char *roles, bool is_complete, const struct marey__unwind_run *runs,
                          size_t n_runs, const char *expected, bool expects_mismatch)
{
    struct marey__native_frame frames[32];
    struct marey__unwind_merged merged[64];
    char text[65] = "";
    bool is_mismatch;
    const struct marey__unwind_merge in = {.native = frames,
                                           .n_native = make_frames(roles, frames),
                                           .is_complete = is_complete,
                                           .runs = runs,
                                           .n_runs = n_runs};
    const size_t n = marey__unwind_merge(unwind, &in, merged, &is_mismatch);
    assert_true(n < sizeof text);
    for (size_t i = 0; i < n; i++)
        text[i] = merged[i].is_python ? (char)('0' + merged[i].index) : roles[merged[i].index];
    assert_string_equal(text, expected);
    assert_int_equal(is_mismatch, expects_mismatch);
}
#define RUNS(...)                                                                                  \
    (const struct marey__unwind_run[]){__VA_ARGS__},                                               \
        sizeof((const struct marey__unwind_run[]){__VA_ARGS__}) / sizeof(struct marey__unwind_run)

static void pythons_frames_stand_where_their_loop_is(void **state)
{
    (void)state;
    fake_maps_text = "10000-20000 rwxp 00000000 00:00 0 \n";
    fake_perf_text = "10000 100 _PyEval_EvalFrameDefault.cold\n10100 100 _PyObject_Call\n10200 100 "
                     "start_thread\n"
                     "10300 100 at::add\n";
    open_fake();
    /* By name: one run for each loop. */
    expect_merged("nnepeps", true, RUNS({1, 0}, {1, 0}), "nn01", false);
    expect_merged("nepepss", true, RUNS({3, 0}, {2, 0}), "n01234", false);
    expect_merged("nepnes", true, RUNS({1, 0}, {2, 0}), "n0n12", false);
    /* The innermost loop has just been entered, or has just left its frame. */
    expect_merged("eepes", true, RUNS({1, 0}, {2, 0}), "012", false);
    expect_merged("nes", true, RUNS({1, 0}, {2, 0}), "0n12", false);
    /* What cannot be is flagged, and nothing of Python is lost. */
    expect_merged("neeees", true, RUNS({1, 0}), "n0", true);
    expect_merged("nns", true, RUNS({1, 0}, {1, 0}, {1, 0}), "012nn", true);
    /* A stack that was cut: the outer frames follow. */
    expect_merged("nne", false, RUNS({1, 0}, {1, 0}, {1, 0}), "nn012", false);
    expect_merged("", false, RUNS({2, 0}), "01", false);
    /* No Python at all: all is shown. */
    expect_merged("nps", true, NULL, 0, "nps", false);
    close_fake();
}

static void anchors_tell_without_names(void **state)
{
    (void)state;
    fake_maps_text = "10000-20000 rwxp 00000000 00:00 0 \n";
    fake_perf_text =
        "10000 100 _PyEval_EvalFrameDefault\n10100 100 _PyObject_Call\n10200 100 start_thread\n"
        "10300 100 at::add\n";
    open_fake();
    /* The n at 0x2000 and 0x4000 are loops of a stripped interpreter. */
    expect_merged("nnpnps", true, RUNS({2, 0x2010}, {1, 0x4ff8}), "n012", false);
    /* A loop without a frame yet, and one whose shim has no frame above it. */
    expect_merged("epes", true, RUNS({0, 0x1008}, {1, 0x3010}), "0", false);
    expect_merged("epes", true, RUNS({1, 0x3010}), "0", false);
    /* An anchor that is on no frame: by name, then. */
    expect_merged("nepes", true, RUNS({1, 0x99999}, {1, 0x4010}), "n01", false);
    close_fake();
}

/* ---- names ---- */

static void expect_name(const char *name, const char *expected)
{
    char text[512];
    marey__demangle(name, text, sizeof text);
    assert_string_equal(text, expected);
}

static void names_are_readable(void **state)
{
    (void)state;
    expect_name("plain", "plain");
    expect_name("plain.cold", "plain");
    expect_name("plain.part.0.constprop.1", "plain");
    expect_name(".hidden", ".hidden");
    expect_name("with\x01\xff", "with??");
    expect_name("", "");
    expect_name("_Z", "_Z");
    expect_name("_ZN2at6native3addERKNS_6TensorE", "at::native::add");
    expect_name("_ZN2at6native3addERKNS_6TensorE.cold", "at::native::add");
    expect_name("_ZNK2at4Node3getEv", "at::Node::get");
    expect_name("_ZZN1a1bEvENKUlvE_clEv", "a::b()::{lambda()#1}::operator()");
    char small[8];
    marey__demangle("_ZN2at6native3addERKNS_6TensorE", small, sizeof small);
    assert_string_equal(small, "at::nat");
}

static void functions_of_python_have_roles(void **state)
{
    (void)state;
    bool is_outermost;
    assert_int_equal(marey__native_role("_PyEval_EvalFrameDefault", &is_outermost),
                     MAREY__NATIVE_EVAL);
    assert_int_equal(marey__native_role("_PyEval_Vector", &is_outermost), MAREY__NATIVE_PLUMBING);
    assert_int_equal(marey__native_role("builtin_sum", &is_outermost), MAREY__NATIVE_CODE);
    assert_int_equal(marey__native_role("main", &is_outermost), MAREY__NATIVE_START);
    assert_false(is_outermost);
    assert_int_equal(marey__native_role("mainly", &is_outermost), MAREY__NATIVE_CODE);
    assert_int_equal(marey__native_role("__GI___clone3", &is_outermost), MAREY__NATIVE_START);
    assert_true(is_outermost);
}

/* ---- waits ---- */

static void expect_wait(uint32_t wait, const char *expected)
{
    char text[64];
    assert_string_equal(marey__wait_text(wait, text, sizeof text), expected);
}

static void waits_have_words(void **state)
{
    (void)state;
    expect_wait(0, "");
    expect_wait(marey__wait_parse("running\n", NULL), "");
    expect_wait(marey__wait_parse("", NULL), "");
    expect_wait(marey__wait_parse("-1 0x7ffd 0x7f00\n", NULL), "page fault");
    expect_wait(marey__wait_parse("4000 0x0 0x0\n", NULL), "system call 4000");
    expect_wait(marey__wait_parse("99999999999999999999999", NULL), "system call 65535");
#if defined(__x86_64__)
    expect_wait(marey__wait_parse("202 0x7f 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f00\n", NULL), "futex");
    expect_wait(marey__wait_parse("0 0x3 0x0 0x0\n", "socket:[123]"), "read socket");
    expect_wait(marey__wait_parse("0 0x3 0x0 0x0\n", "/data/train.bin"), "read file");
    expect_wait(marey__wait_parse("0 0x3 0x0 0x0\n", ""), "read");
    expect_wait(marey__wait_parse("16 0x3 0x0 0x0\n", "/dev/nvidiactl"), "ioctl nvidia");
    expect_wait(marey__wait_parse("202 0x3 0x0 0x0\n", "/dev/nvidiactl"), "futex");
    expect_wait(marey__wait_parse("219 0x3 0x0 0x0\n", NULL), "interrupted wait");
#endif
    expect_wait(0xfffffffeu, "system call 65535");
}

static void a_reader_of_a_pipe_waits_for_it(void **state)
{
    (void)state;
    int ends[2];
    char text[64], byte;
    if (getenv("MAREY_VALGRIND") != NULL)
        skip(); /* a child waits elsewhere */
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        const ssize_t n = read(ends[0], &byte, 1);
        _exit(n == 0 ? 0 : 1);
    }
    while (strcmp(marey__wait_text(marey__wait_reason(pid, pid), text, sizeof text), "read pipe") != 0)
        usleep(1000);
    close(ends[1]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(ends[0]);
    assert_int_equal(marey__wait_reason(pid, pid), 0); /* gone */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_reaches_the_start_of_the_program),
        cmocka_unit_test(the_second_walk_asks_nobody),
        cmocka_unit_test(rules_do_not_depend_on_what_was_asked_before),
        cmocka_unit_test(a_signal_handler_leads_to_what_it_interrupted),
#if defined(__x86_64__)
        cmocka_unit_test(functions_without_rules_are_read_followed_or_searched),
#endif
        cmocka_unit_test(a_copy_that_is_too_small_is_no_whole_stack),
        cmocka_unit_test(the_kernels_own_library_has_names),
        cmocka_unit_test(programs_that_cannot_be_opened_are_read_from_memory),
        cmocka_unit_test(without_memory_there_are_fewer_frames_and_no_leak),
        cmocka_unit_test(lines_that_are_no_mappings_are_left_out),
        cmocka_unit_test(a_stack_that_is_new_is_copied_to_the_end_of_its_page),
        cmocka_unit_test(generated_code_has_the_names_of_its_perf_map),
        cmocka_unit_test(a_perf_map_without_end_is_read_for_a_while),
        cmocka_unit_test(a_perf_map_counts_when_the_process_or_root_wrote_it),
        cmocka_unit_test(pythons_frames_stand_where_their_loop_is),
        cmocka_unit_test(anchors_tell_without_names),
        cmocka_unit_test(names_are_readable),
        cmocka_unit_test(functions_of_python_have_roles),
        cmocka_unit_test(waits_have_words),
        cmocka_unit_test(a_reader_of_a_pipe_waits_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
