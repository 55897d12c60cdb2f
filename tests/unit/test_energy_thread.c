/* energy: faulty counters, lists of devices, RAPL zones, the lock, and the thread with a fake NVML.
 * */
#include <sys/wait.h>

#include "instrument/energy/internal.h"
#include "scratch.h"
#include <marey/iteration.h>
#include <marey/range.h>

/* ---- counters ---- */

static struct marey__count counter(uint64_t range)
{
    return (struct marey__count){.unit_j = 1e-3, .range = range};
}

static void a_counter_that_rises_gives_its_differences(void **state)
{
    (void)state;
    struct marey__count count = counter(UINT64_C(1) << 32);
    assert_int_equal(marey__count_take(&count, 5000000), MAREY__COUNT_FINE);
    const double first = count.joules;
    count.expected_j = 300;
    assert_int_equal(marey__count_take(&count, 5250000), MAREY__COUNT_FINE);
    assert_true(count.joules - first == 250);
    assert_true(count.expected_j == 0);
}

static void a_wrap_is_distinguished_from_a_new_beginning_by_what_is_possible(void **state)
{
    (void)state;
    struct marey__count count = counter(UINT64_C(1) << 32);
    marey__count_take(&count, (UINT64_C(1) << 32) - 100000);
    double before = count.joules;
    count.expected_j = 280, count.most_j = 1500;
    assert_int_equal(marey__count_take(&count, 200000), MAREY__COUNT_WRAPPED);
    assert_true(count.joules - before == 300);
    /* From 200 J back to 5: as a wrap that would be four megajoules. */
    before = count.joules;
    count.expected_j = 280, count.most_j = 1500;
    assert_int_equal(marey__count_take(&count, 5000), MAREY__COUNT_RESET);
    assert_true(count.joules - before == 280);
    before = count.joules;
    assert_int_equal(marey__count_take(&count, 6000), MAREY__COUNT_FINE);
    assert_true(count.joules - before == 1);
}

static void a_counter_that_has_no_range_never_wraps(void **state)
{
    (void)state;
    struct marey__count count = counter(0);
    marey__count_take(&count, UINT64_MAX);
    count.expected_j = 1, count.most_j = 1e300;
    assert_int_equal(marey__count_take(&count, 0), MAREY__COUNT_RESET);
}

static void a_counter_that_stands_still_is_reported_once_enough_went_by(void **state)
{
    (void)state;
    struct marey__count count = counter(0);
    marey__count_take(&count, 1000);
    count.expected_j = 49;
    assert_int_equal(marey__count_take(&count, 1000), MAREY__COUNT_FINE);
    count.expected_j += 2;
    assert_int_equal(marey__count_take(&count, 1000),
                     MAREY__COUNT_FINE); /* 700 W in 0.07 s: it may be about to move */
    count.still_s = 0.6;
    assert_int_equal(marey__count_take(&count, 1000), MAREY__COUNT_STUCK);
    assert_int_equal(marey__count_take(&count, 1000), MAREY__COUNT_STUCK);
    assert_int_equal(marey__count_take(&count, 90000), MAREY__COUNT_FINE);
    assert_true(count.joules == 90);
}

/* ---- devices ---- */

static const struct marey__node_gpu node[] = {
    {.uuid = "GPU-aa01", .model = "H", .n_slices = 2, .slices = {"MIG-aa", "MIG-ab"}},
    {.uuid = "GPU-aa02", .model = "H"},
    {.uuid = "GPU-bb03", .model = "H"},
};

static void assert_visible(const char *text, const char *expected)
{
    struct marey__visible_device devices[MAREY__MAX_GPUS];
    struct marey__buf out = {0};
    marey__visible_put(&out, node, devices, marey__visible_choose(text, node, 3, devices));
    marey__buf_put(&out, "", 1);
    if (strcmp(out.data, expected) != 0)
        fail_msg("%s: %s and not %s", text != NULL ? text : "(not set)", out.data, expected);
    marey__buf_fini(&out);
}

