/*
 * marey artifacts: files generated from a torch.profiler trace. Each is a row of a table and is made separately: if one
 * fails, the others are still written.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cli.h"
#include <marey/memory_timeline.h>

static struct {
    const char *output, *rank, *only, *sort, *metric;
    uint32_t rows, stack_depth;
    bool move;
} given = {.rows = 25, .stack_depth = 5};

static const struct cli_option options[] = {
    {"output", 'o', CLI_TEXT, "DIR", &given.output, "output directory, created if missing"},
    {"rank", 0, CLI_TEXT, "R", &given.rank, "rank in file names (default: the rank in the trace)"},
    {"only", 0, CLI_TEXT, "LIST", &given.only,
     "only these, comma-separated: trace, averages, stacks,\n"
     "timeline, snapshot\n"
     "(default: all that the trace has data for)"},
    {"sort", 's', CLI_TEXT, "KEY", &given.sort,
     "averages: sort by this, largest first: cpu_time,\n"
     "cpu_time_total, self_cpu_time_total, the same of cuda_ or\n"
     "device_, cpu_memory_usage, self_cpu_memory_usage, the same\n"
     "of cuda_ or device_, flops, count (default:\n"
     "self_device_time_total, self_cpu_time_total without a GPU)"},
    {"rows", 0, CLI_COUNT, "N", &given.rows,
     "averages: rows of the text, 0: all (default: 25); CSV and\n"
     "JSON have all"},
    {"stack-depth", 0, CLI_COUNT, "N", &given.stack_depth,
     "averages: stack entries used to group calls\n"
     "(default: 5)"},
    {"metric", 0, CLI_CHOICE, "self_cpu_time_total|self_cuda_time_total|self_device_time_total",
     &given.metric,
     "stacks: the metric (default: device time,\n"
     "self_cpu_time_total without a GPU)"},
    {"move", 0, CLI_FLAG, NULL, &given.move,
     "delete TRACE once DIR has the complete compressed copy; a\n"
     "damaged trace or a file that is not a trace is kept"},
};

struct artifacts {
    const char *source, *directory;
    marey_torch_trace *trace;             /* NULL: not needed, or unreadable */
    struct marey_torch_trace_facts facts; /* of it */
    struct stat read;                     /* stat of the source before reading */
    int64_t rank;
    const char *settings[3]; /* of the operators */
    char depth[32], sort[64];
    marey_report *operators; /* created on first use, and shared */
    marey_memory_timeline *timeline;
};

/* ---- whether a trace has the data; false also on failure, which is reported ---- */

static bool has_stacks(const struct artifacts *job)
{
    return job->facts.has_stacks;
}

static bool has_memory(const struct artifacts *job)
{
    return job->facts.n_allocations > 0;
}

static bool fail_source(const struct artifacts *job)
{
    return cli_refuse("%s: %s", job->source, marey_last_error());
}

static bool needs_whole(struct artifacts *job)
{
    return job->facts.damage == NULL; /* already reported */
}

static bool needs_operators(struct artifacts *job)
{
    const struct marey_report_options wants = {.settings = job->settings};
    return job->operators != NULL ||
           marey_operators_report(job->trace, &wants, &job->operators) == MAREY_OK ||
           fail_source(job);
}

static bool needs_timeline(struct artifacts *job)
{
    return job->timeline != NULL ||
           marey_memory_timeline_create(job->trace, &job->timeline) == MAREY_OK || fail_source(job);
}

/* ---- files ---- */

enum content {
    NONE,
    TRACE, /* the trace itself, compressed */
    TEXT,
    CSV,
    JSON,
    STACKS,
    MEMORY, /* from here on, enum marey_memory_file */
};

enum { MAX_FILES = 4 }; /* per artifact */
struct file {
    const char *name; /* NULL: the trace's name */
    int content;
    bool is_of_all; /* without the rank in its name, and only for rank 0 */
};

static marey_status pack(const struct artifacts *job, FILE *out)
{
    const struct marey_torch_trace_options wants = {.progress = cli_progress,
                                                    .progress_ctx = (void *)"packing"};
    const marey_status status = marey_torch_trace_pack(job->source, fileno(out), &wants);
    cli_progress_end();
    return status;
}

