/*
 * dump: tensors of the program, copied when they are added and written step by step in background threads.
 *
 *     program --put--> the current step --flush--> queue --writers--> files of a layout
 *                      tree and items                                 step_marey.c, step_accvlab.c
 *                      dump_tree.c, dump_item.c    dump_queue.c       dump_files.c
 *
 *   dump.c          the API: adding, flushing, counting      dump_switch.c   on and off, options, fork, exit
 *   dump_memory.c   the memory budget of copies              dump_measure.c  statistics and digests of a value
 *   dump_flight.c   the last steps, kept until a trigger
 *   dump_gpu.c      copies out of GPU memory                 dump_value_file.c  a value in separate files
 *
 * Input: tensors as pointers with layout. Output: files (docs/formats/dump.md). Does not know torch or NumPy, nor the
 * reader of dumps (tensor/dumpfile). marey__dump.lock guards the state, the current step and the queue. A step that was
 * taken from the queue belongs to its writer.
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

/* ---- dump_tree.c: paths and nodes ---- */

enum marey__node_kind { MAREY__NODE_DICT, MAREY__NODE_LIST, MAREY__NODE_LEAF };
enum { MAREY__NO_NODE = UINT32_MAX };

struct marey__dump_item;
struct marey__dump_place;

/* The root is number 0, a dictionary. Children keep their insertion order. */
struct marey__dump_node {
    struct marey_dump_part part; /* the tree owns the key */
    uint32_t parent, first, last, next;
    uint32_t n_children, depth;
    enum marey__node_kind kind;
    struct marey__dump_item *item; /* NULL: an implicit parent */
};

/* Zero-initialized is empty. */
struct marey__dump_tree {
    struct marey__dump_node *nodes;
    size_t n, cap;
    struct marey__index by_part; /* nodes by parent and part */
    struct marey__arena keys;
};

/*
 * Adds the node for a new value of that kind at a path, and its missing parents. MAREY_ESTATE with a message if the
 * path conflicts with existing nodes, MAREY_ENOMEM. On failure the tree keeps its content, plus possibly empty
 * dictionaries after MAREY_ENOMEM.
 */
MAREY_WARN_UNUSED marey_status marey__dump_tree_put(struct marey__dump_tree *tree,
                                                    const struct marey_dump_part *parts,
                                                    size_t n_parts, enum marey_dump_kind kind,
                                                    uint32_t *node);
/* Writes the path of a node into `parts`, `depth` of them. */
void marey__dump_tree_path(const struct marey__dump_tree *tree, uint32_t node,
                           struct marey_dump_part *parts);
void marey__dump_tree_fini(struct marey__dump_tree *tree);

/* ---- dump_measure.c ---- */

struct marey__dump_measure {
    struct marey_tensor_stats stats;
    struct marey_digest digest, *blocks; /* NULL for a single block */
    uint64_t n_blocks;
    bool has_stats, has_digest;
};
enum { MAREY__MEASURE_STATS = 1, MAREY__MEASURE_DIGEST = 2 };
/* Skips what is unavailable: a type without statistics, a build without digests, out of memory. */
void marey__dump_measure(const struct marey_tensor *tensor, uint32_t what,
                         struct marey__dump_measure *out);
void marey__dump_measure_fini(struct marey__dump_measure *measure);

/* In parallel to the writer: begin before the data are written, finish when the result is needed. */
void marey__dump_measure_begin(struct marey__dump_item *item, uint32_t what);
void marey__dump_measure_finish(struct marey__dump_item *item);

/* ---- dump_memory.c ---- */

/* Returns `size` bytes, large ones aligned to 4096; NULL on out of memory. Free them with the same size. */
void *marey__dump_memory_take(size_t size);
void marey__dump_memory_give(void *bytes, size_t size);
/* The same in an unnamed file in `dir`, whose pages can be written back: for a step larger than the memory budget. */
MAREY_WARN_UNUSED marey_status marey__dump_spill_take(const char *dir, size_t size, void **out);
void marey__dump_spill_give(void *bytes, size_t size);
/* Sets how many unused bytes may be kept for later copies. */
void marey__dump_memory_keep(size_t limit);
void marey__dump_memory_before_fork(void);
void marey__dump_memory_after_fork(void);

/* ---- dump_value_file.c ---- */

/* Implemented by libmarey-tools; documented in <marey/image.h>. */
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
/* For programs linked with all of it, such as tests; lent forever. NULL: search for the library. */
void marey__dump_images_set(const struct marey__dump_images *table);

