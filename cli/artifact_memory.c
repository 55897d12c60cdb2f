/* marey artifacts: memory over time, and the allocator's snapshot. */
#include <inttypes.h>

#include "artifacts.h"
#include <marey/memory_timeline.h>

struct memory_file {
    const marey_memory_timeline *timeline;
    enum marey_memory_file kind;
    const char *title;
};

static marey_status write_file(void *ctx, int fd)
{
    const struct memory_file *file = ctx;
    return marey_memory_timeline_write(file->timeline, file->kind, file->title, fd);
}

struct named_file {
    enum marey_memory_file kind;
    const char *name;
};

/* Each on its own: what failed is said, and the others are made. */
static int make_files(const struct artifacts *job, const struct named_file *files, size_t n)
{
    marey_memory_timeline *timeline;
    char title[64], name[128];
    int status = CLI_FINE;
    if (marey_memory_timeline_create(job->trace, &timeline) != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    snprintf(title, sizeof title, "Memory of rank %" PRId64, job->rank);
    for (size_t i = 0; i < n; i++) {
        struct memory_file file = {.timeline = timeline, .kind = files[i].kind, .title = title};
        const int made = artifacts_write(job, artifacts_name(job, files[i].name, name, sizeof name),
                                         write_file, &file);
        status = made != CLI_FINE ? made : status;
    }
    marey_memory_timeline_destroy(timeline);
    return status;
}

static bool has_memory(const struct artifacts *job)
{
    return job->facts.n_allocations > 0;
}

static int make_timeline(const struct artifacts *job)
{
    static const struct named_file files[] = {
        {MAREY_MEMORY_PAGE, "memory-timeline.html"},
        {MAREY_MEMORY_JSON, "memory-timeline.json.gz"},
        {MAREY_MEMORY_RAW, "memory-timeline.raw.json.gz"},
    };
    return make_files(job, files, sizeof files / sizeof files[0]);
}

static int make_snapshot(const struct artifacts *job)
{
    static const struct named_file file = {MAREY_MEMORY_SNAPSHOT, "memory_snapshot.pickle"};
    return make_files(job, &file, 1);
}

#define NEEDS "allocations (profile_memory=True)"

const struct artifact artifact_timeline = {
    .name = "timeline", .needs = NEEDS, .reads = true, .is_there = has_memory, .make = make_timeline};
const struct artifact artifact_snapshot = {
    .name = "snapshot", .needs = NEEDS, .reads = true, .is_there = has_memory, .make = make_snapshot};
