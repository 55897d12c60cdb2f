/* Collectives over ranks: planted waits, transfers and skews are found; unmatched calls are
 * reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/device/internal.h"
#include "log_maker.h"
#include "table_view.h"

enum { GROUP = 1, OTHER_GROUP, KERNEL, SEND_KERNEL, NAMED, NCCL_RANGE, MPI, MPI_WAIT };
enum { MAX_RANKS = 4, MAX_CALLS = 64 };

/* A rank whose calls are put in by hand. */
struct rank {
    marey_recording *recording;
    struct marey__work_set set;
    struct marey__collective_call calls[MAX_CALLS];
    struct marey__work work[MAX_CALLS];
    struct marey__device_work device;
    struct marey__launch_call launch;
};

struct fixture {
    struct rank ranks[MAX_RANKS];
    size_t n_ranks;
    struct marey__collectives all;
    marey_table *collectives, *rank_rows, *warnings;
};

static const struct marey_column text_column = {"text", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE};

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state == NULL;
}

static void forget_tables(struct fixture *f)
{
    marey_table_destroy(f->collectives);
    marey_table_destroy(f->rank_rows);
    marey_table_destroy(f->warnings);
    f->collectives = f->rank_rows = f->warnings = NULL;
    marey__collectives_fini(&f->all);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    forget_tables(f);
    for (size_t i = 0; i < f->n_ranks; i++)
        log_close(f->ranks[i].recording);
    free(f);
    return 0;
}

/* A rank on `host` ("": unknown) whose clock is `unix_offset` behind the time of day. */
static struct rank *add_rank(struct fixture *f, const char *host, uint64_t unix_offset)
{
    static struct log_maker log;
    struct rank *rank = &f->ranks[f->n_ranks];
    char number[16];
    snprintf(number, sizeof number, "%zu", f->n_ranks++);
    log_put_pairs(&log, MAREY__BLOCK_LOG,
                  (const char *const[]){"pid", "100", "rank", number, "host", host, "tick_hz",
                                        "1000000000", NULL});
    log_put_site_of(&log, GROUP, "default_pg", "", "[0, 1]");
    log_put_site_of(&log, OTHER_GROUP, "tensor", "", "");
    log_put_site_of(&log, KERNEL, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "", "");
    log_put_site_of(&log, SEND_KERNEL, "ncclKernel_SendRecv_RING_SIMPLE(ncclDevComm*)", "", "");
    log_put_site_of(&log, NAMED, "MPI_Scan", "communication", "");
    log_put_site_of(&log, NCCL_RANGE, "nccl:all_reduce", "", "");
    log_put_site_of(&log, MPI, "MPI_Allreduce", "communication", "");
    log_put_site_of(&log, MPI_WAIT, "MPI_Wait", "communication", "");
    log_put_lane(&log, 0, 100, "main");
    const struct marey__clock_entry moment = {0, 0, unix_offset, 20};
    log_put_block(&log, (struct marey__block){.type = MAREY__BLOCK_CLOCK}, &moment, sizeof moment);
    log_begin(&log, 10, NAMED);
    log_end(&log, 20, NAMED);
    log_put_words(&log, 0, 0);
    log_put_end(&log, "stop");
    assert_int_equal(log_open(&log, &rank->recording), MAREY_OK);
    log_maker_fini(&log);
    memset(&log, 0, sizeof log);
    rank->device = (struct marey__device_work){.device = 0, .work = rank->work};
    rank->set = (struct marey__work_set){.recording = rank->recording,
                                         .process = marey_recording_process(rank->recording, 0),
                                         .collectives = rank->calls,
                                         .devices = &rank->device,
                                         .n_devices = 1};
    return rank;
}

static struct marey__collective_call *add_call(struct rank *rank, enum marey_collective what,
                                               uint64_t begin, uint64_t end, uint64_t sequence)
{
    struct marey__collective_call *call = &rank->calls[rank->set.n_collectives++];
    *call = (struct marey__collective_call){
        .what = {.group = GROUP, .what = what, .sequence = sequence, .group_size = 2, .peer = -1},
        .begin_ns = begin,
        .end_ns = end,
        .site = KERNEL,
    };
    return call;
}

