/* The count of iterations, its driver, epochs and phases, and their records. */
#include <pthread.h>
#include <sys/wait.h>

#include "scratch.h"
#include "switchboard/internal.h"

static struct marey_progress_counts counts(void)
{
    struct marey_progress_counts out;
    marey_iteration_counts(&out);
    return out;
}

struct heard {
    int n;
    char sentence[512];
};

static void hear(void *ctx, const char *sentence)
{
    struct heard *const heard = ctx;
    heard->n++;
    snprintf(heard->sentence, sizeof heard->sentence, "%s", sentence);
}

static void the_first_who_finishes_drives_and_others_are_reported_once(void **state)
{
    (void)state;
    struct heard heard = {0};
    marey_set_sink(hear, &heard);
    assert_null(counts().driver);
    marey_iteration_begin_by("a callback"); /* who only begins does not count */
    assert_null(counts().driver);
    assert_int_equal(marey_iteration_finish(), 1);
    assert_string_equal(counts().driver, "marey_iteration_finish");
    for (int i = 0; i < 3; i++)
        assert_int_equal(marey_iteration_finish_by("Stopwatch.finish_iter", 0), 0);
    assert_int_equal(marey_iteration_finish(), 1);
    assert_int_equal(counts().iterations, 2);
    assert_int_equal(heard.n, 1);
    assert_non_null(strstr(heard.sentence, "marey_iteration_finish already counts"));
    assert_non_null(strstr(heard.sentence, "Stopwatch.finish_iter"));
    marey_set_sink(NULL, NULL);
}

static void a_driver_is_its_name_and_not_its_address(void **state)
{
    (void)state;
    static char one[] = "a driver", other[] = "a driver";
    assert_int_equal(marey_iteration_finish_by(one, 0), 1);
    assert_int_equal(marey_iteration_finish_by(other, 0), 1);
    assert_int_equal(marey_iteration_finish_by(NULL, 0), 0);
}

static void a_reset_forgets_the_driver_and_the_counts(void **state)
{
    (void)state;
    marey_iteration_set_warmup(5);
    assert_int_equal(marey_iteration_finish_by("one", 0), 1);
    marey_epoch_begin();
    marey_reset();
    const struct marey_progress_counts after = counts();
    assert_int_equal(after.iterations, 0);
    assert_int_equal(after.warmup, 0);
    assert_int_equal(after.in_epoch, 0);
    assert_null(after.driver);
    assert_int_equal(marey_iteration_finish_by("other", 0), 1);
    assert_int_equal(counts().warmup, 0);
}

static void the_first_iterations_are_warmup(void **state)
{
    (void)state;
    marey_iteration_set_warmup(3);
    for (int i = 0; i < 5; i++)
        marey_iteration_finish();
    assert_int_equal(counts().iterations, 5);
    assert_int_equal(counts().warmup, 3);
    marey__iteration_more_warmup(2); /* from here on */
    for (int i = 0; i < 5; i++)
        marey_iteration_finish();
    assert_int_equal(counts().warmup, 5);
    marey__iteration_more_warmup(UINT64_MAX);
    marey_iteration_finish();
    assert_int_equal(counts().warmup, 6);
}

static void pause_ms(unsigned ms)
{
    usleep(ms * 1000);
}

static uint64_t phase_ns(const struct marey_epoch_times *times, const char *name)
{
    for (uint32_t i = 0; i < times->n_phases; i++)
        if (strcmp(marey_site_name(times->phases[i].name, NULL), name) == 0)
            return times->phases[i].ns;
    return 0;
}

/* Also without a recording: loggers are told of an epoch when it ends. */
static void an_epoch_knows_its_phases(void **state)
{
    (void)state;
    struct marey_epoch_times times;
    uint64_t sum;
    marey_iteration_reset();
    assert_false(marey_epoch_last(&times));
    marey_phase(MAREY_ID("forward")); /* open before the epoch, and behind it */
    marey_epoch_begin_at(7);
    assert_false(marey_epoch_last(&times));
    pause_ms(2);
    marey_phase(MAREY_ID("data"));
    pause_ms(1);
    marey_phase(0);
    assert_true(marey_iteration_finish_by("test", 32));
    marey_phase(MAREY_ID("forward"));
    marey_epoch_end();
    pause_ms(1);
    marey_phase(0);
    assert_true(marey_epoch_last(&times));
    assert_int_equal(times.number, 7);
    assert_int_equal(times.iterations, 1);
    assert_true(times.samples == 32);
    assert_int_equal(times.n_phases, 2);
    assert_true(phase_ns(&times, "forward") >= 2000000);
    assert_true(phase_ns(&times, "data") >= 1000000);
    sum = times.none_ns + phase_ns(&times, "forward") + phase_ns(&times, "data");
    assert_int_equal(times.duration_ns, sum);
    marey_epoch_begin();
    assert_int_equal(counts().epochs, 8);
    marey_epoch_end();
    assert_true(marey_epoch_last(&times));
    assert_int_equal(times.number, 8);
    assert_int_equal(times.iterations, 0);
}

