/*
 * merge: all processes added up, by name, as a tree and in rows for each of them. A part of analyze_internal.h, which
 * includes it behind what a process is.
 *
 *   summary_merge.c, iteration_merge.c, gpu_merge.c ── one process after the other
 *   summary_sites.c ── what recordings tell besides
 *   summary_join.c ── one merge added to another; summary_bytes.c ── as bytes and back
 *   summary_order.c ── the end: in the order of processes, whoever was added first
 */
#ifndef MAREY_MERGE_H
#define MAREY_MERGE_H

struct marey__name_stats {
    struct marey__sketch calls;
    uint64_t total_ns, self_ns;
    uint64_t steady_ns; /* of the self time: in the steady parts of processes */
    uint32_t n_threads, n_processes;
};

/* A name's share in a thread (`lane` set) or in a process. */
struct marey__name_row {
    uint32_t process; /* in marey__merge.processes */
    uint32_t name;
    const struct marey_lane_info *lane;
    uint64_t count, total_ns, self_ns;
    uint64_t iteration_ns; /* of a process: its time in the iterations that count */
};

struct marey__open_row {
    uint32_t process, name;
    const struct marey_lane_info *lane;
    uint64_t since_ns; /* after the process's first event */
};

/* A process's own; they are added up in the order of processes, since sums of such numbers depend on it. */
struct marey__counter_row {
    uint32_t process, name;
    struct marey__counter counter;
};

/* A site, where it was met first. */
struct marey__site_row {
    uint32_t process, id;
    struct marey_site_info info; /* its texts are lent */
};

struct marey__site_rows {
    struct marey__names keys;  /* numbers as in `rows` */
    struct marey__arena texts; /* of the keys */
    struct marey__site_row *rows;
    size_t n, cap;
};

/* A sentence of a recording about itself. */
struct marey__told_row {
    uint32_t recording;
    bool is_note; /* of a process that measured: behind those about logs */
    const char *text;
};

/* What a recording has besides processes of the program; for a look at all its logs together. */
struct marey__left_out {
    uint32_t recording;
    uint64_t n_broken, n_empty;             /* logs */
    const struct marey_process **measuring; /* processes of a role; the array is the row's */
    size_t n_measuring, cap;
};

struct marey__row_list {
    struct marey__name_row *rows;
    size_t n, cap;
};

/* A name in the iterations of all processes that have it there. */
struct marey__iteration_name {
    struct marey__iteration_values values;
    uint64_t n_iterations, whole_ns; /* of these processes, whether it ran or not */
    uint64_t n_first,
        first_whole_ns; /* of that: first iterations, as marey__iteration_values has them */
    uint32_t n_processes;
    uint32_t highest_process; /* whose mean is the highest */
    double lowest_mean_ns, highest_mean_ns;
};

/* The iterations of one process. */
enum { MAREY__N_RANK_QUANTILES = 33 };
struct marey__iteration_row {
    uint32_t process; /* in marey__merge.processes */
    uint32_t recording;
    uint64_t n_iterations, n_warmup, n_cut;
    uint64_t n_counted, sum_ns, p50_ns, p99_ns;
    double std_ns;
    double samples;
    uint64_t samples_ns;
    bool has_data;
    uint64_t data_ns;       /* of the range that is data loading, */
    uint64_t data_whole_ns; /* in this time: without the first iteration, as shares are */
    uint64_t n_compared;    /* iterations that other ranks have as well */
    uint64_t n_slowest;     /* of these, in which it was the slowest */
    double behind_ns;       /* by how much in those, against the mean of the others, summed up */
    float quantiles[MAREY__N_RANK_QUANTILES]; /* of those that count, at even steps from the least to the longest */
};

struct marey__outlier_row {
    uint32_t process;
    uint32_t name; /* what was longer than usual; MAREY__NO_NAME: nothing that has a range */
    uint64_t number, ns, usual_ns, extra_ns;
};

struct marey__epoch_row {
    uint32_t process;
    struct marey__span span;
};

/* One iteration over the ranks of a recording: 24 bytes. */
struct marey__race {
    float slowest_ns;
    uint32_t slowest; /* row; MAREY__NO_NAME: two took equally long */
    uint64_t sum_ns;
    uint32_t n;
};

/* The iterations of a recording's ranks. */
struct marey__racecourse {
    uint32_t recording;
    struct marey__race *races; /* by the iteration's place */
    size_t n, cap;
};

/* iteration_merge.c: the iterations of all processes. */
struct marey__iteration_merge {
    const char *data; /* the range that is data loading; NULL: not said */
    struct marey__iteration_values whole, no_range;
    uint64_t n_first;
    struct marey__iteration_name *names;
    size_t n_names, names_cap;
    struct marey__iteration_row *rows;
    size_t n_rows, rows_cap;
    struct marey__outlier_row *outliers;
    size_t n_outliers, outliers_cap;
    struct marey__epoch_row *epochs;
    size_t n_epochs, epochs_cap;
    struct marey__phase_stats *phases; /* by name */
    size_t n_phases, phases_cap;
    uint64_t phased_ns; /* from the first event to the last of processes that have phases */
    uint64_t steady_ns,
        steady_phased_ns; /* steady parts: of all processes, of those that have phases */
    struct marey__racecourse *courses; /* that are not finished, one for a recording */
    size_t n_courses, courses_cap;
    bool keeps_courses; /* further ranks of any recording may come: a recording's end ends nothing */
};

/* gpu_merge.c: the work of all processes. */
struct marey__merged_work {
    struct marey__sketch calls;
    uint64_t bytes, bytes_ns;
    uint32_t name, kind;
    uint32_t next; /* as in struct marey__work_stats */
    uint32_t n_streams, n_devices, n_processes;
};

