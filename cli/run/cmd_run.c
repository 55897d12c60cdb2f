/* marey run: start a program with recording on, wait for it, print the diagnosis or a summary of the recording. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "report/report_options.h"
#include "run/run.h"

static struct {
    const char *output, *options, *gpu_schedule, *memory_sample, *calls, *sample, *only, *budget;
    bool append, force, energy, gpu, memory, mpi, native, nvtx, quiet;
    uint32_t repeat, energy_hz;
} given = {.repeat = 1};

static const struct cli_option options[] = {
    {"output", 'o', CLI_TEXT, "DIR", &given.output,
     "the recording (default: PROGRAM.marey, or the first free of\n"
     "PROGRAM-2.marey, PROGRAM-3.marey, ...)"},
    {"append", 0, CLI_FLAG, NULL, &given.append, "add to an existing recording"},
    {"force", 0, CLI_FLAG, NULL, &given.force, "replace an existing recording"},
    {"budget", 0, CLI_TEXT, "PERCENT", &given.budget,
     "maximum overhead of the default recording (default: 1%)"},
    {"only", 0, CLI_TEXT, "ranges", &given.only,
     "record marey ranges only: no samples, no training steps"},
    {"gpu", 0, CLI_FLAG, NULL, &given.gpu,
     "record activity of NVIDIA GPUs, and the calls that launch it,\n"
     "in any program that uses CUDA"},
    {"gpu-schedule", 0, CLI_TEXT, "W:U:A[:R]", &given.gpu_schedule,
     "with --gpu, skip W iterations, warm up for U, record A; repeat\n"
     "this R times (default: without end)"},
    {"calls", 0, CLI_MAYBE, "MODULE,...", &given.calls,
     "profile Python functions: number of calls, time, callers and\n"
     "arguments; only in these modules and packages, others then\n"
     "cost nothing"},
    {"sample", 0, CLI_MAYBE, "HZ", &given.sample,
     "sample the Python threads of the program and its children HZ\n"
     "times per second (default: 100), from outside"},
    {"native", 0, CLI_FLAG, NULL, &given.native,
     "with --sample, include frames of C and C++, and programs\n"
     "without Python"},
    {"mpi", 0, CLI_FLAG, NULL, &given.mpi,
     "record MPI calls: a range for each, with bytes sent and\n"
     "received; before mpirun or after it"},
    {"energy", 0, CLI_FLAG, NULL, &given.energy,
     "record power, energy and utilization of the program's GPUs,\n"
     "and of CPUs if permitted"},
    {"energy-hz", 0, CLI_COUNT, "N", &given.energy_hz,
     "power readings per second, 1 to 100 (default: up to 50 if the\n"
     "driver buffers samples, else 20, fewer if it is slow)"},
    {"memory", 0, CLI_FLAG, NULL, &given.memory,
     "record resident memory, and sample allocations with their\n"
     "stacks and frees; C, C++ and Python"},
    {"memory-sample", 0, CLI_TEXT, "SIZE", &given.memory_sample,
     "with --memory, bytes between two samples (default: 512KiB, or\n"
     "more with many allocations); 1: every allocation"},
    {"nvtx", 0, CLI_FLAG, NULL, &given.nvtx,
     "record NVTX ranges and marks of the program and its\n"
     "libraries (PyTorch, NCCL, DALI, ...); no GPU is needed"},
    {"options", 0, CLI_TEXT, "KEY=VALUE,...", &given.options,
     "recording options, appended to MAREY_OPTIONS;\n"
     "'marey run --options help' lists them"},
    {"repeat", 0, CLI_COUNT, "N", &given.repeat,
     "run it N times in sequence, into one recording: repeats for\n"
     "'marey compare'; stops at the first failure"},
    {"quiet", 'q', CLI_FLAG, NULL, &given.quiet, "print nothing on success"},
};

/* Without an option that selects measurements, record what the diagnosis needs. */
static bool is_auto(void)
{
    return given.only == NULL && !given.gpu && given.calls == NULL && given.sample == NULL &&
           !given.mpi && !given.energy && !given.memory && !given.nvtx;
}

