/*
 * dump: tensors of the program, copied when they are added and written step by step by threads of their own.
 *
 *     program --put--> the current step --flush--> queue --writers--> files of a layout
 *                      tree and items                                 step_marey.c, step_accvlab.c
 *                      dump_tree.c, dump_item.c    dump_queue.c       dump_files.c
 *
 *   dump.c          the API: adding, flushing, counting      dump_switch.c   on and off, options, fork, exit
 *   dump_memory.c   the memory budget of copies              dump_measure.c  statistics and digests of a value
 *   dump_flight.c   the last steps, kept until something happens
 *   dump_gpu.c      copies out of GPU memory                 dump_sides.c    a value in separate files
 *
 * Input: tensors as pointers with layout. Output: files (docs/formats/dump.md). marey__dump.lock guards the state,
 * the current step and the queue. A step that was taken from the queue belongs to its writer.
 */
#ifndef MAREY_INSTRUMENT_DUMP_INTERNAL_H
#define MAREY_INSTRUMENT_DUMP_INTERNAL_H

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <time.h>

#include "base/internal.h"
#include "tensor/container/internal.h"
#include <marey/dump.h>
#include <marey/image.h>

/* ---- dump_tree.c: paths, and what is where ---- */

enum marey__node_kind { MAREY__NODE_DICT, MAREY__NODE_LIST, MAREY__NODE_LEAF };
enum { MAREY__NO_NODE = UINT32_MAX };

struct marey__dump_item;
struct marey__dump_place;

/* The root is number 0, a dictionary. Children keep the order in which they came. */
struct marey__dump_node {
    struct marey_dump_part part; /* the key is the tree's */
    uint32_t parent, first, last, next;
    uint32_t n_children, depth;
    enum marey__node_kind kind;
    struct marey__dump_item *item; /* NULL: made in passing */
};

/* A zeroed one is empty. */
struct marey__dump_tree {
    struct marey__dump_node *nodes;
    size_t n, cap;
    struct marey__index by_part; /* nodes by parent and part */
    struct marey__arena keys;
};

/*
 * The node for a new value of that kind at a path, made with all above it. MAREY_ESTATE with a sentence when the path
 * clashes with what is there, MAREY_ENOMEM; the tree then
 * holds what it held, and after MAREY_ENOMEM perhaps empty dictionaries.
 */
MAREY_WARN_UNUSED marey_status marey__dump_tree_put(struct marey__dump_tree *tree,
                                                    const struct marey_dump_part *parts,
                                                    size_t n_parts, enum marey_dump_kind kind,
                                                    uint32_t *node);
/* The path of a node into `parts`, `depth` of them. */
void marey__dump_tree_path(const struct marey__dump_tree *tree, uint32_t node,
                           struct marey_dump_part *parts);
void marey__dump_tree_fini(struct marey__dump_tree *tree);

/* ---- dump_measure.c ---- */

struct marey__dump_measure {
    struct marey_tensor_stats stats;
    struct marey_digest digest, *blocks; /* NULL where there is one block */
    uint64_t n_blocks;
    bool has_stats, has_digest;
};
enum { MAREY__MEASURE_STATS = 1, MAREY__MEASURE_DIGEST = 2 };
/* What cannot be had is left out: a type without statistics, a build without digests, no memory. */
void marey__dump_measure(const struct marey_tensor *tensor, uint32_t what,
                         struct marey__dump_measure *out);
void marey__dump_measure_fini(struct marey__dump_measure *measure);

/* Beside the thread that writes: begin before the data are written, finish when the result is wanted. */
void marey__dump_measure_begin(struct marey__dump_item *item, uint32_t what);
void marey__dump_measure_finish(struct marey__dump_item *item);

/* ---- dump_memory.c ---- */

/* `size` bytes, of many beginning at a multiple of 4096; NULL on out of memory. They go back with the same size. */
void *marey__dump_memory_take(size_t size);
void marey__dump_memory_give(void *bytes, size_t size);
/* The same in an unnamed file in `dir`, whose pages can go to the disk: for a step larger than the memory budget. */
MAREY_WARN_UNUSED marey_status marey__dump_spill_take(const char *dir, size_t size, void **out);
void marey__dump_spill_give(void *bytes, size_t size);
/* How many unused bytes may be kept for later copies. */
void marey__dump_memory_keep(size_t limit);
void marey__dump_memory_before_fork(void);
void marey__dump_memory_after_fork(void);

/* ---- dump_sides.c ---- */