static void add_kernel(struct rank *rank, uint64_t begin, uint64_t end, uint32_t site)
{
    rank->work[rank->device.n_work++] = (struct marey__work){.begin_ns = begin,
                                                             .end_ns = end,
                                                             .site = site,
                                                             .launch = MAREY__NO_INDEX,
                                                             .collective = MAREY__NO_INDEX,
                                                             .class = MAREY__COMMUNICATES,
                                                             .kind = MAREY_WORK_KERNEL};
}

static marey_status match_all(struct fixture *f)
{
    for (size_t i = 0; i < f->n_ranks; i++) {
        struct marey__work_set set = f->ranks[i].set;
        set.collectives = NULL; /* a copy, that may grow */
        set.collectives_cap = 0;
        if (!marey__grow(&set.collectives, &set.collectives_cap, set.n_collectives + 1,
                         sizeof *set.collectives))
            return MAREY_ENOMEM;
        memcpy(set.collectives, f->ranks[i].calls, set.n_collectives * sizeof *set.collectives);
        const marey_status status =
            marey__collectives_keep(&set) ? marey__collectives_add(&f->all, 0, &set) : MAREY_ENOMEM;
        marey__free(set.collectives);
        MAREY_TRY(status);
    }
    MAREY_TRY(marey__collectives_match(&f->all));
    MAREY_TRY(marey_table_create("collectives", marey__collective_columns,
                                 MAREY__N_COLLECTIVE_COLUMNS, &f->collectives));
    MAREY_TRY(marey_table_create("collective_ranks", marey__collective_rank_columns,
                                 MAREY__N_COLLECTIVE_RANK_COLUMNS, &f->rank_rows));
    MAREY_TRY(marey_table_create("warnings", &text_column, 1, &f->warnings));
    marey__collectives_put(f->collectives, &f->all);
    marey__collectives_put_ranks(f->rank_rows, &f->all);
    marey__collectives_put_warnings(f->warnings, &f->all);
    MAREY_TRY(marey_table_status(f->collectives));
    MAREY_TRY(marey_table_status(f->rank_rows));
    return marey_table_status(f->warnings);
}

static void expect_warning(const struct fixture *f, const char *part)
{
    for (size_t row = 0; row < marey_table_n_rows(f->warnings); row++)
        if (strstr(marey_table_cell(f->warnings, row, 0).as.text, part) != NULL)
            return;
    fail_msg("no warning says \"%s\"", part);
}

/* ---- what is planted is found ---- */

static void wait_and_transfer_are_distinguished(void **state)
{
    struct fixture *f = *state;
    struct rank *a = add_rank(f, "node7", 0), *b = add_rank(f, "node7", 0);
    for (uint64_t i = 0; i < 10; i++) {
        const uint64_t start = 1000 * i;
        add_call(a, MAREY_COLLECTIVE_ALL_REDUCE, start, start + 300, i)->what.bytes_in = 4000;
        add_call(b, MAREY_COLLECTIVE_ALL_REDUCE, start + 200, start + 305, i)->what.bytes_in = 4000;
    }
    assert_int_equal(match_all(f), MAREY_OK);
    assert_int_equal(marey_table_n_rows(f->collectives), 1);
    assert_string_equal(table_cell(f->collectives, 0, "group").as.text, "default_pg [0, 1]");
    assert_string_equal(table_cell(f->collectives, 0, "what").as.text, "all_reduce");
    assert_int_equal(table_number(f->collectives, 0, "count"), 10);
    assert_int_equal(table_number(f->collectives, 0, "bytes"), 40000);
    assert_int_equal(table_number(f->collectives, 0, "transfer_ns"), 1050);
    assert_int_equal(table_number(f->collectives, 0, "wait_ns"), 975); /* 195 of one, 0 of the other */
    assert_int_equal(table_number(f->collectives, 0, "skew_ns"), 200); /* of each */
    const double rate = 40000 / 1050e-9;
    assert_true(table_cell(f->collectives, 0, "algorithm_bytes_per_s").as.f64 == rate);
    assert_true(table_cell(f->collectives, 0, "bus_bytes_per_s").as.f64 == rate); /* 2 (2 - 1) / 2 */
    assert_string_equal(table_cell(f->collectives, 0, "slowest_rank").as.text, "rank 1 (node7)");
    assert_true(table_cell(f->collectives, 0, "slowest_share").as.f64 == 1);
    assert_int_equal(table_number(f->collectives, 0, "ranks"), 2);
    assert_int_equal(table_number(f->collectives, 0, "partial"), 0);

    assert_int_equal(marey_table_n_rows(f->rank_rows), 2);
    assert_int_equal(table_number(f->rank_rows, 0, "rank"), 0);
    assert_int_equal(table_number(f->rank_rows, 0, "ns"), 3000);
    assert_int_equal(table_number(f->rank_rows, 0, "wait_ns"), 1950);
    assert_int_equal(table_number(f->rank_rows, 0, "transfer_ns"), 1050);
    assert_int_equal(table_number(f->rank_rows, 0, "first"), 10);
    assert_int_equal(table_number(f->rank_rows, 0, "last"), 0);
    assert_int_equal(table_number(f->rank_rows, 1, "wait_ns"), 0);
    assert_int_equal(table_number(f->rank_rows, 1, "late_ns"), 2000);
    assert_int_equal(marey_table_n_rows(f->warnings), 0);
}