static bool has_gpu(void)
{
    return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

/* Windows of GPU activity are included if CUDA may be used and no other tool is registered for injection. */
static bool has_gpu_windows(void)
{
    return has_gpu() && is_auto() && cli_env("CUDA_INJECTION64_PATH") == NULL;
}

static uint64_t n_sampled; /* over all repeats */
static char refusal[512];  /* why no process could be sampled; "" */
static bool wants_energy;

/*
 * Joins the defaults, MAREY_OPTIONS, options implied by our own, then --options, which take precedence by being last.
 * The caller frees the result.
 */
static char *joined_options(void)
{
    char hz[16], modules[1024];
    snprintf(hz, sizeof hz, "%u", given.energy_hz);
    snprintf(modules, sizeof modules, "%s", given.calls != NULL ? given.calls : "");
    for (char *comma; (comma = strchr(modules, ',')) != NULL;)
        *comma = ':'; /* a comma would end the option */
    const struct {
        const char *key, *value;
    } parts[] = {
        {"", is_auto() ? "auto=1" : NULL},
        {"gpu=1,gpu.windows=",
         has_gpu_windows() ? (given.budget != NULL ? given.budget : "1%") : NULL},
        {"", getenv("MAREY_OPTIONS")},
        {"", given.gpu ? "gpu=1" : NULL},
        {"gpu.schedule=", given.gpu_schedule},
        {"", given.energy ? "energy=1" : NULL},
        {"energy.hz=", given.energy_hz != 0 ? hz : NULL},
        {"", given.calls != NULL ? "calls=1" : NULL},
        {"calls.modules=", modules},
        {"", given.memory ? "memory=1" : NULL},
        {"memory.sample=", given.memory_sample},
        {"", given.options},
    };
    size_t size = 1;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        size += parts[i].value != NULL ? strlen(parts[i].key) + strlen(parts[i].value) + 1 : 0;
    char *text = calloc(1, size), *at = text;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && text != NULL; i++)
        if (parts[i].value != NULL && parts[i].value[0] != '\0')
            at += sprintf(at, "%s%s%s", at > text ? "," : "", parts[i].key, parts[i].value);
    return text;
}

/* ---- final messages ---- */

static uint64_t count_events(const marey_recording *recording)
{
    uint64_t n = 0;
    for (size_t i = 0; i < marey_recording_n_processes(recording); i++)
        n += marey_recording_process(recording, i)->n_events;
    return n;
}

/* The program's command line as typed, truncated. */
static void print_program(char *const *program, char *into, size_t size)
{
    size_t at = 0;
    into[0] = '\0';
    for (; *program != NULL && at < size; program++) {
        char word[256];
        cli_quote(*program, word, sizeof word);
        if (at + strlen(word) + 6 > size) {
            snprintf(into + at, size - at, " ...");
            return;
        }
        snprintf(into + at, size - at, "%s%s", at > 0 ? " " : "", word);
        at += strlen(into + at);
    }
}

