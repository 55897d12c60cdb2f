/*
 * marey/range.h: ranges, marks and counters (instrumentation of a program).
 *
 *     MAREY_SCOPE("forward");                      to the end of the enclosing block, by return and goto too
 *     MAREY_RANGE("load") { read(...); }           a block, left only at its end: break, return and goto skip it
 *     marey_begin(MAREY_ID("step")); ... marey_end(MAREY_ID("step"));
 *     marey_push(name); ... marey_pop();           a name made at run time
 *
 * A range belongs to the thread that begins it and nests with that thread's other ranges, from any language. A range that
 * ends on another thread is an async range: marey_async_begin() returns a handle.
 *
 * Cost: off, a load and a branch, inline. On, one clock read and two stores for each begin and end. Any thread.
 *
 * Signal handlers may begin, end, mark and count with registered ids: an event that interrupts another one of the same
 * thread is counted as lost. But the first event of a thread, also the first after a fork, calls malloc: record an event on
 * each thread before its handlers do. Do not use ranges in handlers while nesting is checked or an NVTX tool is attached.
 *
 * Names identify call sites: put varying data (a shape, an epoch number) into a payload, not into the name.
 */
#ifndef MAREY_RANGE_H
#define MAREY_RANGE_H

#include <marey/switchboard.h>

MAREY_BEGIN_C

/* Id of a call site, process-wide and permanent: 1 to 2^20-1. 0: none. */
typedef uint32_t marey_id;

/* C++ compilers warn about fields that MAREY_SITE omits, unless they have a default. */
#ifdef __cplusplus
#define MAREY_ZERO_ = 0
#else
#define MAREY_ZERO_
#endif

/* A call site. Fill with MAREY_SITE or by hand (other fields zero); pointers must stay valid until first use. */
struct marey_site {
    const char *name;                 /* required */
    const char *category MAREY_ZERO_; /* groups sites in viewers; NULL: none */
    const char *domain MAREY_ZERO_;   /* the library it belongs to; NULL: the program */
    uint32_t color MAREY_ZERO_;       /* 0xAARRGGBB; 0: chosen by the viewer */
    uint32_t line MAREY_ZERO_;
    const char *file MAREY_ZERO_; /* source file; NULL: unknown */
    marey_id id MAREY_ZERO_;      /* set on first use; read and written atomically */
};

#define MAREY_SITE(...)                                                                            \
    {                                                                                              \
        .name = __VA_ARGS__, .line = __LINE__, .file = __FILE__                                    \
    }

/* Returns the site's id; equal sites have equal ids. Takes a lock for a new site. */
MAREY_API marey_id marey_site_register(struct marey_site *site);

/* The same for a name of `len` arbitrary bytes, copied. `file` may be NULL. No lock for a known name. */
MAREY_API marey_id marey_site_intern(const char *name, size_t len, const char *category,
                                     uint32_t color, const char *file, uint32_t line);

/*
 * The same for a complete site whose name has `name_len` arbitrary bytes. Everything is copied; site->id is neither read
 * nor set.
 */
MAREY_API marey_id marey_site_intern_whole(const struct marey_site *site, size_t name_len);

/* The name of `id` (never freed; NUL-terminated, may contain NULs); "": unknown. `len` may be NULL. */
MAREY_API const char *marey_site_name(marey_id id, size_t *len);

static inline marey_id marey_site_id(struct marey_site *site)
{
    const marey_id id = __atomic_load_n(&site->id, __ATOMIC_ACQUIRE);
    return MAREY_LIKELY(id != 0) ? id : marey_site_register(site);
}

/* Out of line; they test the enable word again, so calls while off are harmless. */
MAREY_API void marey_begin_on(marey_id id);
MAREY_API void marey_end_on(marey_id id);
MAREY_API void marey_mark_on(marey_id id);
MAREY_API void marey_counter_on(marey_id id, double value);

static inline void marey_begin(marey_id id)
{
    if (MAREY_UNLIKELY(marey_on()))
        marey_begin_on(id);
}

/* `id` 0 ends the innermost range of this thread. */
static inline void marey_end(marey_id id)
{
    if (MAREY_UNLIKELY(marey_on()))
        marey_end_on(id);
}

/* A point in time on this thread. */
static inline void marey_mark(marey_id id)
{
    if (MAREY_UNLIKELY(marey_on()))
        marey_mark_on(id);
}

/* The value of a counter from now on; one track per process and name. */
static inline void marey_counter(marey_id id, double value)
{
    if (MAREY_UNLIKELY(marey_on()))
        marey_counter_on(id, value);
}

/* By name: looks `name` up each time, about 30 ns slower than an id. The macro records the source position. */
MAREY_API void marey_push_at(const char *name, const char *file, uint32_t line);
#define marey_push(name) marey_push_at((name), __FILE__, __LINE__)
MAREY_API void marey_pop(void);

/*
 * Pop if `name` (NULL: any) is the name pushed last. Otherwise, or with nothing pushed, returns MAREY_EMISMATCH without
 * popping; the message has both names, the stack, the thread and the position of the push. Needs check_nesting since the
 * push; without it, the same as marey_pop().
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_pop_checked(const char *name);
MAREY_API MAREY_WARN_UNUSED marey_status marey_end_checked(marey_id id);

/* End a range that may have begun before nesting was checked: compares nothing; the range need not be on a stack. */
MAREY_API void marey_end_unchecked(marey_id id);

