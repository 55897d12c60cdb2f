/* finalize: the log of a dead process is finished once, whatever state its files are in. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "scratch.h"
#include <marey/range.h>

enum { N_MARKS = 200000 }; /* enough for some to be in the log already */

/* A child records and is killed. */
static void leave_unfinalized(const struct scratch *s, const char *text)
{
    const pid_t child = fork();
    if (child == 0) {
        if (marey_start(&(struct marey_options){.path = s->path, .text = text}) != MAREY_OK)
            _exit(1);
        for (int i = 0; i < N_MARKS; i++)
            marey_mark(MAREY_ID("mark"));
        usleep(50000);
        raise(SIGKILL);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
}

/* The one file of the recording whose name ends with `ending`; false when there is none. */
static bool find_file(const struct scratch *s, const char *ending, char *out, size_t size)
{
    DIR *dir = opendir(s->path);
    bool found = false;
    for (struct dirent *entry; dir != NULL && !found && (entry = readdir(dir)) != NULL;) {
        const size_t len = strlen(entry->d_name), end = strlen(ending);
        found = len > end && strcmp(entry->d_name + len - end, ending) == 0;
        if (found)
            snprintf(out, size, "%s/%s", s->path, entry->d_name);
    }
    closedir(dir);
    return found;
}

static void finalizing_twice_is_finalizing_once(void **state)
{
    const struct scratch *s = *state;
    char log[512], pool[512];
    struct stat first, second;
    leave_unfinalized(s, "pool_in=dir");
    assert_true(find_file(s, ".klog", log, sizeof log));
    assert_true(find_file(s, ".pool", pool, sizeof pool));
    assert_int_equal(marey_recording_finalize(s->path), MAREY_OK);
    assert_false(find_file(s, ".pool", pool, sizeof pool));
    stat(log, &first);
    assert_int_equal(marey_recording_finalize(s->path), MAREY_OK);
    stat(log, &second);
    assert_int_equal(first.st_size, second.st_size);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_MARK), N_MARKS);
}

static void half_a_block_at_the_end_is_cut_off(void **state)
{
    const struct scratch *s = *state;
    char log[512];
    leave_unfinalized(s, "pool_in=dir");
    assert_true(find_file(s, ".klog", log, sizeof log));
    const int fd = open(log, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "MBLK half a block", 17), 17);
    close(fd);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_MARK), N_MARKS);
}

static void damage_in_the_middle_costs_one_block(void **state)
{
    const struct scratch *s = *state;
    char log[512];
    struct stat st;
    uint8_t byte;
    leave_unfinalized(s, "pool_in=dir");
    assert_true(find_file(s, ".klog", log, sizeof log));
    const int fd = open(log, O_RDWR);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(pread(fd, &byte, 1, st.st_size / 2), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, st.st_size / 2), 1);
    close(fd);
    const int64_t n = scratch_count(s->path, MAREY_KIND_MARK);
    assert_in_range(n, N_MARKS - MAREY__CHUNK_WORDS, N_MARKS);
}

static void a_living_process_is_left_alone(void **state)
{
    const struct scratch *s = *state;
    char pool[512];
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path, .text = "pool_in=dir"}),
                     MAREY_OK);
    marey_mark(MAREY_ID("mark"));
    assert_int_equal(marey_recording_finalize(s->path), MAREY_OK);
    assert_true(find_file(s, ".pool", pool, sizeof pool));
    marey_mark(MAREY_ID("mark"));
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_MARK), 2);
}

static void a_log_that_never_began_is_removed_with_its_pool(void **state)
{
    const struct scratch *s = *state;
    char log[512], pool[512];
    leave_unfinalized(s, "pool_in=dir");
    assert_true(find_file(s, ".klog", log, sizeof log));
    assert_int_equal(truncate(log, 0), 0); /* killed between making its files and saying who it is */
    assert_int_equal(marey_recording_finalize(s->path), MAREY_OK);
    assert_false(find_file(s, ".klog", log, sizeof log));
    assert_false(find_file(s, ".pool", pool, sizeof pool));
}

static void a_damaged_pool_is_reported_and_kept(void **state)
{
    const struct scratch *s = *state;
    char pool[512];
    leave_unfinalized(s, "pool_in=dir");
    assert_true(find_file(s, ".pool", pool, sizeof pool));
    const int fd = open(pool, O_WRONLY);
    assert_int_equal(pwrite(fd, "damaged", 7, 0), 7);
    close(fd);
    assert_int_equal(marey_recording_finalize(s->path), MAREY_EFORMAT);
    assert_non_null(strstr(marey_last_error(), pool));
    assert_true(find_file(s, ".pool", pool, sizeof pool));
}

static void a_pool_cut_short_gives_what_it_has(void **state)
{
    const struct scratch *s = *state;
    char pool[512];
    leave_unfinalized(s, "pool_in=dir");
    assert_true(find_file(s, ".pool", pool, sizeof pool));
    assert_int_equal(truncate(pool, 2 * MAREY__CHUNK_BYTES), 0);
    assert_int_equal(marey_recording_finalize(s->path), MAREY_OK);
    const int64_t n = scratch_count(s->path, MAREY_KIND_MARK);
    assert_in_range(n, 1, N_MARKS);
}

static void without_memory_it_can_be_done_later(void **state)
{
    const struct scratch *s = *state;
    leave_unfinalized(s, "pool_in=dir");
    marey_status st = MAREY_ENOMEM;
    for (uint64_t n = 1; n < 100; n++) {
        marey__alloc_fail_nth(n);
        st = marey_recording_finalize(s->path);
    }
    marey__alloc_fail_nth(0);
    assert_int_equal(marey_recording_finalize(s->path), MAREY_OK);
    assert_int_equal(st, MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_MARK), N_MARKS);
}

static void a_folder_that_is_not_there_is_reported(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(marey_recording_finalize(s->path), MAREY_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(finalizing_twice_is_finalizing_once),
        SCRATCH_TEST(half_a_block_at_the_end_is_cut_off),
        SCRATCH_TEST(damage_in_the_middle_costs_one_block),
        SCRATCH_TEST(a_living_process_is_left_alone),
        SCRATCH_TEST(a_log_that_never_began_is_removed_with_its_pool),
        SCRATCH_TEST(a_damaged_pool_is_reported_and_kept),
        SCRATCH_TEST(a_pool_cut_short_gives_what_it_has),
        SCRATCH_TEST(without_memory_it_can_be_done_later),
        SCRATCH_TEST(a_folder_that_is_not_there_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
