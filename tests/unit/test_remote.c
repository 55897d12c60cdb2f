/* core/sampler/remote with the Pythons of this machine: data read from outside matches the
 * program's output. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pythons.h"
#include "remote_image.h"

static struct python pythons[PYTHONS_MAX];
static size_t n_pythons;

/* Three functions deep, a generator between, standing at known lines. */
static const char nested[] =
    "import time, sys\n"
    "class Thing:\n"
    "    def method(self):\n"
    "        print('ready', flush=True)\n"
    "        x = 1\n"
    "        time.sleep(600)\n" /* 6 */
    "def generator():\n"
    "    yield 1\n"
    "    (lambda: Thing().method())()\n" /* 9; before 3.10 its table of lines is empty */
    "def caller():\n"
    "    for x in generator():\n" /* 11 */
    "        pass\n"
    "caller()\n"; /* 13 */

struct place {
    const char *name;
    uint32_t line;
};

/* The stack of the only thread, once its innermost frame is at `line` (0: any): a target says "ready" before it is. */
static size_t stack_at(struct marey__remote *remote, uint32_t line,
                       struct marey__remote_frame *frames, size_t cap)
{
    uint64_t interpreter, thread;
    bool is_whole;
    size_t n = 0;
    for (int tries = 0; tries < 5000; tries++) {
        assert_int_equal(marey__remote_interpreters(remote, &interpreter, 1), 1);
        assert_int_equal(marey__remote_thread_states(remote, interpreter, &thread, 1), 1);
        n = marey__remote_stack(remote, thread, frames, cap, &is_whole);
        struct marey__remote_code *const code =
            n > 0 ? marey__remote_code(remote, frames[0].code) : NULL;
        if (code != NULL && is_whole && line == 0)
            return n;
        if (code != NULL && is_whole &&
            marey__remote_line(remote, code, frames[0].instruction, frames[0].tlbc_index) == line)
            return n;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return n;
}

static void stack_of_a_sleeper_is_what_its_source_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_pythons; i++) {
        char line[64];
        struct target target = target_start(pythons[i].path, nested, line, sizeof line);
        struct marey__remote *remote = NULL;
        struct marey__remote_frame frames[16];
        assert_string_equal(line, "ready");
        const marey_status status = marey__remote_open(target.pid, NULL, 1000, &remote);
        if (status != MAREY_OK)
            fail_msg("%s: %s", pythons[i].path, marey_last_error());
        assert_int_equal(marey__remote_layout(remote)->version >> 8, pythons[i].version);
        const struct place expected[] = {
            {pythons[i].minor >= 11 ? "Thing.method" : "method", 6},
            {pythons[i].minor >= 11 ? "generator.<locals>.<lambda>" : "<lambda>", 9},
            {"generator", 9},
            {"caller", 11},
            {"<module>", 13}};
        assert_int_equal(stack_at(remote, 6, frames, 16), 5);
        for (size_t f = 0; f < 5; f++) {
            struct marey__remote_code *const code = marey__remote_code(remote, frames[f].code);
            assert_non_null(code);
            assert_string_equal(code->name, expected[f].name);
            assert_string_equal(code->file, "<string>");
            const uint32_t at =
                marey__remote_line(remote, code, frames[f].instruction, frames[f].tlbc_index);
            if (at != expected[f].line)
                fail_msg("%s: %s at %u", pythons[i].path, code->name, at);
            assert_ptr_equal(marey__remote_code(remote, frames[f].code), code);
        }
        marey__remote_close(remote);
        target_stop(&target);
    }
}

/* Names that break readers of /proc: a parenthesis, and what is not ASCII. */
static const char threads[] =
    "import threading, time, sys\n"
    "names = ['tr) S x', 'f\\xe4den \\u20ac \\U0001f600', 'a' * 300]\n"
    "ids = []\n"
    "def work():\n"
    "    ids.append((threading.current_thread().name, threading.get_native_id()))\n"
    "    time.sleep(600)\n"
    "ts = [threading.Thread(target=work, name=n, daemon=True) for n in names]\n"
    "for t in ts:\n"
    "    t.start()\n"
    "while len(ids) < 3:\n"
    "    time.sleep(0.001)\n"
    "d = dict(ids)\n"
    "print(threading.get_native_id(), *[d[n] for n in names], flush=True)\n"
    "time.sleep(600)\n";

