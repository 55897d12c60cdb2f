/*
 * inject: libmarey-nvtx.so, which `marey run --nvtx` makes the NVTX tool of a program. What the program and its
 * libraries pass to NVTX becomes events of the recording.
 *
 *   NVTX ── inject_entry.c    puts our functions into the tables of each object that has NVTX inside
 *      '--- inject_calls.c, inject_handles.c    those functions
 *             |-- inject_text.c     what of a name is its site's, what varies; wide characters
 *             |-- inject_names.c    domains, categories, names: found without a lock once they are known
 *             |-- inject_event.c    what goes along with an event
 *             |     inject_payload.c, inject_schema.c   bytes with a schema, as text
 *             |-- inject_thread.c   what each thread has pushed, of each domain; names it used last
 *             '-- inject_next.c     a second tool behind us, which gets every call as it came
 *
 * A range costs little more than one of <marey/range.h>: a registered string's handle is the address of what is known
 * of it, a plain text is found by its address and compared. While nothing is recorded, pushes and pops are still
 * counted, so that a recording that starts in between has no end without a begin.
 *
 * Nothing is ever freed but what a thread has for itself: handles are the program's, for good. The functions may be
 * called from any thread, at any time, also after libmarey has closed the recording at exit.
 */
#ifndef MAREY_INJECT_H
#define MAREY_INJECT_H

#include <pthread.h>
#include <stdbool.h>

#include <marey/range.h>

#include "inject_abi.h"

/* ---- inject_text.c ---- */

/*
 * Where the part of a name begins that changes from call to call, as PyTorch writes it: "aten::mul, seq = 7, sizes =
 * [[2, 3]]" has its first comma. `len` when there is none.
 */
size_t inject_text_cut(const char *text, size_t len);

enum { INJECT_TEXT_MAX = 4096 };
/* As UTF-8, with a NUL; what does not fit is cut. NULL gives "". */
void inject_text_narrow(const wchar_t *wide, char into[INJECT_TEXT_MAX]);

/* The name with each row of digits as one '#', cut at INJECT_TEXT_MAX - 1 bytes; its length. */
size_t inject_text_fold(const char *text, size_t len, char into[INJECT_TEXT_MAX]);

/* ---- inject_names.c ---- */

struct inject_category; /* a number and its name */

/* The tool's handle of a domain. */
struct inject_domain {
    struct inject_domain *next;         /* all of them; guarded by the lock */
    const char *name;                   /* "" for the one without */
    struct inject_category *categories; /* release; loaded with acquire. Others are put before it */
    uint32_t version; /* counts what was named among them. Release; loaded with acquire */
    void *theirs;     /* the second tool's handle. Release; loaded with acquire */
};
extern struct inject_domain inject_default_domain;

static inline struct inject_domain *inject_domain_of(void *handle)
{
    return handle != NULL ? handle : &inject_default_domain;
}

struct inject_look; /* a site of a name with a category or a color */

/* The tool's handle of a registered string, and what is known of a name that came as plain text. */
struct inject_name {
    struct inject_domain *domain;
    uint32_t hash, len;
    uint32_t rest; /* where what varies begins, behind ", "; `len`: nowhere. Only of registered strings */
    marey_id id;               /* its site without category and color */
    struct inject_look *looks; /* others. Release; loaded with acquire */
    void *theirs;              /* the second tool's handle. Release; loaded with acquire */
    char text[];
};

/* The domain of that name, made if it is new. Takes the lock. NULL without memory. */
struct inject_domain *inject_domain_make(const char *name);
void inject_domain_name(struct inject_domain *domain, uint32_t number, const char *name);

/* What is known of a text, `len` bytes, which the whole of the name is; made if it is new. NULL when there is no room. */
const struct inject_name *inject_name_get(struct inject_domain *domain, const char *text, size_t len);
/* The same for a string that is registered, and may have a part that varies. Falls back on other names; NULL without memory. */
struct inject_name *inject_name_register(struct inject_domain *domain, const char *text);
/* The folded form of a name, used when there are too many. NULL without memory. */
struct inject_name *inject_name_folded(struct inject_domain *domain, const char *text, size_t len);

/* The site of a name as an event looks like. `color` 0: none. No lock once it is known. Never 0. */
marey_id inject_look_find(struct inject_name *name, uint32_t category, uint32_t color);
static inline marey_id inject_name_site(const struct inject_name *name, uint32_t category,
                                        uint32_t color)
{
    const marey_id id = __atomic_load_n(&name->id, __ATOMIC_RELAXED);
    if (MAREY_LIKELY((category | color) == 0 && id != 0))
        return id;
    return inject_look_find((struct inject_name *)name, category, color);
}

/* The text of a handle that may be none of ours; "" then. Looks at all of them. */
const char *inject_name_text(const void *handle);

/* ---- inject_schema.c ---- */

enum { INJECT_MAX_ENTRIES = 64 };

struct inject_schema_entry {
    uint64_t flags, type, detail, offset;
    char *name; /* NULL: none */
};

/* A schema, or an enumeration: then `detail` of an entry is a value. */
struct inject_schema {
    struct inject_schema *next; /* the list is guarded by the lock; a release makes one seen */
    const struct inject_domain *domain;
    uint64_t id;
    char *name;              /* NULL: none */
    size_t bytes, alignment; /* 0: unknown */
    bool is_enum;
    size_t n_entries;
    struct inject_schema_entry *entries;
};

