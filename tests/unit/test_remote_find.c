/* core/sampler/remote: Pythons that are hard to find. Each is started here, spoiled, and found all the same. */
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "pythons.h"
#include "sampler/remote/internal.h"
#include "scratch.h"

static struct python pythons[PYTHONS_MAX];
static size_t n_pythons;

static const char sleeper[] = "import os, time\n"
                              "def nap():\n"
                              "    print(os.getpid(), flush=True)\n"
                              "    time.sleep(600)\n"
                              "nap()\n";

/* That a stack comes out of `pid`, with `nap` in it. */
static void assert_readable(pid_t pid, const char *what)
{
    struct marey__remote *remote = NULL;
    struct marey__remote_frame frames[8];
    uint64_t interpreter, thread;
    bool is_whole;
    if (marey__remote_open(pid, NULL, 2000, &remote) != MAREY_OK)
        fail_msg("%s: %s", what, marey_last_error());
    assert_int_equal(marey__remote_interpreters(remote, &interpreter, 1), 1);
    assert_int_equal(marey__remote_thread_states(remote, interpreter, &thread, 1), 1);
    assert_int_equal(marey__remote_stack(remote, thread, frames, 8, &is_whole), 2);
    assert_true(is_whole);
    assert_string_equal(marey__remote_code(remote, frames[0].code)->name, "nap");
    uint8_t bytes[2048];
    char name[64];
    assert_true(marey__remote_read(remote, thread, bytes, marey__remote_layout(remote)->thread.size));
    assert_int_equal(marey__remote_tid(remote, bytes), pid); /* in our namespace, wherever it lives */
    assert_true(marey__remote_thread_name(remote, pid, thread, name, sizeof name) > 0);
    marey__remote_close(remote);
}

static void copy_file(const char *from, const char *to)
{
    char buffer[1 << 16];
    const int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    assert_true(in >= 0 && out >= 0);
    for (ssize_t n; (n = read(in, buffer, sizeof buffer)) > 0;)
        assert_int_equal(write(out, buffer, (size_t)n), n);
    close(in);
    close(out);
}

/* Where a Python's libpython lies; "" when it is linked into the program. */
static void library_of(const char *python, char *out, size_t size)
{
    char line[64];
    struct marey__remote_maps maps;
    struct target target = target_start(python, sleeper, line, sizeof line);
    out[0] = '\0';
    assert_int_equal(marey__remote_maps_read(target.pid, &maps), MAREY_OK);
    for (size_t i = 0; i < maps.n; i++)
        if (strstr(maps.maps[i].path, "/libpython3.") != NULL)
            snprintf(out, size, "%s", maps.maps[i].path);
    marey__remote_maps_fini(&maps);
    target_stop(&target);
}

/* A libpython that is deleted, or replaced by another version's, while it runs. */
static void replaced_library_is_found(void **state)
{
    const struct scratch *const s = *state;
    for (size_t i = 0; i < n_pythons; i++) {
        char library[4096], copy[4300], line[64], variable[256];
        library_of(pythons[i].path, library, sizeof library);
        if (library[0] == '\0' || access(library, R_OK) != 0)
            continue;
        snprintf(copy, sizeof copy, "%s/%s", s->folder, marey__base_name(library));
        snprintf(variable, sizeof variable, "LD_LIBRARY_PATH=%s", s->folder);
        const char *const arguments[] = {"env", variable, pythons[i].path, "-c", sleeper, NULL};
        for (int is_replaced = 0; is_replaced < 2; is_replaced++) {
            copy_file(library, copy);
            struct target target = target_start_program(arguments, line, sizeof line);
            assert_int_equal(atoi(line), target.pid);
            assert_int_equal(unlink(copy), 0);
            if (is_replaced)
                copy_file("/bin/sh", copy);
            assert_readable(target.pid, pythons[i].path);
            target_stop(&target);
            unlink(copy);
        }
    }
}

/* A program with Python linked in, its sections (and so its symbols) gone, and then the file itself. */
static void stripped_and_deleted_program_is_found(void **state)
{
    const struct scratch *const s = *state;
    size_t n_tried = 0;
    for (size_t i = 0; i < n_pythons; i++) {
        char library[4096], real[4096], copy[128], line[64];
        Elf64_Ehdr head;
        library_of(pythons[i].path, library, sizeof library);
        if (library[0] != '\0' || realpath(pythons[i].path, real) == NULL)
            continue;
        snprintf(copy, sizeof copy, "%s/program", s->folder); /* a name that says nothing */
        copy_file(real, copy);
        const int fd = open(copy, O_RDWR);
        if (read(fd, &head, sizeof head) != (ssize_t)sizeof head ||
            memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) {
            close(fd); /* a script that starts one */
            continue;
        }
        head.e_shoff = 0;
        head.e_shnum = head.e_shstrndx = 0;
        assert_int_equal(pwrite(fd, &head, sizeof head, 0), sizeof head);
        close(fd);
        char home[4200];
        snprintf(home, sizeof home, "PYTHONHOME=%.*s",
                 (int)(strstr(real, "/bin/") != NULL ? strstr(real, "/bin/") - real : 0), real);
        const char *const arguments[] = {"env", home, copy, "-c", sleeper, NULL};
        struct target target = target_start_program(arguments, line, sizeof line);
        if (atoi(line) != target.pid) { /* it does not run from another place */
            target_stop(&target);
            continue;
        }
        unlink(copy);
        assert_readable(target.pid, pythons[i].path);
        target_stop(&target);
        n_tried++;
    }
    if (n_tried == 0)
        skip(); /* all of them have a libpython */
}