static void threads_have_their_ids_and_names(void **state)
{
    (void)state;
    char long_name[256];
    memset(long_name, 'a', 200);
    strcpy(long_name + 200, "...");
    const char *const names[] = {"MainThread", "tr) S x",
                                 "f\xc3\xa4"
                                 "den \xe2\x82\xac \xf0\x9f\x98\x80",
                                 long_name};
    for (size_t i = 0; i < n_pythons; i++) {
        char line[128];
        int ids[4];
        bool is_seen[4] = {false};
        struct target target = target_start(pythons[i].path, threads, line, sizeof line);
        struct marey__remote *remote = NULL;
        assert_int_equal(sscanf(line, "%d %d %d %d", &ids[0], &ids[1], &ids[2], &ids[3]), 4);
        assert_int_equal(marey__remote_open(target.pid, NULL, 1000, &remote), MAREY_OK);
        uint64_t interpreter, states[8];
        assert_int_equal(marey__remote_interpreters(remote, &interpreter, 1), 1);
        assert_int_equal(marey__remote_thread_states(remote, interpreter, states, 8), 4);
        for (size_t t = 0; t < 4; t++) {
            uint8_t bytes[2048];
            char name[512];
            assert_true(marey__remote_read(remote, states[t], bytes,
                                           marey__remote_layout(remote)->thread.size));
            const pid_t tid = marey__remote_tid(remote, bytes);
            size_t which = 0;
            while (which < 4 && ids[which] != tid)
                which++;
            if (which == 4)
                fail_msg("%s: no thread %d", pythons[i].path, (int)tid);
            is_seen[which] = true;
            marey__remote_thread_name(remote, tid, states[t], name, sizeof name);
            if (strcmp(name, names[which]) != 0)
                fail_msg("%s: %s instead of %s", pythons[i].path, name, names[which]);
            /* The kernel's, where Python's is not asked for. */
            assert_true(marey__remote_thread_name(remote, tid, 0, name, sizeof name) > 0);
        }
        assert_true(is_seen[0] && is_seen[1] && is_seen[2] && is_seen[3]);
        marey__remote_close(remote);
        target_stop(&target);
    }
}

/* ---- interpreters ---- */

/* A second interpreter, in a thread of its own: each has its thread states, and the newest comes first. */
static void every_interpreter_is_walked(void **state)
{
    (void)state;
    static const char two[] = "import threading, time, sys\n"
                              "try:\n"
                              "    import _interpreters as interpreters\n"
                              "except ImportError:\n"
                              "    import _xxsubinterpreters as interpreters\n"
                              "inner = '''import time\n"
                              "def within():\n"
                              "    print('ready', flush=True)\n"
                              "    time.sleep(600)\n"
                              "within()'''\n"
                              "def run():\n"
                              "    if hasattr(interpreters, 'exec'):\n"
                              "        interpreters.exec(interpreters.create(), inner)\n"
                              "    else:\n"
                              "        interpreters.run_string(interpreters.create(), inner)\n"
                              "threading.Thread(target=run, daemon=True).start()\n"
                              "time.sleep(600)\n";
    size_t n_tried = 0;
    for (size_t i = 0; i < n_pythons; i++) {
        char line[64];
        uint64_t found[4], thread;
        bool is_whole, is_seen = false;
        struct marey__remote_frame frames[16];
        struct marey__remote *remote = NULL;
        struct target target = target_start(pythons[i].path, two, line, sizeof line);
        if (line[0] == '\0') { /* built without extension modules */
            target_stop(&target);
            continue;
        }
        n_tried++;
        assert_string_equal(line, "ready");
        assert_int_equal(marey__remote_open(target.pid, NULL, 1000, &remote), MAREY_OK);
        assert_int_equal(marey__remote_interpreters(remote, found, 4), 2);
        assert_true(marey__remote_thread_states(remote, found[0], &thread, 1) == 1);
        const size_t n = marey__remote_stack(remote, thread, frames, 16, &is_whole);
        for (size_t f = 0; f < n; f++) {
            struct marey__remote_code *const code = marey__remote_code(remote, frames[f].code);
            is_seen |= code != NULL && strcmp(code->name, "within") == 0;
        }
        if (!is_seen)
            fail_msg("%s: nothing of the second interpreter", pythons[i].path);
        marey__remote_close(remote);
        target_stop(&target);
    }
    assert_true(n_pythons == 0 || n_tried > 0);
}