/* A value attached to one range or mark. */
enum marey_payload_type {
    MAREY_PAYLOAD_I64 = 1,
    MAREY_PAYLOAD_U64,
    MAREY_PAYLOAD_F64,
    MAREY_PAYLOAD_TEXT
};
struct marey_payload {
    enum marey_payload_type type;
    uint32_t len; /* of text, in bytes; truncated to 4096 */
    union {
        int64_t i64;
        uint64_t u64;
        double f64;
        const char *text; /* lent for the call */
    } as;
};
MAREY_API void marey_begin_payload(marey_id id, const struct marey_payload *payload);
MAREY_API void marey_mark_payload(marey_id id, const struct marey_payload *payload);

/* A range that may end on another thread and need not nest. Returns 0 while off; ending 0 does nothing. */
typedef uint64_t marey_async;
MAREY_API marey_async marey_async_begin(marey_id id);
MAREY_API void marey_async_end(marey_async range);

/*
 * Name of thread `tid` (gettid()) of this process in recordings, instead of the kernel's name. Before or during a recording;
 * keeps 63 bytes, and the latest 256 names. Any thread; not from a signal handler.
 */
MAREY_API void marey_name_thread(int64_t tid, const char *name);

/*
 * Only into the recording: no nesting check, not sent to an NVTX tool. For instruments that record ranges of other
 * libraries, such as libmarey-nvtx. marey_put_end() also ends the ranges begun after `id`; marey_put_end_of() leaves them
 * open, for ranges that overlap. `payload` of a mark may be NULL.
 */
MAREY_API void marey_put_begin(marey_id id);
MAREY_API void marey_put_begin_payload(marey_id id, const struct marey_payload *payload);
MAREY_API void marey_put_end(marey_id id);
MAREY_API void marey_put_end_of(marey_id id);
MAREY_API void marey_put_mark(marey_id id, const struct marey_payload *payload);
MAREY_API marey_async marey_put_async_begin(marey_id id);
MAREY_API void marey_put_async_end(marey_async range);

/* A call site at this source position, in any expression: MAREY_ID("step"), MAREY_ID("step", .category = "train"). */
#define MAREY_ID(...)                                                                              \
    (__extension__({                                                                               \
        static struct marey_site marey_site_ = MAREY_SITE(__VA_ARGS__);                            \
        marey_site_id(&marey_site_);                                                               \
    }))

#define MAREY_CAT2_(a, b) a##b
#define MAREY_CAT_(a, b) MAREY_CAT2_(a, b)

/* The scope's variable holds the id it began, or 0; its cleanup ends the range. */
static inline marey_id marey_scope_enter_(struct marey_site *site)
{
    if (MAREY_LIKELY(!marey_on()))
        return 0;
    const marey_id id = marey_site_id(site);
    marey_begin_on(id);
    return id;
}

static inline void marey_scope_leave_(const marey_id *id)
{
    if (MAREY_UNLIKELY(*id != 0))
        marey_end_on(*id);
}

#define MAREY_SCOPE_AT_(n, ...)                                                                    \
    static struct marey_site MAREY_CAT_(marey_site_, n) = MAREY_SITE(__VA_ARGS__);                 \
    __attribute__((cleanup(marey_scope_leave_), unused)) const marey_id MAREY_CAT_(                \
        marey_scope_, n) = marey_scope_enter_(&MAREY_CAT_(marey_site_, n))
#define MAREY_SCOPE(...) MAREY_SCOPE_AT_(__COUNTER__, __VA_ARGS__)

/* The loop variable is the id it began (0: off), plus a bit above it that makes the loop run once. */
#define MAREY_RANGE_ONCE_ (UINT64_C(1) << 32)
static inline uint64_t marey_range_enter_(marey_id id)
{
    if (id != 0)
        marey_begin_on(id);
    return MAREY_RANGE_ONCE_ | id;
}

static inline uint64_t marey_range_leave_(uint64_t range)
{
    if ((marey_id)range != 0)
        marey_end_on((marey_id)range);
    return 0;
}

#define MAREY_RANGE_AT_(n, ...)                                                                    \
    for (uint64_t MAREY_CAT_(marey_range_, n) =                                                    \
             marey_range_enter_(marey_on() ? MAREY_ID(__VA_ARGS__) : 0);                           \
         MAREY_CAT_(marey_range_, n) != 0;                                                         \
         MAREY_CAT_(marey_range_, n) = marey_range_leave_(MAREY_CAT_(marey_range_, n)))
#define MAREY_RANGE(...) MAREY_RANGE_AT_(__COUNTER__, __VA_ARGS__)

MAREY_END_C

#ifdef __cplusplus
namespace marey {
/* RAII over an id: `marey::scope s(MAREY_ID("forward"));` Ends on exceptions too, and only if it began. */
class scope {
  public:
    explicit scope(marey_id id) : id_(marey_on() ? id : 0)
    {
        if (id_ != 0)
            marey_begin_on(id_);
    }
    ~scope()
    {
        if (id_ != 0)
            marey_end_on(id_);
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

  private:
    marey_id id_;
};
} // namespace marey
#endif
#endif