static pid_t child_of(pid_t pid)
{
    char path[96], text[64];
    uint64_t child = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    marey__read_text(path, text, sizeof text);
    marey__parse_number(text, strlen(text), &child);
    return (pid_t)child;
}

/* In another pid and mount namespace: ids differ inside and outside, and paths are its own. */
static void python_in_a_container_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_pythons; i++) {
        char line[64];
        const char *const as_root[] = {"unshare", "--pid",        "--mount",
                                       "--fork",  "--mount-proc", pythons[i].path,
                                       "-c",      sleeper,        NULL};
        const char *const as_user[] = {
            "unshare", "--user",       "--map-root-user", "--pid", "--mount",
            "--fork",  "--mount-proc", pythons[i].path,   "-c",    sleeper,
            NULL};
        struct target target =
            target_start_program(geteuid() == 0 ? as_root : as_user, line, sizeof line);
        const pid_t child = child_of(target.pid);
        if (line[0] == '\0' || child == 0) {
            target_stop(&target);
            print_message("no namespaces may be made here\n");
            skip();
        }
        assert_int_equal(atoi(line), 1); /* that is what it believes */
        assert_readable(child, pythons[i].path);
        kill(child, SIGKILL);
        target_stop(&target);
    }
}

/* A child that was forked is read by what its parent's was; one that begins another program is not taken for it. */
static void forked_child_takes_over_and_exec_is_noticed(void **state)
{
    (void)state;
    static const char forks[] = "import os, time\n"
                                "def nap():\n"
                                "    time.sleep(600)\n"
                                "pid = os.fork()\n"
                                "if pid == 0:\n"
                                "    nap()\n"
                                "print(pid, flush=True)\n"
                                "import sys; sys.stdin.read(1)\n"
                                "os.execvp('sleep', ['sleep', '600'])\n";
    for (size_t i = 0; i < n_pythons; i++) {
        char line[64];
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        const int kept = dup(STDIN_FILENO);
        dup2(ends[0], STDIN_FILENO);
        struct target target = target_start(pythons[i].path, forks, line, sizeof line);
        dup2(kept, STDIN_FILENO);
        close(kept);
        close(ends[0]);
        struct marey__remote *parent = NULL, *child = NULL;
        const pid_t pid = atoi(line);
        assert_int_equal(marey__remote_open(target.pid, NULL, 1000, &parent), MAREY_OK);
        assert_int_equal(marey__remote_open(pid, parent, 1000, &child), MAREY_OK);
        assert_int_equal(marey__remote_runtime(child), marey__remote_runtime(parent));
        assert_int_equal(marey__remote_process(child)->parent, target.pid);
        assert_true(marey__remote_process(child)->start_time >=
                    marey__remote_process(parent)->start_time);
        assert_int_equal(marey__remote_state(child), MAREY__REMOTE_SAME);
        assert_int_equal(write(ends[1], "x", 1), 1);
        enum marey__remote_state found = MAREY__REMOTE_SAME;
        for (int tries = 0; tries < 5000 && found == MAREY__REMOTE_SAME; tries++) {
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            found = marey__remote_state(parent);
        }
        assert_int_equal(found, MAREY__REMOTE_REPLACED);
        kill(pid, SIGKILL);
        for (int tries = 0; tries < 5000 && found != MAREY__REMOTE_GONE; tries++) {
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            found = marey__remote_state(child); /* a zombie is gone, too */
        }
        assert_int_equal(found, MAREY__REMOTE_GONE);
        marey__remote_close(child);
        marey__remote_close(parent);
        close(ends[1]);
        target_stop(&target);
    }
}

/* From the first instant on: whoever has patience gets it as soon as there is one. */
static void starting_python_is_waited_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_pythons; i++) {
        const pid_t pid = fork();
        if (pid == 0) {
            execl(pythons[i].path, pythons[i].path, "-c", "import time; time.sleep(600)",
                  (char *)NULL);
            _exit(127);
        }
        struct marey__remote *remote = NULL;
        if (marey__remote_open(pid, NULL, 20000, &remote) != MAREY_OK)
            fail_msg("%s: %s", pythons[i].path, marey_last_error());
        assert_int_equal(marey__remote_layout(remote)->version >> 16 & 255, pythons[i].minor);
        marey__remote_close(remote);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
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
        SCRATCH_TEST(replaced_library_is_found),
        SCRATCH_TEST(stripped_and_deleted_program_is_found),
        cmocka_unit_test(python_in_a_container_is_found),
        cmocka_unit_test(forked_child_takes_over_and_exec_is_noticed),
        cmocka_unit_test(starting_python_is_waited_for),
    };
    return cmocka_run_group_tests(tests, find_pythons, NULL);
}