/* ---- the holder of the GIL, garbage collection ---- */

/* A task with a name, one with a number, one with letters that are no ASCII, each asleep in its coroutine. */
static void tasks_have_their_names_where_python_tells(void **state)
{
    (void)state;
    static const char *const given[] = {"reader", "Task-2", "\xc3\xa4rger"};
    static const char script[] = "import asyncio, time\n"
                                 "async def work():\n"
                                 "    print('ready', flush=True)\n"
                                 "    time.sleep(600)\n"
                                 "async def main():\n"
                                 "    await asyncio.create_task(work(), name=%s)\n"
                                 "asyncio.run(main())\n";
    static const char *const names[] = {"'reader'", "None", "'\\xe4rger'"};
    for (size_t i = 0; i < n_pythons; i++)
        for (size_t k = 0; k < 3; k++) {
            char line[64], text[512], name[64];
            uint64_t interpreter, thread;
            struct marey__remote *remote = NULL;
            struct marey__remote_task task;
            snprintf(text, sizeof text, script, names[k]);
            struct target target = target_start(pythons[i].path, text, line, sizeof line);
            if (line[0] == '\0') { /* without extension modules */
                target_stop(&target);
                continue;
            }
            assert_int_equal(marey__remote_open(target.pid, NULL, 1000, &remote), MAREY_OK);
            assert_int_equal(marey__remote_interpreters(remote, &interpreter, 1), 1);
            assert_int_equal(marey__remote_thread_states(remote, interpreter, &thread, 1), 1);
            assert_int_equal(marey__remote_task(remote, thread, &task), pythons[i].minor >= 14);
            if (pythons[i].minor >= 14) {
                assert_int_equal(marey__remote_task_name(remote, &task, name, sizeof name),
                                 strlen(given[k]));
                assert_string_equal(name, given[k]);
            }
            marey__remote_close(remote);
            target_stop(&target);
        }
}