/* Work launched in ranges of a name. */
struct marey__gpu_range {
    uint64_t count, total_ns, self_ns;
};

struct marey__gpu_merge {
    struct marey__merged_work *works;
    size_t n_works, works_cap;
    uint32_t *by_name; /* as in struct marey__gpu_walk; these two may know fewer names, or none */
    size_t n_by_name, by_name_cap;
    struct marey__gpu_range *ranges;
    size_t n_ranges, ranges_cap;
    uint64_t work_ns; /* of all work, added up */
};

struct marey__merge {
    struct marey__names names;
    struct marey__name_stats *ranges; /* these four by name; the two in the middle may know fewer names */
    struct marey__name_stats *async;
    struct marey__counter *counters;
    uint64_t *marks;
    size_t n_ranges, n_async, n_counters, n_marks;
    size_t ranges_cap, async_cap, counters_cap, marks_cap;
    struct marey__tree tree;
    struct marey__row_list threads, ranks;
    bool without_threads; /* nobody wants rows of threads */
    struct marey__open_row *open;
    size_t n_open, open_cap;
    const struct marey_process **processes; /* lent by the recordings */
    size_t n_processes, processes_cap;
    uint32_t *process_recordings; /* the number of each one's recording */
    size_t process_recordings_cap;
    struct marey__counter_row *counter_rows; /* `counters` is made of these at the end */
    size_t n_counter_rows, counter_rows_cap;
    struct marey__site_rows sites;
    struct marey__told_row *told;
    size_t n_told, told_cap;
    struct marey__left_out *left_out;
    size_t n_left_out, left_out_cap;
    uint64_t n_threads, n_orphans, n_cut_off, n_unwound, n_async_dropped, n_overlapping, n_too_deep;
    struct marey__iteration_merge iterations;
    struct marey__gpu_merge gpu;
};

MAREY_WARN_UNUSED marey_status marey__merge_init(struct marey__merge *merge);
void marey__merge_fini(struct marey__merge *merge);
/* Add what was seen in one process; its sketches may be gone from `walk` afterwards. */
MAREY_WARN_UNUSED marey_status marey__merge_add(struct marey__merge *merge,
                                                struct marey__process_walk *walk);

/* What the recordings say of themselves and of their sites; once the processes of all of them are added. */
MAREY_WARN_UNUSED bool marey__merge_add_recordings(struct marey__merge *merge,
                                                   marey_recording *const *recordings, size_t n);
/*
 * Once all is added: processes in their order whoever was added first, counters added up, races decided. In
 * summary_order.c.
 */
MAREY_WARN_UNUSED marey_status marey__merge_finish(struct marey__merge *merge);
/* Whether process `a` comes before `b`. */
bool marey__merge_is_before(const struct marey__merge *merge, uint32_t a, uint32_t b);
/* Add a site, unless it is there; of two the one that was met first stays. False without memory. */
MAREY_WARN_UNUSED bool marey__merge_add_site(struct marey__merge *merge,
                                             const struct marey__site_row *site);
/*
 * Add all of another one, whose texts must stay; it is finished as one that was added, and freed by the caller. False
 * without memory. In summary_join.c.
 */
MAREY_WARN_UNUSED bool marey__merge_join(struct marey__merge *into, struct marey__merge *from);
/* What is left out of a recording, zeroed when new; NULL without memory. */
struct marey__left_out *marey__merge_left_out(struct marey__merge *merge, uint32_t recording);
/* Put one more measuring process there. */
MAREY_WARN_UNUSED bool marey__left_out_add(struct marey__left_out *left_out,
                                           const struct marey_process *process);
/* Room for as many processes. */
MAREY_WARN_UNUSED bool marey__merge_grow_processes(struct marey__merge *merge, size_t n);

/*
 * Add the GPU work of a process, and what its ranges have launched; `names` are its names as the summary numbers them.
 * The sketches may be gone from `walk` afterwards. False without memory.
 */
MAREY_WARN_UNUSED bool marey__gpu_merge_add(struct marey__merge *merge,
                                            struct marey__process_walk *walk, const uint32_t *names);
void marey__gpu_merge_fini(struct marey__gpu_merge *gpu);
/* Room for the names that there are. */
MAREY_WARN_UNUSED bool marey__gpu_merge_cover(struct marey__merge *merge);
/* The work of a name and kind, made when new; NULL without memory. */
struct marey__merged_work *marey__gpu_merge_work(struct marey__gpu_merge *gpu, uint32_t name,
                                                 uint32_t kind);

/* Add the iterations of a process; `names` are its names as the summary numbers them. False without memory. */
MAREY_WARN_UNUSED bool marey__iteration_merge_add(struct marey__merge *merge,
                                                  const struct marey__process_walk *walk,
                                                  uint32_t process, const uint32_t *names);
/* Who was slowest, in the recordings that are not finished. */
void marey__iteration_merge_finish(struct marey__iteration_merge *iterations);
/* The races of a recording, at least `n` of them; NULL without memory. */
struct marey__racecourse *marey__iteration_course(struct marey__iteration_merge *iterations,
                                                  uint32_t recording, size_t n);
/* Add what is known of a race among others to a race. */
void marey__race_add(struct marey__race *race, const struct marey__race *from);
void marey__iteration_merge_fini(struct marey__iteration_merge *iterations);
/* The standard deviation of `n` values, those that are not in `values` being zero; 0 for one. */
double marey__iteration_std(const struct marey__iteration_values *values, uint64_t n);
/* Make `*n` elements of the array at `array` as many as there are names, new ones zeroed. In summary_merge.c. */
bool marey__cover_names(const struct marey__names *names, void *array, size_t *n, size_t *cap,
                        size_t size);

#endif
