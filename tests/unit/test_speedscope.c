/* Files of speedscope, read as recordings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "importing.h"

#define SCHEMA "\"$schema\":\"https://www.speedscope.app/file-format-schema.json\""
#define FRAMES                                                                                     \
    "\"shared\":{\"frames\":[{\"name\":\"main\",\"file\":\"a.py\",\"line\":3},{\"name\":\"f\"},"   \
    "{\"name\":\"g\",\"file\":\"b.py\",\"line\":\"x\",\"col\":[1,{}]}]}"
#define FILE_OF(profiles) "{" SCHEMA "," FRAMES ",\"profiles\":[" profiles "]}"
#define FILE_WITH_FRAMES_LAST(profiles) "{\"profiles\":[" profiles "]," FRAMES "," SCHEMA "}"
#define EVENTED(unit, start, events, end)                                                          \
    "{\"type\":\"evented\",\"name\":\"t\",\"unit\":\"" unit "\",\"startValue\":" start             \
    ",\"endValue\":" end ",\"events\":[" events "]}"
#define O(frame, at) "{\"type\":\"O\",\"frame\":" #frame ",\"at\":" #at "}"
#define C(frame, at) "{\"type\":\"C\",\"at\":" #at ",\"frame\":" #frame "}"
#define SAMPLED(unit, samples, weights)                                                            \
    "{\"type\":\"sampled\",\"name\":\"s\",\"unit\":\"" unit                                        \
    "\",\"startValue\":0,\"endValue\":9,\"samples\":[" samples "],\"weights\":[" weights "]}"

static marey_report *summarise(const char *text)
{
    return summary_of(import_text(&marey__import_speedscope, text));
}

static void events_become_ranges(void **state)
{
    (void)state;
    static const char profile[] = FILE_OF(
        EVENTED("nanoseconds", "5",
                O(0, 5) "," O(1, 10) "," C(1, 20) "," O(2, 20) "," C(2, 30) "," C(0, 100), "100"));
    marey_recording *recording = import_text(&marey__import_speedscope, profile);
    assert_int_equal(marey_recording_n_processes(recording), 1);
    const struct marey_process *process = marey_recording_process(recording, 0);
    assert_string_equal(process->source, "speedscope");
    assert_int_equal(process->first_ns, 5);
    assert_int_equal(process->last_ns, 100);
    assert_string_equal(marey_recording_lane(recording, 0, 0)->name, "t");
    for (uint32_t i = 1; i <= process->n_sites; i++) {
        const struct marey_site_info *site = marey_recording_site(recording, 0, i);
        if (strcmp(site->name, "main") == 0)
            assert_true(strcmp(site->file, "a.py") == 0 && site->line == 3);
        if (strcmp(site->name, "g") == 0)
            assert_true(strcmp(site->file, "b.py") == 0 && site->line == 0);
    }
    marey_report *summary = summary_of(recording);
    expect_range(summary, "main", 1, 95, 75);
    expect_range(summary, "f", 1, 10, 10);
    expect_range(summary, "g", 1, 10, 10);
    marey_report_destroy(summary);
}

/* Digits beyond what a double keeps, and whatever stands before the unit and the frames. */
static void times_are_exact_in_every_unit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns;
    } all[] = {
        {FILE_OF(EVENTED("nanoseconds", "0",
                         O(0, 1712195495505582988) "," C(0, 1712195495505582989), "0")),
         1},
        {FILE_OF(EVENTED("microseconds", "0", O(0, 1712195495505582.988) "," C(0, 1712195495505583),
                         "0")),
         12},
        {FILE_OF(EVENTED("milliseconds", "0", O(0, 0.000001) "," C(0, 1e3), "0")), 999999999},
        {FILE_OF(EVENTED("seconds", "0", O(0, 1.5) "," C(0, 1.500000001), "0")), 1},
        {FILE_OF(EVENTED("none", "0", O(0, 1) "," C(0, 3), "0")), 20000000},
        {FILE_OF(EVENTED("bytes", "0", O(0, 0) "," C(0, 4096), "0")), 4096},
        {FILE_OF(EVENTED("seconds", "-2", O(0, -2) "," C(0, -1.5), "0")), 500000000},
        {FILE_WITH_FRAMES_LAST(EVENTED("seconds", "0", O(0, 0) "," C(0, 1), "0")), 1000000000},
        {FILE_OF("{\"events\":[" O(0, 0) "," C(
             0, 7) "],\"unit\":\"milliseconds\",\"type\":\"evented\"}"),
         7000000},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(all); i++) {
        marey_report *summary = summarise(all[i].text);
        expect_range(summary, "main", 1, all[i].ns, all[i].ns);
        if (strstr(all[i].text, "\"none\"") != NULL)
            expect_warning(summary, "numbers without a unit: each is taken as 10 ms");
        if (strstr(all[i].text, "\"bytes\"") != NULL)
            expect_warning(summary, "counts bytes: each is shown as a nanosecond");
        marey_report_destroy(summary);
    }
}