static void lock_and_collector_are_seen(void **state)
{
    (void)state;
    static const char collecting[] = "import gc, os, time\n"
                                     "def note(phase, info):\n"
                                     "    print('ready', flush=True)\n"
                                     "    while True:\n"
                                     "        pass\n"
                                     "gc.callbacks.append(note)\n"
                                     "gc.collect()\n";
    for (size_t i = 0; i < n_pythons; i++) {
        char line[64];
        uint64_t interpreter, thread, current = 0;
        uint32_t collected = 0;
        uint8_t gil[64];
        struct marey__remote *remote = NULL;
        struct target target = target_start(pythons[i].path, collecting, line, sizeof line);
        assert_int_equal(marey__remote_open(target.pid, NULL, 1000, &remote), MAREY_OK);
        const struct marey__remote_layout *const layout = marey__remote_layout(remote);
        assert_int_equal(marey__remote_interpreters(remote, &interpreter, 1), 1);
        assert_int_equal(marey__remote_thread_states(remote, interpreter, &thread, 1), 1);
        const uint64_t at = interpreter + layout->interpreter.gc_collecting;
        assert_true(marey__remote_read(remote, at, &collected, sizeof collected));
        assert_int_equal(collected, 1);
        /* Printing lets go of the lock, and the line is here before it is taken again. */
        for (int tries = 0; tries < 5000; tries++) {
            assert_true(marey__remote_read(remote, marey__remote_gil(remote, interpreter), gil,
                                           layout->gil.size));
            if (layout->is_free_threaded || marey__remote_u32(gil, layout->gil.locked) == 1)
                break;
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
        if (!layout->is_free_threaded) {
            assert_int_equal(marey__remote_u32(gil, layout->gil.locked), 1);
            assert_int_equal(marey__remote_u64(gil, layout->gil.last_holder), thread);
        } else {
            assert_int_equal(marey__remote_u32(gil, layout->gil.enabled), 0);
        }
        if (layout->runtime.tstate_current != MAREY__REMOTE_ABSENT) {
            assert_true(marey__remote_read(
                remote, marey__remote_runtime(remote) + layout->runtime.tstate_current, &current,
                sizeof current));
            assert_int_equal(current, thread);
        }
        marey__remote_close(remote);
        target_stop(&target);
    }
}

/* ---- short-lived code, and code of all sizes ---- */

/* Each line on its input makes a new function where the last one was freed; it says so and waits in it. */
static const char churning[] = "import os\n"
                               "def once(n):\n"
                               "    d = {'os': os}\n"
                               "    exec(compile('def made%03d():\\n' % n + '\\n' * (n % 7) +\n"
                               "         '    os.write(1, b\"in\\\\n\")\\n    os.read(0, 1)\\n', "
                               "'<made%03d>' % n, 'exec'), d)\n"
                               "    d['made%03d' % n]()\n"
                               "    d.clear()\n"
                               "for n in range(1000):\n"
                               "    once(n)\n";

static void reused_address_is_another_function(void **state)
{
    (void)state;
    enum { ROUNDS = 12 };
    for (size_t i = 0; i < n_pythons; i++) {
        char line[64];
        int ends[2];
        uint64_t before = 0;
        uint32_t generation = 0;
        size_t n_reused = 0;
        struct marey__remote *remote = NULL;
        assert_int_equal(pipe(ends), 0);
        const int kept = dup(STDIN_FILENO);
        dup2(ends[0], STDIN_FILENO);
        struct target target = target_start(pythons[i].path, churning, line, sizeof line);
        dup2(kept, STDIN_FILENO);
        close(kept);
        close(ends[0]);
        assert_int_equal(marey__remote_open(target.pid, NULL, 1000, &remote), MAREY_OK);
        for (unsigned n = 0; n < ROUNDS; n++) {
            char name[16], file[16], byte;
            struct marey__remote_frame frames[8];
            snprintf(name, sizeof name, "made%03u", n);
            snprintf(file, sizeof file, "<made%03u>", n);
            /* As exact as it gets: what is on the stack is looked at again before it is believed. */
            assert_int_equal(stack_at(remote, 0, frames, 8), 3);
            marey__remote_check_codes(remote, &frames[0].code, 1);
            struct marey__remote_code *const code = marey__remote_code(remote, frames[0].code);
            assert_non_null(code);
            assert_string_equal(code->name, name);
            assert_string_equal(code->file, file);
            if (code->address == before) {
                n_reused++;
                assert_int_not_equal(code->generation, generation);
            }
            before = code->address;
            generation = code->generation;
            assert_int_equal(write(ends[1], "\n", 1), 1);
            do
                assert_int_equal(read(target.out, &byte, 1), 1);
            while (byte != '\n');
        }
        print_message("%s: %zu of %d at the address of the one before\n", pythons[i].path, n_reused,
                      ROUNDS - 1);
        close(ends[1]);
        marey__remote_close(remote);
        target_stop(&target);
    }
}

/* A function of 3000 lines, a name of 100000 letters with half a surrogate in it, 3000 calls deep. */
static const char huge[] = "import sys, time\n"
                           "sys.setrecursionlimit(20000)\n"
                           "name = 'n' * 100000\n"
                           "text = 'def ' + name + '(depth):\\n' + '    x = depth + 1\\n' * 3000\n"
                           "text += '    if depth:\\n        return ' + name + '(depth - 1)\\n'\n"
                           "text += '    print(\"ready\", flush=True)\\n    time.sleep(600)\\n'\n"
                           "exec(compile(text, 'f\\udc80ile', 'exec'))\n"
                           "locals()[name](2990)\n";

static void size_costs_no_frame(void **state)
{
    (void)state;
    enum { CAP = 4096 };
    static struct marey__remote_frame frames[CAP];
    for (size_t i = 0; i < n_pythons; i++) {
        char line[64];
        struct marey__remote *remote = NULL;
        struct target target = target_start(pythons[i].path, huge, line, sizeof line);
        assert_int_equal(marey__remote_open(target.pid, NULL, 1000, &remote), MAREY_OK);
        const size_t n = stack_at(remote, 3005, frames, CAP);
        assert_int_equal(n, 2992);
        struct marey__remote_code *const code = marey__remote_code(remote, frames[0].code);
        assert_int_equal(strspn(code->name, "n"), 4000);
        assert_string_equal(code->name + 4000, "...");
        assert_string_equal(code->file, "f\xef\xbf\xbdile");
        for (size_t f = 1; f < n - 1; f++) {
            assert_ptr_equal(marey__remote_code(remote, frames[f].code), code);
            assert_int_equal(
                marey__remote_line(remote, code, frames[f].instruction, frames[f].tlbc_index), 3003);
        }
        marey__remote_close(remote);
        target_stop(&target);
    }
}

/* ---- ways to find it ---- */

/* The file that Python's state is in: the first that is called libpython, else the program. */
static const char *python_file(const struct marey__remote_maps *maps)
{
    for (size_t i = 0; i < maps->n; i++)
        if (strstr(maps->maps[i].path, "/libpython3.") != NULL)
            return maps->maps[i].path;
    size_t first = 0;
    while (maps->maps[first].path[0] != '/') /* an allocator may map something below the program */
        first++;
    return maps->maps[first].path;
}

static void memory_alone_tells_where_python_is_and_which(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_pythons; i++) {
        char line[64];
        struct target target = target_start(pythons[i].path, nested, line, sizeof line);
        struct marey__remote *remote = NULL;
        struct marey__remote_maps maps;
        struct marey__remote_found found;
        assert_int_equal(marey__remote_open(target.pid, NULL, 1000, &remote), MAREY_OK);
        const uint64_t runtime = marey__remote_runtime(remote);
        assert_int_equal(marey__remote_maps_read(target.pid, &maps), MAREY_OK);
        const char *const path = python_file(&maps);
        assert_int_equal(marey__remote_scan_version(remote, &maps, path) >> 16,
                         0x0300 | pythons[i].minor);
        if (!marey__remote_scan(remote, &maps, path, 0, &found))
            fail_msg("%s: not in %s: %s", pythons[i].path, path, marey_last_error());
        if (found.runtime != runtime)
            fail_msg("%s: %#llx instead of %#llx", pythons[i].path,
                     (unsigned long long)found.runtime, (unsigned long long)runtime);
        assert_int_equal(found.version >> 16, 0x0300 | pythons[i].minor);
        marey__remote_maps_fini(&maps);
        marey__remote_close(remote);
        target_stop(&target);
    }
}

