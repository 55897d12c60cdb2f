/*
 * Reads files into logs, several in parallel. Each file has its own sink, because ranks of several machines may have
 * the same pid; the sinks share the memory budget.
 *
 * A file that cannot be read is noted in the recording if others can. The sink that gets these and other final notes is
 * therefore written last.
 */
#include "import/internal.h"
#include "record/internal.h"

/* A file while it is read and its sink is written. */
struct reading {
    struct jobs *jobs;
    struct marey__import_file *file;
    marey__byte_source *bytes; /* NULL: fully read */
    bool may_tell;
    bool is_kept; /* written later */
};

struct jobs {
    struct marey__import_files *files;
    struct marey__log_store *store;
    const struct marey_import_options *options;
    char run_id[32];
    uint64_t memory_bytes; /* for each sink */
    uint64_t total_size;
    size_t next;          /* next file; threads take it with an atomic add */
    pthread_mutex_t lock; /* guards the members below */
    marey__sink *kept;    /* written last; its process 0 gets the notes */
    struct reading kept_reading;
    marey_status status; /* of failures that concern all files: memory, the disk */
    char failure[512];
};

/* ---- progress ---- */

/* Reading a file is this share of the work; the rest is writing. */
static const double reading_part = 0.85;

static void set_share(struct reading *reading, double share)
{
    struct jobs *jobs = reading->jobs;
    double sum = 0;
    pthread_mutex_lock(&jobs->lock);
    reading->file->share = share;
    for (size_t i = 0; reading->may_tell && i < jobs->files->n; i++)
        sum += jobs->files->all[i].share * (double)jobs->files->all[i].size;
    pthread_mutex_unlock(&jobs->lock);
    if (reading->may_tell && jobs->options->progress != NULL)
        jobs->options->progress(jobs->options->progress_ctx, sum / (double)jobs->total_size);
}

static void tick(void *ctx, double written)
{
    struct reading *reading = ctx;
    const double read = reading->bytes != NULL ? marey__bytes_share(reading->bytes) : 1;
    set_share(reading, reading_part * read + (1 - reading_part) * written);
}

/* ---- one file ---- */

/* The rank recorded in the file takes precedence over the one in its name. */
static void set_ranks(const marey__sink *sink, struct marey__import_file *file)
{
    const struct marey__sink_identity named = {.pid = -1, .rank = file->named_rank, .world_size = -1};
    marey__sink_process *process;
    int32_t said = -1;
    for (size_t i = 0; (process = marey__sink_process_at(sink, i)) != NULL; i++)
        said = said < 0 ? process->rank : said;
    for (size_t i = 0; said < 0 && (process = marey__sink_process_at(sink, i)) != NULL; i++)
        marey__sink_identify(process, &named);
    file->rank = said >= 0 ? said : file->named_rank;
}

static marey_status read_into(struct reading *reading, marey__sink *sink)
{
    struct marey__import_file *file = reading->file;
    struct marey__import import = {.sink = sink,
                                   .bytes = reading->bytes,
                                   .path = file->path,
                                   .number = (uint32_t)(file - reading->jobs->files->all),
                                   .options = reading->jobs->options};
    MAREY_TRY(file->format->read(&import));
    MAREY_TRY(marey__sink_status(sink));
    file->n_events = sink->n_events;
    file->n_bytes = marey__bytes_total(reading->bytes);
    if (file->n_events == 0)
        return marey__fail(MAREY_EFORMAT, "%s (%s) has no events in it", file->path,
                           file->format->info.noun);
    set_ranks(sink, file);
    return MAREY_OK;
}

/* Keep the first sink, which the calling thread writes last; write any other. */
static marey_status write_out(struct reading *reading, marey__sink **sink)
{
    struct jobs *jobs = reading->jobs;
    MAREY__HOLD(&jobs->lock);
    const bool is_first = jobs->kept == NULL;
    if (is_first) {
        jobs->kept = *sink;
        jobs->kept_reading = (struct reading){.jobs = jobs, .file = reading->file, .may_tell = true};
        jobs->kept->options.tick_ctx = &jobs->kept_reading;
        reading->is_kept = true;
        *sink = NULL;
    }
    return is_first ? MAREY_OK : marey__sink_finish(*sink);
}

static marey_status read_file(struct reading *reading, bool *concerns_all)
{
    struct jobs *jobs = reading->jobs;
    struct marey__import_file *file = reading->file;
    const struct marey__sink_options wants = {.store = jobs->store,
                                              .memory_bytes = jobs->memory_bytes,
                                              .command = marey__base_name(file->path),
                                              .source = file->format->info.name,
                                              .run_id = jobs->run_id,
                                              .tick = tick,
                                              .tick_ctx = reading};
    marey__sink *sink = NULL;
    *concerns_all = true;
    MAREY_TRY(marey__sink_create(&wants, &sink));
    marey_status status = read_into(reading, sink);
    if (status == MAREY_OK)
        status = write_out(reading, &sink);
    else
        *concerns_all = status == MAREY_ENOMEM || sink->status != MAREY_OK;
    marey__sink_destroy(sink);
    return status;
}

