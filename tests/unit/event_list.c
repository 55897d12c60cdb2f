#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "event_list.h"

enum { MAX_LANES = 4096, MAX_DEPTH = 1000 };

/* An open range of a lane, or GPU activity whose details may follow. */
struct pending {
    uint64_t begin, end;
    uint32_t site;
    uint64_t kind, correlation, bytes;
    char details[2048];
};

struct lister {
    marey_recording *recording;
    FILE *out;
    struct pending *open[MAX_LANES][MAX_DEPTH];
    size_t depth[MAX_LANES];
    struct pending *work[MAX_LANES];
    int is_wrong;
};

static const struct marey_site_info *site_of(const struct lister *l,
                                             const struct marey_batch *batch, uint32_t id)
{
    return marey_recording_site(l->recording, batch->process->index, id);
}

static void print_place(const struct lister *l, const char *what, const struct marey_batch *batch)
{
    if (batch->lane->kind == MAREY_LANE_GPU)
        fprintf(l->out, "%s\t%" PRId64 "\t%d\t%d", what, batch->process->pid, batch->lane->device,
                (int)batch->lane->stream);
    else
        fprintf(l->out, "%s\t%" PRId64 "\t%" PRId64, what, batch->process->pid, batch->lane->tid);
}

static void print_point(const struct lister *l, const char *what, const struct marey_batch *batch,
                        uint64_t ns, uint32_t site)
{
    const struct marey_site_info *info = site_of(l, batch, site);
    print_place(l, what, batch);
    fprintf(l->out, "\t%" PRIu64 "\t%s\t%s", ns, info->name, info->category);
}

static void print_mark(const struct lister *l, const struct marey_batch *batch, uint64_t ns,
                       uint32_t site)
{
    print_point(l, "mark", batch, ns, site);
    fputc('\n', l->out);
}

static void end_range(struct lister *l, const struct marey_batch *batch, uint64_t ns)
{
    const uint32_t lane = batch->lane->lane;
    if (l->depth[lane] == 0) {
        l->is_wrong = 1;
        return;
    }
    struct pending *range = l->open[lane][--l->depth[lane]];
    const struct marey_site_info *site = site_of(l, batch, range->site);
    print_place(l, "range", batch);
    fprintf(l->out, "\t%" PRIu64 "\t%" PRIu64 "\t%s\t%s\t%s:%u\t%s\n", range->begin, ns, site->name,
            site->category, site->file, site->line, range->details);
    free(range);
}

static void end_work(struct lister *l, const struct marey_batch *batch)
{
    struct pending *work = l->work[batch->lane->lane];
    if (work == NULL)
        return;
    const struct marey_site_info *site = site_of(l, batch, work->site);
    print_place(l, "work", batch);
    fprintf(l->out, "\t%" PRIu64 "\t%" PRIu64 "\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s\n",
            work->begin, work->end, site->name, site->category, work->kind, work->correlation,
            work->bytes, work->details);
    free(work);
    l->work[batch->lane->lane] = NULL;
}

static struct pending *begin(uint64_t ns, uint32_t site)
{
    struct pending *pending = calloc(1, sizeof *pending);
    if (pending == NULL)
        abort();
    pending->begin = ns;
    pending->site = site;
    return pending;
}

static void begin_range(struct lister *l, const struct marey_batch *batch, uint64_t ns, uint32_t site)
{
    const uint32_t lane = batch->lane->lane;
    if (lane >= MAX_LANES || l->depth[lane] == MAX_DEPTH)
        abort();
    l->open[lane][l->depth[lane]++] = begin(ns, site);
}

/* Append to the details of the range begun last, or of the work. */
static char *details_of(struct lister *l, const struct marey_batch *batch, size_t *room)
{
    static char nowhere[64];
    const uint32_t lane = batch->lane->lane;
    struct pending *pending = l->work[lane] != NULL ? l->work[lane]
                              : l->depth[lane] > 0  ? l->open[lane][l->depth[lane] - 1]
                                                    : NULL;
    l->is_wrong |= pending == NULL;
    char *text = pending != NULL ? pending->details : nowhere;
    *room = pending != NULL ? sizeof pending->details : sizeof nowhere;
    const size_t len = pending != NULL ? strlen(text) : 0;
    if (len > 0)
        strcat(text, " ");
    *room -= strlen(text);
    return text + strlen(text);
}

static void add_communication(struct lister *l, const struct marey_batch *batch, const uint64_t *words)
{
    struct marey_communication c;
    size_t room;
    char *text = details_of(l, batch, &room);
    marey_record_communication(words, &c);
    const struct marey_site_info *group = site_of(l, batch, c.group);
    snprintf(text, room, "comm=%d:%s:%s:%" PRIu64 ":%" PRIu64 ":%" PRId64 ":%u:%d", (int)c.what,
             group->name, group->domain, c.bytes_in, c.bytes_out, (int64_t)c.sequence, c.group_size,
             c.peer);
}

static void add_number(struct lister *l, const struct marey_batch *batch, const char *name,
                       uint64_t number)
{
    size_t room;
    char *text = details_of(l, batch, &room);
    snprintf(text, room, "%s=%" PRIu64, name, number);
}

