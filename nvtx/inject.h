/*
 * inject: libmarey-nvtx.so, which `marey run --nvtx` makes the NVTX tool of a program. NVTX calls of the program and
 * its libraries become events of the recording.
 *
 *   NVTX ── inject_entry.c    puts our functions into the tables of each object that has NVTX inside
 *      '--- inject_calls.c, inject_handles.c    those functions
 *             |-- inject_text.c     the fixed and the varying part of a name; wide characters
 *             |-- inject_names.c    domains, categories, names: lookups of known ones take no lock
 *             |-- inject_event.c    the payload of an event
 *             |     inject_payload.c, inject_schema.c   bytes with a schema, as text
 *             |-- inject_thread.c   each thread's stack of all domains; recently used names
 *             '-- inject_next.c     a second tool, which gets every call unchanged
 *
 * A range costs little more than one of <marey/range.h>: a registered string's handle is the address of its data, a
 * plain string is looked up by address and compared. While nothing is recorded, pushes and pops are still tracked, so
 * that a recording that starts in between has no end without a begin.
 *
 * Only per-thread memory is ever freed: the program may keep handles forever. The functions may be called from any
 * thread, at any time, also after libmarey has closed the recording at exit.
 */
#ifndef MAREY_INJECT_H
#define MAREY_INJECT_H

#include <pthread.h>
#include <stdbool.h>

#include <marey/range.h>

#include "inject_abi.h"

/* ---- inject_text.c ---- */

/*
 * The start of the part of a name that varies between calls, as PyTorch writes it: in "aten::mul, seq = 7, sizes = [[2,
 * 3]]" its first comma. Returns `len` if there is none.
 */
size_t inject_text_cut(const char *text, size_t len);

enum { INJECT_TEXT_MAX = 4096 };
/* As UTF-8, NUL-terminated and truncated. NULL gives "". */
void inject_text_narrow(const wchar_t *wide, char into[INJECT_TEXT_MAX]);

/* The name with each run of digits replaced by one '#', truncated to INJECT_TEXT_MAX - 1 bytes. Returns its length. */
size_t inject_text_fold(const char *text, size_t len, char into[INJECT_TEXT_MAX]);

/* ---- inject_names.c ---- */

struct inject_category; /* a number and its name */

/* The tool's handle for a domain. */
struct inject_domain {
    struct inject_domain *next;         /* list of all; guarded by the lock */
    const char *name;                   /* "" for the default domain */
    struct inject_category *categories; /* release; loaded with acquire. New ones are prepended */
    uint32_t version; /* incremented when one of them is named. Release; loaded with acquire */
    void *theirs;     /* the second tool's handle. Release; loaded with acquire */
};
extern struct inject_domain inject_default_domain;

static inline struct inject_domain *inject_domain_of(void *handle)
{
    return handle != NULL ? handle : &inject_default_domain;
}

struct inject_look; /* a site of a name with a category or color */

/* The tool's handle for a registered string, and the data of a name passed as plain string. */
struct inject_name {
    struct inject_domain *domain;
    uint32_t hash, len;
    uint32_t rest; /* where the varying part begins, after ", "; `len`: none. Only for registered strings */
    marey_id id;               /* its site without category and color */
    struct inject_look *looks; /* others, release; loaded with acquire */
    void *theirs;              /* the second tool's handle. Release; loaded with acquire */
    char text[];
};

/* The domain of that name, created if new. Takes the lock. NULL on out of memory. */
struct inject_domain *inject_domain_make(const char *name);
void inject_domain_name(struct inject_domain *domain, uint32_t number, const char *name);

/* The data of a string that is the whole name, `len` bytes; created if new. NULL if there is no room. */
const struct inject_name *inject_name_get(struct inject_domain *domain, const char *text, size_t len);
/* The same for a registered string, which may have a varying part. Falls back to other names; NULL on out of memory. */
struct inject_name *inject_name_register(struct inject_domain *domain, const char *text);
/* The folded form of a name, used when there are too many. NULL on out of memory. */
struct inject_name *inject_name_folded(struct inject_domain *domain, const char *text, size_t len);