static void epochs_do_not_nest(void **state)
{
    (void)state;
    marey_epoch_end(); /* none is open */
    assert_int_equal(counts().epochs, 0);
    marey_epoch_begin();
    assert_true(counts().in_epoch);
    marey_epoch_begin();
    assert_int_equal(counts().epochs, 1);
    marey_epoch_end();
    marey_epoch_end();
    assert_int_equal(counts().epochs, 2);
    assert_false(counts().in_epoch);
}

/* ---- in the recording ---- */

enum { MAX_RECORDS = 32 };
struct records {
    size_t n;
    uint64_t words[MAX_RECORDS][4]; /* type and what follows */
};

static marey_status collect(void *ctx, const struct marey_batch *batch)
{
    struct records *const records = ctx;
    for (size_t i = 0; i < batch->n;) {
        const uint64_t word = batch->words[i];
        const size_t n = marey_word_kind(word) == MAREY_KIND_RECORD ? marey_record_length(word) : 1;
        if (n > 1 && records->n < MAX_RECORDS) {
            uint64_t *const to = records->words[records->n++];
            to[0] = marey_record_type_of(word);
            for (size_t k = 1; k < MAREY__MIN(n, (size_t)4); k++)
                to[k] = batch->words[i + k];
        }
        i += n;
    }
    return MAREY_OK;
}

static void read_records(const char *path, struct records *records)
{
    marey_recording *recording;
    *records = (struct records){0};
    assert_int_equal(marey_recording_open(path, &recording), MAREY_OK);
    for (size_t i = 0; i < marey_recording_n_processes(recording); i++)
        assert_int_equal(marey_recording_visit(recording, i, collect, records), MAREY_OK);
    marey_recording_close(recording);
}

static void assert_record(const struct records *records, size_t i, uint64_t type, uint64_t a,
                          uint64_t b)
{
    assert_true(i < records->n);
    assert_int_equal(records->words[i][0], type);
    assert_int_equal(records->words[i][1], a);
    if (type != MAREY_RECORD_PHASE && type != MAREY_RECORD_ITERATION_BEGIN)
        assert_int_equal(records->words[i][2], b);
}

static void all_of_it_is_written(void **state)
{
    const struct scratch *s = *state;
    const marey_id train = MAREY_ID("train");
    struct records r;
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path, .text = "warmup=1"}),
                     MAREY_OK);
    marey_epoch_begin();
    marey_phase(train);
    marey_phase(train); /* it is on already */
    marey_iteration_begin();
    marey_iteration_finish_by("marey_iteration_finish", 32);
    marey_iteration_finish();
    marey_iteration_finish_by("another driver", 0);
    marey_phase(0);
    marey_epoch_begin();
    marey_epoch_end();
    assert_int_equal(marey_stop(), MAREY_OK);
    read_records(s->path, &r);
    assert_int_equal(r.n, 9);
    assert_record(&r, 0, MAREY_RECORD_EPOCH, 0, 1);
    assert_record(&r, 1, MAREY_RECORD_PHASE, train, 0);
    assert_record(&r, 2, MAREY_RECORD_ITERATION_BEGIN, 0, 0);
    assert_record(&r, 3, MAREY_RECORD_ITERATION, 0, 1);
    assert_record(&r, 4, MAREY_RECORD_ITERATION, 1, 0);
    assert_record(&r, 5, MAREY_RECORD_PHASE, 0, 0);
    assert_record(&r, 6, MAREY_RECORD_EPOCH, 0, 0);
    assert_record(&r, 7, MAREY_RECORD_EPOCH, 1, 1);
    assert_record(&r, 8, MAREY_RECORD_EPOCH, 1, 0);
    double samples;
    memcpy(&samples, &r.words[3][3], sizeof samples);
    assert_true(samples == 32);
}

static void a_recording_that_comes_later_is_reported_where_it_is(void **state)
{
    const struct scratch *s = *state;
    const marey_id phase = MAREY_ID("evaluate");
    struct records r;
    marey_iteration_finish();
    marey_epoch_begin();
    marey_phase(phase);
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    marey_iteration_finish();
    marey_iteration_finish();
    assert_int_equal(marey_stop(), MAREY_OK);
    read_records(s->path, &r);
    assert_int_equal(r.n, 4);
    assert_record(&r, 0, MAREY_RECORD_EPOCH, 0, 1);
    assert_record(&r, 1, MAREY_RECORD_PHASE, phase, 0);
    assert_record(&r, 2, MAREY_RECORD_ITERATION, 1, 0);
    assert_record(&r, 3, MAREY_RECORD_ITERATION, 2, 0);
}

