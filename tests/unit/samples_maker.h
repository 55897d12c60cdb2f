/* Logs of a sampler, written by core/sampler/store from given samples, for tests of their readers.
 * */
#ifndef MAREY_TEST_SAMPLES_MAKER_H
#define MAREY_TEST_SAMPLES_MAKER_H

#include <marey/recording.h>

#include "sampler/store/internal.h"

/* A recording in a new directory, with process 1 (pid 100, started at 5, of no rank) in the store. */
struct samples_maker {
    char path[64];
    marey_samples *samples;
    struct marey__samples_log *log; /* NULL: not begun */
    double rate_hz;                 /* 1000 unless it is set before the first round */
    const char *strategy;           /* snapshot, the same */
    int64_t next_tid;
    bool is_guest; /* the directory is another's */
};

/* 0, or -1. */
int samples_maker_init(struct samples_maker *m);
int samples_maker_init_in(struct samples_maker *m, const char *path);
void samples_maker_fini(struct samples_maker *m);

/* A thread of process 1; tids are 100, 101, ... */
uint32_t samples_thread(struct samples_maker *m, bool is_main, const char *name);
/* "main:3;train:10", the outermost first. A name is a function of /src/NAME.py; "c@lib.so" a native one of that library. */
uint32_t samples_stack(struct samples_maker *m, const char *frames);
/* Open the log, if it is not. */
void samples_begin(struct samples_maker *m);
/* A round of process 1. */
void samples_round(struct samples_maker *m, uint64_t at_us, size_t n,
                   const struct marey_samples_seen *seen);
/* Write pending samples, like the sampler each second. */
void samples_write(struct samples_maker *m);
void samples_end(struct samples_maker *m, const char *how);
/* As if the sampler were killed now; as if the disk were full from now on. */
void samples_kill(struct samples_maker *m);
void samples_break(struct samples_maker *m);

#endif