/* A trace that begins later has fewer: the sequence number tells which. */
static void sequence_numbers_match_what_order_would_not(void **state)
{
    struct fixture *f = *state;
    struct rank *a = add_rank(f, "h", 0), *b = add_rank(f, "h", 0);
    for (uint64_t i = 0; i < 5; i++)
        add_call(a, MAREY_COLLECTIVE_ALL_GATHER, 1000 * i, 1000 * i + 100 + i, i);
    for (uint64_t i = 2; i < 6; i++)
        add_call(b, MAREY_COLLECTIVE_ALL_GATHER, 1000 * i, 1000 * i + 100, i);
    assert_int_equal(match_all(f), MAREY_OK);
    assert_int_equal(table_number(f->collectives, 0, "count"), 3);
    assert_int_equal(table_number(f->collectives, 0, "partial"), 3);
    assert_int_equal(table_number(f->rank_rows, 0, "wait_ns"), 2 + 3 + 4);
    assert_int_equal(table_number(f->rank_rows, 0, "count"), 5);
    expect_warning(f, "all_gather of group default_pg [0, 1]: 3 were found on some ranks only");
}

/* Several pieces of work may be one call: they share its number. */
static void calls_of_one_number_match_in_their_order(void **state)
{
    struct fixture *f = *state;
    struct rank *a = add_rank(f, "h", 0), *b = add_rank(f, "h", 0);
    for (uint64_t i = 0; i < 3; i++) {
        add_call(b, MAREY_COLLECTIVE_ALL_TO_ALL, 500 - 100 * i, 590 - 100 * i, 7); /* in any order */
        add_call(a, MAREY_COLLECTIVE_ALL_TO_ALL, 300 + 100 * i, 395 + 100 * i, 7);
    }
    assert_int_equal(match_all(f), MAREY_OK);
    assert_int_equal(table_number(f->collectives, 0, "count"), 3);
    assert_int_equal(table_number(f->collectives, 0, "skew_ns"), 0);
    assert_int_equal(table_number(f->rank_rows, 0, "wait_ns"), 15);
}

static void groups_and_kinds_are_apart(void **state)
{
    struct fixture *f = *state;
    struct rank *a = add_rank(f, "h", 0), *b = add_rank(f, "h", 0);
    const uint64_t no_number = UINT64_MAX;
    add_call(a, MAREY_COLLECTIVE_ALL_REDUCE, 100, 200, no_number);
    add_call(a, MAREY_COLLECTIVE_BROADCAST, 300, 350, no_number);
    add_call(a, MAREY_COLLECTIVE_ALL_REDUCE, 400, 500, no_number)->what.group = OTHER_GROUP;
    add_call(b, MAREY_COLLECTIVE_BROADCAST, 300, 340, no_number);
    add_call(b, MAREY_COLLECTIVE_ALL_REDUCE, 400, 470, no_number)->what.group = OTHER_GROUP;
    add_call(b, MAREY_COLLECTIVE_ALL_REDUCE, 110, 200, no_number);
    assert_int_equal(match_all(f), MAREY_OK);
    assert_int_equal(marey_table_n_rows(f->collectives), 3);
    assert_int_equal(table_number(f->collectives, 0, "transfer_ns"), 90);
    assert_int_equal(table_number(f->collectives, 1, "transfer_ns"), 70);
    assert_string_equal(table_cell(f->collectives, 1, "group").as.text, "tensor");
    assert_string_equal(table_cell(f->collectives, 2, "what").as.text, "broadcast");
    assert_int_equal(marey_table_n_rows(f->rank_rows), 4); /* two groups of each */
    assert_int_equal(table_number(f->rank_rows, 0, "wait_ns"), 20);
    assert_int_equal(table_number(f->rank_rows, 1, "wait_ns"), 30);
}