/*
 * Remember a schema, or an enumeration, by `id`; 0: by the number that it brings, or one that is given here. Its number.
 */
uint64_t inject_schema_add(const struct inject_domain *domain, const struct nvtx_schema *told,
                           uint64_t id);
uint64_t inject_enum_add(const struct inject_domain *domain, const struct nvtx_enum *told,
                         uint64_t id);
/* NULL for one that nobody told. No lock. */
const struct inject_schema *inject_schema_find(const struct inject_domain *domain, uint64_t id);

/* ---- inject_payload.c ---- */

/* Payloads as a text with a NUL; its length. `payloads` may be NULL. */
size_t inject_payload_text(const struct inject_domain *domain, const struct nvtx_payload *payloads,
                           size_t n, char into[INJECT_TEXT_MAX]);
/* The name of an event that is nothing but payloads. */
void inject_payload_message(const struct inject_domain *domain, const struct nvtx_payload *payloads,
                            size_t n, char into[INJECT_TEXT_MAX]);

/* ---- inject_event.c ---- */

/* A site, and the part of the name that varies; NULL: none. */
struct inject_meaning {
    marey_id id;
    const char *rest;
    size_t rest_len;
};

enum inject_what { INJECT_RANGE, INJECT_MARK };

/* Record a range, or a mark, with what goes along. `event` may be NULL. */
void inject_event_put(const struct inject_domain *domain, enum inject_what what,
                      const struct inject_meaning *meaning, const struct nvtx_event *event);

/* ---- inject_thread.c ---- */

/* A range that was pushed. */
struct inject_entry {
    const struct inject_domain *domain;
    marey_id id;   /* 0: it is not in the recording */
    int32_t level; /* of the domain, from 0 */
};

/* A text that this thread used lately, by its address. Another text may be there by now, so it is compared. */
struct inject_recent {
    const char *text;
    const struct inject_domain *domain;
    const struct inject_name *name;
};
enum { INJECT_N_RECENT = 64 };

/* What a thread has for itself. All of them are known, so that a forked child can free those of threads it has not. */
struct inject_memory {
    struct inject_recent recent[INJECT_N_RECENT];
    struct inject_entry *entries;
    struct inject_memory *next, **link; /* guarded by the lock */
};

/*
 * Of one thread. Below what was pushed lies an entry of level -1, with the domain that was pushed first: so the usual
 * push compares with the entry below and nothing else.
 */
struct inject_thread {
    struct inject_entry *top; /* the next free one */
    struct inject_entry *limit; /* there is no room at it; so before the first push, when all is NULL */
    struct inject_memory *memory; /* where they lie */
    uint64_t n_beyond;            /* pushed when there was no room any more */
};
extern __thread struct inject_thread inject_thread __attribute__((tls_model("initial-exec")));

static inline struct inject_recent *inject_thread_recent(const char *text)
{
    const uintptr_t at = (uintptr_t)text;
    return &inject_thread.memory->recent[(at ^ at >> 6) % INJECT_N_RECENT];
}

/* A new entry on top, its level set, its site 0. NULL when there is no room: the range is not recorded. */
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
 * Take out what was pushed last in `domain`. NULL when there is nothing; lent until the next push. `is_top`: nothing of
 * other domains lies above it.
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

/*
 * In a forked child, with the lock: its recording has no begin of what was pushed before, and it has no other threads.
 */
void inject_thread_after_fork(void);

/* ---- inject_next.c ---- */

/* The second tool's functions; NULL: it has none. Written under the lock of inject_entry.c; relaxed. */
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

/* Call the second tool's `name`; `otherwise` without a second tool, or where it lacks that function. */
#define INJECT_NEXT_OR(otherwise, name, ...)                                                       \
    (__extension__({                                                                               \
        __typeof__(inject_next.name) next_ =                                                       \
            inject_next_is_there() ? __atomic_load_n(&inject_next.name, __ATOMIC_RELAXED) : NULL;  \
        next_ != NULL ? next_(__VA_ARGS__) : (otherwise);                                          \
    }))
#define INJECT_NEXT(name, ...) INJECT_NEXT_OR((void)0, name, __VA_ARGS__)

/* What makes it the tool of an object: its own function, or NULL when there is no second tool. Loads it the first time. */
nvtx_initialize *inject_next_find(void);
/* The same for NVTX's extensions. */
nvtx_initialize_extension *inject_next_find_extension(void);

/* The event as the second tool knows it: `copy`, with its handle of the string, or the event itself. */
const struct nvtx_event *inject_next_event(const struct nvtx_event *event, struct nvtx_event *copy);
static inline void *inject_next_domain(const struct inject_domain *domain)
{
    return __atomic_load_n(&domain->theirs, __ATOMIC_ACQUIRE);
}

/* Its number of a range that is `ours` (0: not in the recording); what the program is told. */
uint64_t inject_next_started(uint64_t ours, uint64_t theirs);
/* The number again; false when there is none. */
bool inject_next_ended(uint64_t ours, uint64_t *theirs);

/* ---- locks: inject_entry.c ---- */

/* In the order in which they are taken; each guards the state of its file. A fork takes all of them. */
enum inject_lock {
    INJECT_LOCK_ENTRY, /* one object of the program at a time */
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

/* Ours, by the names of NVTX_FUNCTIONS. */
#define INJECT_CALL(place, type, name, params) type inject_##name params;
NVTX_FUNCTIONS(INJECT_CALL)
#undef INJECT_CALL

#endif
