/*
 * Samples as ranges, for exports over time: a function is a range on its thread's track while successive rounds find it
 * there. A round's stack is drawn back to the previous round, as gaps are random; after a longer pause, and for threads
 * not seen in the previous round, it is drawn for the time that it represents.
 */
#include "analyze/calls/internal.h"
#include "analyze/samples/internal.h"
#include "import/stacks/internal.h"
#include "present/export/internal.h"

struct thread {
    marey__sink_process *process; /* NULL: not seen yet */
    uint32_t lane;
    uint32_t stack;         /* seen last */
    uint64_t end_ns, round; /* end of what is drawn; latest round, as numbered in its process */
    struct open {
        uint32_t function;
        uint64_t begin_ns, n_samples;
    } * open; /* outermost first */
    size_t depth, open_cap;
};

struct range_writer {
    struct marey__samples_set *set;
    const struct marey__samples_filter *filter;
    marey__sink *sink;
    bool is_beside; /* the same file has other tracks of these threads */
    struct marey__frames frames;
    uint32_t *frame_of;     /* by function */
    struct thread *threads; /* by number */
    uint64_t *rounds;       /* by process: number of rounds */
    size_t n_threads;
    uint32_t *functions; /* of the current stack, outermost first */
    size_t functions_cap;
};

/* ---- names ---- */

static bool make_frame(struct range_writer *w, uint32_t function)
{
    const struct marey_samples_function *const f =
        marey_samples_get_function(w->set->samples, function);
    const char *const name = function != 0 ? f->name : "(no Python frames)";
    const char *const file = f->file[0] != '\0' ? f->file : f->module;
    const struct marey__text_frame frame = {.name = name,
                                            .name_len = strlen(name),
                                            .file = file,
                                            .file_len = strlen(file),
                                            .line = f->first_line};
    w->frame_of[function] = marey__frames_of_function(&w->frames, &frame);
    return w->frame_of[function] != MAREY__NO_FRAME;
}

static bool make_frames(struct range_writer *w)
{
    const uint32_t n = marey_samples_n_functions(w->set->samples);
    bool done = true;
    for (uint32_t i = 0; done && i <= n; i++)
        done = make_frame(w, i);
    return done && marey__frames_name(&w->frames);
}

/* ---- threads ---- */

/* Thread ids end below 2^22. */
enum { INTERPRETER_TIDS = 1 << 23, BESIDE_TIDS = 1 << 30 };

static int64_t tid_of(const struct range_writer *w, uint32_t number,
                      const struct marey_samples_thread *t)
{
    const int64_t tid = t->tid > 0 ? t->tid : (int64_t)number;
    const int64_t interpreter = (int64_t)(t->interpreter % 64) * INTERPRETER_TIDS;
    return tid + interpreter + (w->is_beside ? BESIDE_TIDS : 0);
}

static void name_lane(const struct range_writer *w, const struct thread *thread,
                      const struct marey_samples_thread *t)
{
    struct marey__buf name MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_puts(&name, t->name[0] != '\0' ? t->name : "thread");
    if (t->interpreter != 0)
        marey__buf_printf(&name, " in interpreter %llu", (unsigned long long)t->interpreter);
    if (w->is_beside)
        marey__buf_puts(&name, ": samples");
    if (!name.failed)
        marey__sink_name_lane(thread->process, thread->lane, name.data, name.len);
}

static bool meet_thread(struct range_writer *w, uint32_t number, struct thread *thread)
{
    const marey_samples *const samples = w->set->samples;
    const struct marey_samples_thread *const t = marey_samples_get_thread(samples, number);
    const struct marey_samples_process *const p = marey_samples_get_process(samples, t->process);
    const struct marey__samples_source *const source =
        &w->set->sources[w->set->targets[t->process].source];
    thread->process = marey__sink_process_get(w->sink, t->process);
    if (thread->process == NULL)
        return false;
    const struct marey__sink_identity identity = {.pid = p->pid,
                                                  .ppid = p->ppid,
                                                  .rank = p->rank,
                                                  .world_size = -1,
                                                  .command = p->command,
                                                  .host = p->host};
    marey__sink_identify(thread->process, &identity);
    thread->process->to_unix_ns =
        marey_recording_process(source->recording, source->log)->mono_to_unix_ns;
    thread->lane = marey__sink_thread(thread->process, tid_of(w, number, t));
    name_lane(w, thread, t);
    return true;
}

/* ---- ranges ---- */

/* Random gaps exceed this multiple of the mean once in about twenty thousand. */
enum { LONGEST_GAP = 10 };

/* End ranges from `depth` on. Of slices with equal times the outer one must come first. */
static void close_from(struct range_writer *w, struct thread *thread, size_t depth, uint64_t end_ns)
{
    for (size_t i = depth; i < thread->depth; i++) {
        const struct open *const open = &thread->open[i];
        const struct marey__sink_event event = {
            .kind = MAREY__SINK_SLICE,
            .lane = thread->lane,
            .site = marey__frames_site(&w->frames, thread->process, w->frame_of[open->function]),
            .ns = open->begin_ns,
            .duration_ns = end_ns - open->begin_ns,
            .repeat = open->n_samples,
        };
        marey__sink_put(thread->process, &event);
    }
    thread->depth = MAREY__MIN(thread->depth, depth);
}