/* ---- dump_item.c: a value and its copy ---- */

struct marey__dump_item {
    struct marey__dump_item *next; /* in the order of adding */
    uint64_t seq;
    enum marey_dump_tree tree;
    uint32_t node;
    struct marey_dump_value value; /* strings, sizes and data are owned; the tensor is row-major */
    struct marey_image_options *image;   /* NULL: none */
    const int64_t *strides;              /* of the program's tensor, permuted; NULL: row-major */
    uint64_t n_bytes;                    /* of the tensor */
    void *copy;                          /* of n_bytes by marey__dump_memory_take(); NULL: none */
    bool is_spilled;                     /* the copy is from marey__dump_spill_take() */
    uint64_t n_counted;                  /* bytes charged to the memory budget */
    struct marey__dump_measure *measure; /* computed when added; NULL: the writer computes it */
    bool is_measured_only;               /* no data, due to the mode or policy */
    bool is_of_gpu;
    struct marey__dump_transit *transit; /* on its way to the host; NULL: arrived. Guarded by dump.lock */
    const char *missing;                 /* why its data are missing; NULL: they are present */
    struct marey__dump_item *next_waiting; /* in the queue of a worker. Guarded by dump.lock */
    struct marey__dump_measuring {
        enum { MAREY__MEASURED = 0, MAREY__MEASURE_WAITS, MAREY__MEASURE_RUNS } state;
        uint32_t what;
    } measuring; /* guarded by dump.lock */

    /* Used by the writer. */
    bool is_stored; /* in the safetensors file, at `offset` of its data */
    uint64_t offset;
    struct marey__dump_mark {
        size_t entries_len;
        uint64_t n_bytes, n_pads;
    } mark; /* the file's table including this item */
    struct marey__dump_files {
        char **names;
        size_t n, cap;
        uint32_t n_axes; /* leading axes with a file per index */
    } files;
};

/* Copies everything but the data: type, sizes, strings. MAREY_EINVAL for an invalid tensor or permutation. */
MAREY_WARN_UNUSED marey_status marey__dump_item_create(const struct marey_dump_value *value,
                                                       struct marey__dump_item **out);
void marey__dump_files_fini(struct marey__dump_files *files);
/* Frees it, and releases data whose ownership was passed. */
void marey__dump_item_destroy(struct marey__dump_item *item);
/* Allocates and frees memory for its data. */
MAREY_WARN_UNUSED marey_status marey__dump_item_take_room(struct marey__dump_item *item, void **out);
void marey__dump_item_give_room(struct marey__dump_item *item, void *bytes);
/* Copies the data from the program. */
MAREY_WARN_UNUSED marey_status marey__dump_item_copy(struct marey__dump_item *item);
/* Sets the data, row-major, from marey__dump_memory_take(). */
void marey__dump_item_own(struct marey__dump_item *item, void *copy);
void marey__dump_item_forget_data(struct marey__dump_item *item);
/* Keeps statistics or digests instead of the data. */
MAREY_WARN_UNUSED marey_status marey__dump_item_measure(struct marey__dump_item *item, uint32_t what);

/* ---- dump_gpu.c ---- */

/* Starts copying a GPU tensor's data, or what `measures` requires, to the host. */
MAREY_WARN_UNUSED marey_status marey__dump_gpu_take(struct marey__dump_item *item, uint32_t measures);
/* Waits until its data arrive. */
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
    char *reason;        /* why the flight recorder wrote it, else NULL */
};
struct marey__dump_step *marey__dump_step_create(void);
void marey__dump_step_destroy(struct marey__dump_step *step);
void marey__dump_step_put(struct marey__dump_step *step, struct marey__dump_item *item);
/* Removes the values of a tree, as a list. */
struct marey__dump_item *marey__dump_step_take(struct marey__dump_step *step,
                                               enum marey_dump_tree tree);
/* Parts of a path, stored inline if few. Zero-initialized is empty. */
struct marey__dump_path {
    struct marey_dump_part *parts; /* NULL: out of memory */
    size_t n_parts;
    struct marey_dump_part few[16];
};
/* Makes room for `n_parts`. */
void marey__dump_path_init(struct marey__dump_path *path, size_t n_parts);
void marey__dump_path_fini(struct marey__dump_path *path);
/* The same for the path of an item. */
void marey__dump_item_path(const struct marey__dump_step *step, const struct marey__dump_item *item,
                           struct marey__dump_path *path);