/* Prints why nothing was recorded, and which command to run instead. */
static void say_why_no_events(char *const *program, const struct run_end *end)
{
    char typed[512], wall[32];
    print_program(program, typed, sizeof typed);
    const char option = run_python_isolated(program);
    if (is_auto() && (option == 0 || refusal[0] != '\0')) {
        cli_say(
            "nothing was recorded: no stacks of Python or native code, no training steps, no marey "
            "ranges");
        if (refusal[0] != '\0')
            cli_say("%s", refusal);
        else if (run_is_python(program))
            cli_say("the program ran for %s: a sample is taken every 10 ms, the first one once "
                    "Python has "
                    "started; this counts every call: marey run --calls -- %s",
                    marey_text_number((double)end->wall_ns, MAREY_UNIT_NS, wall, sizeof wall), typed);
        else
            cli_say("the program ran for %s: samples are taken every 10 ms, from 20 ms on; this "
                    "compares "
                    "short runs: marey run --repeat 20 -- %s",
                    marey_text_number((double)end->wall_ns, MAREY_UNIT_NS, wall, sizeof wall), typed);
    } else if (option != 0)
        cli_say("no events: Python's option -%c keeps marey out of the program; call marey.start() "
                "there, or remove the option",
                option);
    else if (given.sample != NULL)
        cli_say("no samples: no Python 3.10 or later ran in the program, or it ended at once");
    else if (given.memory)
        cli_say("no events: the program allocated too little to be sampled (--memory-sample 1 "
                "takes every allocation), or is linked statically");
    else if (given.mpi)
        cli_say("no events: the program has no marey ranges and called no MPI function in C, or "
                "its MPI is linked statically");
    else if (given.nvtx)
        cli_say("no events: the program has no marey ranges and sent nothing to NVTX");
    else if (run_is_python(program))
        cli_say("no events: the program has no marey ranges, or its Python has no marey installed; "
                "to see where its time goes without changing it: marey run --sample -- %s",
                typed);
    else
        cli_say("no events: the program has no marey ranges, or is not linked with libmarey; if it "
                "starts Python, this shows where its time goes: marey run --sample -- %s",
                typed);
}

/* Whether a process could not record and printed why; removes the marker it left. */
static bool take_printed_reasons(const char *path)
{
    static const char prefix[] = "not-recorded-";
    DIR *const folder = opendir(path);
    bool found = false;
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            found |= unlinkat(dirfd(folder), entry->d_name, 0) == 0;
    if (folder != NULL)
        closedir(folder);
    return found;
}

static void say_no_events(const struct run_target *target, char *const *program,
                          const struct run_end *end)
{
    char quoted[PATH_MAX], wall[32], cpu[32];
    cli_quote(cli_short_path(target->path), quoted, sizeof quoted);
    /* If no energy was measured, the reason was printed when the meters were opened. */
    if (!take_printed_reasons(target->path) && !wants_energy)
        say_why_no_events(program, end);
    if (!given.quiet)
        cli_say(
            "recorded wall time (%s) and CPU time (%s) only; next: marey compare %s OTHER.marey",
            marey_text_number((double)end->wall_ns, MAREY_UNIT_NS, wall, sizeof wall),
            marey_text_number((double)end->cpu_ns, MAREY_UNIT_NS, cpu, sizeof cpu), quoted);
}

/* Prints the diagnosis, and how to see more. False if the recording has neither steps nor samples. */
static bool say_diagnosis(marey_recording *recording, const char *quoted)
{
    const struct marey_write_options wants = {
        .text = {.width = cli_terminal_width(stderr), .color = cli_wants_color(stderr, "auto")},
        .is_short = 1};
    marey_report *report CLI_FINALLY(cli_destroy_report) = NULL;
    const struct marey_analysis *const lead =
        report_options_lead(&(struct cli_recordings){.list = &recording, .n = 1});
    if (lead == NULL || marey_report_create(lead->name, &recording, 1, NULL, &report) != MAREY_OK)
        return false;
    cli_status(marey_report_write(report, "text", &wants, stderr));
    fprintf(stderr, "  recorded to %s · marey report %s · marey report %s --html PAGE.html\n",
            quoted, quoted, quoted);
    return true;
}

/* A diagnosis may lack steps only because an interpreter option kept Python from loading the hooks. */
static void say_why_no_steps(char *const *program)
{
    const char option = run_python_isolated(program);
    if (option != 0)
        cli_say("Python's option -%c keeps marey out of the program: stacks are sampled, training "
                "steps are "
                "not recorded; remove the option, or call marey.start(auto=True) in the program",
                option);
}

