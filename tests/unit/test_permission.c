/* core/sampler/remote/permission.c: the message names the obstacle and the command to type. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampler/remote/internal.h"

static const uint64_t ptrace_capability = UINT64_C(1) << 19;

static void each_obstacle_has_its_words(void **state)
{
    (void)state;
    const struct {
        struct marey__permission facts;
        const char *words[3];
    } cases[] = {
        {{.pid = 7, .uid = 1001, .own_uid = 1000, .yama = 1},
         {"uid 1001", "runs as uid 1000", "`sudo marey attach 7`"}},
        {{.pid = 7, .uid = 1000, .own_uid = 1000, .yama = 1},
         {"ptrace_scope is 1", "marey.allow_attach()", "`sudo sysctl kernel.yama.ptrace_scope=0`"}},
        {{.pid = 7, .uid = 1000, .own_uid = 1000, .yama = 2},
         {"ptrace_scope is 2", "`sudo marey attach 7`", ""}},
        {{.pid = 7, .uid = 1000, .own_uid = 0, .own_capabilities = ptrace_capability, .yama = 3},
         {"ptrace_scope is 3", "/etc/sysctl.d", ""}},
        {{.pid = 7, .uid = 1000, .own_uid = 1000, .yama = -1, .is_undumpable = true},
         {"PR_SET_DUMPABLE", "`sudo marey attach 7`", ""}},
        {{.pid = 7, .uid = 0, .own_uid = 0, .yama = 0, .capabilities = 1 << 21},
         {"CAP_SYS_PTRACE", "--cap-add=SYS_PTRACE", "securityContext.capabilities.add"}},
        {{.pid = 7,
          .uid = 0,
          .own_uid = 0,
          .own_capabilities = ptrace_capability,
          .yama = -1,
          .is_filtered = true},
         {"seccomp", "--cap-add=SYS_PTRACE", "seccomp=unconfined"}},
        {{.pid = 7, .uid = 1000, .own_uid = 1000, .yama = -1, .is_other_user_namespace = true},
         {"user namespace", "`sudo marey attach 7`", "inside"}},
        {{.pid = 7, .uid = 1000, .own_uid = 1000, .yama = 1, .is_descendant = true},
         {"process 7", "`sudo marey attach 7`", ""}},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(cases); i++) {
        char text[512];
        marey__permission_explain(&cases[i].facts, text, sizeof text);
        for (size_t w = 0; w < 3; w++)
            if (strstr(text, cases[i].words[w]) == NULL)
                fail_msg("case %zu: \"%s\" is not in: %s", i, cases[i].words[w], text);
        assert_true(strlen(text) < sizeof text - 1); /* nothing was cut */
    }
}

static void own_child_is_looked_at(void **state)
{
    (void)state;
    struct marey__permission facts;
    const pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    assert_true(marey__permission_look(pid, &facts));
    assert_int_equal(facts.uid, getuid());
    assert_int_equal(facts.own_uid, geteuid());
    assert_true(facts.is_descendant);
    assert_int_equal(facts.tracer, 0);
    assert_false(facts.is_other_user_namespace);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_false(marey__permission_look(pid, &facts));
}

/* The real thing: another user's process, refused by the kernel. As root one can become another user first. */
static void another_users_process_is_refused_in_words(void **state)
{
    (void)state;
    enum { OTHER = 65534 };
    int ends[2];
    if (geteuid() != 0)
        skip(); /* whoever is not root cannot make a process of another user */
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        struct marey__remote *remote;
        char text[512] = "";
        const pid_t parent = getppid();
        if (setgid(OTHER) != 0 || setuid(OTHER) != 0)
            _exit(2);
        const marey_status status = marey__remote_open(parent, NULL, 0, &remote);
        snprintf(text, sizeof text, "%d %s", (int)status, marey_last_error());
        _exit(write(ends[1], text, sizeof text) == (ssize_t)sizeof text ? 0 : 1);
    }
    char text[512];
    int how;
    assert_int_equal(read(ends[0], text, sizeof text), sizeof text);
    waitpid(pid, &how, 0);
    assert_int_equal(how, 0);
    assert_int_equal(atoi(text), MAREY_EIO);
    assert_non_null(strstr(text, "belongs to root and marey runs as uid 65534"));
    assert_non_null(strstr(text, "sudo marey attach"));
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_obstacle_has_its_words),
        cmocka_unit_test(own_child_is_looked_at),
        cmocka_unit_test(another_users_process_is_refused_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
