/* doctor: readers of output of the kernel and other programs, crashing and hanging children,
 * findings. */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "doctor/internal.h"
#include "scratch.h"

/* ---- fields ---- */

static const char *field(const char *text, const char *key)
{
    static char out[16];
    return marey__parse_field(text, strlen(text), key, out, sizeof out) ? out : NULL;
}

static void a_field_is_found_however_it_is_written(void **state)
{
    (void)state;
    assert_string_equal(field("a: 1\nmodel name\t: AMD EPYC\r\n", "model name"), "AMD EPYC");
    assert_string_equal(field("key=value", "key"), "value");
    assert_string_equal(field("key:\n", "key"), "");
    assert_string_equal(field("k=a=b:c", "k"), "a=b:c");
    assert_string_equal(field("k=first\nk=second", "k"), "first");
    assert_string_equal(field("k=a text that is too long for it", "k"), "a text that is ");
    assert_null(field("", "k"));
    assert_null(field("\n\n", "k"));
    assert_null(field("k", "k"));
    assert_null(field("kk=1", "k"));
    assert_null(field("model name", "model"));
}

static void a_text_need_not_end_in_a_nul(void **state)
{
    (void)state;
    char out[8];
    const char text[] = {'k', '=', '1', '2', '3'};
    assert_true(marey__parse_field(text, 4, "k", out, sizeof out));
    assert_string_equal(out, "12");
    assert_false(marey__parse_field(text, 1, "k", out, sizeof out));
}

static void numbers_saturate_and_odd_ones_are_refused(void **state)
{
    (void)state;
    uint64_t n = 7;
    assert_true(marey__parse_number("42\n", 3, &n));
    assert_int_equal(n, 42);
    assert_true(marey__parse_number("99999999999999999999999", 23, &n));
    assert_true(n == UINT64_MAX);
    assert_false(marey__parse_number("-1", 2, &n));
    assert_false(marey__parse_number("max", 3, &n));
    assert_false(marey__parse_number("", 0, &n));
    assert_true(marey__parse_hex_field("CapEff:\t000001ffffffffff\n", 26, "CapEff", &n));
    assert_true(n == UINT64_C(0x1ffffffffff));
    assert_false(marey__parse_hex_field("CapEff:\t0x1f\n", 13, "CapEff", &n));
    assert_false(marey__parse_hex_field("CapEff:\t\n", 9, "CapEff", &n));
    assert_false(marey__parse_hex_field("CapEff: 1ffffffffffffffffff\n", 28, "CapEff", &n));
}

/* ---- mounts ---- */

static const char *mount_of(const char *text, const char *path)
{
    static struct marey__mount mount;
    static char out[PATH_MAX + 400];
    if (!marey__parse_mount(text, strlen(text), path, &mount))
        return NULL;
    snprintf(out, sizeof out, "%s %s", mount.point, mount.type);
    return out;
}

static void the_longest_mount_holds_a_path(void **state)
{
    (void)state;
    const char *text = "/dev/vda / ext4 rw 0 0\n"
                       "tmpfs /data tmpfs rw,nosuid,noexec 0 0\n"
                       "srv:/x /data/a\\040b nfs4 rw 0 0\n"
                       "none /dataset xfs rw 0 0\n";
    assert_string_equal(mount_of(text, "/home/me"), "/ ext4");
    assert_string_equal(mount_of(text, "/data"), "/data tmpfs");
    assert_string_equal(mount_of(text, "/data/run.marey"), "/data tmpfs");
    assert_string_equal(mount_of(text, "/data/a b/c"), "/data/a b nfs4");
    assert_string_equal(mount_of(text, "/database"), "/ ext4");
    assert_string_equal(mount_of(text, "/dataset"), "/dataset xfs");
}

static void of_mounts_on_one_another_the_last_counts(void **state)
{
    (void)state;
    assert_string_equal(mount_of("a /m ext4 rw\nb /m tmpfs rw\n", "/m/x"), "/m tmpfs");
}