/* What libmarey-tools does; <marey/image.h> says it. */
struct marey__dump_images {
    marey_status (*create)(const struct marey_tensor *tensor, enum marey_image_type type,
                           const struct marey_image_options *options, marey_images **out);
    void (*destroy)(marey_images *images);
    size_t (*count)(const marey_images *images);
    const struct marey_image *(*get)(const marey_images *images, size_t i);
    uint32_t (*axes)(const marey_images *images, const int64_t **sizes);
    marey_status (*pack)(const struct marey_image *image, const struct marey_png_text *texts,
                         void **bytes, size_t *len);
    void (*free_png)(void *bytes);
};
/* For programs that are linked with all of it, as tests are; lent for good. NULL: it is looked for. */
void marey__dump_images_set(const struct marey__dump_images *table);

/* ---- dump_item.c: a value and its copy ---- */

struct marey__dump_item {
    struct marey__dump_item *next; /* in the order of adding */
    uint64_t seq;
    enum marey_dump_tree tree;
    uint32_t node;
    struct marey_dump_value value; /* texts, sizes and data are the item's; its tensor is row-major */
    struct marey_image_options *image;   /* NULL: none */
    const int64_t *strides;              /* of the program's tensor, permuted; NULL: row-major */
    uint64_t n_bytes;                    /* of the tensor */
    void *copy;                          /* of n_bytes by marey__dump_memory_take(); NULL: none */
    bool is_spilled;                     /* the copy is of marey__dump_spill_take() */
    uint64_t n_counted;                  /* bytes that the budget of memory holds for it */
    struct marey__dump_measure *measure; /* made when it was added; NULL: the writer makes it */
    bool is_measured_only;               /* without data, by the mode or the policy */
    bool is_of_gpu;
    struct marey__dump_transit *transit; /* on its way to the host; NULL: it is here. Guarded by dump.lock */
    const char *missing;                 /* why its data are not there; NULL: they are */
    struct marey__dump_item *next_waiting; /* in the queue of a worker. Guarded by dump.lock */
    struct marey__dump_measuring {
        enum { MAREY__MEASURED = 0, MAREY__MEASURE_WAITS, MAREY__MEASURE_RUNS } state;
        uint32_t what;
    } measuring; /* guarded by dump.lock */

    /* The writer's. */
    bool is_stored; /* in the safetensors file, at `offset` of its data */
    uint64_t offset;
    struct marey__dump_mark {
        size_t entries_len;
        uint64_t n_bytes, n_pads;
    } mark; /* the file's table with this item in it */
    struct marey__dump_files {
        char **names;
        size_t n, cap;
        uint32_t n_axes; /* of the tensor that count files */
    } files;
};

/* Copy everything but the data: type, sizes, texts. MAREY_EINVAL for a tensor or permutation that is none. */
MAREY_WARN_UNUSED marey_status marey__dump_item_create(const struct marey_dump_value *value,
                                                       struct marey__dump_item **out);
void marey__dump_files_fini(struct marey__dump_files *files);
/* Frees it and releases data that were handed over. */
void marey__dump_item_destroy(struct marey__dump_item *item);
/* Memory for its data, and back. */
MAREY_WARN_UNUSED marey_status marey__dump_item_take_room(struct marey__dump_item *item, void **out);
void marey__dump_item_give_room(struct marey__dump_item *item, void *bytes);
/* Copy the data from where the program has them. */
MAREY_WARN_UNUSED marey_status marey__dump_item_copy(struct marey__dump_item *item);
/* These are the data, of marey__dump_memory_take(), row-major. */
void marey__dump_item_own(struct marey__dump_item *item, void *copy);
void marey__dump_item_forget_data(struct marey__dump_item *item);
/* Keep statistics or digests in place of the data. */
MAREY_WARN_UNUSED marey_status marey__dump_item_measure(struct marey__dump_item *item, uint32_t what);

/* ---- dump_gpu.c ---- */

/* Have the data of a GPU's tensor brought to the host, or what `measures` asks for of them. */
MAREY_WARN_UNUSED marey_status marey__dump_gpu_take(struct marey__dump_item *item, uint32_t measures);
/* Wait until its data are here. */
void marey__dump_await(struct marey__dump_item *item);
void marey__dump_gpu_after_fork(void);

/* ---- a step ---- */

struct marey__dump_step {
    struct marey__dump_step *next;
    uint64_t number;
    int rank, world; /* -1: none */
    struct marey__dump_tree trees[2];
    struct marey__dump_item *first, *last;
    uint64_t n_items[2]; /* by tree */
    char *reason;        /* why the flight recorder wrote it; NULL: it did not */
};
struct marey__dump_step *marey__dump_step_create(void);
void marey__dump_step_destroy(struct marey__dump_step *step);
void marey__dump_step_put(struct marey__dump_step *step, struct marey__dump_item *item);
/* Take the values of a tree out of it, as a list. */
struct marey__dump_item *marey__dump_step_take(struct marey__dump_step *step,
                                               enum marey_dump_tree tree);
