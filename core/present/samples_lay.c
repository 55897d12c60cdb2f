/*
 * Samples as ranges, for exports that draw time: a function is a range on its thread's track for as long as it is found there
 * without a break. What a round finds is drawn back to the round before, whose gaps are random; after a longer pause, and of
 * threads that the round before has not seen, it is drawn for the time that it stands for.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/calls.h"
#include "analyze/samples.h"
#include "import/stack_in.h"
#include "present/samples_out.h"

struct thread {
    kymo__sink_process *process; /* NULL: not met yet */
    uint32_t lane;
    uint32_t stack;         /* what was seen last */
    uint64_t end_ns, round; /* up to when, and in which round of its process */
    struct open {
        uint32_t function;
        uint64_t begin_ns, n_samples;
    } * open; /* outermost first */
    size_t depth, open_cap;
};

struct laying {
    struct kymo__samples_set *set;
    kymo__sink *sink;
    bool is_beside; /* other tracks of these threads are in the same file */
    struct kymo__frames frames;
    uint32_t *frame_of;     /* by function */
    struct thread *threads; /* by number */
    uint64_t *rounds;       /* by process: how many there were */
    size_t n_threads;
    uint32_t *functions; /* of the stack at hand, outermost first */
    size_t functions_cap;
};

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory to lay out the samples");
}

/* ---- names ---- */

static bool make_frame(struct laying *l, uint32_t function)
{
    const struct kymo_samples_function *const f =
        kymo_samples_get_function(l->set->samples, function);
    const char *const name = function != 0 ? f->name : "(no Python frames)";
    const char *const file = f->file[0] != '\0' ? f->file : f->module;
    const struct kymo__text_frame frame = {.name = name,
                                           .name_len = strlen(name),
                                           .file = file,
                                           .file_len = strlen(file),
                                           .line = f->first_line};
    l->frame_of[function] = kymo__frames_of_function(&l->frames, &frame);
    return l->frame_of[function] != KYMO__NO_FRAME;
}

static bool make_frames(struct laying *l)
{
    const uint32_t n = kymo_samples_n_functions(l->set->samples);
    bool done = true;
    for (uint32_t i = 0; done && i <= n; i++)
        done = make_frame(l, i);
    return done && kymo__frames_name(&l->frames);
}

/* ---- threads ---- */

/* Numbers of threads end below 2^22. */
enum { INTERPRETER_TIDS = 1 << 23, BESIDE_TIDS = 1 << 30 };

static int64_t tid_of(const struct laying *l, uint32_t number, const struct kymo_samples_thread *t)
{
    const int64_t tid = t->tid > 0 ? t->tid : (int64_t)number;
    const int64_t interpreter = (int64_t)(t->interpreter % 64) * INTERPRETER_TIDS;
    return tid + interpreter + (l->is_beside ? BESIDE_TIDS : 0);
}

static void name_lane(const struct laying *l, const struct thread *thread,
                      const struct kymo_samples_thread *t)
{
    struct kymo__buf name = {0};
    kymo__buf_puts(&name, t->name[0] != '\0' ? t->name : "thread");
    if (t->interpreter != 0)
        kymo__buf_printf(&name, " in interpreter %llu", (unsigned long long)t->interpreter);
    if (l->is_beside)
        kymo__buf_puts(&name, ": samples");
    if (!name.failed)
        kymo__sink_name_lane(thread->process, thread->lane, name.data, name.len);
    kymo__buf_fini(&name);
}

static bool meet_thread(struct laying *l, uint32_t number, struct thread *thread)
{
    const kymo_samples *const samples = l->set->samples;
    const struct kymo_samples_thread *const t = kymo_samples_get_thread(samples, number);
    const struct kymo_samples_process *const p = kymo_samples_get_process(samples, t->process);
    const struct kymo__samples_source *const source =
        &l->set->sources[l->set->targets[t->process].source];
    thread->process = kymo__sink_process_get(l->sink, t->process);
    if (thread->process == NULL)
        return false;
    const struct kymo__sink_identity identity = {.pid = p->pid,
                                                 .ppid = p->ppid,
                                                 .rank = p->rank,
                                                 .world_size = -1,
                                                 .command = p->command,
                                                 .host = p->host};
    kymo__sink_identify(thread->process, &identity);
    kymo__sink_set_wall(thread->process,
                        kymo_recording_process(source->recording, source->log)->mono_to_unix_ns);
    thread->lane = kymo__sink_thread(thread->process, tid_of(l, number, t));
    name_lane(l, thread, t);
    return true;
}

/* ---- ranges ---- */

/* Random gaps are that many times the usual one once in twenty thousand. */
enum { LONGEST_GAP = 10 };

/* End what is open from `depth` on. Of slices with equal times the outer one is put first. */
static void close_from(struct laying *l, struct thread *thread, size_t depth, uint64_t end_ns)
{
    for (size_t i = depth; i < thread->depth; i++) {
        const struct open *const open = &thread->open[i];
        const struct kymo__sink_event event = {
            .kind = KYMO__SINK_SLICE,
            .lane = thread->lane,
            .site = kymo__frames_site(&l->frames, thread->process, l->frame_of[open->function]),
            .ns = open->begin_ns,
            .duration_ns = end_ns - open->begin_ns,
            .repeat = open->n_samples,
        };
        kymo__sink_put(thread->process, &event);
    }
    thread->depth = KYMO__MIN(thread->depth, depth);
}

