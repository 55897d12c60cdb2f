/* Mapped foreign files: if one is truncated while it is read, missing bytes are zeros, without a
 * crash. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch.h"

enum { PAGES = 5 };

static int make_file(size_t len)
{
    char path[] = "/tmp/marey-map-XXXXXX";
    const int fd = mkstemp(path);
    char page[4096];
    unlink(path);
    memset(page, 'x', sizeof page);
    for (size_t at = 0; at < len; at += sizeof page)
        assert_int_equal(pwrite(fd, page, MAREY__MIN(sizeof page, len - at), (off_t)at),
                         MAREY__MIN(sizeof page, len - at));
    return fd;
}

static void a_file_that_is_cut_reads_as_zeros(void **state)
{
    (void)state;
    size_t len;
    const int fd = make_file((PAGES - 1) * 4096 + 10);
    const volatile char *const bytes = marey__map_file(fd, &len);
    assert_non_null((const void *)(uintptr_t)bytes);
    assert_int_equal(len, (PAGES - 1) * 4096 + 10);
    assert_int_equal(bytes[len - 1], 'x');
    assert_int_equal(bytes[len], 0); /* and so is the page after it */
    assert_int_equal(bytes[(size_t)PAGES * 4096], 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_int_equal(bytes[4096], 0);
    assert_int_equal(bytes[len - 1], 0);
    assert_int_equal(bytes[0], 'x');
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(bytes[0], 0);
    marey__unmap_file((void *)(uintptr_t)bytes, len);
    close(fd);
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    size_t len;
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    assert_null(marey__map_file(pipes[0], &len));
    const int empty = make_file(0);
    assert_null(marey__map_file(empty, &len));
    close(pipes[0]), close(pipes[1]), close(empty);
    marey__unmap_file(NULL, 0);
}

/* More of them than fit into one piece of the list. */
static void many_mappings_are_guarded_at_once(void **state)
{
    enum { N = 600 };
    (void)state;
    static const volatile char *maps[N];
    size_t len;
    const int fd = make_file(8192);
    for (size_t i = 0; i < N; i++)
        assert_non_null((const void *)(uintptr_t)(maps[i] = marey__map_file(fd, &len)));
    assert_int_equal(ftruncate(fd, 0), 0);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(maps[i][4096], 0);
        marey__unmap_file((void *)(uintptr_t)maps[i], len);
    }
    close(fd);
}

/* How a child ends that reads a page of a mapping which is not listed, or is sent the signal. */
static int end_of_child(bool is_sent, bool has_handler)
{
    const pid_t pid = fork();
    if (pid == 0) {
        size_t len;
        const int fd = make_file(8192);
        signal(SIGBUS, has_handler ? _exit : SIG_DFL); /* it was cmocka's */
        if (marey__map_file(fd, &len) == NULL)
            _exit(99);
        const volatile char *const own = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
        if (is_sent)
            kill(getpid(), SIGBUS);
        (void)!ftruncate(fd, 0);
        _exit(own[4096] == 0 ? 98 : 97);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void bus_errors_of_others_are_theirs(void **state)
{
    (void)state;
    for (int is_sent = 0; is_sent < 2; is_sent++) {
        const int dead = end_of_child(is_sent != 0, false),
                  handled = end_of_child(is_sent != 0, true);
        assert_true(WIFSIGNALED(dead) && WTERMSIG(dead) == SIGBUS);
        assert_true(WIFEXITED(handled) && WEXITSTATUS(handled) == SIGBUS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_cut_reads_as_zeros),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(many_mappings_are_guarded_at_once),
        cmocka_unit_test(bus_errors_of_others_are_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