static void more_ranks_than_two(void **state)
{
    struct fixture *f = *state;
    for (uint64_t r = 0; r < 4; r++) {
        struct rank *rank = add_rank(f, "h", 0);
        for (uint64_t i = 0; i < 4; i++) { /* each comes last once; rank 3 twice */
            const uint64_t late = (i == r || (r == 3 && i == 0)) ? 50 + (r == 3) : 0;
            struct marey__collective_call *call =
                add_call(rank, MAREY_COLLECTIVE_REDUCE_SCATTER, 1000 * i + late, 1000 * i + 200, i);
            call->what.bytes_in = 8000;
            call->what.bytes_out = 2000;
            call->what.group_size = 4;
        }
    }
    assert_int_equal(match_all(f), MAREY_OK);
    assert_string_equal(table_cell(f->collectives, 0, "slowest_rank").as.text, "rank 3 (h)");
    assert_true(table_cell(f->collectives, 0, "slowest_share").as.f64 == 0.5);
    assert_int_equal(table_number(f->collectives, 0, "transfer_ns"), 149 + 150 + 150 + 149);
    assert_int_equal(table_number(f->collectives, 0, "bytes"), 32000);
    const double rate = table_cell(f->collectives, 0, "algorithm_bytes_per_s").as.f64;
    assert_true(table_cell(f->collectives, 0, "bus_bytes_per_s").as.f64 == rate * 0.75);
    /* In the first, one waits 1 and two 51; in the others three wait. */
    assert_int_equal(table_number(f->collectives, 0, "wait_ns"), (103 + 150 + 150 + 153) / 4);
}

static void the_slowest_is_who_costs_most_and_not_who_is_last_most_often(void **state)
{
    struct fixture *f = *state;
    struct rank *a = add_rank(f, "h", 0), *b = add_rank(f, "h", 0);
    for (uint64_t i = 0; i < 4; i++) { /* rank 0 is last by 1 in three, rank 1 by 50 in one */
        const bool is_costly = i == 2;
        add_call(a, MAREY_COLLECTIVE_ALL_REDUCE, 1000 * i + !is_costly, 1000 * i + 200, i);
        add_call(b, MAREY_COLLECTIVE_ALL_REDUCE, 1000 * i + (is_costly ? 50 : 0), 1000 * i + 200, i);
    }
    assert_int_equal(match_all(f), MAREY_OK);
    assert_string_equal(table_cell(f->collectives, 0, "slowest_rank").as.text, "rank 1 (h)");
    assert_true(table_cell(f->collectives, 0, "slowest_share").as.f64 == 0.25);
}

static void bus_bandwidth_is_that_of_nccl_tests(void **state)
{
    (void)state;
    assert_true(marey__bus_factor(MAREY_COLLECTIVE_ALL_REDUCE, 8) == 1.75);
    assert_true(marey__bus_factor(MAREY_COLLECTIVE_ALL_GATHER, 8) == 0.875);
    assert_true(marey__bus_factor(MAREY_COLLECTIVE_REDUCE_SCATTER, 8) == 0.875);
    assert_true(marey__bus_factor(MAREY_COLLECTIVE_ALL_TO_ALL, 8) == 0.875);
    assert_true(marey__bus_factor(MAREY_COLLECTIVE_BROADCAST, 8) == 1);
    assert_true(marey__bus_factor(MAREY_COLLECTIVE_REDUCE, 8) == 1);
    assert_true(marey__bus_factor(MAREY_COLLECTIVE_BARRIER, 8) == 0);
    assert_true(marey__bus_factor(MAREY_COLLECTIVE_ALL_REDUCE, 1) == 0);
}

/* ---- clocks ---- */

#define DAY_OF_2024 (UINT64_C(1712195495) * 1000000000)

static void hosts_are_compared_by_the_time_of_day(void **state)
{
    struct fixture *f = *state;
    struct rank *a = add_rank(f, "one", DAY_OF_2024), *b = add_rank(f, "two", DAY_OF_2024 + 5000);
    add_call(a, MAREY_COLLECTIVE_ALL_REDUCE, 10000, 10300, 0);
    add_call(b, MAREY_COLLECTIVE_ALL_REDUCE, 5020, 5310, 0); /* 20 later by the time of day */
    assert_int_equal(match_all(f), MAREY_OK);
    assert_int_equal(f->all.clocks, MAREY__CLOCKS_WALL);
    assert_int_equal(table_number(f->collectives, 0, "skew_ns"), 20);
    assert_int_equal(table_number(f->rank_rows, 1, "late_ns"), 20);
    assert_string_equal(table_cell(f->collectives, 0, "slowest_rank").as.text, "rank 1 (two)");
}