static void what_is_no_python_is_said_so(void **state)
{
    (void)state;
    struct marey__remote *remote = NULL;
    const pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sleep", "sleep", "600", (char *)NULL);
        _exit(127);
    }
    marey_status status =
        marey__remote_open(pid, NULL, 2000, &remote); /* longer than it counts as young */
    assert_int_equal(status, MAREY_EUNAVAILABLE);
    assert_non_null(strstr(marey_last_error(), "sleep 600"));
    assert_non_null(strstr(marey_last_error(), "not a Python"));
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0)
        ;
    status = marey__remote_open(pid, NULL, 0, &remote);
    assert_int_equal(status, MAREY_EIO);
    assert_non_null(strstr(marey_last_error(), "there is no process"));
    assert_null(remote);
}

/* Refuse process_vm_readv to this process and its children, as containers do. */
static bool refuse_reading(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = MAREY__COUNT_OF(filter), .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void refused_call_leaves_the_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAREY__MIN(n_pythons, (size_t)1); i++) {
        char line[64];
        struct target target = target_start(pythons[i].path, nested, line, sizeof line);
        const pid_t pid = fork();
        if (pid ==
            0) { /* what is not as it should be is the exit status: assertions belong to the test's process */
            struct marey__remote *remote;
            struct marey__remote_frame frames[16];
            uint64_t interpreter, thread;
            bool is_whole;
            if (!refuse_reading())
                _exit(1);
            if (marey__remote_open(target.pid, NULL, 1000, &remote) != MAREY_OK)
                _exit(2);
            _exit(marey__remote_interpreters(remote, &interpreter, 1) == 1 &&
                          marey__remote_thread_states(remote, interpreter, &thread, 1) == 1 &&
                          marey__remote_stack(remote, thread, frames, 16, &is_whole) >= 4 && is_whole
                      ? 0
                      : 3);
        }
        int status;
        waitpid(pid, &status, 0);
        target_stop(&target);
        assert_int_equal(status, 0);
    }
}