/* Parts of a path, in this place where they are few. A zeroed one is empty. */
struct marey__dump_path {
    struct marey_dump_part *parts; /* NULL: out of memory */
    size_t n_parts;
    struct marey_dump_part few[16];
};
/* Make room for `n_parts`. */
void marey__dump_path_init(struct marey__dump_path *path, size_t n_parts);
void marey__dump_path_fini(struct marey__dump_path *path);
/* The path of an item, the same. */
void marey__dump_item_path(const struct marey__dump_step *step, const struct marey__dump_item *item,
                           struct marey__dump_path *path);
/* Its name without a NUL, by marey__name_put() or marey__name_put_dotted(). */
void marey__dump_item_name(const struct marey__dump_step *step, const struct marey__dump_item *item,
                           bool is_dotted, struct marey__buf *out);

/* ---- dump_files.c ---- */

MAREY_WARN_UNUSED marey_status marey__dump_make_folders(const char *path);
/*
 * Open the folder `below` (a path, "" for none) in the directory of a dump; what is not there is made. The directory is the
 * user's choice and may be a link. What is below is ours: a link there is somebody else's, and refused. MAREY_EIO.
 */
MAREY_WARN_UNUSED marey_status marey__dump_open_below(const char *dir, const char *below,
                                                      struct marey__held_file *out);

/* A file that gets its name when it is whole. */
struct marey__dump_file {
    const struct marey__held_file *folder; /* lent */
    struct marey__held_file held;
    struct marey__buf name, temporary, buf; /* names in the folder, and what is not yet written */
    bool durable;
    marey_status status; /* of the first thing that went wrong */
};
/* `folder` is lent. */
void marey__dump_file_begin(struct marey__dump_file *file, const struct marey__held_file *folder,
                            const char *name, bool durable);
void marey__dump_file_put(struct marey__dump_file *file, const void *bytes, size_t len);
bool marey__dump_file_sink(void *file, const char *text, size_t len);
/* Give it its name, or take it away when something went wrong or `keep` is false; the status, with its sentence. */
marey_status marey__dump_file_end(struct marey__dump_file *file, bool keep);

/* The right to write under plain names into a folder: one living process of each rank has it. */
struct marey__dump_claim {
    bool is_made, is_taken; /* `is_taken`: another one has it */
    int64_t rank;
    struct marey__held_file lock, folder;
};
void marey__dump_claim(struct marey__dump_claim *claim, const struct marey__held_file *folder,
                       int64_t rank);
void marey__dump_unclaim(struct marey__dump_claim *claim);
/* In a forked child: it is the parent's. */
void marey__dump_claim_forget(struct marey__dump_claim *claim);

/* Open a folder to list it; a link is not followed. NULL: it cannot be opened. */
DIR *marey__dump_list_folder(int folder, const char *name);
/* Remove the files of a folder whose names begin so. */
void marey__dump_empty_folder(int folder, const char *name, const char *prefix);
/* Reports, once, that a file was there before this dump began. */
void marey__dump_replacing(const struct marey__dump_place *place, int folder, const char *name);

/* ---- layouts ---- */

/* Where a process writes, and how much it may. */
struct marey__dump_place {
    const char *dir;     /* of the dump */
    const char *below;   /* the folder in it, of the flight recorder; "": none */
    int64_t rank, world; /* -1: none */
    uint64_t pid;        /* in names; 0: not needed */
    const char *run, *host;
    enum marey_dump_mode mode;
    uint32_t measures; /* MAREY__MEASURE_… of what is written */
    bool durable;
    uint64_t disk_left;    /* bytes that may still be written */
    struct timespec began; /* the dump, by the clock of files */
};
/* What became of a step. */
struct marey__dump_result {
    uint64_t n_tensors, n_bytes, n_failed;
    char why[512]; /* the first sentence about what is missing; "": all is there */
};
void marey__dump_report(struct marey__dump_result *result, const char *fmt, ...) MAREY_PRINTF(2, 3);
/* Take room on the disk for a value; false, and it is missing, when there is none. */
bool marey__dump_take_room(struct marey__dump_place *place, struct marey__dump_item *item,
                           struct marey__dump_result *result);

/* Write a step. Values that cannot be written are `missing`, and reported in `result`; the status is of the step as a whole. */
MAREY_WARN_UNUSED marey_status marey__dump_write_marey(struct marey__dump_step *step,
                                                       struct marey__dump_place *place,
                                                       struct marey__dump_result *result);
MAREY_WARN_UNUSED marey_status marey__dump_write_accvlab(struct marey__dump_step *step,
                                                         struct marey__dump_place *place,
                                                         struct marey__dump_result *result);

/* ---- dump_flight.c ---- */