/* All-reduces of two hosts: `b` comes `late` later, all leave together; its clock is `ahead`, and by a tick more each time. */
static void add_together(struct rank *a, struct rank *b, uint64_t late, uint64_t ahead, uint64_t drift)
{
    for (uint64_t i = 0; i < 20; i++) {
        const uint64_t at = 10000 * (i + 1), ends = at + late + 30 + i % 7, off = ahead + i * drift;
        add_call(a, MAREY_COLLECTIVE_ALL_REDUCE, at, ends, i);
        add_call(b, MAREY_COLLECTIVE_ALL_REDUCE, at + late + off, ends + off, i);
    }
}

static void clocks_of_hosts_are_aligned_by_what_they_do_together(void **state)
{
    struct fixture *f = *state;
    /* By the time of day the second is 5 us off, by the clocks themselves 123 us. */
    struct rank *a = add_rank(f, "one", DAY_OF_2024),
                *b = add_rank(f, "two", DAY_OF_2024 - 123000 + 5000);
    add_together(a, b, 200, 123000, 0);
    /* One in which the other host comes later: a bound from the other side. */
    add_call(a, MAREY_COLLECTIVE_BARRIER, 500090, 500130, 0);
    add_call(b, MAREY_COLLECTIVE_BARRIER, 500000 + 123000, 500130 + 123000, 0);
    assert_int_equal(match_all(f), MAREY_OK);
    assert_int_equal(f->all.clocks, MAREY__CLOCKS_ALIGNED);
    assert_int_equal(f->all.alignment.n_nodes, 2);
    assert_int_equal(f->all.alignment.n_aligned_by, 21);
    assert_false(f->all.alignment.has_drifted);
    const int64_t off = f->all.members[1].shift_ns + 123000;
    assert_true(f->all.alignment.uncertainty_ns < 50);
    assert_true(off <= (int64_t)f->all.alignment.uncertainty_ns &&
                off >= -(int64_t)f->all.alignment.uncertainty_ns);
    const uint64_t skew = table_number(f->collectives, 0, "skew_ns");
    assert_true(skew >= 150 && skew <= 250);
}

static void clocks_that_run_apart_are_reported(void **state)
{
    struct fixture *f = *state;
    struct rank *a = add_rank(f, "one", DAY_OF_2024), *b = add_rank(f, "two", DAY_OF_2024);
    add_together(a, b, 10, 1000, 50);
    assert_int_equal(match_all(f), MAREY_OK);
    assert_int_equal(f->all.clocks, MAREY__CLOCKS_ALIGNED);
    assert_true(f->all.alignment.has_drifted);
    assert_true(f->all.alignment.uncertainty_ns >=
                400); /* 19 times 50, less what one leaves open, halved */
}

static void clocks_that_do_not_relate_give_no_skew(void **state)
{
    struct fixture *f = *state;
    struct rank *a = add_rank(f, "", 0), *b = add_rank(f, "", 0);
    add_call(a, MAREY_COLLECTIVE_ALL_REDUCE, 10000, 10300, 0);
    add_call(b, MAREY_COLLECTIVE_ALL_REDUCE, 20, 310, 0);
    assert_int_equal(match_all(f), MAREY_OK);
    assert_int_equal(f->all.clocks, MAREY__CLOCKS_APART);
    assert_true(table_cell(f->collectives, 0, "skew_ns").is_null);
    assert_true(table_cell(f->rank_rows, 0, "late_ns").is_null);
    assert_true(table_cell(f->rank_rows, 0, "first").is_null);
    assert_int_equal(table_number(f->rank_rows, 0, "wait_ns"), 10);
    assert_string_equal(table_cell(f->collectives, 0, "slowest_rank").as.text,
                        "rank 1"); /* the shortest */
}