static void lists_of_devices_are_read_as_cuda_does(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {NULL, "MIG-aa,GPU-aa02,GPU-bb03"},
        {"", ""},
        {"-1", ""},
        {"0", "MIG-aa"},
        {"2,1", "GPU-bb03,GPU-aa02"},
        {" 2 ,\t1 ", "GPU-bb03,GPU-aa02"},
        {"2,3,1", "GPU-bb03"},
        {"2,,1", "GPU-bb03"},
        {"2,1x", "GPU-bb03"},
        {"1,-1,2", "GPU-aa02"},
        {"18446744073709551617", ""},
        {"1,2,1", ""},
        {"GPU-bb", "GPU-bb03"},
        {"gpu-bb", ""},
        {"GPU-BB03", "GPU-bb03"},
        {"GPU-aa0", ""}, /* two begin so */
        {"GPU-", ""},
        {"GPU-bb03,1", "GPU-bb03"},
        {"1,GPU-bb03", "GPU-aa02"},
        {"MIG-ab", "MIG-ab"},
        {"MIG-a", ""},
        {"GPU-aa01,MIG-ab", "MIG-aa,MIG-ab"},
        {"all", ""},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(cases); i++)
        assert_visible(cases[i][0], cases[i][1]);
}

static void numbers_are_doubtful_where_there_are_several_models(void **state)
{
    (void)state;
    struct marey__node_gpu mixed[3];
    memcpy(mixed, node, sizeof mixed);
    assert_false(marey__visible_is_ambiguous("0", NULL, mixed, 3));
    snprintf(mixed[2].model, sizeof mixed[2].model, "A");
    assert_true(marey__visible_is_ambiguous("0", NULL, mixed, 3));
    assert_true(marey__visible_is_ambiguous("0", "FASTEST_FIRST", mixed, 3));
    assert_true(marey__visible_is_ambiguous(NULL, NULL, mixed, 3));
    assert_false(marey__visible_is_ambiguous("0", "PCI_BUS_ID", mixed, 3));
    assert_false(marey__visible_is_ambiguous("GPU-aa02", NULL, mixed, 3));
    assert_false(marey__visible_is_ambiguous("0", NULL, mixed, 2));
}

static void the_gpus_of_a_machine_come_back_from_their_text(void **state)
{
    (void)state;
    struct marey__node_gpu back[4];
    struct marey__buf text = {0};
    marey__node_gpus_put(&text, node, 3);
    marey__buf_put(&text, "", 1);
    assert_int_equal(marey__node_gpus_parse(text.data, back, 4), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(back[i].uuid, node[i].uuid);
        assert_string_equal(back[i].model, node[i].model);
        assert_int_equal(back[i].n_slices, node[i].n_slices);
    }
    assert_string_equal(back[0].slices[1], "MIG-ab");
    assert_int_equal(marey__node_gpus_parse(text.data, back, 2), 2);
    assert_int_equal(marey__node_gpus_parse("", back, 4), 0);
    marey__buf_fini(&text);
}

static void zones_are_packages_and_their_memory(void **state)
{
    (void)state;
    char device[48];
    uint64_t number;
    assert_true(marey__zone_device("intel-rapl:0", "package-0", "", device, sizeof device));
    assert_string_equal(device, "package-0");
    assert_true(marey__zone_device("intel-rapl:3:1", "dram", "package-12", device, sizeof device));
    assert_string_equal(device, "package-12-dram");
    assert_false(marey__zone_device("intel-rapl:0:0", "core", "package-0", device, sizeof device));
    assert_false(marey__zone_device("intel-rapl:1", "psys", "", device, sizeof device));
    assert_false(marey__zone_device("intel-rapl:1:0", "dram", "psys", device, sizeof device));
    assert_false(marey__zone_device("intel-rapl-mmio:0", "package-0", "", device, sizeof device));
    assert_false(marey__zone_device("intel-rapl", "package-0", "", device, sizeof device));
    assert_false(marey__zone_device("intel-rapl:0", "package-|", "", device, sizeof device));
    assert_true(marey__zone_number("12\n", 3, &number) && number == 12);
    assert_true(marey__zone_number("12", 2, &number) && number == 12);
    assert_false(marey__zone_number("12 ", 3, &number));
    assert_false(marey__zone_number("\n", 1, &number));
    assert_false(marey__zone_number("", 0, &number));
    assert_false(marey__zone_number("-1\n", 3, &number));
}

/* ---- whose turn it is ---- */