static marey_status write_content(const struct artifacts *job, int content, FILE *out)
{
    const struct marey_write_options wants = {.limit = given.rows};
    char title[64];
    switch (content) {
    case TRACE:
        return pack(job, out);
    case TEXT:
        return marey_report_write(job->operators, "text", &wants, out);
    case CSV:
        return marey_report_write(job->operators, "csv", NULL, out);
    case JSON:
        return marey_present_json(marey_report_table(job->operators, "operators"), out);
    case STACKS:
        return marey_operators_stacks(job->operators, given.metric, out);
    default:
        snprintf(title, sizeof title, "Memory of rank %" PRId64, job->rank);
        return marey_memory_timeline_write(job->timeline, (enum marey_memory_file)(content - MEMORY),
                                           title, fileno(out));
    }
}

struct printing {
    const struct artifacts *job;
    const char *path;
    int content;
};

static int print_content(void *ctx, FILE *out)
{
    const struct printing *const p = ctx;
    return write_content(p->job, p->content, out) == MAREY_OK
               ? CLI_FINE
               : cli_fail("%s: %s", p->path, marey_last_error());
}

/* Writes a complete file or none, and prints its path. */
static int make_file(const struct artifacts *job, const struct file *file)
{
    char path[PATH_MAX], rank[32] = "";
    const char *const name = file->name != NULL ? file->name : basename(job->source);
    const bool is_packed = strlen(name) > 3 && cli_ends_with(name, ".gz", 3);
    struct printing printing = {job, path, file->content};
    if (file->name != NULL && !file->is_of_all)
        snprintf(rank, sizeof rank, "rank%" PRId64 "_", job->rank);
    if (snprintf(path, sizeof path, "%s/%s%s%s", job->directory, rank, name,
                 file->name == NULL && !is_packed ? ".gz" : "") >= (int)sizeof path)
        return cli_fail("the name of %s is too long", job->source);
    const int status = cli_print_file(path, print_content, &printing, NULL);
    if (status == CLI_FINE)
        puts(path);
    return status;
}

/* ---- the table of artifacts ---- */

#define NEEDS_MEMORY "allocations (profile_memory=True)"

/* The trace comes first: everything else can be generated from it again. */
static const struct artifact {
    const char *name;                              /* for --only */
    const char *data;                              /* the data that recording must include */
    bool (*is_there)(const struct artifacts *job); /* whether the trace has the data; NULL: always */
    bool (*needs)(struct artifacts *job);
    struct file files[MAX_FILES];
} artifacts[] = {
    {"trace", NULL, NULL, needs_whole, {{NULL, TRACE, false}}},
    {"averages",
     NULL,
     NULL,
     needs_operators,
     {{"key_averages.txt", TEXT, false},
      {"key_averages.csv", CSV, false},
      {"key_averages.json", JSON, false},
      {"key_averages.txt", TEXT, true}}}, /* name used in torch.profiler's documentation */
    {"stacks",
     "stacks (with_stack=True, and torch's _ExperimentalConfig(verbose=True))",
     has_stacks,
     needs_operators,
     {{"stacks.txt", STACKS, false}}},
    {"timeline",
     NEEDS_MEMORY,
     has_memory,
     needs_timeline,
     {{"memory-timeline.html", MEMORY + MAREY_MEMORY_PAGE, false},
      {"memory-timeline.json.gz", MEMORY + MAREY_MEMORY_JSON, false},
      {"memory-timeline.raw.json.gz", MEMORY + MAREY_MEMORY_RAW, false}}},
    {"snapshot",
     NEEDS_MEMORY,
     has_memory,
     needs_timeline,
     {{"memory_snapshot.pickle", MEMORY + MAREY_MEMORY_SNAPSHOT, false}}},
};
#define N_ARTIFACTS (sizeof artifacts / sizeof artifacts[0])

/* ---- --only ---- */

