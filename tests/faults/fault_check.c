/*
 * fault_check RECORDING: read a recording and print, as JSON, what each thread's lane holds of the sequence that
 * sequence.h describes:
 *
 *   begins, ends   words of each kind (only ranges of the sequence)       others   ends of any other range
 *   numbers        marks that carry a range's number
 *   next           the number of the range after the last one that ended
 *   breaks         places where a name, an end or a payload is not the one that had to come
 *   backwards      places where time runs backwards                      gaps     batches behind a gap
 *   unknown        words of a site that has no name, or of a kind that is none
 *
 * A lane without loss has no breaks, and `next` equals `ends`.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <marey/recording.h>

enum { NAMES = 61, MARK_EVERY = 16 };

struct lane {
    int64_t tid;
    char name[64];
    bool is_inside; /* between a begin and its end */
    uint64_t next, begins, ends, numbers, others, breaks, backwards, gaps, unknown, last_ns;
};

struct check {
    marey_recording *recording;
    size_t process;
    struct lane *lanes;
    size_t n_lanes;
};

/* The number in "s<number>", -1 for another name. */
static int number_of(const struct marey_site_info *site)
{
    return site->name[0] == 's' && site->name[1] >= '0' && site->name[1] <= '9'
               ? atoi(site->name + 1)
               : -1;
}

static void take_begin(struct lane *lane, int number)
{
    lane->begins++;
    const uint64_t expected = lane->next % NAMES;
    if (lane->is_inside || (uint64_t)number != expected) {
        lane->breaks++;
        lane->next += ((uint64_t)number + NAMES - expected) % NAMES;
    }
    lane->is_inside = true;
}

static void take_end(struct lane *lane, int number)
{
    lane->ends++;
    if (!lane->is_inside || (uint64_t)number != lane->next % NAMES)
        lane->breaks++;
    lane->is_inside = false;
    lane->next++;
}

static void take_payload(struct lane *lane, const uint64_t *words)
{
    if (marey_record_type_of(words[0]) != MAREY_RECORD_MARK)
        return;
    lane->numbers++;
    if (words[2] != lane->next || !lane->is_inside)
        lane->breaks++;
    lane->next = words[2];
}

static void take_word(struct check *check, struct lane *lane, const uint64_t *words)
{
    const uint32_t kind = marey_word_kind(words[0]);
    if (kind == MAREY_KIND_RECORD) {
        take_payload(lane, words);
        return;
    }
    const struct marey_site_info *site =
        marey_recording_site(check->recording, check->process, marey_word_id(words[0]));
    const int number = number_of(site);
    const bool is_range = kind == MAREY_KIND_BEGIN || kind == MAREY_KIND_END;
    lane->unknown += !is_range || site->name_len == 0;
    lane->others += kind == MAREY_KIND_END && number < 0;
    if (kind == MAREY_KIND_BEGIN && number >= 0)
        take_begin(lane, number);
    if (kind == MAREY_KIND_END && number >= 0)
        take_end(lane, number);
}

static struct lane *find_lane(struct check *check, const struct marey_lane_info *info)
{
    while (check->n_lanes <= info->lane) {
        check->lanes = realloc(check->lanes, (check->n_lanes + 1) * sizeof *check->lanes);
        check->lanes[check->n_lanes++] = (struct lane){0};
    }
    struct lane *lane = &check->lanes[info->lane];
    lane->tid = info->tid;
    snprintf(lane->name, sizeof lane->name, "%s", info->name);
    return lane;
}

static marey_status take_batch(void *ctx, const struct marey_batch *batch)
{
    struct check *check = ctx;
    struct lane *lane = find_lane(check, batch->lane);
    lane->gaps += batch->gap != 0;
    for (size_t i = 0; i < batch->n;) {
        const uint64_t ns = marey_batch_ns(batch, batch->words[i]);
        lane->backwards += ns < lane->last_ns;
        lane->last_ns = ns;
        take_word(check, lane, batch->words + i);
        i += marey_word_kind(batch->words[i]) == MAREY_KIND_RECORD
                 ? marey_record_length(batch->words[i])
                 : 1;
    }
    return MAREY_OK;
}

static void print_lane(const struct lane *lane, bool is_first)
{
    printf("%s\n    {\"tid\": %" PRId64 ", \"thread\": \"%s\", \"begins\": %" PRIu64
           ", \"ends\": %" PRIu64 ", \"numbers\": %" PRIu64 ", \"others\": %" PRIu64
           ", \"next\": %" PRIu64 ", \"breaks\": %" PRIu64 ", \"backwards\": %" PRIu64
           ", \"gaps\": %" PRIu64 ", \"unknown\": %" PRIu64 "}",
           is_first ? "" : ",", lane->tid, lane->name, lane->begins, lane->ends, lane->numbers,
           lane->others, lane->next, lane->breaks, lane->backwards, lane->gaps, lane->unknown);
}

static marey_status check_process(marey_recording *recording, size_t i)
{
    struct check check = {.recording = recording, .process = i};
    const struct marey_process *p = marey_recording_process(recording, i);
    MAREY_TRY(marey_recording_visit(recording, i, take_batch, &check));
    printf("%s\n  {\"pid\": %" PRId64 ", \"ppid\": %" PRId64
           ", \"end\": \"%s\", \"clock\": \"%s\", \"events\": %" PRIu64 ", \"lost\": %" PRIu64
           ", \"lost_ns\": [%" PRIu64 ", %" PRIu64 "], \"span_ns\": [%" PRIu64 ", %" PRIu64
           "], \"lanes\": [",
           i == 0 ? "" : ",", p->pid, p->ppid, p->end, p->clock, p->n_events, p->lost_events,
           p->lost_first_ns, p->lost_last_ns, p->first_ns, p->last_ns);
    for (size_t lane = 0; lane < check.n_lanes; lane++)
        print_lane(&check.lanes[lane], lane == 0);
    printf("]}");
    free(check.lanes);
    return MAREY_OK;
}

int main(int argc, char **argv)
{
    marey_recording *recording;
    if (argc != 2)
        return 2;
    marey_status st = marey_recording_open(argv[1], &recording);
    if (st == MAREY_OK) {
        printf("{\"processes\": [");
        for (size_t i = 0; st == MAREY_OK && i < marey_recording_n_processes(recording); i++)
            st = check_process(recording, i);
        size_t n_warnings = 0;
        for (const char *text; (text = marey_recording_warning(recording, n_warnings)) != NULL;
             n_warnings++)
            fprintf(stderr, "%s\n", text);
        printf("], \"warnings\": %zu}\n", n_warnings);
        marey_recording_close(recording);
    }
    if (st != MAREY_OK)
        fprintf(stderr, "%s\n", marey_last_error());
    return st == MAREY_OK ? 0 : 2;
}
