/* See samples_maker.h. */
#include "samples_maker.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

int samples_maker_init_in(struct samples_maker *m, const char *path)
{
    const struct marey_samples_process process = {
        .pid = 100, .ppid = 1, .start_time = 5, .rank = -1, .worker = -1, .command = "python train.py"};
    *m = (struct samples_maker){
        .rate_hz = 1000, .strategy = "snapshot", .next_tid = 100, .is_guest = true};
    snprintf(m->path, sizeof m->path, "%s", path);
    m->samples = marey__samples_create();
    return m->samples != NULL && marey__samples_process(m->samples, &process) == 1 ? 0 : -1;
}

int samples_maker_init(struct samples_maker *m)
{
    char path[] = "/tmp/marey-samples-XXXXXX";
    if (mkdtemp(path) == NULL || marey_recording_create(path, "test") != MAREY_OK ||
        samples_maker_init_in(m, path) != 0)
        return -1;
    m->is_guest = false;
    return 0;
}

static void remove_directory(const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir != NULL)
        closedir(dir);
    rmdir(path);
}

void samples_maker_fini(struct samples_maker *m)
{
    if (m->log != NULL)
        samples_kill(m);
    marey_samples_destroy(m->samples);
    if (!m->is_guest)
        remove_directory(m->path);
}

uint32_t samples_thread(struct samples_maker *m, bool is_main, const char *name)
{
    const uint32_t thread = marey__samples_thread(m->samples, 1, m->next_tid++, name, 0, is_main);
    assert_int_not_equal(thread, 0);
    return thread;
}

static uint32_t function_of(struct samples_maker *m, const char *name)
{
    char file[160];
    const char *const at = strchr(name, '@');
    if (at != NULL) {
        snprintf(file, sizeof file, "%.*s", (int)(at - name), name);
        return marey__samples_function(m->samples, MAREY_FRAME_NATIVE, file, "", at + 1, 0);
    }
    snprintf(file, sizeof file, "/src/%s.py", name);
    return marey__samples_function(m->samples, MAREY_FRAME_PYTHON, name, file, name, 1);
}

uint32_t samples_stack(struct samples_maker *m, const char *frames)
{
    uint32_t stack = 0;
    while (frames[0] != '\0') {
        char name[128];
        const size_t len = strcspn(frames, ";"), name_len = strcspn(frames, ":;");
        snprintf(name, sizeof name, "%.*s", (int)name_len, frames);
        const uint32_t line =
            frames[name_len] == ':' ? (uint32_t)strtoul(frames + name_len + 1, NULL, 10) : 0;
        stack = marey__samples_stack(
            m->samples, stack, marey__samples_location(m->samples, function_of(m, name), line));
        assert_int_not_equal(stack, 0);
        frames += len + (frames[len] == ';');
    }
    return stack;
}

void samples_begin(struct samples_maker *m)
{
    const struct marey__samples_log_options options = {
        .rate_hz = m->rate_hz, .strategy = m->strategy, .seed = 1};
    if (m->log == NULL)
        assert_int_equal(marey__samples_log_open(m->path, &options, m->samples, &m->log), MAREY_OK);
}

void samples_round(struct samples_maker *m, uint64_t at_us, size_t n,
                   const struct marey_samples_seen *seen)
{
    const struct marey_samples_round round = {
        .process = 1, .at_ns = at_us * 1000, .seen = seen, .n_seen = n};
    samples_begin(m);
    assert_int_equal(marey__samples_log_round(m->log, &round), MAREY_OK);
}

void samples_write(struct samples_maker *m)
{
    m->log->written_ns -= UINT64_C(10000000000);
    assert_int_equal(marey__samples_log_tick(m->log), MAREY_OK);
}

void samples_end(struct samples_maker *m, const char *how)
{
    samples_begin(m);
    assert_int_equal(marey__samples_log_close(m->log, how), MAREY_OK);
    m->log = NULL;
}

void samples_kill(struct samples_maker *m)
{
    marey__log_close(&m->log->file);
    assert_int_not_equal(marey__samples_log_close(m->log, "stop"), MAREY_OK);
    m->log = NULL;
}

void samples_break(struct samples_maker *m)
{
    marey__held_close(&m->log->file.file);
    assert_true(marey__held_set(&m->log->file.file, open("/dev/full", O_WRONLY | O_CLOEXEC)));
}
