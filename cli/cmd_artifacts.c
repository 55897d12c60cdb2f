/*
 * marey artifacts: the files that people want of a trace of torch.profiler. Each is a row of the table below and is made on
 * its own: one that fails is told, the others are written.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifacts.h"

static struct {
    const char *output, *rank, *only, *sort, *metric;
    uint32_t rows, stack_depth;
    bool move;
} given = {.rows = 25, .stack_depth = 5};

static const struct cli_option options[] = {
    {"output", 'o', CLI_TEXT, "DIR", &given.output, "write there; made when it is not there"},
    {"rank", 0, CLI_TEXT, "R", &given.rank, "the rank in names of files (default: the trace's own)"},
    {"only", 0, CLI_TEXT, "LIST", &given.only,
     "these alone, with commas between: trace, averages, stacks,\n"
     "timeline, snapshot\n"
     "(default: all that the trace has data for)"},
    {"sort", 's', CLI_TEXT, "KEY", &given.sort,
     "averages: by this, the largest first. cpu_time,\n"
     "cpu_time_total, self_cpu_time_total, the same of cuda_ or\n"
     "device_, cpu_memory_usage, self_cpu_memory_usage, the same\n"
     "of cuda_ or device_, flops, count (default:\n"
     "self_device_time_total, self_cpu_time_total without a GPU)"},
    {"rows", 0, CLI_COUNT, "N", &given.rows,
     "averages: rows of the text, 0 for all (default: 25); CSV\n"
     "and JSON have all"},
    {"stack-depth", 0, CLI_COUNT, "N", &given.stack_depth,
     "averages: entries of the stack that distinguish calls\n"
     "(default: 5)"},
    {"metric", 0, CLI_CHOICE, "self_cpu_time_total|self_cuda_time_total|self_device_time_total",
     &given.metric,
     "stacks: what is counted (default: time on the device,\n"
     "self_cpu_time_total without a GPU)"},
    {"move", 0, CLI_FLAG, NULL, &given.move,
     "delete TRACE once DIR has all of it, compressed; a damaged trace\n"
     "and a file that is not a trace stay"},
};

static const struct artifact *const artifacts[] = {
    &artifact_trace, &artifact_averages, &artifact_stacks, &artifact_timeline, &artifact_snapshot,
};
#define N_ARTIFACTS (sizeof artifacts / sizeof artifacts[0])

/* ---- what is wanted ---- */

/* Set the bit of each name in the list. False, with a sentence said, for a name that is none. */
static bool choose(const char *list, uint32_t *chosen)
{
    for (const char *at = list; *at != '\0';) {
        const size_t len = strcspn(at, ",");
        size_t i = 0;
        while (i < N_ARTIFACTS &&
               !(strlen(artifacts[i]->name) == len && memcmp(artifacts[i]->name, at, len) == 0))
            i++;
        if (i == N_ARTIFACTS && len > 0) {
            cli_fail("there is no artifact '%.*s'; see 'marey artifacts --help'", (int)len, at);
            return false;
        }
        *chosen |= len > 0 ? 1u << i : 0;
        at += len + (at[len] == ',');
    }
    if (*chosen == 0)
        cli_fail("--only names no artifact; see 'marey artifacts --help'");
    return *chosen != 0;
}

static bool wants_reading(uint32_t chosen)
{
    bool reads = false;
    for (size_t i = 0; i < N_ARTIFACTS; i++)
        reads |= (chosen & 1u << i) != 0 && artifacts[i]->reads;
    return reads;
}

/* ---- the directory ---- */

/* With its parents. False with errno set. */
static bool make_directory(const char *path)
{
    char *copy = strdup(path);
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
    free(copy);
    return is_there;
}

/* ---- the command ---- */

