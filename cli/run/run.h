/*
 * The parts of `marey run`: the recording's directory, the program's environment, the program itself.
 */
#ifndef MAREY_CLI_RUN_H
#define MAREY_CLI_RUN_H

#include <limits.h>

#include "sampling.h"

/* ---- run_target.c: the directory ---- */

struct run_target {
    char path[PATH_MAX]; /* absolute */
    bool is_new;         /* created by us: may be removed if it has no events */
};

/* How to handle an existing recording. */
enum run_existing { RUN_REFUSE, RUN_APPEND, RUN_FORCE };

/*
 * Chooses a directory (`output`, or a name derived from the program's) and creates it. False, with a message printed,
 * if it is not empty and `existing` does not permit that, or if it cannot be created.
 */
bool run_target_prepare(struct run_target *target, const char *output, enum run_existing existing,
                        char *const *program);
/* Removes it if we created it, because the program did not start. True if it is gone. */
bool run_target_abandon(const struct run_target *target);

/* The program's command line in shell syntax, to be freed; NULL on out of memory. */
char *run_join_words(char *const *words);

/* ---- run_environment.c: the program's environment ---- */

/* Sets MAREY, MAREY_OPTIONS, MAREY_RUN_ID and, for Python, PYTHONPATH, in our environment. */
void run_environment_set(const char *recording, const char *options);
/* Call after run_environment_set: sets the run id of the `repeat`-th run, from 1, of several into one recording. */
void run_environment_repeat(uint32_t repeat);
/* Whether a launcher (torchrun, mpirun, srun) started several of us for one recording. */
bool run_is_one_of_many(void);
/* Whether we are one of several and not rank 0, which prints for all. */
bool run_is_a_later_rank(void);
/* The launcher's name for the launch, the same for all its ranks; false if it has none. */
#define RUN_ID_MAX 64
bool run_launch_id(char into[RUN_ID_MAX]);

/* ---- run_preload.c: libraries loaded into the program ---- */

struct run_preload {
    char folder[PATH_MAX - 8]; /* of a symlink created for it; "" for none */
};
/*
 * Adds `library`, which `option` requires, to LD_PRELOAD in our environment. `preload` must be zeroed. False, with a
 * message printed, on failure.
 */
bool run_preload(struct run_preload *preload, const char *library, const char *option);
/* Registers libmarey-cuda for loading by CUDA, in our environment. False, with a message printed, on failure. */
bool run_inject_cuda(void);
/* Call after the program has ended. */
void run_preload_remove(const struct run_preload *preload);

/* Makes libmarey-nvtx the program's NVTX tool, in our environment. False, with a message printed, on failure. */
bool run_nvtx(void);

/* Whether the program is a Python interpreter, or a launcher of one. */
bool run_is_python(char *const *program);
/* The option (-I, -E, -S) that keeps this interpreter from reading PYTHONPATH, or 0. */
char run_python_isolated(char *const *program);

/* ---- run_child.c: the program ---- */

/* The program has started; forwarded signals are blocked, also in threads created here. */
typedef void run_started(void *ctx, pid_t pid);
/* CPU time: user and system, of the program and the descendants that it waited for. */
struct run_end {
    int wait_status;
    uint64_t wall_ns, cpu_ns;
};
/*
 * Starts `program` (found by PATH), calls `started` (may be NULL), forwards signals until it ends, and fills in `end`.
 * Returns 0, or an errno if it does not start.
 */
int run_child(char *const *program, struct run_end *end, run_started *started, void *ctx);
/* The status to exit with. Dies by the same signal if the program did. */
int run_pass_on(int wait_status);

#endif