static void one_at_a_time_has_the_turn(void **state)
{
    const struct scratch *s = *state;
    struct marey__energy_lock a = {.file.fd = -1}, b = {.file.fd = -1}, c = {.file.fd = -1};
    assert_int_equal(marey__energy_lock_try(&a, s->folder), MAREY__TURN_OURS);
    assert_int_equal(marey__energy_lock_try(&b, s->folder), MAREY__TURN_LATER);
    assert_int_equal(marey__energy_lock_try(&c, s->folder), MAREY__TURN_LATER);
    marey__energy_lock_release(&a);
    assert_int_not_equal(access(a.path, F_OK),
                         0); /* it is taken away, and b and c hold what has no name */
    assert_int_equal(marey__energy_lock_try(&b, s->folder), MAREY__TURN_OURS);
    assert_int_equal(marey__energy_lock_try(&c, s->folder), MAREY__TURN_LATER);
    marey__energy_lock_release(&c); /* who stood by in vain takes nothing away */
    assert_int_equal(access(b.path, F_OK), 0);
    marey__energy_lock_release(&b);
    assert_int_not_equal(access(b.path, F_OK), 0);
    assert_int_equal(marey__energy_lock_try(&a, "/proc/nowhere"), MAREY__TURN_NEVER);
}

static void those_who_stand_in_line_say_which_gpus_they_use(void **state)
{
    const struct scratch *s = *state;
    struct marey__energy_lock locks[3] = {{.file.fd = -1}, {.file.fd = -1}, {.file.fd = -1}};
    static const char *const visible[] = {"1,2", NULL, ""};
    char line[4200];
    bool is_set;
    size_t at = 0;
    for (size_t i = 0; i < 3; i++) {
        if (visible[i] != NULL)
            setenv("CUDA_VISIBLE_DEVICES", visible[i], 1);
        else
            unsetenv("CUDA_VISIBLE_DEVICES");
        marey__energy_lock_try(&locks[i], s->folder);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_true(marey__energy_lock_next(&locks[0], &at, line, sizeof line, &is_set));
        assert_int_equal(is_set, visible[i] != NULL);
        assert_string_equal(line, visible[i] != NULL ? visible[i] : "");
    }
    assert_false(marey__energy_lock_next(&locks[0], &at, line, sizeof line, &is_set));
    unsetenv("CUDA_VISIBLE_DEVICES");
    for (size_t i = 3; i-- > 0;)
        marey__energy_lock_release(&locks[i]);
}

/* ---- the timetable; without a GPU, so that nothing is read ---- */

static struct marey__energy_session *timetable(uint32_t hz)
{
    struct marey__energy_session *s = calloc(1, sizeof *s);
    s->power_hz = hz;
    pthread_mutex_init(&s->calls, NULL);
    marey__energy_times_init(s);
    return s;
}

static void where_readings_are_dear_there_are_fewer(void **state)
{
    (void)state;
    static const struct {
        enum marey__due_kind kind;
        uint64_t cost_us, period_ms;
    } cases[] = {
        {MAREY__DUE_POWER, 5, 50},
        {MAREY__DUE_POWER, 30, 75},
        {MAREY__DUE_POWER, 90, 100},
        {MAREY__DUE_COUNT, 20, 4000},
        {MAREY__DUE_COUNT, 3000, 20000},
        {MAREY__DUE_COUNT, 6000, 30000},
        {MAREY__DUE_UTILIZATION, 50, 1000},
        {MAREY__DUE_UTILIZATION, 1500, 7500},
        {MAREY__DUE_UTILIZATION, 2600, 10000},
        {MAREY__DUE_GPM, 200, 5000},
        {MAREY__DUE_STATE, 9, 1000},
        {MAREY__DUE_STATE, 150, 5000},
        {MAREY__DUE_STATE, 3000, 8000},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(cases); i++)
        assert_int_equal(marey__pace_period_ns(cases[i].kind, cases[i].cost_us * 1000),
                         cases[i].period_ms * 1000000);
    struct marey__energy_session *s = timetable(0), *asked = timetable(50);
    assert_int_equal(s->due[MAREY__DUE_POWER].period_ns, MAREY__SECOND_NS / 20);
    assert_int_equal(asked->due[MAREY__DUE_POWER].period_ns, MAREY__SECOND_NS / 50);
    asked->due[MAREY__DUE_POWER].cost_ns = MAREY__SECOND_NS;
    assert_int_equal(marey__pace_plan(asked, MAREY__DUE_POWER), MAREY__SECOND_NS / 50);
    free(s);
    free(asked);
}