/* Samples that begin alike go on; one without frames, or without weight, is a pause or nothing. */
static void samples_become_ranges(void **state)
{
    (void)state;
    marey_recording *recording =
        import_text(&marey__import_speedscope,
                    FILE_OF(SAMPLED("milliseconds", "[0,1],[0,1],[0,2],[0,2,1],[2],[0],[],[0]",
                                    "1,2,3,4,0,5,6,7")));
    char *lines = exported_text(recording, "collapsed");
    assert_string_equal(lines, "main 12000000\nmain;f 3000000\nmain;g 3000000\nmain;g;f 4000000\n");
    free(lines);
    marey_report *summary = summary_of(recording);
    expect_range(summary, "main", 2, 22000000, 12000000);
    expect_range(summary, "g", 1, 7000000, 3000000);
    expect_range(summary, "f", 2, 7000000, 7000000);
    marey_report_destroy(summary);
}

static void each_profile_is_a_thread(void **state)
{
    (void)state;
    marey_recording *recording = import_text(
        &marey__import_speedscope,
        FILE_OF(SAMPLED("seconds", "[0]", "1") "," SAMPLED("seconds", "[1]", "2") "," EVENTED(
            "seconds", "0", O(0, 0) "," C(0, 4), "4") ",{\"type\":\"odd\"}"));
    assert_int_equal(marey_recording_process(recording, 0)->n_lanes, 3);
    assert_string_equal(marey_recording_lane(recording, 0, 2)->name, "t");
    marey_report *summary = summary_of(recording);
    expect_range(summary, "main", 2, UINT64_C(5000000000), UINT64_C(5000000000));
    expect_range(summary, "f", 1, 2000000000, 2000000000);
    expect_warning(summary, "left out 1 profiles that are neither");
    marey_report_destroy(summary);
}

/* As py-spy writes samples of processes and their threads. */
static void samples_say_whose_they_are(void **state)
{
    (void)state;
    marey_recording *recording = import_text(
        &marey__import_speedscope,
        "{\"shared\":{\"frames\":[{\"name\":\"process 7:\\\"a\\\"\"},{\"name\":\"process 8:\\\"b "
        "c\\\"\"},"
        "{\"name\":\"thread (9): x\"},{\"name\":\"f\"}]},\"profiles\":[" SAMPLED(
            "seconds", "[0,1,2,3],[0,1,2]", "1,2") "," SAMPLED("seconds", "[0,3]", "4") "]}");
    assert_int_equal(marey_recording_n_processes(recording), 2);
    const struct marey_process *parent = marey_recording_process(recording, 0),
                               *child = marey_recording_process(recording, 1);
    if (parent->pid != 7) {
        const struct marey_process *kept = parent;
        parent = child;
        child = kept;
    }
    assert_true(parent->pid == 7 && child->pid == 8 && child->ppid == 7);
    assert_string_equal(parent->command, "a");
    assert_string_equal(child->command, "b c");
    const struct marey_lane_info *lane = marey_recording_lane(recording, child->index, 0);
    assert_int_equal(lane->tid, 9);
    assert_string_equal(lane->name, "x");
    marey_report *summary = summary_of(recording);
    expect_range(summary, "f", 2, UINT64_C(5000000000), UINT64_C(5000000000));
    expect_no_range(summary, "thread (9): x");
    marey_report_destroy(summary);
}

