/*
 * communications RECORDING: print what each process did, as JSON: ranges in order of their begin, with what was told of
 * their communication, and async ranges.
 *
 *   [{"rank", "world_size", "end", "lost", "ranges": [{"thread", "name", "category", "depth", "begin", "end", "told"}],
 *     "async": [{"name", "begin", "end"}]}]
 *
 * `end` is null for what did not end. `told` is null or the fields of struct marey_communication, `group` and `ranks`
 * as texts, `sequence` null when unknown.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <marey/recording.h>

enum { MAX_RANGES = 1 << 20, MAX_DEPTH = 64, MAX_LANES = 64 };

struct range {
    uint32_t lane, site;
    int depth;
    uint64_t begin_ns, end_ns; /* 0: none */
    bool is_reported;
    struct marey_communication told;
};

struct flight {
    uint64_t handle, begin_ns, end_ns;
    uint32_t site;
};

static struct range *ranges;
static struct flight *flights;
static struct flight_end {
    uint64_t handle, ns;
} * flight_ends; /* an end may be on another thread, whose words come first */
static size_t n_ranges, n_flights, n_flight_ends;
static size_t stacks[MAX_LANES][MAX_DEPTH];
static int depths[MAX_LANES];

static void begin(uint32_t lane, uint32_t site, uint64_t ns)
{
    if (n_ranges == MAX_RANGES || lane >= MAX_LANES || depths[lane] == MAX_DEPTH)
        exit(3);
    stacks[lane][depths[lane]] = n_ranges;
    ranges[n_ranges++] =
        (struct range){.lane = lane, .site = site, .depth = depths[lane]++, .begin_ns = ns};
}

static void take_record(uint32_t lane, const uint64_t *words, uint64_t ns)
{
    switch (marey_record_type_of(words[0])) {
    case MAREY_RECORD_BEGIN:
        begin(lane, marey_record_site(words[1]), ns);
        break;
    case MAREY_RECORD_COMMUNICATION:
        if (depths[lane] == 0)
            exit(4);
        struct range *range = &ranges[stacks[lane][depths[lane] - 1]];
        range->is_reported = true;
        marey_record_communication(words, &range->told);
        break;
    case MAREY_RECORD_ASYNC_BEGIN:
        if (n_flights == MAX_RANGES)
            exit(3);
        flights[n_flights++] =
            (struct flight){.handle = words[2], .begin_ns = ns, .site = marey_record_site(words[1])};
        break;
    case MAREY_RECORD_ASYNC_END:
        if (n_flight_ends == MAX_RANGES)
            exit(3);
        flight_ends[n_flight_ends++] = (struct flight_end){.handle = words[2], .ns = ns};
        break;
    default:
        break;
    }
}

static marey_status take(void *ctx, const struct marey_batch *batch)
{
    (void)ctx;
    const uint32_t lane = batch->lane->lane;
    for (size_t i = 0; i < batch->n;) {
        const uint64_t *word = &batch->words[i];
        const uint32_t kind = marey_word_kind(*word);
        const uint64_t ns = marey_batch_ns(batch, *word);
        if (kind == MAREY_KIND_BEGIN)
            begin(lane, marey_word_id(*word), ns);
        else if (kind == MAREY_KIND_END && depths[lane] > 0)
            ranges[stacks[lane][--depths[lane]]].end_ns = ns;
        else if (kind == MAREY_KIND_RECORD)
            take_record(lane, word, ns);
        i += kind == MAREY_KIND_RECORD ? marey_record_length(*word) : 1;
    }
    return MAREY_OK;
}

/* Names of tests hold nothing that JSON would want escaped, but for quotes. */
static void put_text(const char *key, const char *text)
{
    printf("\"%s\": \"", key);
    for (; *text != '\0'; text++)
        printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    printf("\"");
}

static void put_end(uint64_t ns)
{
    if (ns != 0)
        printf(", \"end\": %" PRIu64, ns);
    else
        printf(", \"end\": null");
}

static void put_told(const marey_recording *recording, size_t process,
                     const struct marey_communication *told)
{
    const struct marey_site_info *group = marey_recording_site(recording, process, told->group);
    printf("{");
    put_text("group", told->group != 0 ? group->name : "");
    printf(", ");
    put_text("ranks", told->group != 0 ? group->domain : "");
    printf(", \"what\": %d, \"in\": %" PRIu64 ", \"out\": %" PRIu64 ", \"size\": %u, \"peer\": %d",
           (int)told->what, told->bytes_in, told->bytes_out, told->group_size, told->peer);
    if (told->sequence != UINT64_MAX)
        printf(", \"sequence\": %" PRIu64 "}", told->sequence);
    else
        printf(", \"sequence\": null}");
}

static void put_range(const marey_recording *recording, size_t process, const struct range *range)
{
    const struct marey_site_info *site = marey_recording_site(recording, process, range->site);
    printf("{\"thread\": %u, ", range->lane);
    put_text("name", site->name);
    printf(", ");
    put_text("category", site->category);
    printf(", \"depth\": %d, \"begin\": %" PRIu64, range->depth, range->begin_ns);
    put_end(range->end_ns);
    printf(", \"told\": ");
    if (range->is_reported)
        put_told(recording, process, &range->told);
    else
        printf("null");
    printf("}");
}

static marey_status put_process(marey_recording *recording, size_t i)
{
    const struct marey_process *process = marey_recording_process(recording, i);
    n_ranges = n_flights = n_flight_ends = 0;
    memset(depths, 0, sizeof depths);
    MAREY_TRY(marey_recording_visit(recording, i, take, NULL));
    for (size_t j = 0; j < n_flights; j++)
        for (size_t k = 0; k < n_flight_ends; k++)
            if (flights[j].handle == flight_ends[k].handle)
                flights[j].end_ns = flight_ends[k].ns;
    printf("{\"rank\": %d, \"world_size\": %d, \"pid\": %" PRId64 ", ", process->rank,
           process->world_size, process->pid);
    put_text("end", process->end);
    printf(", \"lost\": %" PRIu64 ",\n\"ranges\": [", process->lost_events);
    for (size_t j = 0; j < n_ranges; j++) {
        printf(j > 0 ? ",\n" : "\n");
        put_range(recording, i, &ranges[j]);
    }
    printf("],\n\"async\": [");
    for (size_t j = 0; j < n_flights; j++) {
        printf(j > 0 ? ",\n{" : "\n{");
        put_text("name", marey_recording_site(recording, i, flights[j].site)->name);
        printf(", \"begin\": %" PRIu64, flights[j].begin_ns);
        put_end(flights[j].end_ns);
        printf("}");
    }
    printf("]}");
    return MAREY_OK;
}

int main(int argc, char **argv)
{
    marey_recording *recording;
    if (argc != 2 || marey_recording_open(argv[1], &recording) != MAREY_OK) {
        fprintf(stderr, "%s\n", marey_last_error());
        return 1;
    }
    ranges = calloc(MAX_RANGES, sizeof *ranges);
    flights = calloc(MAX_RANGES, sizeof *flights);
    flight_ends = calloc(MAX_RANGES, sizeof *flight_ends);
    printf("[");
    for (size_t i = 0; i < marey_recording_n_processes(recording); i++) {
        printf(i > 0 ? ",\n" : "\n");
        if (put_process(recording, i) != MAREY_OK)
            return 2;
    }
    printf("]\n");
    marey_recording_close(recording);
    free(ranges);
    free(flights);
    free(flight_ends);
    return 0;
}