/* What was measured on an H200, in microseconds of the processor. */
static void a_slow_driver_is_read_within_a_thousandth_of_a_core(void **state)
{
    (void)state;
    static const uint64_t costs_us[MAREY__N_PACED] = {[MAREY__DUE_POWER] = 60,
                                                      [MAREY__DUE_COUNT] = 4500,
                                                      [MAREY__DUE_UTILIZATION] = 2000,
                                                      [MAREY__DUE_GPM] = 190,
                                                      [MAREY__DUE_STATE] = 280};
    const struct marey__power_ring ring = {.period_us = 20000, .span_us = 2360000};
    double share = 550e3 / (double)marey__energy_ring_period_ns(&ring);
    for (enum marey__due_kind kind = MAREY__DUE_COUNT; kind < MAREY__N_PACED; kind++)
        share += (double)costs_us[kind] * 1e3 /
                 (double)marey__pace_period_ns(kind, costs_us[kind] * 1000);
    assert_true(share < 0.0008);
}

static void what_a_first_reading_takes_is_forgotten(void **state)
{
    (void)state;
    struct marey__due due = {0};
    marey__pace_note(&due, 9000);
    assert_int_equal(due.cost_ns, 9000);
    marey__pace_note(&due, 1000);
    assert_int_equal(due.cost_ns, 1000);
    marey__pace_note(&due, 2000);
    assert_int_equal(due.cost_ns, 1250);
}

static void counters_are_read_every_4_s_and_rather_at_epochs(void **state)
{
    (void)state;
    struct marey__energy_session *s = timetable(0);
    const uint64_t *const counted_ns = &s->due[MAREY__DUE_COUNT].read_ns;
    const uint64_t begin = *counted_ns, second = MAREY__SECOND_NS;
    marey__energy_times_read(s, begin + 4 * second - 1, 0);
    assert_int_equal(*counted_ns, begin);
    marey__energy_times_read(s, begin + 4 * second, 0);
    assert_int_equal(*counted_ns, begin + 4 * second);
    marey__energy_times_read(s, begin + 7 * second, 1); /* an edge, too early for the counter */
    assert_int_equal(*counted_ns, begin + 4 * second);
    marey__energy_times_read(s, begin + 20 * second, 1); /* none in between, for the sake of the next */
    assert_int_equal(*counted_ns, begin + 4 * second);
    marey__energy_times_read(s, begin + 21 * second, 2);
    assert_int_equal(*counted_ns, begin + 21 * second);
    marey__energy_times_read(s, begin + 51 * second, 2); /* unless it takes too long to come */
    assert_int_equal(*counted_ns, begin + 51 * second);
    free(s);
}

static void a_dear_counter_is_read_at_epochs_while_that_is_within_bounds(void **state)
{
    (void)state;
    struct marey__energy_session *s = timetable(0);
    const uint64_t begin = s->began_ns, second = MAREY__SECOND_NS;
    struct marey__due *const count = &s->due[MAREY__DUE_COUNT];
    s->n_gpus = 1;
    s->cpu_ns = marey__clock_ns(CLOCK_THREAD_CPUTIME_ID) - 4000000; /* spent so far */
    count->cost_ns = 900000; /* not dear: as often as it may */
    assert_true(marey__pace_can_afford(s, MAREY__DUE_COUNT, begin));
    count->cost_ns = 20000000;
    assert_false(marey__pace_can_afford(s, MAREY__DUE_COUNT, begin + 20 * second));
    assert_true(marey__pace_can_afford(s, MAREY__DUE_COUNT, begin + 2000 * second));
    s->n_gpus = 0;
    free(s);
}

static void what_was_overslept_is_not_made_up_for(void **state)
{
    (void)state;
    struct marey__energy_session *s = timetable(10);
    struct marey__due *const power = &s->due[MAREY__DUE_POWER];
    const uint64_t begin = power->next_ns;
    marey__energy_times_read(s, begin + 1, 0);
    assert_int_equal(power->next_ns, begin + 100000000);
    marey__energy_times_read(s, begin + 1234567890, 0);
    assert_int_equal(power->next_ns, begin + 1300000000);
    free(s);
}

/* ---- the thread ---- */