/* Appends its name without a NUL, by marey__name_put() or marey__name_put_dotted(). */
void marey__dump_item_name(const struct marey__dump_step *step, const struct marey__dump_item *item,
                           bool is_dotted, struct marey__buf *out);

/* ---- dump_files.c ---- */

MAREY_WARN_UNUSED marey_status marey__dump_make_folders(const char *path);
/*
 * Opens the folder `below` (a path, "" for none) in a dump's directory, creating what is missing. The directory is the
 * user's choice and may be a symlink; a symlink below it was placed by others and is refused. MAREY_EIO.
 */
MAREY_WARN_UNUSED marey_status marey__dump_open_below(const char *dir, const char *below,
                                                      struct marey__held_file *out);

/* A file that gets its final name when it is complete. */
struct marey__dump_file {
    const struct marey__held_file *folder; /* lent */
    struct marey__held_file held;
    struct marey__buf name, temporary, buf; /* names in the folder, and unwritten bytes */
    bool durable;
    marey_status status; /* of the first failure */
};
/* `folder` is lent. */
void marey__dump_file_begin(struct marey__dump_file *file, const struct marey__held_file *folder,
                            const char *name, bool durable);
void marey__dump_file_put(struct marey__dump_file *file, const void *bytes, size_t len);
bool marey__dump_file_sink(void *file, const char *text, size_t len);
/* Renames it to its final name, or removes it after a failure or if `keep` is false. Returns the status, with its message. */
marey_status marey__dump_file_end(struct marey__dump_file *file, bool keep);

/* The right to write under plain names into a folder: one living process of each rank has it. */
struct marey__dump_claim {
    bool is_made, is_taken; /* `is_taken`: by another process */
    int64_t rank;
    struct marey__held_file lock, folder;
};
void marey__dump_claim(struct marey__dump_claim *claim, const struct marey__held_file *folder,
                       int64_t rank);
void marey__dump_unclaim(struct marey__dump_claim *claim);
/* In a forked child: the claim stays with the parent. */
void marey__dump_claim_forget(struct marey__dump_claim *claim);

/* Opens a folder to list it; does not follow a symlink. NULL on failure. */
DIR *marey__dump_list_folder(int folder, const char *name);
/* Removes the files of a folder whose names begin with `prefix`. */
void marey__dump_empty_folder(int folder, const char *name, const char *prefix);
/* Reports, once, that a file existed before this dump began. */
void marey__dump_replacing(const struct marey__dump_place *place, int folder, const char *name);

/* ---- layouts ---- */

/* Where a process writes, and how much it may. */
struct marey__dump_place {
    const char *dir;     /* of the dump */
    const char *below;   /* the folder in it for the flight recorder; "": none */
    int64_t rank, world; /* -1: none */
    uint64_t pid;        /* for names; 0: not needed */
    const char *run, *host;
    enum marey_dump_mode mode;
    uint32_t measures; /* MAREY__MEASURE_… to write */
    bool durable;
    uint64_t disk_left;    /* bytes that may still be written */
    struct timespec began; /* of the dump, by the file system's clock */
};
/* The result of writing a step. */
struct marey__dump_result {
    uint64_t n_tensors, n_bytes, n_failed;
    char why[512]; /* the first message about missing data; "": complete */
};
void marey__dump_report(struct marey__dump_result *result, const char *fmt, ...) MAREY_PRINTF(2, 3);
/* Charges a value to the disk budget; false, and it is missing, if that is used up. */
bool marey__dump_take_room(struct marey__dump_place *place, struct marey__dump_item *item,
                           struct marey__dump_result *result);

/* Writes a step. Values that cannot be written are `missing`, and counted in `result`; returns the step's status. */
MAREY_WARN_UNUSED marey_status marey__dump_write_marey(struct marey__dump_step *step,
                                                       struct marey__dump_place *place,
                                                       struct marey__dump_result *result);
MAREY_WARN_UNUSED marey_status marey__dump_write_accvlab(struct marey__dump_step *step,
                                                         struct marey__dump_place *place,
                                                         struct marey__dump_result *result);

/* ---- dump_flight.c ---- */

/* The folder where this process keeps steps before a trigger. */
void marey__dump_flight_name(char *out, size_t size);
/* A step was written; removes those older than the options keep. */
void marey__dump_flight_kept(uint64_t step);
/* Moves the kept steps to the dump's directory. */
MAREY_WARN_UNUSED marey_status marey__dump_flight_publish(const char *reason);
void marey__dump_flight_clear(void);
void marey__dump_flight_after_fork(void);

