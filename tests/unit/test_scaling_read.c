/* Paths to measured runs: recordings with one run and several, folders, CSVs of measurements; itwinai's files are found. */
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "log_maker.h"
#include "scaling_runs.h"
#include "scratch.h"

/* ---- files ---- */

static void write_file(const char *path, const void *bytes, size_t len)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && marey__write_all(fd, bytes, len));
    close(fd);
}

static void write_text(const struct scratch *s, const char *name, const char *text)
{
    char path[192];
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    for (char *slash = path + strlen(s->folder) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    write_file(path, text, strlen(text));
}

/* A rank of a run that trains `n` epochs of `steps` steps, `step_s` seconds each. */
struct rank {
    const char *run, *strategy;
    int rank, world_size, pid;
    int n_epochs, n_steps;
    double step_s;
    const char *end; /* NULL: killed within one more epoch */
};

static void write_rank(const struct scratch *s, const char *folder, const char *name,
                       const struct rank *r)
{
    struct log_maker *log = calloc(1, sizeof *log);
    char path[192], rank[16], world[16], pid[16];
    uint64_t ns = 1000000000;
    snprintf(rank, sizeof rank, "%d", r->rank);
    snprintf(world, sizeof world, "%d", r->world_size);
    snprintf(pid, sizeof pid, "%d", r->pid);
    const char *const pairs[] = {"pid",        pid,    "rank",    rank,    "run_id",   r->run,
                                 "world_size", world,  "host",    "node0", "strategy", r->strategy,
                                 "experiment", "unit", "version", "1.0.0", NULL};
    log_put_process(log, NULL, NULL);
    log_put_pairs(log, MAREY__BLOCK_LOG, pairs);
    log_put_site_of(log, 1, "all_reduce", "communication", "");
    log_put_lane(log, 0, 100, "main");
    log_put_moment(log, 0, 0);
    log_put_moment(log, 1000000000, 1000000000);
    for (int e = 0, number = 0; e < r->n_epochs; e++) {
        log_epoch(log, ns, (uint64_t)e, true);
        for (int i = 0; i < r->n_steps; i++, number++) {
            const uint64_t end = ns + (uint64_t)(r->step_s * 1e9);
            log_begin(log, end - (end - ns) / 4, 1); /* a quarter of it is communication */
            log_end(log, end, 1);
            log_iteration(log, end, (uint64_t)number, false, 32);
            ns = end;
        }
        log_epoch(log, ns, (uint64_t)e, false);
    }
    if (r->end == NULL)
        log_epoch(log, ns, (uint64_t)r->n_epochs, true);
    log_put_words(log, 0, 0);
    log_put_end(log, r->end != NULL ? r->end : "unclosed");
    snprintf(path, sizeof path, "%s/%s", s->folder, folder);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s.klog", s->folder, folder, name);
    write_file(path, log->bytes.data, log->bytes.len);
    log_maker_fini(log);
    free(log);
}

static const struct rank plain = {.run = "a",
                                  .strategy = "ddp",
                                  .world_size = 2,
                                  .pid = 100,
                                  .n_epochs = 3,
                                  .n_steps = 4,
                                  .step_s = 0.5,
                                  .end = "stop"};

/* ---- runs ---- */

static marey_status read_into(struct marey__scaling_runs *runs, const struct scratch *s,
                              const char *name)
{
    char path[192];
    const struct marey__scaling_read_options options = {.n_jobs = 1};
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    return marey__scaling_runs_read(runs, path, false, &options);
}

static struct marey__scaling_runs *read_path(const struct scratch *s, const char *name)
{
    struct marey__scaling_runs *runs = runs_create();
    const marey_status status = read_into(runs, s, name);
    if (status != MAREY_OK)
        fail_msg("%s", marey_last_error());
    return runs;
}

/* What was noted, by the table that shows it. */
static void expect_note(struct marey__scaling_runs *runs, const char *part)
{
    marey_report *scaling = NULL;
    assert_int_equal(scaling_create(runs, NULL, &scaling), MAREY_OK);
    const marey_table *notes = marey_report_table(scaling, "notes");
    bool is_there = false;
    for (size_t i = 0; i < marey_table_n_rows(notes); i++)
        is_there |= strstr(marey_table_cell(notes, i, 0).as.text, part) != NULL;
    if (!is_there)
        fail_msg("no note says \"%s\"", part);
    marey_report_destroy(scaling);
}

static void expect_failure(const struct scratch *s, const char *name, const char *part)
{
    struct marey__scaling_runs *runs = runs_create();
    assert_int_equal(read_into(runs, s, name), MAREY_EFORMAT);
    if (strstr(marey_last_error(), part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", marey_last_error(), part);
    assert_int_equal(runs->n, 0);
    runs_destroy(runs);
}

static void expect_near(double value, double expected)
{
    if (!(fabs(value - expected) < 1e-6 * fabs(expected) + 1e-12))
        fail_msg("%.9g is not %.9g", value, expected);
}

/* ---- recordings ---- */

static void the_slowest_rank_counts(void **state)
{
    const struct scratch *s = *state;
    struct rank r = plain;
    write_rank(s, "two.marey", "r0", &r);
    r.rank = 1, r.pid = 101, r.step_s = 0.75;
    write_rank(s, "two.marey", "r1", &r);
    struct marey__scaling_runs *runs = read_path(s, "two.marey");
    assert_int_equal(runs->n, 1);
    const struct marey__scaling_run *run = &runs->list[0];
    assert_string_equal(run->strategy, "ddp");
    assert_string_equal(run->experiment, "unit");
    assert_int_equal(run->workers, 2);
    assert_int_equal(run->nodes, 1);
    assert_int_equal(run->n_epochs, 3);
    expect_near(run->epoch_s[0], 3);
    assert_int_equal(run->n_steps, 11); /* the first warms up */
    expect_near(run->step_s[0], 0.75);
    expect_near(run->numbers.batch, 64);
    expect_near(run->numbers.samples_per_epoch, 4 * 64);
    /* Means over ranks, a quarter of each step. */
    expect_near(run->numbers.communication_s, 0.625 / 4);
    expect_near(run->numbers.compute_s, 0.625 * 3 / 4);
    expect_near(run->numbers.idle_s + run->numbers.memory_s, 0);
    assert_int_equal(run->is_partial, 0);
    assert_true(isnan(run->numbers.joules) && run->epoch_j == NULL);
    runs_destroy(runs);
}

static void repeats_in_one_recording_are_runs(void **state)
{
    const struct scratch *s = *state;
    struct rank r = plain;
    r.world_size = 1;
    write_rank(s, "again.marey", "a", &r);
    r.run = "b", r.pid = 200, r.step_s = 1;
    write_rank(s, "again.marey", "b", &r);
    struct marey__scaling_runs *runs = read_path(s, "again.marey");
    assert_int_equal(runs->n, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct marey__scaling_run *run = &runs->list[i];
        assert_int_equal(run->workers, 1);
        assert_int_equal(run->n_epochs, 3);
        expect_near(run->epoch_s[1], strstr(run->name, "(b)") != NULL ? 4 : 2);
    }
    runs_destroy(runs);
}

/* One run id for two starts: torchrun --rdzv-id, MAREY_RUN_ID. */
static void ranks_that_are_there_twice_are_repeats(void **state)
{
    const struct scratch *s = *state;
    for (int repeat = 0; repeat < 2; repeat++)
        for (int rank = 0; rank < 2; rank++) {
            struct rank r = plain;
            char name[16];
            r.rank = rank;
            r.pid = 100 + 10 * repeat + rank;
            r.step_s = repeat == 0 ? 0.5 : 2;
            snprintf(name, sizeof name, "%d-%d", repeat, rank);
            write_rank(s, "same.marey", name, &r);
        }
    struct marey__scaling_runs *runs = read_path(s, "same.marey");
    assert_int_equal(runs->n, 2);
    expect_near(runs->list[0].epoch_s[0] + runs->list[1].epoch_s[0], 2 + 8);
    expect_note(runs, "several times under one run id");
    runs_destroy(runs);
}

/* Started by hand: no launcher gives them an id that they share. */
static void ranks_with_an_id_each_are_one_run(void **state)
{
    const struct scratch *s = *state;
    struct rank r = plain;
    write_rank(s, "hand.marey", "r0", &r);
    r.run = "b", r.rank = 1, r.pid = 101, r.step_s = 2;
    write_rank(s, "hand.marey", "r1", &r);
    struct marey__scaling_runs *runs = read_path(s, "hand.marey");
    assert_int_equal(runs->n, 1);
    expect_near(runs->list[0].epoch_s[0], 8);
    expect_near(runs->list[0].numbers.batch, 64);
    runs_destroy(runs);
}

static void missing_ranks_and_a_run_that_stopped_are_reported(void **state)
{
    const struct scratch *s = *state;
    struct rank r = plain;
    r.world_size = 4;
    r.end = NULL;
    write_rank(s, "some.marey", "r0", &r);
    r.rank = 2, r.pid = 102;
    write_rank(s, "some.marey", "r2", &r);
    struct marey__scaling_runs *runs = read_path(s, "some.marey");
    const struct marey__scaling_run *run = &runs->list[0];
    assert_int_equal(run->workers, 4);
    assert_int_equal(run->is_partial, 1);
    assert_int_equal(run->n_epochs, 3); /* the one that was not ended is none */
    expect_near(run->numbers.samples_per_epoch, 4 * 4 * 32);
    expect_note(runs, "Ranks 1 and 3 of 4 have no log here");
    expect_note(runs, "as many samples as the others");
    runs_destroy(runs);
}

static void a_folder_is_looked_through_and_damage_is_named(void **state)
{
    const struct scratch *s = *state;
    struct rank r = plain;
    r.world_size = 1;
    write_text(s, "all/notes.txt", "main;f 3\n");
    write_text(s, "all/config.json", "{\"a\": 1}");
    write_text(s, "all/deep/er/none.txt", "");
    write_rank(s, "all/one.marey", "r0", &r);
    r.rank = 0, r.world_size = 2;
    write_rank(s, "all/deep/two.marey", "r0", &r);
    r.rank = 1, r.pid = 101;
    write_rank(s, "all/deep/two.marey", "r1", &r);
    write_text(s, "all/bad.marey/r0.klog", "this is no log at all, and never was one");
    struct marey__scaling_runs *runs = read_path(s, "all");
    assert_int_equal(runs->n, 2);
    assert_int_equal(runs->list[0].workers + runs->list[1].workers, 3);
    expect_note(runs, "Left out: ");
    expect_note(runs, "bad.marey");
    runs_destroy(runs);
}

static void what_is_nothing_of_ours_is_one_sentence(void **state)
{
    const struct scratch *s = *state;
    write_text(s, "other/a.txt", "hello\n");
    write_text(s, "other/b.csv", "a,b\n1,2\n");
    write_text(s, "other/c.json", "{\"a\": 1}");
    expect_failure(s, "other", "has nothing measured in it");
    expect_failure(s, "other", "3 files are something else");
    expect_failure(s, "other/a.txt", "is not a recording");
    write_text(s, "empty.csv", "workers,epoch_time_s\n");
    expect_failure(s, "empty.csv", "no row");
    struct marey__scaling_runs *runs = runs_create();
    assert_int_equal(read_into(runs, s, "not there"), MAREY_EIO);
    runs_destroy(runs);
}

/* ---- a CSV of measurements ---- */

static const char long_form[] =
    "experiment,strategy,workers,nodes,run,rank,measure,step,unix_ms,value\n"
    "mnist,ddp,2,1,first,0,epoch_time_s,0,1010000,10\n"
    "mnist,ddp,2,1,first,0,epoch_time_s,1,1014000,4\n"
    "mnist,ddp,2,1,first,1,epoch_time_s,1,1014000,3\n"
    "mnist,ddp,2,1,first,,samples_per_epoch,,,1000\n"
    "mnist,ddp,2,1,first,,loss,0,,0.25\n"
    "mnist,ddp,2,1,first,,probing_interval,,,1\n"
    "mnist,ddp,2,1,first,0,gpu_utilization_percent,0,1000000,50\n"
    "mnist,ddp,2,1,first,1,gpu_utilization_percent,0,1000000,100\n"
    "mnist,ddp,2,1,first,0,gpu_power_W,0,1000000,100\n"
    "mnist,ddp,2,1,first,0,gpu_power_W,14,1014000,100\n"
    "mnist,ddp,2,1,first,1,gpu_power_W,0,1000000,50\n"
    "mnist,ddp,2,1,first,1,gpu_power_W,14,1014000,50\n"
    "mnist,ddp,0,1,first,0,epoch_time_s,7,,4\n"
    "mnist,ddp,4,1,second,,compute_s,,,0.5\n"
    "mnist,ddp,4,1,second,,compute_s,,,1.5\n"
    "mnist,ddp,4,1,second,0,epoch_time_s,,,5\n"
    "mnist,ddp,4,1,second,0,epoch_time_s,,,6\n";

static void the_long_form_is_read(void **state)
{
    const struct scratch *s = *state;
    write_text(s, "m.csv", long_form);
    struct marey__scaling_runs *runs = read_path(s, "m.csv");
    assert_int_equal(runs->n, 2);
    const struct marey__scaling_run *run = &runs->list[0];
    assert_string_equal(run->experiment, "mnist");
    assert_int_equal(run->n_epochs, 2);
    expect_near(run->epoch_s[0], 10);
    expect_near(run->epoch_s[1], 4); /* of two ranks the slower */
    expect_near(run->numbers.samples_per_epoch, 1000);
    expect_near(run->numbers.utilization, 0.75);
    /* 150 W for 14 s and half a second at both ends. */
    expect_near(run->numbers.joules, 150 * 15);
    expect_near(run->epoch_j[0], 150 * 10);
    expect_near(run->epoch_j[1], 150 * 4);
    run = &runs->list[1];
    assert_int_equal(run->workers, 4);
    assert_int_equal(run->n_epochs, 2);
    expect_near(run->numbers.compute_s, 1);
    assert_true(isnan(run->numbers.joules));
    expect_note(runs, "1 rows of other measures are left out, the first of 'loss'");
    expect_note(runs, "1 rows are left out");
    runs_destroy(runs);
}

static void samples_in_a_second_of_all_ranks_are_samples_of_an_epoch(void **state)
{
    const struct scratch *s = *state;
    write_text(s, "rates.csv",
               "workers,run,rank,measure,step,value\n"
               "2,all,1,samples_per_s,0,100\n2,all,0,samples_per_s,0,50\n"
               "2,all,0,epoch_time_s,0,4\n2,all,1,epoch_time_s,0,2\n"
               "2,all,0,samples_per_s,1,100\n2,all,1,samples_per_s,1,100\n"
               "2,all,0,epoch_time_s,1,2\n" /* the other rank takes as long */
               "2,all,0,samples_per_s,2,100\n2,all,0,epoch_time_s,2,2\n" /* of one rank: left out */
               "2,some,0,samples_per_s,0,100\n2,some,0,epoch_time_s,0,2\n"
               "4,whole,,samples_per_s,0,100\n4,whole,,epoch_time_s,0,3\n"
               "4,steps,,samples_per_s,0,100\n4,steps,,step_time_s,0,0.5\n");
    struct marey__scaling_runs *runs = read_path(s, "rates.csv");
    assert_int_equal(runs->n, 4);
    expect_near(runs->list[0].numbers.samples_per_epoch, 400);
    assert_true(isnan(runs->list[1].numbers.samples_per_epoch));
    expect_near(runs->list[2].numbers.samples_per_epoch, 300);
    expect_near(runs->list[3].numbers.batch, 50);
    expect_note(runs, "rates.csv: some: samples_per_s is known for 1 of 2 ranks");
    runs_destroy(runs);
}

static void power_of_some_ranks_is_no_energy(void **state)
{
    const struct scratch *s = *state;
    write_text(s, "m.csv",
               "workers,rank,measure,step,value\n2,0,epoch_time_s,0,3\n2,0,gpu_power_W,0,100\n"
               "2,0,gpu_power_W,3,100\n");
    struct marey__scaling_runs *runs = read_path(s, "m.csv");
    assert_true(isnan(runs->list[0].numbers.joules));
    expect_note(runs, "power is known for 1 of 2 ranks");
    runs_destroy(runs);
}

static void the_wide_form_is_read_and_epochs_that_begin_anew_are_repeats(void **state)
{
    const struct scratch *s = *state;
    write_text(s, "wide.csv",
               "\xef\xbb\xbf\"strategy\",workers,epoch,epoch_time_s,energy_j,note\r\n"
               "ddp,1,0,9,90,x\r\nddp,1,1,8,80,\r\nddp,1,0,7,70,\"a, b\"\r\nddp,2,0,5,,\r\n");
    struct marey__scaling_runs *runs = read_path(s, "wide.csv");
    assert_int_equal(runs->n, 3);
    assert_int_equal(runs->list[0].n_epochs, 2);
    expect_near(runs->list[0].epoch_j[1], 80);
    assert_int_equal(runs->list[1].n_epochs, 1);
    expect_near(runs->list[1].epoch_s[0], 7);
    assert_int_equal(runs->list[2].workers, 2);
    runs_destroy(runs);
}

static void the_options_win(void **state)
{
    const struct scratch *s = *state;
    char path[192];
    struct marey__scaling_runs *runs = NULL;
    const struct marey__scaling_read_options options = {
        .experiment = "own", .strategy = "fsdp", .workers = 16, .n_jobs = 1};
    write_text(s, "m.csv", long_form);
    snprintf(path, sizeof path, "%s/m.csv", s->folder);
    runs = runs_create();
    assert_int_equal(marey__scaling_runs_read(runs, path, false, &options), MAREY_OK);
    const struct marey__scaling_run *run = &runs->list[0];
    assert_string_equal(run->experiment, "own");
    assert_string_equal(run->strategy, "fsdp");
    assert_int_equal(run->workers, 16);
    runs_destroy(runs);
}

/* ---- itwinai's files, which Python converts ---- */

static void write_itwinai(const struct scratch *s)
{
    write_text(s, "old/run1/epoch-time/epochtime_torch-ddp_1N.csv",
               "epoch_id,time,name,nodes\n1,1.5,torch-ddp,1\n2,0.5,torch-ddp,1\n");
    write_text(s, "old/run1/torch-traces/worker_0.json",
               "{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"ProfilerStep#1\", \"cat\": "
               "\"user_annotation\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 9}]}");
}

/* As marey.itwinai does. */
static marey_status convert(void *ctx, const char *command, const char *from, const char *csv)
{
    FILE *out = fopen(csv, "w");
    assert_non_null(out);
    fputs("workers,epoch_time_s\n8,1.25\n", out);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(command, "measurements");
    assert_string_equal(from, ctx);
    return MAREY_OK;
}

static void files_of_itwinai_are_converted(void **state)
{
    const struct scratch *s = *state;
    static const char *const headers[] = {
        "epoch_id,time,name,nodes\n",
        "sample_idx,utilization,power,num_global_gpus,strategy,probing_interval\n",
        ",name,self_cuda_time_total,strategy,num_gpus\n"};
    char path[256];
    for (size_t i = 0; i < MAREY__COUNT_OF(headers); i++) {
        struct marey__scaling_runs *runs = runs_create();
        write_text(s, "one.csv", headers[i]);
        snprintf(path, sizeof path, "%s/one.csv", s->folder);
        assert_int_equal(
            marey__scaling_runs_read(runs, path, false, &(struct marey__scaling_read_options){0}),
            MAREY_EFORMAT);
        assert_non_null(strstr(marey_last_error(), "marey.itwinai"));
        const struct marey__scaling_read_options wants = {.convert = convert, .convert_ctx = path};
        assert_int_equal(marey__scaling_runs_read(runs, path, false, &wants), MAREY_OK);
        assert_int_equal(runs->n, 1);
        assert_int_equal(runs->list[0].workers, 8);
        assert_string_equal(runs->list[0].name, path);
        runs_destroy(runs);
    }
}

/* Traces beside itwinai's epoch times are the same run once more. */
static void the_rest_of_a_folder_with_files_of_itwinai_is_read(void **state)
{
    const struct scratch *s = *state;
    char path[256];
    const struct marey__scaling_read_options wants = {.convert = convert, .convert_ctx = path};
    struct marey__scaling_runs *runs = runs_create();
    write_itwinai(s);
    write_text(s, "old/more.csv", "workers,epoch_time_s\n4,2.5\n");
    snprintf(path, sizeof path, "%s/old", s->folder);
    assert_int_equal(marey__scaling_runs_read(runs, path, false, &wants), MAREY_OK);
    assert_int_equal(runs->n, 2);
    assert_int_equal(runs->list[0].workers, 4);
    assert_int_equal(runs->list[1].workers, 8);
    expect_note(runs, "torch-traces, found next to");
    runs_destroy(runs);
}

static void a_row_may_be_a_note(void **state)
{
    const struct scratch *s = *state;
    write_text(s, "m.csv", "workers,measure,value\n2,epoch_time_s,1\n,note,\"Half of it, read.\"\n");
    struct marey__scaling_runs *runs = read_path(s, "m.csv");
    assert_int_equal(runs->n, 1);
    expect_note(runs, "Half of it, read.");
    runs_destroy(runs);
}

/* ---- memory ---- */

static void expect_each_failure_to_be_clean(const struct scratch *s, const char *name)
{
    for (uint64_t nth = 1;; nth++) {
        struct marey__scaling_runs *runs = NULL;
        runs = runs_create();
        marey__alloc_fail_nth(nth);
        const marey_status status = read_into(runs, s, name);
        marey__alloc_fail_nth(0);
        runs_destroy(runs);
        if (status == MAREY_OK)
            break;
        assert_int_equal(status, MAREY_ENOMEM);
    }
}

static void without_memory_nothing_is_left(void **state)
{
    const struct scratch *s = *state;
    struct rank r = plain;
    write_rank(s, "two.marey", "r0", &r);
    r.run = "b", r.pid = 101;
    write_rank(s, "two.marey", "r1", &r);
    write_text(s, "m.csv", long_form);
    write_itwinai(s);
    write_text(s, "old/more.csv", "workers,measure,value\n4,epoch_time_s,2.5\n,note,x\n");
    expect_each_failure_to_be_clean(s, "m.csv");
    expect_each_failure_to_be_clean(s, "old");
    expect_each_failure_to_be_clean(s, "two.marey");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(the_slowest_rank_counts),
        SCRATCH_TEST(repeats_in_one_recording_are_runs),
        SCRATCH_TEST(ranks_that_are_there_twice_are_repeats),
        SCRATCH_TEST(ranks_with_an_id_each_are_one_run),
        SCRATCH_TEST(missing_ranks_and_a_run_that_stopped_are_reported),
        SCRATCH_TEST(a_folder_is_looked_through_and_damage_is_named),
        SCRATCH_TEST(what_is_nothing_of_ours_is_one_sentence),
        SCRATCH_TEST(the_long_form_is_read),
        SCRATCH_TEST(samples_in_a_second_of_all_ranks_are_samples_of_an_epoch),
        SCRATCH_TEST(power_of_some_ranks_is_no_energy),
        SCRATCH_TEST(the_wide_form_is_read_and_epochs_that_begin_anew_are_repeats),
        SCRATCH_TEST(the_options_win),
        SCRATCH_TEST(files_of_itwinai_are_converted),
        SCRATCH_TEST(the_rest_of_a_folder_with_files_of_itwinai_is_read),
        SCRATCH_TEST(a_row_may_be_a_note),
        SCRATCH_TEST(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