/* The site of a name with category and color. `color` 0: none. Lock-free if it is known. Never 0. */
marey_id inject_look_find(struct inject_name *name, uint32_t category, uint32_t color);
static inline marey_id inject_name_site(const struct inject_name *name, uint32_t category,
                                        uint32_t color)
{
    const marey_id id = __atomic_load_n(&name->id, __ATOMIC_RELAXED);
    if (MAREY_LIKELY((category | color) == 0 && id != 0))
        return id;
    return inject_look_find((struct inject_name *)name, category, color);
}

/* The string of a handle, or "" if it is not one of ours. Searches all of them. */
const char *inject_name_text(const void *handle);

/* ---- inject_schema.c ---- */

enum { INJECT_MAX_ENTRIES = 64 };

struct inject_schema_entry {
    uint64_t flags, type, detail, offset;
    char *name; /* NULL: none */
};

/* A schema, or an enumeration, in which `detail` of an entry is its value. */
struct inject_schema {
    struct inject_schema *next; /* the list is guarded by the lock; published with release */
    const struct inject_domain *domain;
    uint64_t id;
    char *name;              /* NULL: none */
    size_t bytes, alignment; /* 0: unknown */
    bool is_enum;
    size_t n_entries;
    struct inject_schema_entry *entries;
};

/* Stores a schema or enumeration under `id`; 0: under its own number, or a new one. Returns the number. */
uint64_t inject_schema_add(const struct inject_domain *domain, const struct nvtx_schema *given,
                           uint64_t id);
uint64_t inject_enum_add(const struct inject_domain *domain, const struct nvtx_enum *given,
                         uint64_t id);
/* NULL if it is not registered. Lock-free. */
const struct inject_schema *inject_schema_find(const struct inject_domain *domain, uint64_t id);

/* ---- inject_payload.c ---- */

/* Writes payloads as a NUL-terminated string; returns its length. `payloads` may be NULL. */
size_t inject_payload_text(const struct inject_domain *domain, const struct nvtx_payload *payloads,
                           size_t n, char into[INJECT_TEXT_MAX]);
/* The name of an event that consists only of payloads. */
void inject_payload_message(const struct inject_domain *domain, const struct nvtx_payload *payloads,
                            size_t n, char into[INJECT_TEXT_MAX]);

/* ---- inject_event.c ---- */

/* A site, and the varying part of the name, or NULL. */
struct inject_meaning {
    marey_id id;
    const char *rest;
    size_t rest_len;
};

enum inject_what { INJECT_RANGE, INJECT_MARK };

/* Records a range or mark with its payload. `event` may be NULL. */
void inject_event_put(const struct inject_domain *domain, enum inject_what what,
                      const struct inject_meaning *meaning, const struct nvtx_event *event);

/* ---- inject_thread.c ---- */

/* A pushed range. */
struct inject_entry {
    const struct inject_domain *domain;
    marey_id id;   /* 0: not in the recording */
    int32_t level; /* within the domain, from 0 */
};

/* A string recently used by this thread, by address. The content may have changed, so it is compared. */
struct inject_recent {
    const char *text;
    const struct inject_domain *domain;
    const struct inject_name *name;
};
enum { INJECT_N_RECENT = 64 };

/* Memory of a thread. All are listed, so that a forked child can free those of threads it does not have. */
struct inject_memory {
    struct inject_recent recent[INJECT_N_RECENT];
    struct inject_entry *entries;
    struct inject_memory *next, **link; /* guarded by the lock */
};

/*
 * Per-thread stack. Below the pushed entries is one of level -1, with the first pushed domain, so that the usual push
 * only compares with the entry below.
 */
struct inject_thread {
    struct inject_entry *top;     /* the next free entry */
    struct inject_entry *limit;   /* end of the array; before the first push everything is NULL */
    struct inject_memory *memory; /* contains the entries */
    uint64_t n_beyond;            /* pushed beyond the array's end */
};
extern __thread struct inject_thread inject_thread __attribute__((tls_model("initial-exec")));

static inline struct inject_recent *inject_thread_recent(const char *text)
{
    const uintptr_t at = (uintptr_t)text;
    return &inject_thread.memory->recent[(at ^ at >> 6) % INJECT_N_RECENT];
}