/* Where this process keeps steps that are not yet wanted. */
void marey__dump_flight_name(char *out, size_t size);
/* A step is there; older ones than the options keep are removed. */
void marey__dump_flight_kept(uint64_t step);
/* Move what is there to where steps belong. */
MAREY_WARN_UNUSED marey_status marey__dump_flight_publish(const char *reason);
void marey__dump_flight_clear(void);
void marey__dump_flight_after_fork(void);

/* ---- dump_sides.c: files of one value ---- */

struct marey__dump_side {
    const struct marey__held_file *folder; /* lent */
    const char *prefix;                    /* of the files' names */
    const struct marey__buf *name,
        *path; /* the value's, for the file and as container_internal.h has it */
    uint64_t step;
    bool has_meta; /* with the small text beside .bin and .png */
};
/* Write what `item` has as the form that it was given; if that fails, it is missing. */
void marey__dump_side_write(struct marey__dump_item *item, const struct marey__dump_place *place,
                            const struct marey__dump_side *where, struct marey__dump_result *result);

/* ---- dump.c, dump_queue.c, dump_switch.c: the state ---- */

enum { MAREY__DUMP_MAX_WRITERS = 16 };

struct marey__dump {
    pthread_mutex_t lock; /* guards all of it, but what says otherwise */
    pthread_cond_t work;  /* a step was queued, or threads shall end */
    pthread_cond_t done;  /* a step was written, a copy arrived, a thread ended */
    pthread_cond_t room;  /* memory was given back; `n_blocked` threads wait for it */
    uint32_t n_blocked;

    struct marey_dump_options options; /* with defaults filled in; its dir is `dir` below */
    char dir[PATH_MAX];
    uint32_t is_wanted; /* of the step under way. Stored under the lock; loaded anywhere, relaxed */
    uint64_t count;     /* the same */
    uint64_t seq;
    char *reason;                 /* a trigger came in this step; NULL: none */
    uint32_t n_visitors;          /* look at `now`, which stays meanwhile */
    struct marey__dump_step *now; /* NULL: nothing was added */

    struct marey__dump_step *first, *last; /* queued */
    uint32_t n_writing;                    /* steps */
    uint32_t n_threads, n_writers,
        n_idle;            /* all; those that write; those of them that wait for work */
    bool should_end;       /* threads that have nothing to do */
    uint64_t n_used_bytes; /* of memory */
    uint64_t n_disk_bytes; /* written since the enable */
    uint64_t n_progress;   /* bytes and steps, so that a wait sees that something moves. Relaxed */
    struct marey__dump_claim claim; /* of the writer that has `place_lock` */
    pthread_mutex_t place_lock;     /* taken with no other lock held */
    struct timespec began;
    char host[256], run[64];

    struct marey_dump_counts counts;
    char failure[512]; /* not yet returned by a flush; "": none */
};
extern struct marey__dump marey__dump;

/* The item is written or given up: its memory is free for others. */
void marey__dump_item_done(struct marey__dump_item *item);
void marey__dump_progress(uint64_t n);

/* The step under way is number `count`. The lock is held. */
void marey__dump_set_step(uint64_t count);
/* The sentence of what could not be written, once. The lock is held. */
marey_status marey__dump_take_failure(void);

/* The step under way, as it is to be written; NULL: not wanted, or out of memory. The lock is held. */
struct marey__dump_step *marey__dump_end_step(int rank, int world);
/* Queue a step for the writers; false without a thread to write it. The lock is held. */
bool marey__dump_queue(struct marey__dump_step *step);
/* Write what is queued in this thread. */
void marey__dump_write_here(void);
/* A thread that works on items in the order of adding. All but the constants is guarded by dump.lock. */
struct marey__dump_worker {
    const char *const name;                            /* of the thread */
    void (*const work)(struct marey__dump_item *item); /* the lock is held, and given up meanwhile */
    pthread_cond_t has_work; /* an item was added, or the thread shall end */
    struct marey__dump_item *first, *last;
    bool has_thread, is_idle;
};
extern struct marey__dump_worker marey__dump_gpu_worker, marey__dump_measure_worker;
/* False, and the item is not added, when no thread can be started. The lock is held. */
bool marey__dump_worker_add(struct marey__dump_worker *worker, struct marey__dump_item *item);
/* In the child, which has neither the thread nor the items. */
void marey__dump_worker_after_fork(struct marey__dump_worker *worker);
/* Let threads without work end, and wait so long for it. The lock is held. */
void marey__dump_end_threads(uint64_t patience_ns);
/* Wait until nothing is queued or being written; with `patience_ns` not 0, at most so long after the last thing that
 * moved. False: something is left. */
bool marey__dump_drain(uint64_t patience_ns);
/* Wait for room for `n_bytes`, as the policy says. False: none; with policy block, the step is too large by itself. */
bool marey__dump_reserve(uint64_t n_bytes);

#endif