static void note_failure(struct jobs *jobs, struct marey__import_file *file, marey_status status,
                         bool concerns_all)
{
    file->status = status;
    if (status == MAREY_OK)
        return;
    snprintf(file->failure, sizeof file->failure, "%s", marey_last_error());
    MAREY__HOLD(&jobs->lock);
    if (concerns_all && jobs->status == MAREY_OK) {
        jobs->status = status;
        memcpy(jobs->failure, file->failure, sizeof jobs->failure);
    }
}

static void work_on(struct jobs *jobs, struct marey__import_file *file, bool may_tell)
{
    struct reading reading = {.jobs = jobs, .file = file, .bytes = file->bytes, .may_tell = may_tell};
    bool concerns_all = false;
    marey_status status = MAREY_OK;
    file->bytes = NULL;
    file->rank = -1;
    if (reading.bytes == NULL)
        status = marey__bytes_open(file->path, &reading.bytes);
    if (status == MAREY_OK)
        status = read_file(&reading, &concerns_all);
    note_failure(jobs, file, status, concerns_all);
    if (!reading.is_kept)
        set_share(&reading, 1);
    marey__bytes_close(reading.bytes);
}

static void work(void *ctx, bool may_tell)
{
    struct jobs *const jobs = ctx;
    for (;;) {
        const size_t i = __atomic_fetch_add(&jobs->next, 1, __ATOMIC_RELAXED);
        pthread_mutex_lock(&jobs->lock);
        const bool is_over = jobs->status != MAREY_OK;
        pthread_mutex_unlock(&jobs->lock);
        if (i >= jobs->files->n || is_over)
            return;
        work_on(jobs, &jobs->files->all[i], may_tell);
    }
}

/* ---- all ---- */

/* The number of files read of `rank`, and the names of the first two. */
static size_t find_rank(const struct marey__import_files *files, int32_t rank, const char *names[2])
{
    size_t n = 0;
    for (size_t i = 0; i < files->n; i++) {
        if (files->all[i].status != MAREY_OK || files->all[i].rank != rank)
            continue;
        if (n < 2)
            names[n] = marey__base_name(files->all[i].path);
        n++;
    }
    return n;
}

static void note_ranks(const struct marey__import_files *files, marey__sink_process *process)
{
    const char *names[2] = {"", ""};
    if (files->is_numbered && files->all[0].rank == 0)
        marey__sink_note(
            process, "No file records its rank: ranks are numbered in the order of file names.");
    for (size_t i = 0; i < files->n; i++) {
        const int32_t rank = files->all[i].rank;
        const size_t n =
            files->all[i].status == MAREY_OK && rank >= 0 ? find_rank(files, rank, names) : 0;
        if (n < 2 || names[0] != marey__base_name(files->all[i].path))
            continue; /* noted with the first of them */
        if (n == 2)
            marey__sink_note(process, "%s and %s both have rank %" PRId32 ".", names[0], names[1],
                             rank);
        else
            marey__sink_note(process, "%s, %s and %zu more all have rank %" PRId32 ".", names[0],
                             names[1], n - 2, rank);
    }
}

static void note_failures(const struct marey__import_files *files, marey__sink_process *process)
{
    for (size_t i = 0; i < files->n; i++)
        if (files->all[i].status != MAREY_OK)
            marey__sink_note(process, "A file was left out: %s.", files->all[i].failure);
}

static marey_status finish(struct jobs *jobs)
{
    const struct marey__import_files *files = jobs->files;
    if (jobs->status != MAREY_OK)
        return marey__fail(jobs->status, "%s", jobs->failure);
    if (jobs->kept == NULL)
        return marey__fail(files->all[0].status, "%s", files->all[0].failure);
    marey__sink_process *process = marey__sink_process_with_events(jobs->kept);
    note_failures(files, process);
    note_ranks(files, process);
    const marey_status status = marey__sink_finish(jobs->kept);
    set_share(&jobs->kept_reading, 1);
    return status;
}

marey_status marey__import_files_read(struct marey__import_files *files,
                                      struct marey__log_store *store,
                                      const struct marey_import_options *options)
{
    struct jobs jobs = {.files = files, .store = store, .options = options, .total_size = 1};
    const uint64_t memory = options->memory_bytes != 0 ? options->memory_bytes : UINT64_C(256) << 20;
    snprintf(jobs.run_id, sizeof jobs.run_id, "%016" PRIx64, marey__identity_random());
    for (size_t i = 0; i < files->n; i++)
        jobs.total_size += files->all[i].size;
    /* One more than there are threads, for the sink that is kept to the end. */
    const size_t n_sinks = marey__worker_count(options->n_jobs, files->n) + (files->n > 1);
    jobs.memory_bytes = MAREY__MAX(memory / n_sinks, UINT64_C(1));
    pthread_mutex_init(&jobs.lock, NULL);
    marey__run_parallel(work, &jobs, options->n_jobs, files->n);
    const marey_status status = finish(&jobs);
    marey__sink_destroy(jobs.kept);
    pthread_mutex_destroy(&jobs.lock);
    return status;
}
