/* switchboard: on and off from one place; starting without memory or a place to write leaves everything as it was. */
#include <dirent.h>

#include "scratch.h"
#include <marey/range.h>

static void off_records_nothing(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(marey_enabled(), 0);
    marey_mark(MAREY_ID("nowhere"));
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_not_equal(access(s->path, F_OK), 0);
}

static void a_second_start_is_refused(void **state)
{
    const struct scratch *s = *state;
    const struct marey_options options = {.path = s->path};
    assert_int_equal(marey_start(&options), MAREY_OK);
    assert_int_equal(marey_start(&options), MAREY_ESTATE);
    assert_non_null(strstr(marey_last_error(), s->path));
    assert_int_equal(marey_enabled(), 1);
    assert_string_equal(marey_recording_path(), s->path);
}

static void recordings_follow_one_another(void **state)
{
    const struct scratch *s = *state;
    for (int i = 0; i < 20; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s/%d.marey", s->folder, i);
        assert_int_equal(marey_start(&(struct marey_options){
                             .path = path, .clock = i % 2 ? MAREY_CLOCK_MONOTONIC : 0}),
                         MAREY_OK);
        for (int n = 0; n <= i; n++)
            marey_mark(MAREY_ID("mark"));
        assert_int_equal(marey_stop(), MAREY_OK);
        assert_int_equal(marey_enabled(), 0);
        assert_int_equal(scratch_count(path, MAREY_KIND_MARK), i + 1);
    }
}

static void wrong_arguments_are_reported(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(
        marey_start(&(struct marey_options){.path = s->path, .policy = (enum marey_policy)9}),
        MAREY_EINVAL);
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path, .text = "x=1"}),
                     MAREY_EINVAL);
    assert_int_equal(marey_start(&(struct marey_options){.path = "/proc/nowhere/run.marey"}),
                     MAREY_EIO);
    assert_int_equal(marey_enabled(), 0);
}

static void an_older_callers_options_are_shorter(void **state)
{
    const struct scratch *s = *state;
    const struct marey_options options = {.path = s->path, .policy = (enum marey_policy)9};
    assert_int_equal(marey_start_sized(&options, offsetof(struct marey_options, policy)), MAREY_OK);
}

static size_t n_files(const char *path)
{
    DIR *dir = opendir(path);
    size_t n = 0;
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.' && strcmp(entry->d_name, "meta.json") != 0;
    if (dir != NULL)
        closedir(dir);
    return n;
}

static void without_memory_a_start_fails_whole_or_works(void **state)
{
    const struct scratch *s = *state;
    uint64_t n_failed = 0;
    for (uint64_t n = 1; n < 60; n++) {
        marey__alloc_fail_nth(n);
        const marey_status st = marey_start(&(struct marey_options){.path = s->path});
        if (st != MAREY_OK) {
            marey__alloc_fail_nth(0);
            n_failed++;
            assert_int_equal(marey_enabled(), 0);
            assert_int_equal(n_files(s->path), 0);
            marey_mark(MAREY_ID("off"));
            continue;
        }
        marey_mark(MAREY_ID("on"));
        marey_stop();
        marey__alloc_fail_nth(0);
        char command[256];
        snprintf(command, sizeof command, "rm -rf %s", s->path);
        assert_int_equal(system(command), 0);
    }
    assert_true(n_failed > 3);
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    marey_mark(MAREY_ID("on"));
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_MARK), 1);
}

static void *stop_from_here(void *arg)
{
    *(marey_status *)arg = marey_stop();
    return NULL;
}

static void another_thread_may_stop(void **state)
{
    const struct scratch *s = *state;
    marey_status st = MAREY_EIO;
    pthread_t thread;
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    marey_mark(MAREY_ID("mark"));
    pthread_create(&thread, NULL, stop_from_here, &st);
    pthread_join(thread, NULL);
    assert_int_equal(st, MAREY_OK);
    marey_mark(MAREY_ID("mark")); /* off by now */
    assert_int_equal(scratch_count(s->path, MAREY_KIND_MARK), 1);
}

static void the_rank_may_be_told_late(void **state)
{
    const struct scratch *s = *state;
    marey_recording *recording;
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    marey_mark(MAREY_ID("mark"));
    marey_set_rank(5, 8);
    int rank, world_size;
    marey_rank_get(&rank, &world_size);
    assert_int_equal(rank, 5);
    assert_int_equal(world_size, 8);
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(marey_recording_open(s->path, &recording), MAREY_OK);
    assert_int_equal(marey_recording_process(recording, 0)->rank, 5);
    assert_int_equal(marey_recording_process(recording, 0)->world_size, 8);
    marey_recording_close(recording);
}

static void a_rank_told_before_is_that_of_all_recordings_to_come(void **state)
{
    const struct scratch *s = *state;
    marey_recording *recording;
    marey_set_rank(5, 8);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
        marey_mark(MAREY_ID("mark"));
        assert_int_equal(marey_stop(), MAREY_OK);
    }
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path, .text = "rank=1"}),
                     MAREY_OK);
    marey_mark(MAREY_ID("mark"));
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(marey_recording_open(s->path, &recording), MAREY_OK);
    assert_int_equal(marey_recording_process(recording, 0)->rank, 1);
    for (size_t i = 1; i < 3; i++) {
        assert_int_equal(marey_recording_process(recording, i)->rank, 5);
        assert_int_equal(marey_recording_process(recording, i)->world_size, 8);
    }
    marey_recording_close(recording);
    marey_reset();
    int rank, world_size;
    marey_rank_get(&rank, &world_size);
    assert_int_equal(rank, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(off_records_nothing),
        SCRATCH_TEST(a_second_start_is_refused),
        SCRATCH_TEST(recordings_follow_one_another),
        SCRATCH_TEST(wrong_arguments_are_reported),
        SCRATCH_TEST(an_older_callers_options_are_shorter),
        SCRATCH_TEST(without_memory_a_start_fails_whole_or_works),
        SCRATCH_TEST(another_thread_may_stop),
        SCRATCH_TEST(the_rank_may_be_told_late),
        SCRATCH_TEST(a_rank_told_before_is_that_of_all_recordings_to_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