static void use_standin(const struct scratch *s, const char *script)
{
    char path[160];
    snprintf(path, sizeof path, "%s/script", s->folder);
    FILE *file = fopen(path, "w");
    fprintf(file, "%s", script);
    fclose(file);
    setenv("MAREY_NVML_LIBRARY", MAREY_TEST_NVML, 1);
    setenv("MAREY_STANDIN_NVML", path, 1);
    setenv("MAREY_POWERCAP_ROOT", s->folder, 1);
}

static const struct marey_process *only_process(marey_recording *recording)
{
    assert_int_equal(marey_recording_n_logs(recording), 1);
    return marey_recording_process(recording, 0);
}

static marey_status start_energy(const char *path)
{
    return marey_start(&(struct marey_options){.path = path, .text = "energy=1,energy.hz=100"});
}

static void wait_for_events(uint64_t n)
{
    struct marey_counts counts;
    do {
        usleep(5000);
        marey_counts_get(&counts);
    } while (counts.events < n);
}

static void a_recording_with_energy_has_counters_and_says_what_was_read(void **state)
{
    const struct scratch *s = *state;
    marey_recording *recording;
    use_standin(s, "gpus 2\n");
    assert_int_equal(start_energy(s->path), MAREY_OK);
    wait_for_events(100);
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_true(scratch_count(s->path, MAREY_KIND_RECORD) > 20);
    assert_int_equal(marey_recording_open(s->path, &recording), MAREY_OK);
    const struct marey_process *process = only_process(recording);
    assert_string_equal(process->role, "");
    assert_string_equal(process->devices, "GPU-00000000-1111-2222-3333-444444444444,"
                                          "GPU-00000001-1111-2222-3333-444444444444");
    assert_non_null(strstr(process->energy_sources,
                           "GPU-00000001-1111-2222-3333-444444444444|Stand-in|power: instant, "));
    assert_non_null(strstr(process->energy_sources, "missing: nothing"));
    assert_true(process->energy_cpu_ns > 0);
    marey_recording_close(recording);
}

static void recordings_with_energy_follow_one_another(void **state)
{
    const struct scratch *s = *state;
    use_standin(s, "gpus 1\n");
    for (int i = 0; i < 8; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s/%d.marey", s->folder, i);
        assert_int_equal(start_energy(path), MAREY_OK);
        assert_int_equal(marey_stop(), MAREY_OK);
        assert_true(scratch_count(path, MAREY_KIND_RECORD) >= 2); /* the shortest one is measured too */
    }
}

static void edges_of_epochs_are_read(void **state)
{
    const struct scratch *s = *state;
    struct marey_counts before, after;
    uint64_t n_edges = 20, begin_ns = marey__clock_ns(CLOCK_MONOTONIC);
    use_standin(s, "gpus 1\n");
    assert_int_equal(
        marey_start(&(struct marey_options){.path = s->path, .text = "energy=1,energy.hz=1"}),
        MAREY_OK);
    wait_for_events(10);
    marey_counts_get(&before);
    for (uint64_t i = 0; i < n_edges; i++) {
        marey_epoch_begin();
        usleep(60000);
    }
    marey_counts_get(&after);
    const uint64_t seconds = (marey__clock_ns(CLOCK_MONOTONIC) - begin_ns) / 1000000000u + 1;
    /* An event for each edge of an epoch, two together but for the first; ten values a second at most. */
    const uint64_t of_epochs = 2 * n_edges - 1;
    assert_true(after.events - before.events > of_epochs + 11 * seconds / 2 + n_edges / 3);
}

static void a_forked_child_has_neither_thread_nor_lock(void **state)
{
    const struct scratch *s = *state;
    use_standin(s, "gpus 1\n");
    assert_int_equal(start_energy(s->path), MAREY_OK);
    wait_for_events(40);
    for (int i = 0; i < 20; i++) {
        const pid_t pid = fork();
        if (pid == 0) {
            usleep(2000);
            _exit(0);
        }
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        char byte;
        close(ready[1]);
        const ssize_t n = read(ready[0], &byte, 1); /* lives on until its parent closes the pipe */
        _exit(n == 0 ? 0 : 1);
    }
    assert_int_equal(marey_stop(), MAREY_OK);
    struct marey__energy_lock lock = {.file.fd = -1};
    assert_int_equal(marey__energy_lock_try(&lock, s->path), MAREY__TURN_OURS);
    marey__energy_lock_release(&lock);
    close(ready[1]);
    close(ready[0]);
    waitpid(pid, NULL, 0);
}

