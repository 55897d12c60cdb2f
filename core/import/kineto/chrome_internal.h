/*
 * Kineto and Chrome traces to the sink, event by event. kineto_file.h has the reader.
 *
 *   chrome_in.c ── a file from its start to the notes at its end
 *   chrome_put.c ── by phase and category, what the sink gets;  chrome_work.c ── GPU activity and communication
 *   chrome_sites.c ── names to sites, ids to numbers
 *   chrome_threads.c ── pids, tids and their names to processes and lanes
 */
#ifndef MAREY_CHROME_INTERNAL_H
#define MAREY_CHROME_INTERNAL_H

#include "import/internal.h"
#include "import/kineto/kineto_file.h"
#include "import/sink/sink_internal.h"

/* ---- chrome_threads.c ---- */

/* A thread, or a stream, of the file; known by its name before it has events. */
struct marey__chrome_thread {
    int64_t pid, tid;
    marey__sink_process *process; /* NULL: no event of a thread yet */
    uint32_t lane, stream_lane;   /* UINT32_MAX: none */
    char *name;
    size_t name_len;
};

/* A process of the file, known by its name before it has events. */
struct marey__chrome_process {
    int64_t pid;
    marey__sink_process *process; /* NULL: no event yet */
    char *name, *labels;
};

/* What stands for a number: "pid": "Spans". */
struct marey__chrome_word {
    char *text;
    size_t len;
};

struct marey__chrome {
    struct marey__import *import;
    struct marey__kineto_file file;
    struct marey__kineto_header header;
    struct marey_communication communication; /* of the event being put */

    /* Processes, threads and words by their hash. */
    marey__sink_process *main; /* of GPU work, and of the pid that comes first; NULL: no event yet */
    int64_t main_pid;
    bool has_main_pid;
    struct marey__chrome_process *processes;
    struct marey__chrome_thread *threads;
    struct marey__chrome_word *words;
    size_t n_processes, processes_cap, n_threads, threads_cap, n_words, words_cap;
    struct marey__index processes_index, threads_index, words_index;
    size_t last_thread; /* that was asked for */
    uint64_t seed;
    bool has_failed; /* no memory */

    struct marey__buf text; /* an unescaped name */

    /* For the notes at the end. */
    uint64_t n_events, n_without_time, n_negative_times, n_without_duration, n_negative_durations,
        n_without_value, n_phases[256];
};

/* The thread of an event; NULL without memory. Made when new. */
struct marey__chrome_thread *marey__chrome_thread(struct marey__chrome *chrome,
                                                  const struct marey__chrome_value *pid,
                                                  const struct marey__chrome_value *tid);
/* As a thread that has events; as a stream of the main process. False without memory. */
bool marey__chrome_as_thread(struct marey__chrome *chrome, struct marey__chrome_thread *thread);
bool marey__chrome_as_stream(struct marey__chrome *chrome, struct marey__chrome_thread *thread);
/* The thread called `pid` and `tid`, for streams. */
struct marey__chrome_thread *marey__chrome_thread_of(struct marey__chrome *chrome, int64_t pid,
                                                     int64_t tid);
/* Metadata: names. */
void marey__chrome_name_thread(struct marey__chrome *chrome, const char *name, size_t len);
/* By its labels, where `is_label`, in case it has no name. */
void marey__chrome_name_process(struct marey__chrome *chrome, const char *name, size_t len,
                                bool is_label);
/* Tell the sink all names, ranks, times and devices that are known by now. */
void marey__chrome_identify(struct marey__chrome *chrome);
void marey__chrome_free_threads(struct marey__chrome *chrome);

/* ---- chrome_sites.c ---- */

/* A text without escapes, lent until the next call. */
struct marey__chrome_value marey__chrome_text(struct marey__chrome *chrome,
                                              const struct marey__chrome_value *value);
/* A site of the event's category, with its name or another. */
uint32_t marey__chrome_site(struct marey__chrome *chrome, marey__sink_process *process);
uint32_t marey__chrome_site_named(const struct marey__chrome *chrome, marey__sink_process *process,
                                  const char *name, size_t len);
/* The id of a flow: a number, also in hexadecimal, or any text by its hash. */
uint64_t marey__chrome_id(const struct marey__chrome_value *value);
/* An async range is known by its category, its name and its id, which may count within its process alone. */
uint64_t marey__chrome_async_id(const struct marey__chrome_event *event);

/* ---- chrome_put.c ---- */

void marey__chrome_put(struct marey__chrome *chrome);

/* ---- chrome_work.c ---- */

void marey__chrome_put_work(struct marey__chrome *chrome, struct marey__sink_event *out,
                            enum marey_work_kind kind);
/*
 * What `args` tell of a collective, or the `name` of a range on the host (NULL: it is not one); false when there is none.
 * `group` is a site of `process`.
 */
bool marey__chrome_communication(marey__sink_process *process, const struct marey__chrome_value *name,
                                 const struct marey__chrome_args *args,
                                 struct marey_communication *out);

#endif