/* The instruments' analyses that have data, "calls, energy"; returns the first, NULL: none. */
static const struct marey_analysis *list_recorded(marey_recording *recording, char *list, size_t size)
{
    const struct marey_analysis *first = NULL, *analysis;
    list[0] = '\0';
    for (size_t i = 0; (analysis = marey_analysis_at(i)) != NULL; i++) {
        const bool is_empty =
            n_sampled == 0 && strcmp(analysis->name, "samples") == 0; /* the sampler has a log */
        if (analysis->option == NULL || is_empty ||
            !marey_report_is_there(analysis->name, &recording, 1))
            continue;
        cli_append(list, size, ", ", analysis->name);
        first = first != NULL ? first : analysis;
    }
    return first;
}

static void say_recorded(marey_recording *recording, const char *path, uint64_t n_events)
{
    char quoted[PATH_MAX], events[32], list[128];
    const size_t n = marey_recording_n_processes(recording);
    const struct marey_analysis *const first = list_recorded(recording, list, sizeof list);
    cli_quote(cli_short_path(path), quoted, sizeof quoted);
    if (is_auto() && !run_is_one_of_many() && say_diagnosis(recording, quoted))
        return;
    if (n_sampled != 0 && !run_is_one_of_many() && sampling_print_top(recording) != MAREY_OK)
        cli_say("%s", marey_last_error());
    if (run_is_one_of_many()) /* the others are still running */
        cli_say("the ranks share %s; next: marey report %s", quoted, quoted);
    else if (n == 0 && first != NULL)
        cli_say("recorded %s; next: marey report --%s %s", list, first->name, quoted);
    else
        cli_say("recorded %zu process%s, %s event%s%s%s; next: marey report %s%s%s%s", n,
                n == 1 ? "" : "es", cli_count(n_events, events, sizeof events),
                n_events == 1 ? "" : "s", first != NULL ? ", " : "", list, first != NULL ? "--" : "",
                first != NULL ? first->name : "", first != NULL ? " " : "", quoted);
}

static void print_result(const struct run_target *target, char *const *program,
                         const struct run_end *end)
{
    marey_recording *recording = NULL;
    if (marey_recording_finalize(target->path) != MAREY_OK ||
        marey_recording_open(target->path, &recording) != MAREY_OK) {
        cli_say("%s", marey_last_error());
        return;
    }
    const uint64_t n_events = count_events(recording);
    char list[128];
    if (n_events == 0 && n_sampled == 0 && list_recorded(recording, list, sizeof list) == NULL)
        say_no_events(target, program, end);
    else if (!given.quiet && !run_is_a_later_rank())
        say_recorded(recording, target->path, n_events);
    if (is_auto() && n_events == 0 && n_sampled != 0)
        say_why_no_steps(program);
    else if (n_events != 0 && n_sampled == 0 && refusal[0] != '\0')
        cli_say("stacks are not recorded: %s", refusal);
    marey_recording_close(recording);
}

/* ---- from the command line to the exit status ---- */

static int not_started(const struct run_target *target, const char *program, int error)
{
    run_target_abandon(target);
    if (error == ENOENT && strchr(program, '/') == NULL)
        cli_say("cannot run '%s': no program of that name on PATH", program);
    else if (error == EACCES)
        cli_say("cannot run '%s': it is not executable", program);
    else if (error == ENOEXEC)
        cli_say("cannot run '%s': not a program this machine can execute", program);
    else
        cli_say("cannot run '%s': %s", program, strerror(error));
    return CLI_NOT_STARTED;
}

/* ---- samples ---- */

/*
 * A thread that samples the program and its descendants. It starts with the program, which is not a Python yet and may
 * never be one: children of launchers are sampled. Failures are printed, and the program continues.
 */
struct run_sample {
    marey_sampler *sampler; /* NULL: not requested */
    struct sampling sampling;
};