/* Pushes a new entry, with its level set and site 0. NULL if there is no room: the range is not recorded. */
struct inject_entry *inject_thread_push_slowly(const struct inject_domain *domain);
static inline struct inject_entry *inject_thread_push(const struct inject_domain *domain)
{
    struct inject_entry *const entry = inject_thread.top;
    if (MAREY_UNLIKELY(entry == inject_thread.limit || entry[-1].domain != domain))
        return inject_thread_push_slowly(domain);
    inject_thread.top = entry + 1;
    entry->domain = domain;
    entry->level = entry[-1].level + 1;
    entry->id = 0;
    return entry;
}

/*
 * Removes the last entry of `domain`; lent until the next push. NULL if there is none. `is_top`: no entry of another
 * domain was above it.
 */
const struct inject_entry *inject_thread_pop_slowly(const struct inject_domain *domain, bool *is_top);
static inline const struct inject_entry *inject_thread_pop(const struct inject_domain *domain,
                                                           bool *is_top)
{
    struct inject_entry *const top = inject_thread.top;
    if (MAREY_UNLIKELY(top == NULL || top[-1].domain != domain || top[-1].level < 0))
        return inject_thread_pop_slowly(domain, is_top);
    *is_top = true;
    inject_thread.top = top - 1;
    return top - 1;
}

/* In a forked child, with the lock held: its recording has no begins of earlier pushes, and it has no other threads. */
void inject_thread_after_fork(void);

/* ---- inject_next.c ---- */

/* The second tool's functions, or NULL. Written under the lock of inject_entry.c; relaxed. */
struct inject_next {
#define INJECT_NEXT_POINTER(place, type, name, params) type(*name) params;
    NVTX_FUNCTIONS(INJECT_NEXT_POINTER)
#undef INJECT_NEXT_POINTER
};
extern struct inject_next inject_next;
extern bool inject_has_next; /* relaxed */

static inline bool inject_next_is_there(void)
{
    return MAREY_UNLIKELY(__atomic_load_n(&inject_has_next, __ATOMIC_RELAXED));
}

/* Calls the second tool's `name`; `otherwise` without a second tool, or if it lacks that function. */
#define INJECT_NEXT_OR(otherwise, name, ...)                                                       \
    (__extension__({                                                                               \
        __typeof__(inject_next.name) next_ =                                                       \
            inject_next_is_there() ? __atomic_load_n(&inject_next.name, __ATOMIC_RELAXED) : NULL;  \
        next_ != NULL ? next_(__VA_ARGS__) : (otherwise);                                          \
    }))
#define INJECT_NEXT(name, ...) INJECT_NEXT_OR((void)0, name, __VA_ARGS__)

/* The second tool's initialization function, or NULL without a second tool. Loads it the first time. */
nvtx_initialize *inject_next_find(void);
/* The same for NVTX extensions. */
nvtx_initialize_extension *inject_next_find_extension(void);

/* The event with the second tool's string handle in `copy`, or the event itself. */
const struct nvtx_event *inject_next_event(const struct nvtx_event *event, struct nvtx_event *copy);
static inline void *inject_next_domain(const struct inject_domain *domain)
{
    return __atomic_load_n(&domain->theirs, __ATOMIC_ACQUIRE);
}

/* Stores the second tool's number of a range that is `ours` (0: not in the recording); returns the number for the program. */
uint64_t inject_next_started(uint64_t ours, uint64_t theirs);
/* Looks the number up again; false if there is none. */
bool inject_next_ended(uint64_t ours, uint64_t *theirs);

/* ---- locks: inject_entry.c ---- */

/* In the order in which they are taken; each guards the state of its file. fork() takes all of them. */
enum inject_lock {
    INJECT_LOCK_ENTRY, /* serializes initialization of the program's objects */
    INJECT_LOCK_NEXT,
    INJECT_LOCK_SCHEMAS,
    INJECT_LOCK_NAMES,
    INJECT_LOCK_THREADS,
    INJECT_N_LOCKS
};
extern pthread_mutex_t inject_locks[INJECT_N_LOCKS];

static inline void inject_lock(enum inject_lock lock)
{
    pthread_mutex_lock(&inject_locks[lock]);
}
static inline void inject_unlock(enum inject_lock lock)
{
    pthread_mutex_unlock(&inject_locks[lock]);
}

/* ---- inject_calls.c ---- */

/* Our functions, by the names of NVTX_FUNCTIONS. */
#define INJECT_CALL(place, type, name, params) type inject_##name params;
NVTX_FUNCTIONS(INJECT_CALL)
#undef INJECT_CALL

#endif
