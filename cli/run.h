/*
 * The parts of `marey run`: where the recording goes, what the program's environment is, the program
 * itself.
 */
#ifndef MAREY_CLI_RUN_H
#define MAREY_CLI_RUN_H

#include <limits.h>

#include "sampling.h"

/* ---- run_target.c: the directory ---- */

struct run_target {
    char path[PATH_MAX]; /* absolute */
    bool is_new;         /* we made it: without events in it we may remove it */
};

/* What to do with a recording that is there already. */
enum run_existing { RUN_REFUSE, RUN_APPEND, RUN_FORCE };

/*
 * Decide on a directory (`output`, or a name made from the program's) and create it. False, with a
 * sentence said, when it is not empty and `existing` does not allow for that, or when it cannot be
 * made.
 */
bool run_target_prepare(struct run_target *target, const char *output, enum run_existing existing,
                        char *const *program);
/* Remove it if we made it: the program did not start. True when it is gone. */
bool run_target_abandon(const struct run_target *target);

/* The program's command line as one string. Free what comes back; NULL without memory. */
char *run_join_words(char *const *words);

/* ---- run_environment.c: what the program finds in its environment ---- */

/* Set MAREY, MAREY_OPTIONS, MAREY_RUN_ID and, for Python, PYTHONPATH, in our own environment. */
void run_environment_set(const char *recording, const char *options);
/* Behind run_environment_set: the name of the `repeat`-th run, from 1, of several into one recording. */
void run_environment_repeat(uint32_t repeat);
/* Whether a launcher (torchrun, mpirun, srun) started several of us for one recording. */
bool run_is_one_of_many(void);
/* Whether we are one of several and not rank 0, which speaks for all. */
bool run_is_a_later_rank(void);
/* The launcher's name for the launch, the same for all its ranks; false when it gives none. */
#define RUN_ID_MAX 64
bool run_launch_id(char into[RUN_ID_MAX]);

/* ---- run_preload.c: libraries that go into the program first ---- */

struct run_preload {
    char folder[PATH_MAX - 8]; /* of a link that was made for it; "" for none */
};
/*
 * Put `library`, which `option` asks for, into LD_PRELOAD, in our own environment. `preload` is zeroed at first. False, with
 * a sentence said, when it cannot be.
 */
bool run_preload(struct run_preload *preload, const char *library, const char *option);
/* Name libmarey-cuda for CUDA to load, in our own environment. False, with a sentence said, when it cannot be. */
bool run_inject_cuda(void);
/* Once the program has ended. */
void run_preload_remove(const struct run_preload *preload);

/* Make libmarey-nvtx the program's NVTX tool, in our own environment. False, with a sentence said, when it cannot be. */
bool run_nvtx(void);

/* Whether the program is a Python interpreter, or a launcher of one. */
bool run_is_python(char *const *program);
/* The option (-I, -E, -S) that keeps this interpreter from reading PYTHONPATH, or 0. */
char run_python_deaf(char *const *program);

/* ---- run_child.c: the program ---- */

/* The program has been started; signals that are passed on are blocked, also in threads that are made here. */
typedef void run_started(void *ctx, pid_t pid);
/* CPU time: user and system, of the program and of the descendants that it waited for. */
struct run_end {
    int wait_status;
    uint64_t wall_ns, cpu_ns;
};
/*
 * Start `program` (found by PATH), call `started` (may be NULL), pass signals on until it ends, and fill in `end`.
 * Returns an errno when it does not start, else 0.
 */
int run_child(char *const *program, struct run_end *end, run_started *started, void *ctx);
/* The status to leave with. Dies by the same signal if the program did. */
int run_pass_on(int wait_status);

#endif