/* Sets the bit of each name in the list. False, with a message printed, for an unknown name. */
static bool choose(const char *list, uint32_t *chosen)
{
    for (const char *at = list; *at != '\0';) {
        const size_t len = strcspn(at, ",");
        size_t i = 0;
        while (i < N_ARTIFACTS &&
               !(strlen(artifacts[i].name) == len && memcmp(artifacts[i].name, at, len) == 0))
            i++;
        if (i == N_ARTIFACTS && len > 0)
            return cli_refuse("unknown artifact '%.*s'; see 'marey artifacts --help'", (int)len, at);
        *chosen |= len > 0 ? 1u << i : 0;
        at += len + (at[len] == ',');
    }
    if (*chosen == 0)
        cli_fail("--only names no artifact; see 'marey artifacts --help'");
    return *chosen != 0;
}

/* ---- the directory ---- */

/* Includes parents. False with errno set. */
static bool make_directory(const char *path)
{
    char *copy CLI_FREED = strdup(path);
    if (copy == NULL)
        return false;
    bool is_there = true;
    for (char *slash = copy; is_there && (slash = strchr(slash + 1, '/')) != NULL; *slash = '/') {
        *slash = '\0';
        is_there = mkdir(copy, 0777) == 0 || errno == EEXIST;
    }
    is_there = is_there && (mkdir(copy, 0777) == 0 || errno == EEXIST);
    struct stat st;
    if (is_there && stat(copy, &st) == 0 && !S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        is_there = false;
    }
    return is_there;
}

/* ---- the command ---- */

/* Reads the trace and its facts. Returns an exit status, with a message printed on failure. */
static int read_trace(struct artifacts *job)
{
    const struct marey_torch_trace_options wants = {.progress = cli_progress,
                                                    .progress_ctx = (void *)"reading"};
    const marey_status status = marey_torch_trace_open(job->source, &wants, &job->trace);
    cli_progress_end();
    CLI_TRY(cli_status(status));
    marey_torch_trace_describe(job->trace, &job->facts);
    if (given.rank == NULL)
        job->rank = job->facts.rank;
    if (job->facts.damage == NULL)
        return CLI_FINE;
    return cli_fail("%s. The tables contain what came before the damage; the trace is neither "
                    "compressed nor deleted.",
                    job->facts.damage);
}

/* Makes each file separately: a failure is reported, and the others are still made. */
static int make_one(struct artifacts *job, const struct artifact *artifact)
{
    int status = CLI_FINE;
    if (job->trace == NULL)
        return CLI_BAD; /* already reported */
    if (artifact->is_there != NULL && !artifact->is_there(job))
        return given.only == NULL ? CLI_FINE
                                  : cli_fail("%s has no %s, so its %s cannot be made", job->source,
                                             artifact->data, artifact->name);
    if (!artifact->needs(job))
        return CLI_BAD;
    for (size_t i = 0; i < MAX_FILES && artifact->files[i].content != NONE; i++)
        if ((!artifact->files[i].is_of_all || job->rank == 0) &&
            make_file(job, &artifact->files[i]) != CLI_FINE)
            status = CLI_BAD;
    return status;
}

static bool is_unchanged(const struct artifacts *job)
{
    struct stat now;
    return stat(job->source, &now) == 0 && now.st_dev == job->read.st_dev &&
           now.st_ino == job->read.st_ino && now.st_size == job->read.st_size &&
           now.st_mtim.tv_sec == job->read.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == job->read.st_mtim.tv_nsec;
}

/* If the program is still writing the trace, the compressed file is incomplete. */
static int delete_source(const struct artifacts *job)
{
    if (!is_unchanged(job))
        return cli_fail("%s changed while it was compressed, so it is kept", job->source);
    if (unlink(job->source) != 0)
        return cli_fail("cannot delete %s: %s", job->source, strerror(errno));
    return CLI_FINE;
}

static int make_all(struct artifacts *job, uint32_t chosen)
{
    int status = chosen != 0 ? read_trace(job) : CLI_FINE;
    bool is_packed = false;
    for (size_t i = 0; i < N_ARTIFACTS; i++) {
        if ((chosen & 1u << i) == 0)
            continue;
        const int made = make_one(job, &artifacts[i]);
        status = made != CLI_FINE ? made : status;
        is_packed |= made == CLI_FINE && i == 0;
    }
    marey_report_destroy(job->operators);
    marey_memory_timeline_destroy(job->timeline);
    marey_torch_trace_close(job->trace);
    if (given.move && is_packed && delete_source(job) != CLI_FINE)
        return CLI_BAD;
    return status;
}