/* The functions of a stack, outermost first; only 0 if there are none. Returns how many; 0 on out of memory. */
static size_t unroll(struct range_writer *w, uint32_t stack)
{
    const marey_samples *const samples = w->set->samples;
    const size_t n = MAREY__MAX(marey_samples_get_stack(samples, stack).depth, 1U);
    if (!marey__grow(&w->functions, &w->functions_cap, n, sizeof *w->functions))
        return 0;
    w->functions[0] = 0;
    size_t i = n;
    while (stack != 0 && i > 0) {
        const struct marey_samples_stack frame = marey_samples_get_stack(samples, stack);
        w->functions[--i] = marey_samples_get_location(samples, frame.location).function;
        stack = frame.parent;
    }
    return n;
}

static bool change_to(struct range_writer *w, struct thread *thread, uint32_t stack, uint64_t begin_ns)
{
    const size_t n = unroll(w, stack);
    size_t same = 0;
    if (n == 0 || !marey__grow(&thread->open, &thread->open_cap, n, sizeof *thread->open))
        return false;
    while (same < n && same < thread->depth && thread->open[same].function == w->functions[same])
        same++;
    close_from(w, thread, same, begin_ns);
    for (size_t i = same; i < n; i++)
        thread->open[i] = (struct open){w->functions[i], begin_ns, 0};
    thread->depth = n;
    thread->stack = stack;
    return true;
}

static marey_status write_sample(struct range_writer *w, const struct marey_samples_round *round,
                                 const struct marey_samples_seen *seen)
{
    struct thread *const thread = &w->threads[seen->thread];
    if (thread->process == NULL && !meet_thread(w, seen->thread, thread))
        return marey__no_memory();
    const uint64_t number = w->rounds[round->process],
                   from = round->at_ns - MAREY__MIN(round->weight_ns, round->at_ns);
    const bool goes_on = thread->round + 1 == number &&
                         round->at_ns < thread->end_ns + LONGEST_GAP * round->weight_ns;
    if (!goes_on)
        close_from(w, thread, 0, thread->end_ns);
    const uint64_t begin_ns = goes_on ? thread->end_ns : MAREY__MAX(from, thread->end_ns);
    if ((thread->depth == 0 || thread->stack != seen->stack) &&
        !change_to(w, thread, seen->stack, begin_ns))
        return marey__no_memory();
    for (size_t i = 0; i < thread->depth; i++)
        thread->open[i].n_samples += MAREY__MAX(round->n_same, 1);
    thread->end_ns = MAREY__MAX(round->at_ns, begin_ns);
    thread->round = number;
    return MAREY_OK;
}

static marey_status write_round(void *ctx, const struct marey_samples_round *round)
{
    struct range_writer *const w = ctx;
    w->rounds[round->process]++;
    for (size_t i = 0; i < round->n_seen; i++)
        MAREY_TRY(write_sample(w, round, &round->seen[i]));
    return marey__sink_status(w->sink);
}

/* ---- all samples ---- */

static marey_status write_samples(void *ctx, marey__sink *sink)
{
    struct range_writer *const w = ctx;
    struct marey__samples_chosen *chosen = NULL;
    w->sink = sink;
    w->n_threads = (size_t)marey_samples_n_threads(w->set->samples) + 1;
    w->threads = marey__calloc(w->n_threads, sizeof *w->threads);
    w->frame_of =
        marey__calloc((size_t)marey_samples_n_functions(w->set->samples) + 1, sizeof *w->frame_of);
    w->rounds =
        marey__calloc((size_t)marey_samples_n_processes(w->set->samples) + 1, sizeof *w->rounds);
    MAREY__TRY_MEMORY(w->threads != NULL && w->frame_of != NULL && w->rounds != NULL &&
                      make_frames(w));
    MAREY_TRY(marey__samples_choose(w->set, w->filter, true, &chosen));
    const marey_status status = marey__samples_visit(w->set, chosen, write_round, w);
    marey__samples_chosen_destroy(chosen);
    for (size_t i = 0; status == MAREY_OK && i < w->n_threads; i++)
        close_from(w, &w->threads[i], 0, w->threads[i].end_ns);
    return status;
}

marey_status marey__samples_as_ranges(marey_recording *const *recordings, size_t n,
                                      const struct marey__samples_filter *filter, bool is_beside,
                                      marey_recording **out)
{
    struct marey__samples_set set;
    struct range_writer w = {.set = &set, .filter = filter, .is_beside = is_beside};
    MAREY_TRY(marey__samples_open(&set, recordings, n));
    marey__frames_init(&w.frames);
    w.frames.names_lines = true;
    const marey_status status = marey__make_recording(
        MAREY__SAMPLES_SOURCE, marey_recording_name(recordings[0]), write_samples, &w, out);
    for (size_t i = 0; w.threads != NULL && i < w.n_threads; i++)
        marey__free(w.threads[i].open);
    MAREY__FREE_ALL(w.threads, w.frame_of, w.rounds, w.functions);
    marey__frames_fini(&w.frames);
    marey__samples_fini(&set);
    return status;
}

bool marey__samples_are_all(marey_recording *const *recordings, size_t n)
{
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < marey_recording_n_logs(recordings[r]); i++)
            if (marey_recording_process(recordings[r], i)->n_words != 0)
                return false;
    return marey__samples_are_there(recordings, n) && !marey__calls_are_there(recordings, n);
}