static void odd_mounts_are_stepped_over(void **state)
{
    (void)state;
    assert_null(mount_of("", "/"));
    assert_null(mount_of("\n \n\t\none\n", "/"));
    assert_null(mount_of("dev relative ext4 rw\n", "/relative"));
    assert_string_equal(mount_of("dev /\n", "/x"), "/ ");
    assert_string_equal(mount_of("dev / ext4", "/x"), "/ ext4");
    assert_string_equal(mount_of("dev /a\\04 ext4 rw\ndev / xfs rw\n", "/a/b"), "/ xfs");
    char *text = calloc(1, 2 * PATH_MAX);
    memset(text, 'x', 2 * PATH_MAX - 1);
    memcpy(text, "dev /", 5);
    assert_null(mount_of(text, "/xxx"));
    free(text);
}

static void mount_options_are_whole_words(void **state)
{
    (void)state;
    struct marey__mount mount = {.options = "rw,noexecutive,size=64m"};
    assert_false(marey__mount_has(&mount, "noexec"));
    assert_true(marey__mount_has(&mount, "size=64m"));
    assert_true(marey__mount_has(&mount, "rw"));
    mount.options[0] = '\0';
    assert_false(marey__mount_has(&mount, "rw"));
}

/* ---- cgroups ---- */

static const char *cgroup(const char *text, const char *controller)
{
    static char out[32];
    return marey__parse_cgroup(text, strlen(text), controller, out, sizeof out) ? out : NULL;
}

static void a_cgroup_is_found_in_both_versions(void **state)
{
    (void)state;
    const char *v1 = "5:cpuset:/a\n4:cpu,cpuacct:/docker/1:2\n3:memory:/m\n0::/two\n";
    assert_string_equal(cgroup(v1, "cpu"), "/docker/1:2");
    assert_string_equal(cgroup(v1, "memory"), "/m");
    assert_string_equal(cgroup(v1, ""), "/two");
    assert_null(cgroup(v1, "acct"));
    assert_string_equal(cgroup("0::/", ""), "/");
    assert_null(cgroup("", ""));
    assert_null(cgroup("0:\n0::\nx\n:\n::", ""));
    assert_null(cgroup("0::relative\n", ""));
    assert_null(cgroup("0::/a/path/that/is/much/too/long/for/it\n", ""));
}

static void a_quota_is_processors(void **state)
{
    (void)state;
    double cpus = 0;
    assert_true(marey__parse_cpu_max("150000 100000\n", 14, &cpus));
    assert_true(cpus > 1.49 && cpus < 1.51);
    static const char *const odd[] = {"max 100000", "",    "100000", "100000 ",
                                      "1 0",        "0 1", "a b",    "-1 5"};
    for (size_t i = 0; i < MAREY__COUNT_OF(odd); i++)
        assert_false(marey__parse_cpu_max(odd[i], strlen(odd[i]), &cpus));
}

/* ---- ldconfig ---- */

static void libraries_are_found_in_the_loaders_cache(void **state)
{
    (void)state;
    const char *text = "12 libs found in cache `/etc/ld.so.cache'\n"
                       "\tlibmarey.so.0 (libc6,x86-64) => /usr/lib/libmarey.so.0\n"
                       "\tlibmarey.so.01 (libc6) => /no\n"
                       "\tlibmarey.so.0 (libc6)\n"
                       "\tlibmarey.so.0 => relative\n"
                       "\tlibmarey.so.0 (libc6) => /opt/a b/libmarey.so.0";
    char path[64];
    size_t at = 0;
    assert_true(marey__parse_ldconfig(text, strlen(text), &at, "libmarey.so.0", path, sizeof path));
    assert_string_equal(path, "/usr/lib/libmarey.so.0");
    assert_true(marey__parse_ldconfig(text, strlen(text), &at, "libmarey.so.0", path, sizeof path));
    assert_string_equal(path, "/opt/a b/libmarey.so.0");
    assert_false(marey__parse_ldconfig(text, strlen(text), &at, "libmarey.so.0", path, sizeof path));
}

/* ---- how often a counter changes ---- */