/* Functions of one name in two files are two; ranges of marey, by whatever files, are one. */
static void names_are_distinguished_by_files(void **state)
{
    (void)state;
#define TWO_MAINS                                                                                  \
    "\"shared\":{\"frames\":[{\"name\":\"main\",\"file\":\"a.py\"},{\"name\":\"main\",\"file\":"   \
    "\"b.py\"}]},"                                                                                 \
    "\"profiles\":[" SAMPLED("seconds", "[0],[1]", "1,2") "]}"
    marey_report *summary = summarise("{\"exporter\":\"py-spy\"," TWO_MAINS);
    expect_range(summary, "main (a.py)", 1, 1000000000, 1000000000);
    expect_range(summary, "main (b.py)", 1, 2000000000, 2000000000);
    marey_report_destroy(summary);
    summary = summarise("{\"exporter\":\"marey 0.1.0\"," TWO_MAINS);
    expect_range(summary, "main", 2, UINT64_C(3000000000), UINT64_C(3000000000));
    marey_report_destroy(summary);
}

static void wrong_events_are_left_out_and_reported(void **state)
{
    (void)state;
    static const char *const events[] = {
        O(0, 0) "," C(1, 5) "," C(0, 10),                                     /* never begun */
        O(0, 0) "," O(9, 5) "," C(0, 10),                                     /* no such frame */
        O(0, 0) ",{\"type\":\"X\",\"frame\":0,\"at\":1}," C(0, 10),           /* no such type */
        O(0, 0) ",{\"type\":\"O\",\"frame\":[0],\"at\":{\"a\":1}}," C(0, 10), /* no numbers */
        O(0, 0) ",{}," C(0, 10),
        O(0, 0) "," O(1, NaN) "," C(0, 10),
        O(0, 0) "," O(1, -5) "," C(0, 10),
        O(0, 0), /* never ended */
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(events); i++) {
        struct marey__buf text = {0};
        marey__buf_printf(
            &text, "{" FRAMES ",\"profiles\":[{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"endValue\":10,\"events\":[%s]}]}",
            events[i]);
        marey__buf_put(&text, "", 1);
        marey_report *summary = summarise(text.data);
        expect_range(summary, "main", 1, 10, 10);
        expect_warning(summary, "1 events or samples have no place");
        marey_report_destroy(summary);
        marey__buf_fini(&text);
    }
    /* Ends in the wrong order, and a time that goes back: it stands still. */
    marey_report *summary = summarise(FILE_OF(
        EVENTED("nanoseconds", "0",
                O(0, 0) "," O(1, 10) "," C(0, 20) "," C(1, 15) "," O(2, 20) "," C(2, 22), "22")));
    expect_range(summary, "main", 1, 20, 10);
    expect_range(summary, "f", 1, 10, 10);
    expect_range(summary, "g", 1, 2, 2);
    marey_report_destroy(summary);
    summary = summarise(FILE_OF(SAMPLED("seconds", "[0],[7],[0],[0]", "1,2,-3")));
    expect_range(summary, "main", 1, 1000000000, 1000000000);
    expect_warning(summary, "3 events or samples");
    marey_report_destroy(summary);
}

static void what_comes_before_damage_is_read(void **state)
{
    (void)state;
    static const char whole[] =
        FILE_OF(EVENTED("nanoseconds", "0", O(0, 0) "," O(1, 10) "," C(1, 20) "," C(0, 30), "30"));
    const char *cut = strstr(whole, "{\"type\":\"C\",\"at\":30");
    marey_recording *recording = NULL;
    assert_int_equal(
        import_bytes(&marey__import_speedscope, whole, (size_t)(cut - whole), 0, &recording),
        MAREY_OK);
    marey_report *summary = summary_of(recording);
    expect_range(summary, "main", 1, 30, 20); /* the profile says where it ends */
    expect_range(summary, "f", 1, 10, 10);
    expect_warning(summary, "a.file is damaged: at byte");
    marey_report_destroy(summary);
}