static bool prepare_sampler(struct run_sample *sample, const char *recording)
{
    struct marey_sampler_options wants = {.size = sizeof wants,
                                          .path = recording,
                                          .native = given.native,
                                          .patience_ms = UINT32_MAX,
                                          .programs = is_auto() || given.native};
    *sample = (struct run_sample){0};
    if (given.sample != NULL && given.sample[0] != '\0' &&
        !cli_rate("sample", given.sample, &wants.rate_hz))
        return false;
    if (is_auto()) { /* stops no Python thread */
        wants.strategy = MAREY_SAMPLER_SNAPSHOT;
        wants.audit_share = -1;
        wants.pauses = 1;
        wants.counters = 1;
    }
    return cli_status(marey_sampler_create(&wants, &sample->sampler)) == CLI_FINE;
}

static void begin_sampling(void *ctx, pid_t pid)
{
    struct run_sample *sample = ctx;
    if (marey_sampler_add(sample->sampler, pid) != MAREY_OK)
        cli_say("%s", marey_last_error());
    else
        sampling_start(&sample->sampling, sample->sampler);
}

static uint64_t end_sampling(struct run_sample *sample)
{
    struct marey_sampler_counts counts = {0};
    sampling_stop(&sample->sampling);
    if (sample->sampling.status != MAREY_OK)
        cli_say("%s", sample->sampling.error);
    marey_sampler_counts_get(sample->sampler, &counts, sizeof counts);
    if (counts.all.samples == 0)
        snprintf(refusal, sizeof refusal, "%s", marey_sampler_refusal(sample->sampler));
    marey_sampler_destroy(sample->sampler);
    sample->sampler = NULL;
    return counts.all.samples;
}

/* Like run_child, with sampling if requested. */
static int run_sampled(const char *recording, char **program, struct run_end *end)
{
    struct run_sample sample;
    if ((given.sample == NULL && !is_auto()) || !prepare_sampler(&sample, recording))
        return run_child(program, end, NULL, NULL);
    const int error = run_child(program, end, begin_sampling, &sample);
    n_sampled += end_sampling(&sample);
    return error;
}

/*
 * Like run_child, with energy measured if the options request it. By default power, utilization, clocks and throttling
 * of GPUs are read once a second, unless the program ends at once: opening NVML takes a while.
 */
static int run_measured(const char *recording, const char *how, char **program, struct run_end *end)
{
    wants_energy = marey_energy_asked(how) != 0;
    if (!wants_energy && !(is_auto() && has_gpu()))
        return run_sampled(recording, program, end);
    cli_status(
        marey_energy_start(recording, wants_energy ? how : "energy=1,energy.hz=1,energy.after=2"));
    const int error = run_sampled(recording, program, end);
    marey_energy_stop();
    return error;
}

static void add_run(const char *recording, char *const *program, const struct run_end *end)
{
    char *command CLI_FREED = run_join_words(program);
    const struct marey_run_end ended = {.command = command != NULL ? command : program[0],
                                        .wall_ns = end->wall_ns,
                                        .cpu_ns = end->cpu_ns,
                                        .wait_status = end->wait_status};
    cli_status(marey_recording_add_run(recording, &ended));
}

/* Like run_child. Stops early if the program fails. */
static int run_repeatedly(const char *recording, const char *how, char **program, struct run_end *end)
{
    for (uint32_t i = 1; i <= given.repeat; i++) {
        if (given.repeat > 1)
            run_environment_repeat(i);
        const int error = run_measured(recording, how, program, end);
        if (error != 0)
            return error;
        add_run(recording, program, end);
        if (end->wait_status != 0 && i < given.repeat) {
            cli_say("run %u of %u failed; the remaining runs are skipped", i, given.repeat);
            return 0;
        }
        if (given.repeat > 1 && !given.quiet)
            cli_say("run %u of %u is done", i, given.repeat);
    }
    return 0;
}