static void collectives_that_cannot_be_one_are_reported(void **state)
{
    struct fixture *f = *state;
    struct rank *a = add_rank(f, "h", 0), *b = add_rank(f, "h", 0);
    for (uint64_t i = 0; i < 4; i++) {
        add_kernel(a, 1000 * i, 1000 * i + 100, KERNEL);
        add_kernel(b, 1000 * i + (i == 2 ? 500 : 10), 1000 * i + (i == 2 ? 600 : 100), KERNEL);
    }
    assert_int_equal(match_all(f), MAREY_OK);
    expect_warning(f, "all_reduce: 1 of 4 do not overlap in time");
}

/* ---- what counts ---- */

static void kernels_without_a_word_are_known_by_their_names(void **state)
{
    struct fixture *f = *state;
    struct rank *a = add_rank(f, "h", 0), *b = add_rank(f, "h", 0);
    add_kernel(a, 100, 200, KERNEL);
    add_kernel(a, 300, 400, SEND_KERNEL);
    add_kernel(b, 150, 200, KERNEL);
    add_kernel(b, 300, 390, SEND_KERNEL);
    assert_int_equal(match_all(f), MAREY_OK);
    assert_int_equal(marey_table_n_rows(f->collectives), 2);
    assert_string_equal(table_cell(f->collectives, 0, "what").as.text,
                        "ncclKernel_SendRecv_RING_SIMPLE");
    assert_string_equal(table_cell(f->collectives, 1, "what").as.text, "all_reduce");
    assert_true(table_cell(f->collectives, 1, "group").is_null);
    assert_true(table_cell(f->collectives, 1, "bus_bytes_per_s").is_null);
    assert_int_equal(table_number(f->collectives, 1, "transfer_ns"), 50);
}

/* The range that enqueues an all-reduce is over long before it is done. */
static void ranges_that_only_launch_do_not_count(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        struct rank *rank = add_rank(f, "h", 0);
        struct marey__collective_call *call;
        add_call(rank, MAREY_COLLECTIVE_ALL_REDUCE, 100, 200, 0);
        call = add_call(rank, MAREY_COLLECTIVE_ALL_REDUCE, 10, 20, 0); /* it launched the one above */
        call->is_on_host = true;
        call->site = NAMED;
        rank->launch.collective = 1;
        rank->set.launches = &rank->launch;
        rank->set.n_launches = 1;
        call = add_call(rank, MAREY_COLLECTIVE_ALL_REDUCE, 30, 40,
                        1); /* what it launched is not there */
        call->is_on_host = true;
        call->site = NCCL_RANGE;
        call = add_call(rank, MAREY_COLLECTIVE_ALL_REDUCE, 400, 500 + 10 * i, 0);
        call->is_on_host = true;
        call->site = MPI;
    }
    assert_int_equal(match_all(f), MAREY_OK);
    assert_int_equal(marey_table_n_rows(f->collectives), 2); /* of devices, of hosts */
    assert_int_equal(table_number(f->collectives, 0, "count"), 1);
    assert_int_equal(table_number(f->collectives, 1, "count"), 1);
    assert_int_equal(table_number(f->rank_rows, 1, "wait_ns"), 10);
}

static void add_host_call(struct rank *rank, uint64_t begin, uint64_t end, uint64_t sequence,
                          uint32_t site, uint64_t bytes)
{
    struct marey__collective_call *call =
        add_call(rank, MAREY_COLLECTIVE_ALL_REDUCE, begin, end, sequence);
    call->is_on_host = true;
    call->site = site;
    call->what.bytes_in = call->what.bytes_out = bytes;
}

/* Two that are under way at once, the first of which is waited for last. */
static void a_start_and_its_wait_are_one(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        struct rank *rank = add_rank(f, "h", 0);
        add_host_call(rank, 100, 110, 7, MPI, 4000);
        add_host_call(rank, 120, 130, 8, MPI, 4000);
        add_host_call(rank, 300, 350, 8, MPI_WAIT, 0);
        add_host_call(rank, 360, 400 + 10 * i, 7, MPI_WAIT, 0);
        add_host_call(rank, 500, 600, 9, MPI, 4000);
        add_host_call(rank, 700, 800, 9, MPI, 4000); /* it has bytes: not a wait, whatever its number */
    }
    assert_int_equal(match_all(f), MAREY_OK);
    assert_int_equal(marey_table_n_rows(f->collectives), 1);
    assert_int_equal(table_number(f->collectives, 0, "count"), 4);
    assert_int_equal(table_number(f->collectives, 0, "bytes"), 16000);
    assert_int_equal(table_number(f->collectives, 0, "transfer_ns"), 300 + 230 + 100 + 100);
    assert_int_equal(table_number(f->rank_rows, 1, "wait_ns"), 10);
}