static void odd_samples_count_as_unknown(void **state)
{
    const struct scratch *s = *state;
    struct records r;
    const double odd[] = {-1, 0.0 / 0.0, 1e308 * 10};
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    for (size_t i = 0; i < MAREY__COUNT_OF(odd); i++)
        marey_iteration_finish_by("odd", odd[i]);
    assert_int_equal(marey_stop(), MAREY_OK);
    read_records(s->path, &r);
    for (size_t i = 0; i < MAREY__COUNT_OF(odd); i++)
        assert_int_equal(r.words[i][3], 0);
}

/* ---- subscribers ---- */

static struct marey__iteration_event last;
static int n_finished, n_warmups;

static void on_finished(const struct marey__iteration_event *it)
{
    last = *it;
    n_finished++;
    assert_int_equal(counts().iterations, it->number + 1); /* no lock is held */
}

static void on_warmup(bool in_warmup)
{
    n_warmups += in_warmup ? 1 : 100;
}

static void subscribers_are_notified_of_what_counts(void **state)
{
    (void)state;
    static const struct marey__iteration_subscriber me = {on_finished, on_warmup};
    n_finished = n_warmups = 0;
    assert_true(marey__iteration_subscribe(&me));
    assert_true(marey__iteration_subscribe(&me));
    marey_iteration_set_warmup(2);
    assert_int_equal(n_warmups, 1);
    marey_iteration_finish_by("one", 7);
    assert_int_equal(n_finished, 1);
    assert_true(last.is_warmup && last.next_is_warmup && last.has_begin && last.samples == 7);
    marey_iteration_finish_by("other", 0);
    assert_int_equal(n_finished, 1);
    marey_iteration_finish_by("one", 0);
    assert_true(last.is_warmup && !last.next_is_warmup);
    marey_iteration_finish_by("one", 0);
    assert_true(!last.is_warmup && last.number == 2);
    marey__iteration_unsubscribe(&me);
    marey_iteration_finish_by("one", 0);
    assert_int_equal(n_finished, 3);
}

static void phases_within_an_iteration_do_not_begin_it_anew(void **state)
{
    (void)state;
    static const struct marey__iteration_subscriber me = {.finished = on_finished};
    assert_true(marey__iteration_subscribe(&me));
    marey_iteration_begin_by("one");
    const uint64_t begin_ns = marey__clock_ns(CLOCK_MONOTONIC);
    while (marey__clock_ns(CLOCK_MONOTONIC) - begin_ns < 100000)
        ;
    marey_phase(MAREY_ID("forward"));
    const uint64_t passed_ns = marey__clock_ns(CLOCK_MONOTONIC) - begin_ns;
    marey_iteration_finish_by("one", 0);
    assert_true(last.duration_ns >= passed_ns);
    marey__iteration_unsubscribe(&me);
}

static void the_table_of_subscribers_ends(void **state)
{
    (void)state;
    static struct marey__iteration_subscriber many[16];
    size_t n = 0;
    while (n < MAREY__COUNT_OF(many) && marey__iteration_subscribe(&many[n]))
        n++;
    assert_in_range(n, 1, MAREY__COUNT_OF(many) - 1);
    for (size_t i = 0; i < n; i++)
        marey__iteration_unsubscribe(&many[i]);
}

static void a_child_counts_from_zero_without_a_driver(void **state)
{
    (void)state;
    marey_iteration_finish_by("parent", 0);
    const pid_t child = fork();
    if (child == 0)
        _exit(counts().iterations == 0 && counts().driver == NULL &&
                      marey_iteration_finish_by("child", 0) == 1
                  ? 0
                  : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(counts().iterations, 1);
}

static void *finish_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10000; i++)
        marey_iteration_finish();
    return NULL;
}

static void no_iteration_is_lost_or_counted_twice(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, finish_many, NULL), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(counts().iterations, 40000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(the_first_who_finishes_drives_and_others_are_reported_once),
        SCRATCH_TEST(a_driver_is_its_name_and_not_its_address),
        SCRATCH_TEST(a_reset_forgets_the_driver_and_the_counts),
        SCRATCH_TEST(the_first_iterations_are_warmup),
        SCRATCH_TEST(epochs_do_not_nest),
        SCRATCH_TEST(an_epoch_knows_its_phases),
        SCRATCH_TEST(all_of_it_is_written),
        SCRATCH_TEST(a_recording_that_comes_later_is_reported_where_it_is),
        SCRATCH_TEST(odd_samples_count_as_unknown),
        SCRATCH_TEST(subscribers_are_notified_of_what_counts),
        SCRATCH_TEST(phases_within_an_iteration_do_not_begin_it_anew),
        SCRATCH_TEST(the_table_of_subscribers_ends),
        SCRATCH_TEST(a_child_counts_from_zero_without_a_driver),
        SCRATCH_TEST(no_iteration_is_lost_or_counted_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