static int run_program(char **program, enum run_existing existing, const char *options_text)
{
    struct run_target target;
    struct run_preload preload = {.folder = ""};
    struct run_end end = {0};
    if ((given.gpu || has_gpu_windows()) && !run_inject_cuda())
        return CLI_BAD;
    if (given.nvtx && !run_nvtx())
        return CLI_BAD;
    if (given.mpi && !run_preload(&preload, "libmarey-mpi.so", "--mpi"))
        return CLI_BAD;
    if ((given.memory && !run_preload(&preload, "libmarey-memory.so", "--memory")) ||
        !run_target_prepare(&target, given.output, existing, program)) {
        run_preload_remove(&preload);
        return CLI_BAD;
    }
    run_environment_set(target.path, options_text);
    const int error = run_repeatedly(target.path, options_text, program, &end);
    run_preload_remove(&preload);
    if (error != 0)
        return not_started(&target, program[0], error);
    print_result(&target, program, &end);
    return run_pass_on(end.wait_status);
}

static int run(int n_args, char **args)
{
    if (given.options != NULL && strcmp(given.options, "help") == 0) {
        fputs(marey_options_help(), stdout);
        return CLI_FINE;
    }
    if (n_args == 0)
        return cli_fail("run needs a program: marey run -- python train.py");
    if (given.only != NULL && strcmp(given.only, "ranges") != 0)
        return cli_fail("--only takes 'ranges'; use the other options to add measurements");
    if (given.budget != NULL && !is_auto())
        return cli_fail(
            "--budget limits the default recording; it excludes options that name an instrument");
    if (given.repeat == 0)
        return cli_fail("--repeat takes 1 or more");
    if (given.gpu_schedule != NULL && !given.gpu)
        return cli_fail("--gpu-schedule needs --gpu");
    if (given.memory_sample != NULL && !given.memory)
        return cli_fail("--memory-sample needs --memory");
    if (given.native && given.sample == NULL)
        return cli_fail("--native needs --sample");
    double hz;
    if (given.sample != NULL && given.sample[0] != '\0' && !cli_rate("sample", given.sample, &hz))
        return CLI_BAD;
    if (!cli_exclude(&cli_command_run, "append force"))
        return CLI_BAD;
    if (given.force && run_is_one_of_many())
        return cli_fail(
            "with --force each rank would remove the recordings of the others; remove the "
            "recording first");

    char *options_text CLI_FREED = joined_options();
    if (options_text == NULL)
        return cli_fail("out of memory");
    CLI_TRY(cli_status(marey_options_check(options_text)));
    return run_program(args,
                       given.append  ? RUN_APPEND
                       : given.force ? RUN_FORCE
                                     : RUN_REFUSE,
                       options_text);
}

const struct cli_command cli_command_run = {
    .name = "run",
    .usage = "[OPTIONS] [--] PROGRAM [ARGUMENTS...]",
    .brief = "run a program and record it",
    .about =
        "Runs a program, records what a diagnosis needs, and prints why it is slow: training\n"
        "steps and their phases, stacks of all Python threads and child processes, native\n"
        "stacks of programs without Python. The program is not changed. Options that name an\n"
        "instrument (--gpu, --sample, ...) record that instead. Works before torchrun, mpirun\n"
        "and srun, and after them. Forwards signals to the program, and returns its exit status.\n"
        "The recording is kept however the program ends.",
    CLI_OPTIONS(options),
    .examples = "  marey run python train.py                  records into train.marey\n"
                "  marey run ./solver                         native stacks and lock waits\n"
                "  marey run --gpu -- python train.py         kernels, copies and their launches\n"
                "  marey run --energy -- python train.py      power, energy and utilization\n"
                "  marey run --sample -- python train.py      Python stacks, 100 times per second\n"
                "  marey run --memory -- ./solver             allocations, and leaks\n"
                "  marey run --mpi -- mpirun -n 4 ./solver    MPI calls\n"
                "  marey run --nvtx -- python train.py        NVTX ranges\n"
                "  marey run -o first.marey -- ./train        names the recording\n"
                "  marey run -- torchrun --nproc-per-node 4 train.py\n"
                "  marey run --repeat 5 -o a.marey -- python train.py   five runs to compare with\n"
                "  marey run --options policy=keep-newest,pool=64MiB -- ./train",
    .exits = "the program's own; 2 wrong usage, 3 the program could not be started.",
    .stops_at_argument = true,
    .run = run,
};