static void sends_are_counted_and_not_matched(void **state)
{
    struct fixture *f = *state;
    struct rank *a = add_rank(f, "h", 0), *b = add_rank(f, "h", 0);
    add_call(a, MAREY_COLLECTIVE_SEND, 100, 200, 0);
    add_call(b, MAREY_COLLECTIVE_RECV, 100, 300, 0);
    assert_int_equal(match_all(f), MAREY_OK);
    assert_int_equal(marey_table_n_rows(f->collectives), 0);
    assert_int_equal(marey_table_n_rows(f->rank_rows), 2);
    assert_int_equal(table_number(f->rank_rows, 1, "ns"), 200);
    assert_true(table_cell(f->rank_rows, 1, "wait_ns").is_null);
    expect_warning(f, "2 sends and receives");
}

static void one_rank_alone_has_nothing_to_match(void **state)
{
    struct fixture *f = *state;
    struct rank *a = add_rank(f, "h", 0);
    add_call(a, MAREY_COLLECTIVE_ALL_REDUCE, 100, 200, 0);
    assert_int_equal(match_all(f), MAREY_OK);
    assert_int_equal(table_number(f->collectives, 0, "count"), 0);
    assert_int_equal(table_number(f->collectives, 0, "partial"), 1);
    assert_true(table_cell(f->collectives, 0, "transfer_ns").is_null);
    assert_true(table_cell(f->collectives, 0, "slowest_rank").is_null);
    assert_int_equal(table_number(f->rank_rows, 0, "ns"), 100);
}

static void missing_ranks_of_a_group_are_reported(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++)
        add_call(add_rank(f, "h", 0), MAREY_COLLECTIVE_ALL_REDUCE, 100, 200, 0)->what.group_size =
            128;
    assert_int_equal(match_all(f), MAREY_OK);
    expect_warning(f, "2 of its 128 ranks are here");
}

static void jobs_are_matched_each_in_itself(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 4; i++)
        add_call(add_rank(f, "h", 0), MAREY_COLLECTIVE_ALL_REDUCE, 100, 200 + 10 * i, 0);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(marey__collectives_add(&f->all, i / 2, &f->ranks[i].set), MAREY_OK);
    assert_int_equal(marey__collectives_match(&f->all), MAREY_OK);
    assert_int_equal(f->all.kinds[0].n_matched, 2);
    assert_int_equal(f->all.kinds[0].n_ranks, 2);
    assert_int_equal(f->all.kinds[0].transfer_ns, 100 + 120);
}

static void every_failed_allocation_is_reported(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 3; i++) {
        struct rank *rank = add_rank(f, i == 2 ? "other" : "h", 0);
        for (uint64_t j = 0; j < 20; j++) {
            add_call(rank, MAREY_COLLECTIVE_ALL_REDUCE, 100 * j, 100 * j + 50,
                     j % 2 ? j : UINT64_MAX);
            add_kernel(rank, 100 * j, 100 * j + 30, SEND_KERNEL);
        }
    }
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey__alloc_fail_nth(nth);
        status = match_all(f);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        forget_tables(f);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(wait_and_transfer_are_distinguished),
        TEST(sequence_numbers_match_what_order_would_not),
        TEST(calls_of_one_number_match_in_their_order),
        TEST(groups_and_kinds_are_apart),
        TEST(more_ranks_than_two),
        TEST(the_slowest_is_who_costs_most_and_not_who_is_last_most_often),
        TEST(bus_bandwidth_is_that_of_nccl_tests),
        TEST(hosts_are_compared_by_the_time_of_day),
        TEST(clocks_of_hosts_are_aligned_by_what_they_do_together),
        TEST(clocks_that_run_apart_are_reported),
        TEST(clocks_that_do_not_relate_give_no_skew),
        TEST(collectives_that_cannot_be_one_are_reported),
        TEST(kernels_without_a_word_are_known_by_their_names),
        TEST(ranges_that_only_launch_do_not_count),
        TEST(a_start_and_its_wait_are_one),
        TEST(sends_are_counted_and_not_matched),
        TEST(one_rank_alone_has_nothing_to_match),
        TEST(missing_ranks_of_a_group_are_reported),
        TEST(jobs_are_matched_each_in_itself),
        TEST(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
