/* Between the two readings of a file of speedscope: see speedscope_in.c. */
#ifndef MAREY_SPEEDSCOPE_IN_H
#define MAREY_SPEEDSCOPE_IN_H

#include <string.h>

#include "codec/codec_internal.h"
#include "import/stacks/stack_in.h"

enum marey__speedscope_type {
    MAREY__SPEEDSCOPE_UNKNOWN,
    MAREY__SPEEDSCOPE_EVENTED,
    MAREY__SPEEDSCOPE_SAMPLED,
};

/* What a profile says about itself. */
struct marey__speedscope_profile {
    enum marey__speedscope_type type;
    const char *name;         /* "" for none */
    const char *unit;         /* as the file has it; lent for ever */
    int scale;                /* a number times ten to this power is nanoseconds */
    int64_t start_ns, end_ns; /* 0: not said */
};

struct marey__speedscope {
    struct marey__frames frames;
    struct marey__speedscope_profile *profiles;
    size_t n_profiles, profiles_cap;
    struct marey__arena texts;
    bool *is_owner;      /* by frame: py-spy names a process or a thread by it */
    int64_t base_ns;     /* the earliest begin of a profile where that is below 0, else 0 */
    size_t n_unknown;    /* profiles of no known type */
    uint64_t mistake_at; /* where the file stops being JSON, and why; NULL: it does not */
    const char *mistake;
};

/*
 * Read frames and profiles, from the begin of the file; `import->bytes` is left as it is. MAREY_EFORMAT with a sentence
 * when there is no frame or no profile. Fini in any case.
 */
MAREY_WARN_UNUSED marey_status marey__speedscope_read_outline(struct marey__speedscope *outline,
                                                              const struct marey__import *import);
void marey__speedscope_fini(struct marey__speedscope *outline);
/* Leave sentences about units and about what could not be read. */
void marey__speedscope_tell(const struct marey__speedscope *outline, marey__sink_process *process,
                            const char *path);

#endif