static void the_period_of_a_counter_is_its_usual_step(void **state)
{
    (void)state;
    struct marey__update_rate rate = {0};
    for (uint64_t ms = 0; ms < 200; ms++) {
        /* New every 20 ms; the update at 100 ms brings what was there. */
        const uint64_t step = ms / 20 == 5 ? 4 : ms / 20;
        marey__update_rate_add(&rate, step, ms * 1000000, 3000 + ms % 7);
    }
    assert_int_equal(rate.n_changes, 8);
    assert_int_equal(rate.cost_ns, 3000);
    assert_int_equal(marey__update_rate_period_ns(&rate), 20000000);
}

static void a_counter_that_stands_still_has_no_period(void **state)
{
    (void)state;
    struct marey__update_rate rate = {0};
    for (uint64_t i = 0; i < 10; i++)
        marey__update_rate_add(&rate, 5, i, 1);
    assert_int_equal(marey__update_rate_period_ns(&rate), 0);
    marey__update_rate_add(&rate, 6, 10, 1); /* one change has no distance to another */
    assert_int_equal(marey__update_rate_period_ns(&rate), 0);
}

static void more_changes_than_are_kept_do_no_harm(void **state)
{
    (void)state;
    struct marey__update_rate rate = {0};
    for (uint64_t i = 0; i < 3 * MAREY__UPDATE_GAPS; i++)
        marey__update_rate_add(&rate, i, i * 7, 1);
    assert_int_equal(rate.n_changes, 3 * MAREY__UPDATE_GAPS - 1);
    assert_int_equal(marey__update_rate_period_ns(&rate), 7);
}

static void a_counter_that_was_never_read_has_a_reason(void **state)
{
    (void)state;
    struct marey__update_rate rate = {0};
    struct marey__doctor_measured found = marey__update_rate_finish(&rate, "Not Supported");
    assert_false(found.is_readable);
    assert_string_equal(found.refusal, "Not Supported");
    for (uint64_t i = 0; i < 18; i++)
        marey__update_rate_add(&rate, i, i * 20000000, 3000);
    found = marey__update_rate_finish(&rate, "");
    assert_true(found.is_readable && found.n_changes == 17);
    assert_true(found.period_ns > 19999999 && found.period_ns < 20000001 && found.cost_ns > 2999);
}

/* ---- RAPL ---- */

static void put_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void put_zone(const char *folder, const char *entry, const char *name, const char *energy)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, entry);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/%s/name", folder, entry);
    put_file(path, name);
    snprintf(path, sizeof path, "%s/%s/energy_uj", folder, entry);
    put_file(path, energy);
}

static const char *cell_text(const marey_table *table, size_t row, size_t column)
{
    return marey_table_cell(table, row, column).as.text;
}

/* The state of a thing in the findings of `folder`; NULL when it is not there. */
static const char *zone_state(marey_table *findings, const char *thing)
{
    for (size_t row = 0; row < marey_table_n_rows(findings); row++)
        if (strcmp(cell_text(findings, row, 1), thing) == 0)
            return cell_text(findings, row, 2);
    return NULL;
}

static marey_table *look_at_zones(const char *folder)
{
    static const char *const names[] = {"subject", "thing", "state", "value",
                                        "amount",  "unit",  "advice"};
    struct marey_column columns[7];
    for (size_t i = 0; i < 7; i++)
        columns[i] = (struct marey_column){names[i], NULL, i == 4 ? MAREY_TYPE_F64 : MAREY_TYPE_TEXT,
                                           MAREY_UNIT_NONE};
    struct marey__doctor doctor = {.subject = "energy"};
    assert_int_equal(marey_table_create("doctor", columns, 7, &doctor.table), MAREY_OK);
    marey__rapl_report(&doctor, folder);
    assert_int_equal(marey_table_status(doctor.table), MAREY_OK);
    return doctor.table;
}