/* The functions of a stack, outermost first; 0 alone where there are none. How many; 0 without memory. */
static size_t unroll(struct laying *l, uint32_t stack)
{
    const kymo_samples *const samples = l->set->samples;
    const size_t n = KYMO__MAX(kymo_samples_get_stack(samples, stack).depth, 1U);
    if (!kymo__grow(&l->functions, &l->functions_cap, n, sizeof *l->functions))
        return 0;
    l->functions[0] = 0;
    size_t i = n;
    while (stack != 0 && i > 0) {
        const struct kymo_samples_stack frame = kymo_samples_get_stack(samples, stack);
        l->functions[--i] = kymo_samples_get_location(samples, frame.location).function;
        stack = frame.parent;
    }
    return n;
}

static bool change_to(struct laying *l, struct thread *thread, uint32_t stack, uint64_t begin_ns)
{
    const size_t n = unroll(l, stack);
    size_t same = 0;
    if (n == 0 || !kymo__grow(&thread->open, &thread->open_cap, n, sizeof *thread->open))
        return false;
    while (same < n && same < thread->depth && thread->open[same].function == l->functions[same])
        same++;
    close_from(l, thread, same, begin_ns);
    for (size_t i = same; i < n; i++)
        thread->open[i] = (struct open){l->functions[i], begin_ns, 0};
    thread->depth = n;
    thread->stack = stack;
    return true;
}

static kymo_status lay_sample(struct laying *l, const struct kymo_samples_round *round,
                              const struct kymo_samples_seen *seen)
{
    struct thread *const thread = &l->threads[seen->thread];
    if (thread->process == NULL && !meet_thread(l, seen->thread, thread))
        return no_memory();
    const uint64_t number = l->rounds[round->process],
                   from = round->at_ns - KYMO__MIN(round->weight_ns, round->at_ns);
    const bool goes_on = thread->round + 1 == number &&
                         round->at_ns < thread->end_ns + LONGEST_GAP * round->weight_ns;
    if (!goes_on)
        close_from(l, thread, 0, thread->end_ns);
    const uint64_t begin_ns = goes_on ? thread->end_ns : KYMO__MAX(from, thread->end_ns);
    if ((thread->depth == 0 || thread->stack != seen->stack) &&
        !change_to(l, thread, seen->stack, begin_ns))
        return no_memory();
    for (size_t i = 0; i < thread->depth; i++)
        thread->open[i].n_samples += KYMO__MAX(round->n_same, 1);
    thread->end_ns = KYMO__MAX(round->at_ns, begin_ns);
    thread->round = number;
    return KYMO_OK;
}

static kymo_status lay_round(void *ctx, const struct kymo_samples_round *round)
{
    struct laying *const l = ctx;
    l->rounds[round->process]++;
    for (size_t i = 0; i < round->n_seen; i++)
        KYMO_TRY(lay_sample(l, round, &round->seen[i]));
    return kymo__sink_status(l->sink);
}

/* ---- the whole ---- */

static kymo_status lay_rounds(struct laying *l, const struct kymo_samples_filter *filter)
{
    struct kymo__samples_chosen *chosen = NULL;
    l->n_threads = (size_t)kymo_samples_n_threads(l->set->samples) + 1;
    l->threads = kymo__calloc(l->n_threads, sizeof *l->threads);
    l->frame_of =
        kymo__calloc((size_t)kymo_samples_n_functions(l->set->samples) + 1, sizeof *l->frame_of);
    l->rounds =
        kymo__calloc((size_t)kymo_samples_n_processes(l->set->samples) + 1, sizeof *l->rounds);
    if (l->threads == NULL || l->frame_of == NULL || l->rounds == NULL || !make_frames(l))
        return no_memory();
    KYMO_TRY(kymo__samples_choose(l->set, filter, true, &chosen));
    const kymo_status status = kymo__samples_visit(l->set, chosen, lay_round, l);
    kymo__samples_chosen_destroy(chosen);
    for (size_t i = 0; status == KYMO_OK && i < l->n_threads; i++)
        close_from(l, &l->threads[i], 0, l->threads[i].end_ns);
    return status == KYMO_OK ? kymo__sink_finish(l->sink) : status;
}

static kymo_status lay_all(struct laying *l, const struct kymo_samples_filter *filter,
                           const char *name, kymo_recording **out)
{
    struct kymo__log_store *store = NULL;
    KYMO_TRY(kymo__log_store_open_temporary(&store));
    const struct kymo__sink_options options = {
        .store = store, .source = KYMO__SAMPLES_SOURCE, .run_id = "samples"};
    kymo_status status = kymo__sink_create(&options, &l->sink);
    if (status == KYMO_OK)
        status = lay_rounds(l, filter);
    if (status == KYMO_OK)
        status = kymo__log_store_read(store, name, out);
    kymo__sink_destroy(l->sink);
    kymo__log_store_close(store);
    return status;
}

kymo_status kymo__samples_lay(kymo_recording *const *recordings, size_t n,
                              const struct kymo_samples_filter *filter, bool is_beside,
                              kymo_recording **out)
{
    struct kymo__samples_set set;
    struct laying l = {.set = &set, .is_beside = is_beside};
    KYMO_TRY(kymo__samples_open(&set, recordings, n));
    kymo__frames_init(&l.frames);
    l.frames.names_lines = true;
    const kymo_status status = lay_all(&l, filter, kymo_recording_name(recordings[0]), out);
    for (size_t i = 0; l.threads != NULL && i < l.n_threads; i++)
        kymo__free(l.threads[i].open);
    kymo__free(l.threads);
    kymo__free(l.frame_of);
    kymo__free(l.rounds);
    kymo__free(l.functions);
    kymo__frames_fini(&l.frames);
    kymo__samples_fini(&set);
    return status;
}

bool kymo__samples_are_all(kymo_recording *const *recordings, size_t n)
{
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < kymo_recording_n_logs(recordings[r]); i++)
            if (kymo_recording_process(recordings[r], i)->n_words != 0)
                return false;
    return kymo_samples_are_there(recordings, n) && !kymo__calls_are_there(recordings, n);
}
