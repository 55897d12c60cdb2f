/* The thread that stops others: its priority afterwards is the one before, for root and other users. */
#include <linux/capability.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampler/loop/internal.h"

enum { FINE = 0, NOT_HERE = 77, STAYED_HIGH, NOT_STOPPED };

static bool drop_capability(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &head, data) != 0)
        return false;
    data[0].effective &= ~(1u << CAP_SYS_NICE);
    data[0].permitted &= ~(1u << CAP_SYS_NICE);
    return syscall(SYS_capset, &head, data) == 0;
}

static int own_policy(void)
{
    return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

/*
 * In a child, whose exit status it is. A user with RLIMIT_RTPRIO may have a real-time priority without CAP_SYS_NICE;
 * to raise that limit takes rights that a container's root may lack, so the capability goes while the priority is high.
 */
static int stop_one(int policy)
{
    const struct sched_param none = {0};
    const struct rlimit limit = {1, 1};
    struct marey__stops stops = {.patience_ns = 500000000};
    (void)!setrlimit(RLIMIT_RTPRIO, &limit);
    if (sched_setscheduler(0, policy, &none) != 0)
        return NOT_HERE;
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    int answer = FINE;
    for (int turn = 0; turn < 3 && answer == FINE; turn++) {
        if (marey__thread_stop(&stops, pid) != MAREY__STOPPED)
            answer = NOT_STOPPED;
        else if (turn == 0 && (own_policy() != SCHED_FIFO || !drop_capability()))
            answer = NOT_HERE;
        marey__thread_resume(&stops, pid);
        if (answer == FINE && own_policy() != policy)
            answer = STAYED_HIGH;
    }
    marey__stops_fini(&stops);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return answer;
}

static void the_priority_is_given_back_without_privileges(void **state)
{
    static const int policies[] = {SCHED_OTHER, SCHED_BATCH};
    (void)state;
    for (size_t i = 0; i < MAREY__COUNT_OF(policies); i++) {
        int status;
        const pid_t pid = fork();
        if (pid == 0)
            _exit(stop_one(policies[i]));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == NOT_HERE)
            skip();
        assert_int_equal(WEXITSTATUS(status), FINE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_priority_is_given_back_without_privileges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