static void take_work(struct lister *l, const struct marey_batch *batch, const uint64_t *words,
                      uint64_t ns)
{
    end_work(l, batch);
    struct pending *work = begin(ns, marey_record_site(words[1]));
    work->end = ns + marey_batch_duration_ns(batch, words[2]);
    work->kind = marey_record_work_kind(words[1]);
    work->correlation = words[3];
    work->bytes = words[4];
    struct marey_launch launch;
    if (marey_record_launch(words, &launch)) {
        const int n =
            snprintf(work->details, sizeof work->details,
                     "shape={\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"registers per thread\":%u,"
                     "\"shared memory\":%" PRIu64,
                     launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
                     launch.block[1], launch.block[2], launch.registers,
                     (uint64_t)launch.static_shared_bytes + launch.dynamic_shared_bytes);
        snprintf(work->details + n, sizeof work->details - (size_t)n,
                 launch.graph != 0 ? ",\"graph id\":%u,\"graph node id\":%" PRIu64 "}" : "}",
                 launch.graph, launch.graph_node);
    }
    if (marey_record_work_details(words[1]) != 0)
        snprintf(work->details, sizeof work->details, "shape=%s",
                 site_of(l, batch, marey_record_work_details(words[1]))->name);
    l->work[batch->lane->lane] = work;
}

static void take_point(struct lister *l, const struct marey_batch *batch, const uint64_t *words,
                       uint64_t ns)
{
    double value;
    memcpy(&value, &words[2], sizeof value);
    switch (marey_record_type_of(words[0])) {
    case MAREY_RECORD_COUNTER:
        print_point(l, "counter", batch, ns, marey_record_site(words[1]));
        fprintf(l->out, "\t%.17g\n", value);
        break;
    case MAREY_RECORD_FLOW:
        print_point(l, "flow", batch, ns, marey_record_site(words[1]));
        fprintf(l->out, "\t%" PRIu64 "\t%" PRIu64 "\n", words[2], words[3]);
        break;
    default:
        print_point(l,
                    marey_record_type_of(words[0]) == MAREY_RECORD_ASYNC_BEGIN ? "async_begin"
                                                                               : "async_end",
                    batch, ns, marey_record_site(words[1]));
        fprintf(l->out, "\t%" PRIu64 "\n", words[2]);
    }
}

static void take_record(struct lister *l, const struct marey_batch *batch, const uint64_t *words)
{
    const uint64_t ns = marey_batch_ns(batch, words[0]);
    size_t room;
    char *text;
    switch (marey_record_type_of(words[0])) {
    case MAREY_RECORD_GPU:
        take_work(l, batch, words, ns);
        break;
    case MAREY_RECORD_LAUNCH:
        add_number(l, batch, "launch", words[1]);
        break;
    case MAREY_RECORD_COMMUNICATION:
        add_communication(l, batch, words);
        break;
    case MAREY_RECORD_ARGUMENTS:
        text = details_of(l, batch, &room);
        snprintf(text, room, "args=%.*s", (int)words[1], (const char *)&words[2]);
        break;
    case MAREY_RECORD_ITERATION:
    case MAREY_RECORD_ITERATION_BEGIN:
        print_place(l,
                    marey_record_type_of(words[0]) == MAREY_RECORD_ITERATION ? "iteration_end"
                                                                             : "iteration_begin",
                    batch);
        fprintf(l->out, "\t%" PRIu64 "\t%" PRIu64 "\n", ns, words[1]);
        break;
    case MAREY_RECORD_COUNTER:
    case MAREY_RECORD_FLOW:
    case MAREY_RECORD_ASYNC_BEGIN:
    case MAREY_RECORD_ASYNC_END:
        take_point(l, batch, words, ns);
        break;
    default:
        l->is_wrong = 1;
    }
}

static marey_status take_batch(void *ctx, const struct marey_batch *batch)
{
    struct lister *l = ctx;
    for (size_t i = 0; i < batch->n;) {
        const uint64_t word = batch->words[i], ns = marey_batch_ns(batch, word);
        if (marey_word_kind(word) == MAREY_KIND_RECORD) {
            take_record(l, batch, &batch->words[i]);
            i += marey_record_length(word);
            continue;
        }
        if (marey_word_kind(word) == MAREY_KIND_BEGIN)
            begin_range(l, batch, ns, marey_word_id(word));
        else if (marey_word_kind(word) == MAREY_KIND_END)
            end_range(l, batch, ns);
        else
            print_mark(l, batch, ns, marey_word_id(word));
        i++;
    }
    end_work(l, batch);
    return MAREY_OK;
}

static void print_process(const struct lister *l, const struct marey_process *p)
{
    fprintf(l->out, "process\t%" PRId64 "\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", p->pid, p->rank,
            p->world_size, p->command, p->host, p->backend, p->gpu, p->source);
    const char *note = p->note;
    while (*note != '\0') {
        const size_t len = strcspn(note, "\n");
        fprintf(l->out, "note\t%" PRId64 "\t%.*s\n", p->pid, (int)len, note);
        note += len + (note[len] == '\n');
    }
    for (uint32_t i = 0; i < p->n_lanes; i++) {
        const struct marey_lane_info *lane = marey_recording_lane(l->recording, p->index, i);
        if (lane->kind == MAREY_LANE_GPU)
            fprintf(l->out, "stream\t%" PRId64 "\t%d\t%d\t%s\n", p->pid, lane->device,
                    (int)lane->stream, lane->name);
        else
            fprintf(l->out, "thread\t%" PRId64 "\t%" PRId64 "\t%s\n", p->pid, lane->tid, lane->name);
    }
}

int list_events(marey_recording *recording, FILE *out)
{
    struct lister *l = calloc(1, sizeof *l);
    if (l == NULL)
        return 1;
    l->recording = recording;
    l->out = out;
    for (size_t i = 0; i < marey_recording_n_processes(recording); i++) {
        print_process(l, marey_recording_process(recording, i));
        l->is_wrong |= marey_recording_visit(recording, i, take_batch, l) != MAREY_OK;
    }
    for (size_t lane = 0; lane < MAX_LANES; lane++)
        l->is_wrong |= l->depth[lane] > 0;
    const int is_wrong = l->is_wrong;
    free(l);
    return is_wrong;
}
