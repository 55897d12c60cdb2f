/* State for one sampling thread: batches of copies, random numbers, stops. */
#include <sys/resource.h>

#include "sampler/loop/internal.h"

/* ---- batches: many places of a process, copied by one call ---- */

enum { FIRST_SPANS = 1024 };
/* Reserved address space, of which only used pages take memory: enough for the deepest stacks without moving. */
#define ROOM ((size_t)48 << 20)

static bool batch_init(struct marey__batch *batch)
{
    *batch = (struct marey__batch){0};
    batch->bytes = marey__alloc(ROOM);
    batch->bytes_cap = ROOM;
    return batch->bytes != NULL &&
           marey__grow(&batch->spans, &batch->spans_cap, FIRST_SPANS, sizeof *batch->spans);
}

void marey__batch_clear(struct marey__batch *batch)
{
    batch->n = 0;
    batch->n_bytes = 0;
}

size_t marey__batch_add(struct marey__batch *batch, uint64_t at, size_t n_bytes)
{
    if (at == 0 || n_bytes == 0 || n_bytes > batch->bytes_cap - batch->n_bytes ||
        (batch->n == batch->spans_cap &&
         !marey__grow(&batch->spans, &batch->spans_cap, batch->n + 1, sizeof *batch->spans)))
        return MAREY__BATCH_NONE;
    batch->spans[batch->n] = (struct marey__remote_span){
        .at = at,
        .to = batch->bytes + batch->n_bytes,
        .n_bytes = n_bytes,
    };
    /* Copies are 16-byte aligned like the originals, so fields are aligned. */
    const size_t padded = (n_bytes + 15) & ~(size_t)15;
    batch->n_bytes += MAREY__MIN(padded, batch->bytes_cap - batch->n_bytes);
    return batch->n++;
}

void marey__batch_read(struct marey__batch *batch, struct marey__remote *remote, size_t first)
{
    while (first < batch->n) {
        first += marey__remote_read_spans(remote, batch->spans + first, batch->n - first);
        if (first < batch->n)
            batch->spans[first++].n_bytes = 0; /* this one is unreadable; later ones may not be */
    }
}

/* ---- the context ---- */

enum {
    OTHER_FILES = 64,       /* reserved for the rest of the process */
    PATIENCE_NS = 20000000, /* in a single thread: others must be sampled too */
};

/* Half of the files that this process may open; each sampled thread keeps two open. */
static int count_spare_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= OTHER_FILES)
        return 0;
    return (int)MAREY__MIN(limit.rlim_cur - OTHER_FILES, (rlim_t)1 << 16);
}

bool marey__sampler_context_init(struct marey__sampler_context *context, marey_samples *samples,
                                 pthread_mutex_t *store_lock, bool is_native, uint64_t seed)
{
    *context = (struct marey__sampler_context){
        .samples = samples,
        .store_lock = store_lock,
        .random = seed,
        .n_spare_files = count_spare_files(),
        .stops = {.patience_ns = PATIENCE_NS},
    };
    if (!batch_init(&context->batch))
        return false;
    if (!is_native)
        return true;
    context->native = marey__alloc(MAREY__UNWIND_MAX_FRAMES * sizeof *context->native);
    return context->native != NULL && marey__unwind_files_create(&context->native_files) == MAREY_OK;
}

void marey__sampler_context_fini(struct marey__sampler_context *context)
{
    marey__stops_fini(&context->stops);
    MAREY__FREE_ALL(context->batch.spans, context->batch.bytes);
    MAREY__FREE_ALL(context->walk.frames, context->runs, context->native, context->merged);
    marey__unwind_files_destroy(context->native_files);
    marey__unwind_files_destroy(context->program_files);
    *context = (struct marey__sampler_context){0};
}

/* splitmix64 (Steele, Lea and Flood). */
double marey__sampler_context_random(struct marey__sampler_context *context)
{
    uint64_t z = context->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return ((double)(z >> 11) + 1) / 9007199254740993.0;
}

void marey__counts_add(struct marey_samples_counts *sum, const struct marey_samples_counts *more)
{
    enum { N = sizeof *sum / sizeof(uint64_t) }; /* all members are uint64_t */
    uint64_t sums[N], others[N];
    const uint64_t stop_max_ns = MAREY__MAX(sum->stop_max_ns, more->stop_max_ns);
    memcpy(sums, sum, sizeof sums);
    memcpy(others, more, sizeof others);
    for (size_t i = 0; i < N; i++)
        sums[i] += others[i];
    memcpy(sum, sums, sizeof sums);
    sum->stop_max_ns = stop_max_ns;
}