/* ---- dump_value_file.c: files of one value ---- */

struct marey__dump_value_target {
    const struct marey__held_file *folder; /* lent */
    const char *prefix;                    /* of file names */
    const struct marey__buf *name,
        *path; /* the value's, as a file name and as in container_internal.h */
    uint64_t step;
    bool has_meta; /* with the metadata file beside .bin and .png */
};
/* Writes the item's data in the requested form; on failure it is missing. */
void marey__dump_value_write(struct marey__dump_item *item, const struct marey__dump_place *place,
                             const struct marey__dump_value_target *where,
                             struct marey__dump_result *result);

/* ---- dump.c, dump_queue.c, dump_switch.c: the state ---- */

enum { MAREY__DUMP_MAX_WRITERS = 16 };

struct marey__dump {
    pthread_mutex_t lock; /* guards everything not documented otherwise */
    pthread_cond_t work;  /* a step was queued, or threads should end */
    pthread_cond_t done;  /* a step was written, a copy arrived, a thread ended */
    pthread_cond_t room;  /* memory was freed; `n_blocked` threads wait for it */
    uint32_t n_blocked;

    struct marey_dump_options options; /* with defaults filled in; its dir is `dir` below */
    char dir[PATH_MAX];
    uint32_t is_wanted; /* of the step under way. Stored under the lock; loaded anywhere, relaxed */
    uint64_t count;     /* likewise */
    uint64_t seq;
    char *reason;                 /* from a trigger in this step; else NULL */
    uint32_t n_visitors;          /* readers of `now`, which stays unchanged meanwhile */
    struct marey__dump_step *now; /* the current step; NULL: empty */

    struct marey__dump_step *first, *last; /* queued */
    uint32_t n_writing;                    /* steps being written */
    uint32_t n_threads, n_writers, n_idle; /* all; writers; writers that wait for work */
    bool should_end;                       /* idle threads should end */
    uint64_t n_used_bytes;                 /* of memory */
    uint64_t n_disk_bytes;                 /* written since the enable */
    uint64_t n_progress;            /* bytes and steps, so that a wait can see progress. Relaxed */
    struct marey__dump_claim claim; /* used by the writer that holds `place_lock` */
    pthread_mutex_t place_lock;     /* taken without other locks */
    struct timespec began;
    char host[256], run[64];

    struct marey_dump_counts counts;
    char failure[512]; /* not yet returned by a flush; "": none */
};
extern struct marey__dump marey__dump;

/* The item is written or dropped: releases its memory budget. */
void marey__dump_item_done(struct marey__dump_item *item);
void marey__dump_progress(uint64_t n);

/* Sets the number of the current step. Caller holds the lock. */
void marey__dump_set_step(uint64_t count);
/* Returns the message about failed writes, once. Caller holds the lock. */
marey_status marey__dump_take_failure(void);

/* The current step, ready to be written; NULL if it is not wanted, or on out of memory. Caller holds the lock. */
struct marey__dump_step *marey__dump_end_step(int rank, int world);
/* Queues a step for the writers; false without a thread. Caller holds the lock. */
bool marey__dump_queue(struct marey__dump_step *step);
/* Writes the queued steps in this thread. */
void marey__dump_write_here(void);
/* A thread that processes items in the order of adding. Except the constants, guarded by dump.lock. */
struct marey__dump_worker {
    const char *const name;                            /* of the thread */
    void (*const work)(struct marey__dump_item *item); /* the lock is held, and given up meanwhile */
    pthread_cond_t has_work; /* an item was added, or the thread should end */
    struct marey__dump_item *first, *last;
    bool has_thread, is_idle;
};
extern struct marey__dump_worker marey__dump_gpu_worker, marey__dump_measure_worker;
/* Returns false, with the item not added, if no thread can be started. Caller holds the lock. */
bool marey__dump_worker_add(struct marey__dump_worker *worker, struct marey__dump_item *item);
/* In the child, which has neither the thread nor the items. */
void marey__dump_worker_after_fork(struct marey__dump_worker *worker);
/* Ends idle threads and waits for them, for a limited time. Caller holds the lock. */
void marey__dump_end_threads(uint64_t patience_ns);
/* Waits until nothing is queued or being written; with `patience_ns` not 0, gives up after that time without
   progress. False: something is left. */
bool marey__dump_drain(uint64_t patience_ns);
/* Waits for `n_bytes` of the budget, by the policy. False if refused; with policy block, if the step is too large. */
bool marey__dump_reserve(uint64_t n_bytes);

#endif
