/* What the looks of one thread share: the room for copies, random numbers, stops. */
#include <sys/resource.h>

#include "sampler/loop/sampler_internal.h"

enum {
    OTHER_FILES = 64,       /* which the rest of the process may want */
    PATIENCE_NS = 20000000, /* with one thread: others are to be sampled too */
};

/* Half of the files that this process may open; two are kept for each thread that is sampled. */
static int count_spare_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= OTHER_FILES)
        return 0;
    return (int)MAREY__MIN(limit.rlim_cur - OTHER_FILES, (rlim_t)1 << 16);
}

bool marey__looker_init(struct marey__looker *looker, marey_samples *samples,
                        pthread_mutex_t *store_lock, bool is_native, uint64_t seed)
{
    *looker = (struct marey__looker){
        .samples = samples,
        .store_lock = store_lock,
        .random = seed,
        .n_spare_files = count_spare_files(),
        .stops = {.patience_ns = PATIENCE_NS},
    };
    if (!marey__batch_init(&looker->batch))
        return false;
    if (!is_native)
        return true;
    looker->native = marey__alloc(MAREY__UNWIND_MAX_FRAMES * sizeof *looker->native);
    return looker->native != NULL && marey__unwind_files_create(&looker->native_files) == MAREY_OK;
}

void marey__looker_fini(struct marey__looker *looker)
{
    marey__stops_fini(&looker->stops);
    marey__batch_fini(&looker->batch);
    marey__free(looker->walk.frames);
    marey__free(looker->runs);
    marey__free(looker->native);
    marey__free(looker->merged);
    marey__unwind_files_destroy(looker->native_files);
    *looker = (struct marey__looker){0};
}

/* Steele, Lea and Flood's splitmix64. */
double marey__looker_random(struct marey__looker *looker)
{
    uint64_t z = looker->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return ((double)(z >> 11) + 1) / 9007199254740993.0;
}

void marey__counts_add(struct marey_samples_counts *sum, const struct marey_samples_counts *more)
{
    sum->asked += more->asked;
    sum->done += more->done;
    sum->missed += more->missed;
    sum->late_ns += more->late_ns;
    sum->samples += more->samples;
    sum->rejected += more->rejected;
    sum->unstable += more->unstable;
    sum->exact += more->exact;
    sum->audit += more->audit;
    sum->stops += more->stops;
    sum->stop_ns += more->stop_ns;
    sum->stop_max_ns = MAREY__MAX(sum->stop_max_ns, more->stop_max_ns);
    sum->sampler_cpu_ns += more->sampler_cpu_ns;
    sum->reads += more->reads;
    sum->bytes_read += more->bytes_read;
    sum->gil_switches += more->gil_switches;
    sum->skipped += more->skipped;
    sum->slowed += more->slowed;
}