/* Whether the compressed trace is the input file. */
static bool is_in_place(const struct artifacts *job)
{
    struct stat in, out;
    char *path CLI_FREED = NULL;
    return asprintf(&path, "%s/%s", job->directory, basename(job->source)) >= 0 &&
           stat(job->source, &in) == 0 && stat(path, &out) == 0 && in.st_dev == out.st_dev &&
           in.st_ino == out.st_ino;
}

static int run(int n_args, char **args)
{
    struct artifacts job = {.directory = given.output};
    uint32_t chosen = given.only == NULL ? UINT32_MAX : 0;
    if (n_args != 1)
        return cli_fail("artifacts needs a trace: marey artifacts TRACE.json -o DIR");
    if (given.output == NULL)
        return cli_fail("artifacts needs a directory to write to: marey artifacts %s -o DIR",
                        args[0]);
    job.source = args[0];
    if (given.rank != NULL) {
        char *end;
        errno = 0;
        job.rank = strtoll(given.rank, &end, 10);
        if (errno != 0 || end == given.rank || *end != '\0' || job.rank < 0)
            return cli_fail("--rank takes a number from 0 on, not '%s'", given.rank);
    }
    snprintf(job.depth, sizeof job.depth, "stack-depth=%u", (unsigned)given.stack_depth);
    job.settings[0] = job.depth;
    if (given.sort != NULL) {
        snprintf(job.sort, sizeof job.sort, "sort=%s", given.sort);
        job.settings[1] = job.sort;
    }
    CLI_TRY(cli_status(marey_report_check("operators", job.settings)));
    if (given.only != NULL && !choose(given.only, &chosen))
        return CLI_BAD;
    if (access(job.source, R_OK) != 0 || stat(job.source, &job.read) != 0)
        return cli_fail("cannot open %s: %s", job.source, strerror(errno));
    if (!S_ISREG(job.read.st_mode))
        return cli_fail("cannot read %s: it is not a regular file", job.source);
    if (!make_directory(given.output))
        return cli_fail("cannot make the directory %s: %s", given.output, strerror(errno));
    /* Do not rewrite a compressed trace that is already in place. */
    if (is_in_place(&job) && cli_ends_with(job.source, ".gz", 3))
        chosen &= ~1u;
    return make_all(&job, chosen);
}

const struct cli_command cli_command_artifacts = {
    .name = "artifacts",
    .usage = "TRACE -o DIR [OPTIONS]",
    .brief = "operator tables, stacks and more of a torch trace",
    .about =
        "Makes the usual files from a torch.profiler trace (JSON, plain or gzipped), reading it\n"
        "once:\n"
        "\n"
        "  trace     TRACE.gz: the compressed trace\n"
        "  averages  rankR_key_averages.txt, .csv, .json: time, memory and FLOPs by operator,\n"
        "            and by input shapes and stack if the trace has them; for rank 0 also\n"
        "            key_averages.txt\n"
        "  stacks    rankR_stacks.txt: a line for each operator with its stack, for flame graphs\n"
        "  timeline  rankR_memory-timeline.html, .json.gz and .raw.json.gz: memory by category\n"
        "  snapshot  rankR_memory_snapshot.pickle, for PyTorch's memory viewer\n"
        "\n"
        "Torch is not needed. Each file is written completely or not at all; the names are\n"
        "printed. If one fails, that is reported and the others are made. For a damaged trace the\n"
        "tables contain what came before the damage, and the exit status is 2.",
    CLI_OPTIONS(options),
    .examples = "  marey artifacts worker0.pt.trace.json -o iteration_9\n"
                "  marey artifacts worker0.pt.trace.json.gz -o out --only averages --sort count\n"
                "  marey artifacts trace.json -o out --rank 3 --move",
    .run = run,
};