static void counters_of_processors_are_reported_by_name(void **state)
{
    const struct scratch *s = *state;
    put_zone(s->folder, "intel-rapl:0", "package-0\n", "12345\n");
    put_zone(s->folder, "intel-rapl:0:0", "dram\n", "77\n");
    put_zone(s->folder, "intel-rapl:1", "package-0\n", "not a number\n");
    put_zone(s->folder, "intel-rapl-mmio:0", "package-0\n", "1\n");
    marey_table *findings = look_at_zones(s->folder);
    assert_int_equal(marey_table_n_rows(findings), 3);
    assert_string_equal(zone_state(findings, "package-0"), "limited"); /* it stands still */
    assert_string_equal(zone_state(findings, "package-0-dram"), "limited");
    assert_string_equal(zone_state(findings, "intel-rapl:1/energy_uj"), "missing");
    marey_table_destroy(findings);
}

static void a_counter_that_only_root_may_read_says_which_command_helps(void **state)
{
    const struct scratch *s = *state;
    char path[PATH_MAX];
    put_zone(s->folder, "intel-rapl:0", "package-0\n", "12345\n");
    snprintf(path, sizeof path, "%s/intel-rapl:0/energy_uj", s->folder);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(chmod(s->folder, 0755), 0);
    const bool is_root = geteuid() == 0;
    assert_int_equal(is_root ? seteuid(65534) : 0, 0); /* root reads everything */
    marey_table *findings = look_at_zones(s->folder);
    assert_int_equal(is_root ? seteuid(0) : 0, 0);
    assert_string_equal(zone_state(findings, "package-0"), "missing");
    assert_non_null(strstr(cell_text(findings, 0, 3), "only root"));
    assert_non_null(strstr(cell_text(findings, 0, 6), "sudo chmod a+r"));
    marey_table_destroy(findings);
}

static void a_machine_without_counters_of_processors_is_fine(void **state)
{
    const struct scratch *s = *state;
    marey_table *findings = look_at_zones(s->folder);
    assert_string_equal(zone_state(findings, "processors"), "off");
    marey_table_destroy(findings);
}

/* ---- children ---- */

enum { FAR_MS = 60000 };

static uint64_t in_ms(uint64_t ms)
{
    return marey__clock_ns(CLOCK_MONOTONIC) + ms * 1000000u;
}

static int say_much(void *ctx, int fd)
{
    (void)ctx;
    for (int i = 0; i < 5000; i++)
        dprintf(fd, "line %d\n", i);
    return 3;
}

static int crash(void *ctx, int fd)
{
    (void)ctx;
    dprintf(fd, "before=1\n");
    raise(SIGKILL); /* what a sanitizer does not turn into an exit */
    return 0;
}

static int hang(void *ctx, int fd)
{
    (void)ctx;
    (void)fd;
    while (pause() != 0)
        ;
    return 0;
}

static void children_that_crash_or_hang_are_reported_and_gone(void **state)
{
    (void)state;
    static struct marey__probe probes[3];
    char words[128];
    marey__probe_start(&probes[0], say_much, NULL);
    marey__probe_start(&probes[1], crash, NULL);
    marey__probe_start(&probes[2], hang, NULL);
    marey__probe_wait(probes, 2, in_ms(FAR_MS));
    marey__probe_wait(&probes[2], 1, in_ms(50));
    assert_int_equal(probes[0].outcome, MAREY__PROBE_DONE);
    assert_int_equal(probes[0].code, 3);
    assert_int_equal(probes[0].len, sizeof probes[0].text - 1);
    assert_int_equal(probes[0].text[probes[0].len], '\0');
    assert_int_equal(probes[1].outcome, MAREY__PROBE_CRASHED);
    assert_non_null(
        strstr(marey__probe_trouble(&probes[1], words, sizeof words), "crashed (Killed)"));
    assert_string_equal(probes[1].text, "before=1\n");
    assert_int_equal(probes[2].outcome, MAREY__PROBE_HUNG);
    assert_non_null(strstr(marey__probe_trouble(&probes[2], words, sizeof words), "in time"));
    for (int i = 0; i < 3; i++)
        assert_true(kill(probes[i].pid, 0) != 0 && errno == ESRCH);
}

/* ---- the whole ---- */

