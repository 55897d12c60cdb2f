/* core/remote against the Pythons of this machine: what is read from outside is what the program itself says. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pythons.h"
#include "remote/remote_internal.h"

static struct python pythons[PYTHONS_MAX];
static size_t n_pythons;

/* Three functions deep, a generator between, standing at known lines. */
static const char nested[] = "import time, sys\n"
                             "class Thing:\n"
                             "    def method(self):\n"
                             "        print('ready', flush=True)\n"
                             "        x = 1\n"
                             "        time.sleep(600)\n" /* 6 */
                             "def generator():\n"
                             "    yield 1\n"
                             "    Thing().method()\n" /* 9 */
                             "def caller():\n"
                             "    for x in generator():\n" /* 11 */
                             "        pass\n"
                             "caller()\n"; /* 13 */

struct place {
    const char *name;
    uint32_t line;
};

/* The stack of the only thread, once its innermost frame is at `line`: a target says "ready" before it is. */
static size_t stack_at(struct kymo__remote *remote, uint32_t line,
                       struct kymo__remote_frame *frames, size_t cap)
{
    uint64_t interpreter, thread;
    bool is_whole;
    size_t n = 0;
    for (int tries = 0; tries < 5000; tries++) {
        assert_int_equal(kymo__remote_interpreters(remote, &interpreter, 1), 1);
        assert_int_equal(kymo__remote_thread_states(remote, interpreter, &thread, 1), 1);
        n = kymo__remote_stack(remote, thread, frames, cap, &is_whole);
        struct kymo__remote_code *const code =
            n > 0 ? kymo__remote_code(remote, frames[0].code) : NULL;
        if (code != NULL && is_whole &&
            kymo__remote_line(remote, code, frames[0].instruction, frames[0].tlbc_index) == line)
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
        struct kymo__remote *remote = NULL;
        struct kymo__remote_frame frames[16];
        assert_string_equal(line, "ready");
        const kymo_status status = kymo__remote_open(target.pid, NULL, 1000, &remote);
        if (status != KYMO_OK)
            fail_msg("%s: %s", pythons[i].path, kymo_last_error());
        assert_int_equal(kymo__remote_layout(remote)->version >> 16 & 255, pythons[i].minor);
        const struct place expected[] = {{pythons[i].minor >= 11 ? "Thing.method" : "method", 6},
                                         {"generator", 9},
                                         {"caller", 11},
                                         {"<module>", 13}};
        assert_int_equal(stack_at(remote, 6, frames, 16), 4);
        for (size_t f = 0; f < 4; f++) {
            struct kymo__remote_code *const code = kymo__remote_code(remote, frames[f].code);
            assert_non_null(code);
            assert_string_equal(code->name, expected[f].name);
            assert_string_equal(code->file, "<string>");
            const uint32_t at =
                kymo__remote_line(remote, code, frames[f].instruction, frames[f].tlbc_index);
            if (at != expected[f].line)
                fail_msg("%s: %s at %u", pythons[i].path, code->name, at);
            assert_ptr_equal(kymo__remote_code(remote, frames[f].code), code);
        }
        kymo__remote_close(remote);
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
        struct kymo__remote *remote = NULL;
        assert_int_equal(sscanf(line, "%d %d %d %d", &ids[0], &ids[1], &ids[2], &ids[3]), 4);
        assert_int_equal(kymo__remote_open(target.pid, NULL, 1000, &remote), KYMO_OK);
        uint64_t interpreter, states[8];
        assert_int_equal(kymo__remote_interpreters(remote, &interpreter, 1), 1);
        assert_int_equal(kymo__remote_thread_states(remote, interpreter, states, 8), 4);
        for (size_t t = 0; t < 4; t++) {
            uint8_t bytes[2048];
            char name[512];
            assert_true(kymo__remote_read(remote, states[t], bytes,
                                          kymo__remote_layout(remote)->thread.size));
            const pid_t tid = kymo__remote_tid(remote, bytes);
            size_t which = 0;
            while (which < 4 && ids[which] != tid)
                which++;
            if (which == 4)
                fail_msg("%s: no thread %d", pythons[i].path, (int)tid);
            is_seen[which] = true;
            kymo__remote_thread_name(remote, tid, states[t], name, sizeof name);
            if (strcmp(name, names[which]) != 0)
                fail_msg("%s: %s instead of %s", pythons[i].path, name, names[which]);
            /* The kernel's, where Python's is not asked for. */
            assert_true(kymo__remote_thread_name(remote, tid, 0, name, sizeof name) > 0);
        }
        assert_true(is_seen[0] && is_seen[1] && is_seen[2] && is_seen[3]);
        kymo__remote_close(remote);
        target_stop(&target);
    }
}

/* ---- ways to find it ---- */

/* The file that Python's state is in: the first that is called libpython, else the program. */
static const char *python_file(const struct kymo__remote_maps *maps)
{
    for (size_t i = 0; i < maps->n; i++)
        if (strstr(maps->maps[i].path, "/libpython3.") != NULL)
            return maps->maps[i].path;
    return maps->maps[0].path;
}

static void memory_alone_tells_where_python_is_and_which(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_pythons; i++) {
        char line[64];
        struct target target = target_start(pythons[i].path, nested, line, sizeof line);
        struct kymo__remote *remote = NULL;
        struct kymo__remote_maps maps;
        struct kymo__remote_found found;
        assert_int_equal(kymo__remote_open(target.pid, NULL, 1000, &remote), KYMO_OK);
        const uint64_t runtime = kymo__remote_runtime(remote);
        assert_int_equal(kymo__remote_maps_read(target.pid, &maps), KYMO_OK);
        const char *const path = python_file(&maps);
        assert_int_equal(kymo__remote_scan_version(remote, &maps, path) >> 16,
                         0x0300 | pythons[i].minor);
        assert_true(kymo__remote_scan(remote, &maps, path, 0, &found));
        if (found.runtime != runtime)
            fail_msg("%s: %#llx instead of %#llx", pythons[i].path,
                     (unsigned long long)found.runtime, (unsigned long long)runtime);
        assert_int_equal(found.version >> 16, 0x0300 | pythons[i].minor);
        kymo__remote_maps_fini(&maps);
        kymo__remote_close(remote);
        target_stop(&target);
    }
}

static void what_is_no_python_is_said_so(void **state)
{
    (void)state;
    struct kymo__remote *remote = NULL;
    const pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sleep", "sleep", "600", (char *)NULL);
        _exit(127);
    }
    kymo_status status =
        kymo__remote_open(pid, NULL, 2000, &remote); /* longer than it counts as young */
    assert_int_equal(status, KYMO_EUNAVAILABLE);
    assert_non_null(strstr(kymo_last_error(), "sleep 600"));
    assert_non_null(strstr(kymo_last_error(), "no Python"));
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0)
        ;
    status = kymo__remote_open(pid, NULL, 0, &remote);
    assert_int_equal(status, KYMO_EIO);
    assert_non_null(strstr(kymo_last_error(), "there is no process"));
    assert_null(remote);
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
        cmocka_unit_test(memory_alone_tells_where_python_is_and_which),
        cmocka_unit_test(what_is_no_python_is_said_so),
    };
    return cmocka_run_group_tests(tests, find_pythons, NULL);
}