/* ---- images ---- */

/* Bytes of a process, each remembered that was read. */
struct recorder {
    struct marey__remote_memory memory;
    struct recorded {
        uint64_t at;
        size_t len;
    } * ranges;
    size_t n, cap;
};

static size_t record_spans(void *self, const struct marey__remote_span *spans, size_t n)
{
    struct recorder *const recorder = self;
    const size_t done = recorder->memory.read_spans(recorder->memory.self, spans, n);
    for (size_t i = 0; i < done; i++) {
        assert_true(marey__grow(&recorder->ranges, &recorder->cap, recorder->n + 1,
                                sizeof *recorder->ranges));
        recorder->ranges[recorder->n++] = (struct recorded){spans[i].at, spans[i].n_bytes};
    }
    return done;
}

static int by_address(const void *a, const void *b)
{
    const struct recorded *const x = a, *const y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* What was read, ranges that touch joined, as an image. */
static void write_image(const struct recorder *recorder, const struct marey__remote *remote,
                        struct marey__buf *out)
{
    const uint64_t runtime = marey__remote_runtime(remote);
    const uint32_t version = marey__remote_layout(remote)->version;
    marey__buf_puts(out, "pyimage1");
    marey__buf_put(out, &runtime, 8);
    marey__buf_put(out, &version, 4);
    qsort(recorder->ranges, recorder->n, sizeof *recorder->ranges, by_address);
    for (size_t i = 0; i < recorder->n;) {
        const uint64_t at = recorder->ranges[i].at;
        uint64_t end = at;
        for (; i < recorder->n && recorder->ranges[i].at <= end; i++)
            end = MAREY__MAX(end, recorder->ranges[i].at + recorder->ranges[i].len);
        const uint32_t len = (uint32_t)(end - at);
        marey__buf_put(out, &at, 8);
        marey__buf_put(out, &len, 4);
        void *const room = marey__buf_extend(out, len);
        const struct marey__remote_span span = {at, room, len};
        assert_int_equal(recorder->memory.read_spans(recorder->memory.self, &span, 1), 1);
    }
}

/* A thread with a name, and one that handles an exception: what an image is to show. */
static const char telling[] =
    "import threading, time\n"
    "def wait():\n"
    "    time.sleep(600)\n" /* 3 */
    "def caller():\n"
    "    try:\n"
    "        1 / 0\n"
    "    except ZeroDivisionError:\n"
    "        print('ready', flush=True)\n"
    "        time.sleep(600)\n" /* 9 */
    "threading.Thread(target=wait, name='s) \\xe4', daemon=True).start()\n"
    "caller()\n"; /* 11 */

static bool has_all(const char *told)
{
    return told != NULL && strstr(told, "gil ") != NULL &&
           strstr(told, "thread MainThread in an exception\n  caller (<string>:9)\n  <module> "
                        "(<string>:11)\n  whole\n") != NULL &&
           strstr(told, "thread s) \xc3\xa4\n  wait (<string>:3)\n") != NULL;
}

static void read_whole_process(struct marey__remote *remote, struct recorder *recorder,
                               struct marey__buf *told)
{
    struct marey__remote *recorded = NULL;
    const struct marey__remote_memory memory = {record_spans, recorder};
    *recorder = (struct recorder){.memory = {marey__remote_process_spans, remote}};
    assert_int_equal(marey__remote_open_image(&memory, marey__remote_runtime(remote),
                                              marey__remote_layout(remote)->version, &recorded),
                     MAREY_OK);
    image_tell(recorded, told);
    marey__remote_close(recorded);
}

static void keep_image(const struct python *python, bool is_free_threaded,
                       const struct marey__buf *bytes)
{
    char path[512];
    const char *const folder = getenv("MAREY_WRITE_IMAGES");
    if (folder == NULL)
        return;
    snprintf(path, sizeof path, "%s/py3%u%s", folder, python->minor, is_free_threaded ? "t" : "");
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes->data, 1, bytes->len, file), bytes->len);
    fclose(file);
}