static void without_memory_measuring_is_left_out_and_the_recording_goes_on(void **state)
{
    const struct scratch *s = *state;
    use_standin(s, "gpus 2\n");
    for (uint64_t n = 1; n < 40; n++) {
        char path[160];
        snprintf(path, sizeof path, "%s/%d.marey", s->folder, (int)n);
        marey__alloc_fail_nth(n);
        const marey_status st = start_energy(path);
        if (st == MAREY_OK) {
            marey_mark(MAREY_ID("on"));
            marey_stop();
        }
        marey__alloc_fail_nth(0);
        assert_int_equal(marey_enabled(), 0);
    }
}

static void a_measurer_of_others_is_none_of_the_processes(void **state)
{
    const struct scratch *s = *state;
    marey_recording *recording;
    use_standin(s, "gpus 1\nerror MemoryInfo 4\n");
    assert_int_equal(marey_recording_create(s->path, "a program"), MAREY_OK);
    assert_int_equal(marey_energy_start(s->path, "energy=1,x=1"), MAREY_EINVAL);
    assert_int_equal(marey_energy_start("/proc/nowhere.marey", "energy=1"), MAREY_EIO);
    assert_non_null(strstr(marey_last_error(), "cannot find the recording /proc/nowhere.marey"));
    setenv("RANK", "3", 1);
    assert_int_equal(marey_energy_start(s->path, "energy=1"), MAREY_OK);
    marey_energy_stop();
    unsetenv("RANK");
    assert_int_equal(marey_recording_open(s->path, &recording), MAREY_OK);
    assert_int_equal(marey_recording_n_processes(recording), 0);
    const struct marey_process *process = only_process(recording);
    assert_string_equal(process->role, "energy");
    assert_int_equal(process->rank, -1);
    assert_non_null(
        strstr(marey_recording_warning(recording, 0), "memory_used is not read: no permission"));
    marey_recording_close(recording);
}

static void options_that_ask_for_energy_are_known(void **state)
{
    (void)state;
    assert_int_equal(marey_energy_asked(NULL), 0);
    assert_int_equal(marey_energy_asked("energy.hz=5"), 0);
    assert_int_equal(marey_energy_asked("pool=64MiB,energy=1"), 1);
    assert_int_equal(marey_energy_asked("energy=1,energy=0"), 0);
    assert_int_equal(marey_energy_asked("energy=1,nonsense"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_counter_that_rises_gives_its_differences),
        cmocka_unit_test(a_wrap_is_distinguished_from_a_new_beginning_by_what_is_possible),
        cmocka_unit_test(a_counter_that_has_no_range_never_wraps),
        cmocka_unit_test(a_counter_that_stands_still_is_reported_once_enough_went_by),
        cmocka_unit_test(lists_of_devices_are_read_as_cuda_does),
        cmocka_unit_test(numbers_are_doubtful_where_there_are_several_models),
        cmocka_unit_test(the_gpus_of_a_machine_come_back_from_their_text),
        cmocka_unit_test(zones_are_packages_and_their_memory),
        SCRATCH_TEST(one_at_a_time_has_the_turn),
        SCRATCH_TEST(those_who_stand_in_line_say_which_gpus_they_use),
        cmocka_unit_test(where_readings_are_dear_there_are_fewer),
        cmocka_unit_test(a_slow_driver_is_read_within_a_thousandth_of_a_core),
        cmocka_unit_test(what_a_first_reading_takes_is_forgotten),
        cmocka_unit_test(counters_are_read_every_4_s_and_rather_at_epochs),
        cmocka_unit_test(a_dear_counter_is_read_at_epochs_while_that_is_within_bounds),
        cmocka_unit_test(what_was_overslept_is_not_made_up_for),
        SCRATCH_TEST(a_recording_with_energy_has_counters_and_says_what_was_read),
        SCRATCH_TEST(recordings_with_energy_follow_one_another),
        SCRATCH_TEST(edges_of_epochs_are_read),
        SCRATCH_TEST(a_forked_child_has_neither_thread_nor_lock),
        SCRATCH_TEST(without_memory_measuring_is_left_out_and_the_recording_goes_on),
        SCRATCH_TEST(a_measurer_of_others_is_none_of_the_processes),
        cmocka_unit_test(options_that_ask_for_energy_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