static void expect_refused(const char *text, const char *sentence)
{
    marey_recording *recording = NULL;
    assert_int_equal(import_bytes(&marey__import_speedscope, text, strlen(text), 0, &recording),
                     MAREY_EFORMAT);
    if (strstr(marey_last_error(), sentence) == NULL)
        fail_msg("%s", marey_last_error());
}

static void files_without_an_answer_are_refused(void **state)
{
    (void)state;
    expect_refused("", "damaged before its frames");
    expect_refused("[]", "no object at its start");
    expect_refused("{" SCHEMA "}", "is not a profile of speedscope: it has no frames");
    expect_refused("{" FRAMES "}", "it has no profiles");
    expect_refused("{" FRAMES ",\"profiles\":5}", "profiles that are not an array");
    expect_refused("{\"shared\":{\"frames\":[{\"name\":\"a\"},7]},\"profiles\":[]}",
                   "a frame that is not an object");
    expect_refused("{\"shared\":{\"frames\":{}}}", "frames that are not an array");
    expect_refused("{\"shared\":7}", "that is not an object");
}

static void files_are_known_by_their_first_bytes(void **state)
{
    (void)state;
    static const char *const good[] = {("{" SCHEMA), ("\xef\xbb\xbf \n{\"exporter\":\"x\"," SCHEMA),
                                       "{\"profiles\": [{\"type\": \"sampled\""};
    static const char *const bad[] = {"", ("[" SCHEMA), "{\"traceEvents\":[", "{\"profiles\":[]"};
    for (size_t i = 0; i < MAREY__COUNT_OF(good); i++)
        assert_true(marey__import_speedscope.looks_like(good[i], strlen(good[i])));
    for (size_t i = 0; i < MAREY__COUNT_OF(bad); i++)
        assert_false(marey__import_speedscope.looks_like(bad[i], strlen(bad[i])));
}

static void pieces_of_any_length_give_the_same(void **state)
{
    (void)state;
    static const char text[] = FILE_WITH_FRAMES_LAST(SAMPLED(
        "seconds", "[0],[0,1]", "1,2") "," EVENTED("seconds", "0", O(2, 0) "," C(2, 1), "1"));
    for (size_t cut = 1; cut < 20; cut++) {
        marey_recording *recording = NULL;
        assert_int_equal(
            import_bytes(&marey__import_speedscope, text, strlen(text), cut, &recording), MAREY_OK);
        marey_report *summary = summary_of(recording);
        expect_range(summary, "main", 1, UINT64_C(3000000000), 1000000000);
        expect_range(summary, "g", 1, 1000000000, 1000000000);
        marey_report_destroy(summary);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const char text[] = FILE_OF(
        SAMPLED("none", "[0],[0,1]", "1,2") "," EVENTED("seconds", "0", O(2, 0) "," C(2, 1), "1"));
    fail_each_allocation(&marey__import_speedscope, text, strlen(text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_become_ranges),
        cmocka_unit_test(times_are_exact_in_every_unit),
        cmocka_unit_test(samples_become_ranges),
        cmocka_unit_test(each_profile_is_a_thread),
        cmocka_unit_test(samples_say_whose_they_are),
        cmocka_unit_test(names_are_distinguished_by_files),
        cmocka_unit_test(wrong_events_are_left_out_and_reported),
        cmocka_unit_test(what_comes_before_damage_is_read),
        cmocka_unit_test(files_without_an_answer_are_refused),
        cmocka_unit_test(files_are_known_by_their_first_bytes),
        cmocka_unit_test(pieces_of_any_length_give_the_same),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