/* Stopped, so that nothing moves; read, remembered, and read again out of the image. */
static void image_says_what_the_process_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_pythons; i++) {
        char line[64];
        const char *const arguments[] = {pythons[i].path, "-S", "-c", telling, NULL};
        struct target target = target_start_program(arguments, line, sizeof line);
        struct marey__remote *remote = NULL, *again = NULL;
        struct marey__buf told = {0}, told_again = {0}, bytes = {0};
        struct recorder recorder = {0};
        struct image image;
        assert_int_equal(marey__remote_open(target.pid, NULL, 1000, &remote), MAREY_OK);
        for (int tries = 0; tries < 3000 && !has_all(told.data); tries++) {
            kill(target.pid, SIGCONT);
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            kill(target.pid, SIGSTOP);
            marey__free(recorder.ranges);
            marey__buf_fini(&told);
            told = (struct marey__buf){0};
            read_whole_process(remote, &recorder, &told);
        }
        if (!has_all(told.data))
            fail_msg("%s: %s", pythons[i].path, told.data);
        write_image(&recorder, remote, &bytes);
        assert_true(image_parse((const uint8_t *)bytes.data, bytes.len, &image));
        const struct marey__remote_memory from_image = image_memory(&image);
        if (marey__remote_open_image(&from_image, image.runtime, image.version, &again) != MAREY_OK)
            fail_msg("%s: %s", pythons[i].path, marey_last_error());
        image_tell(again, &told_again);
        assert_string_equal(told_again.data, told.data);
        keep_image(&pythons[i], marey__remote_layout(remote)->is_free_threaded, &bytes);
        marey__free(image.pieces);
        marey__free(recorder.ranges);
        marey__buf_fini(&told);
        marey__buf_fini(&told_again);
        marey__buf_fini(&bytes);
        marey__remote_close(again);
        marey__remote_close(remote);
        target_stop(&target);
    }
}

static int find_pythons(void **state)
{
    (void)state;
    n_pythons = pythons_find(pythons, PYTHONS_MAX);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stack_of_a_sleeper_is_what_its_source_says),
        cmocka_unit_test(threads_have_their_ids_and_names),
        cmocka_unit_test(every_interpreter_is_walked),
        cmocka_unit_test(tasks_have_their_names_where_python_tells),
        cmocka_unit_test(lock_and_collector_are_seen),
        cmocka_unit_test(reused_address_is_another_function),
        cmocka_unit_test(size_costs_no_frame),
        cmocka_unit_test(memory_alone_tells_where_python_is_and_which),
        cmocka_unit_test(what_is_no_python_is_said_so),
        cmocka_unit_test(refused_call_leaves_the_file),
        cmocka_unit_test(image_says_what_the_process_says),
    };
    return cmocka_run_group_tests(tests, find_pythons, NULL);
}