/* The trace with its facts. A status: what is wrong with it was said. */
static int read_trace(struct artifacts *job)
{
    const struct marey_torch_trace_options wants = {.progress = cli_progress,
                                                    .progress_ctx = (void *)"reading"};
    const marey_status status = marey_torch_trace_open(job->source, &wants, &job->trace);
    cli_progress_end();
    if (status != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    marey_torch_trace_describe(job->trace, &job->facts);
    if (given.rank == NULL)
        job->rank = job->facts.rank;
    if (job->facts.damage == NULL)
        return CLI_FINE;
    return cli_fail("%s. The tables contain what came before the damage; the trace is neither "
                    "compressed nor deleted.",
                    job->facts.damage);
}

static int make_one(const struct artifacts *job, const struct artifact *artifact)
{
    if (artifact->reads && job->trace == NULL)
        return CLI_BAD; /* that it cannot be read was said */
    if (artifact->is_there == NULL || artifact->is_there(job))
        return artifact->make(job);
    if (given.only == NULL)
        return CLI_FINE;
    return cli_fail("%s has no %s, so there are no %s of it", job->source, artifact->needs,
                    artifact->name);
}

static bool is_unchanged(const struct artifacts *job)
{
    struct stat now;
    return stat(job->source, &now) == 0 && now.st_dev == job->read.st_dev &&
           now.st_ino == job->read.st_ino && now.st_size == job->read.st_size &&
           now.st_mtim.tv_sec == job->read.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == job->read.st_mtim.tv_nsec;
}

/* A trace that a program still writes is not all in the packed file. */
static int delete_source(const struct artifacts *job)
{
    if (!is_unchanged(job))
        return cli_fail("%s changed while it was compressed, so it is kept", job->source);
    if (unlink(job->source) != 0)
        return cli_fail("cannot delete %s: %s", job->source, strerror(errno));
    return CLI_FINE;
}

/* All that is chosen. The trace comes first: it is what everything else can be made of again. */
static int make_all(struct artifacts *job, uint32_t chosen)
{
    int status = wants_reading(chosen) ? read_trace(job) : CLI_FINE;
    bool is_packed = false;
    for (size_t i = 0; i < N_ARTIFACTS; i++) {
        if ((chosen & 1u << i) == 0)
            continue;
        const int made = make_one(job, artifacts[i]);
        status = made != CLI_FINE ? made : status;
        is_packed |= made == CLI_FINE && artifacts[i] == &artifact_trace;
    }
    marey_report_destroy(*job->operators);
    marey_torch_trace_close(job->trace);
    if (given.move && is_packed && delete_source(job) != CLI_FINE)
        return CLI_BAD;
    return status;
}

/* Whether the packed trace would be the file that is read. */
static bool is_in_place(const struct artifacts *job)
{
    struct stat in, out;
    char *path = NULL;
    const bool is_same = asprintf(&path, "%s/%s", job->directory, basename(job->source)) >= 0 &&
                         stat(job->source, &in) == 0 && stat(path, &out) == 0 &&
                         in.st_dev == out.st_dev && in.st_ino == out.st_ino;
    free(path);
    return is_same;
}

static bool can_sort(const char *key)
{
    char setting[64];
    snprintf(setting, sizeof setting, "sort=%s", key);
    return marey_report_check("operators", (const char *const[]){setting, NULL}) == MAREY_OK;
}

static int run(int n_args, char **args)
{
    struct artifacts job = {.directory = given.output,
                            .sort = given.sort,
                            .metric = given.metric,
                            .n_rows = given.rows,
                            .stack_depth = given.stack_depth};
    marey_report *operators = NULL;
    uint32_t chosen = given.only == NULL ? UINT32_MAX : 0;
    if (n_args != 1)
        return cli_fail("artifacts needs one trace: marey artifacts TRACE.json -o DIR");
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
    if (given.sort != NULL && !can_sort(given.sort))
        return cli_fail("%s", marey_last_error());
    if (given.only != NULL && !choose(given.only, &chosen))
        return CLI_BAD;
    if (access(job.source, R_OK) != 0 || stat(job.source, &job.read) != 0)
        return cli_fail("cannot open %s: %s", job.source, strerror(errno));
    if (!S_ISREG(job.read.st_mode))
        return cli_fail("cannot read %s: it is not a regular file", job.source);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error to tell, like a full disk */
    if (!make_directory(given.output))
        return cli_fail("cannot make the directory %s: %s", given.output, strerror(errno));
    /* A packed trace that is where it ought to be stays there. */
    if (is_in_place(&job) && cli_ends_with(job.source, ".gz", 3))
        chosen &= ~1u;
    job.operators = &operators;
    return make_all(&job, chosen);
}

const struct cli_command cli_command_artifacts = {
    .name = "artifacts",
    .usage = "TRACE -o DIR [OPTIONS]",
    .brief = "operator tables, stacks and more of a torch trace",
    .about =
        "Makes the usual files of a trace of torch.profiler (JSON, also packed by gzip), which it\n"
        "reads once:\n"
        "\n"
        "  trace     TRACE.gz: the trace itself, packed\n"
        "  averages  rankR_key_averages.txt, .csv, .json: time, memory and FLOPs by operator,\n"
        "            input shapes and stack, where the trace has these; of rank 0 also\n"
        "            key_averages.txt\n"
        "  stacks    rankR_stacks.txt: a line for each operator with its stack, for flame graphs\n"
        "  timeline  rankR_memory-timeline.html, .json.gz and .raw.json.gz: memory by category\n"
        "  snapshot  rankR_memory_snapshot.pickle, for PyTorch's memory viewer\n"
        "\n"
        "No torch is needed. Each file appears whole or not at all; their names are printed. One\n"
        "that cannot be made is reported, and the others are made. A damaged trace\n"
        "gives the tables of what came before the damage, and exit status 2.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .examples = "  marey artifacts worker0.pt.trace.json -o iteration_9\n"
                "  marey artifacts worker0.pt.trace.json.gz -o out --only averages --sort count\n"
                "  marey artifacts trace.json -o out --rank 3 --move",
    .run = run,
};