static void every_finding_is_whole_and_unique(void **state)
{
    const struct scratch *s = *state;
    marey_table *findings = NULL;
    const struct marey_doctor_options options = {.path = s->folder, .wait_ms = FAR_MS};
    assert_int_equal(marey_doctor(&options, &findings), MAREY_OK);
    assert_true(marey_doctor_can_record(findings));
    for (size_t row = 0; row < marey_table_n_rows(findings); row++) {
        const char *what = cell_text(findings, row, 2);
        assert_true(strcmp(what, "ok") == 0 || strcmp(what, "limited") == 0 ||
                    strcmp(what, "missing") == 0 || strcmp(what, "off") == 0);
        assert_true(strlen(cell_text(findings, row, 3)) > 0);
        for (size_t other = 0; other < row; other++)
            assert_false(strcmp(cell_text(findings, row, 0), cell_text(findings, other, 0)) == 0 &&
                         strcmp(cell_text(findings, row, 1), cell_text(findings, other, 1)) == 0);
    }
    marey_table_destroy(findings);
    assert_int_equal(rmdir(s->folder), 0); /* nothing is left in it */
    assert_int_equal(mkdir(s->folder, 0700), 0);
}

static void a_recording_that_is_open_goes_on(void **state)
{
    const struct scratch *s = *state;
    marey_table *findings = NULL;
    struct marey_counts counts;
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    const marey_id id = MAREY_ID("range");
    marey_begin(id);
    assert_int_equal(
        marey_doctor(&(struct marey_doctor_options){.path = s->folder, .wait_ms = FAR_MS}, &findings),
        MAREY_OK);
    marey_end(id);
    assert_true(marey_doctor_can_record(findings));
    assert_true(marey_enabled());
    marey_counts_get(&counts);
    assert_int_equal(counts.events, 2);
    marey_table_destroy(findings);
    assert_int_equal(marey_stop(), MAREY_OK);
    assert_int_equal(scratch_count(s->path, MAREY_KIND_BEGIN), 1);
}

static void running_out_of_memory_leaks_nothing(void **state)
{
    const struct scratch *s = *state;
    const struct marey_doctor_options options = {.path = s->folder, .wait_ms = FAR_MS};
    /* The first ones, each; the many texts of the table then in strides. */
    marey_status st = MAREY_ENOMEM;
    for (uint64_t n = 1; n < 4096; n += n < 8 ? 1 : n) {
        marey_table *findings = NULL;
        marey__alloc_fail_nth(n);
        st = marey_doctor(&options, &findings);
        marey__alloc_fail_nth(0);
        assert_true(st == MAREY_OK || st == MAREY_ENOMEM);
        assert_true((st == MAREY_OK) == (findings != NULL));
        marey_table_destroy(findings);
    }
    assert_int_equal(st, MAREY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_is_found_however_it_is_written),
        cmocka_unit_test(a_text_need_not_end_in_a_nul),
        cmocka_unit_test(numbers_saturate_and_odd_ones_are_refused),
        cmocka_unit_test(the_longest_mount_holds_a_path),
        cmocka_unit_test(of_mounts_on_one_another_the_last_counts),
        cmocka_unit_test(odd_mounts_are_stepped_over),
        cmocka_unit_test(mount_options_are_whole_words),
        cmocka_unit_test(a_cgroup_is_found_in_both_versions),
        cmocka_unit_test(a_quota_is_processors),
        cmocka_unit_test(libraries_are_found_in_the_loaders_cache),
        cmocka_unit_test(the_period_of_a_counter_is_its_usual_step),
        cmocka_unit_test(a_counter_that_stands_still_has_no_period),
        cmocka_unit_test(more_changes_than_are_kept_do_no_harm),
        cmocka_unit_test(a_counter_that_was_never_read_has_a_reason),
        SCRATCH_TEST(counters_of_processors_are_reported_by_name),
        SCRATCH_TEST(a_counter_that_only_root_may_read_says_which_command_helps),
        SCRATCH_TEST(a_machine_without_counters_of_processors_is_fine),
        cmocka_unit_test(children_that_crash_or_hang_are_reported_and_gone),
        SCRATCH_TEST(every_finding_is_whole_and_unique),
        SCRATCH_TEST(a_recording_that_is_open_goes_on),
        SCRATCH_TEST(running_out_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
