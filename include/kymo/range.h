/*
 * kymo/range.h: ranges, marks and counters in a program's own words.
 *
 *     KYMO_SCOPE("forward");                       to the end of the enclosing block, by return and goto too
 *     KYMO_RANGE("load") { read(...); }            a block, left only at its end: break, return and goto skip it
 *     kymo_begin(KYMO_ID("step")); ... kymo_end(KYMO_ID("step"));
 *     kymo_push(name); ... kymo_pop();             a name made at run time
 *
 * A range belongs to the thread that begins it and nests with that thread's other ranges, whichever language began
 * or ended them. A range that ends on another thread is an async range: kymo_async_begin() gives a handle.
 *
 * Cost: off, a load and a branch, in the header. On, one clock read and two stores for each end of a range. Any
 * thread may call anything here.
 *
 * Signal handlers may begin, end, mark and count with ids that are already known: an event that meets another of the
 * same thread half done is counted as lost. But a thread's very first event, also the first one after a fork, calls
 * malloc: let each thread record something before its handlers do. With nesting checked or an NVTX tool listening, keep
 * ranges out of handlers.
 *
 * Names are call sites: keep the varying part (a shape, an epoch number) out of the name and in a payload.
 */
#ifndef KYMO_RANGE_H
#define KYMO_RANGE_H

#include <kymo/switchboard.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A site's number, process-wide and for good: 1 to 2^20-1. 0 is no site. */
typedef uint32_t kymo_id;

/* C++ compilers warn of every field that KYMO_SITE leaves out, unless the field says what it is then. */
#ifdef __cplusplus
#define KYMO_ZERO_ = 0
#else
#define KYMO_ZERO_
#endif

/* A call site. Fill with KYMO_SITE or by hand (zeroed elsewhere); pointers must stay valid until first use. */
struct kymo_site {
    const char *name;                /* required */
    const char *category KYMO_ZERO_; /* groups sites in viewers; NULL: none */
    const char *domain KYMO_ZERO_;   /* the library that speaks; NULL: the program itself */
    uint32_t color KYMO_ZERO_;       /* 0xAARRGGBB; 0: chosen by the viewer */
    uint32_t line KYMO_ZERO_;
    const char *file KYMO_ZERO_; /* where it stands; NULL: unknown */
    kymo_id id KYMO_ZERO_;       /* set on first use; read and written atomically */
};

#define KYMO_SITE(...)                                                                             \
    {                                                                                              \
        .name = __VA_ARGS__, .line = __LINE__, .file = __FILE__                                    \
    }

/* Return the site's id, giving it one if it is new; equal content gives equal ids. Takes a lock when new. */
KYMO_API kymo_id kymo_site_register(struct kymo_site *site);

/* The same for a name of `len` bytes, any bytes, copied. `file` may be NULL. No lock once the name is known. */
KYMO_API kymo_id kymo_site_intern(const char *name, size_t len, const char *category,
                                  uint32_t color, const char *file, uint32_t line);

/*
 * The same for a whole site whose name has `name_len` bytes, any bytes. Everything is copied, and `site` is not written
 * to: its own id is neither looked at nor set.
 */
KYMO_API kymo_id kymo_site_intern_whole(const struct kymo_site *site, size_t name_len);

/* The name of `id` (lent for ever, NUL-terminated besides its own bytes); "" for none. `len` may be NULL. */
KYMO_API const char *kymo_site_name(kymo_id id, size_t *len);

static inline kymo_id kymo_site_id(struct kymo_site *site)
{
    const kymo_id id = __atomic_load_n(&site->id, __ATOMIC_ACQUIRE);
    return KYMO_LIKELY(id != 0) ? id : kymo_site_register(site);
}

/* The out-of-line halves; they test the enable word again, so calling them while off is harmless. */
KYMO_API void kymo_begin_on(kymo_id id);
KYMO_API void kymo_end_on(kymo_id id);
KYMO_API void kymo_mark_on(kymo_id id);
KYMO_API void kymo_counter_on(kymo_id id, double value);

static inline void kymo_begin(kymo_id id)
{
    if (KYMO_UNLIKELY(kymo_on()))
        kymo_begin_on(id);
}

/* `id` 0 ends whatever was begun last on this thread. */
static inline void kymo_end(kymo_id id)
{
    if (KYMO_UNLIKELY(kymo_on()))
        kymo_end_on(id);
}

/* A point in time on this thread. */
static inline void kymo_mark(kymo_id id)
{
    if (KYMO_UNLIKELY(kymo_on()))
        kymo_mark_on(id);
}

/* The value of a quantity from now on; one track per process and name. */
static inline void kymo_counter(kymo_id id, double value)
{
    if (KYMO_UNLIKELY(kymo_on()))
        kymo_counter_on(id, value);
}

/* By name: `name` is looked up each time, some 30 ns dearer than an id. The macro keeps where it stands. */
KYMO_API void kymo_push_at(const char *name, const char *file, uint32_t line);
#define kymo_push(name) kymo_push_at((name), __FILE__, __LINE__)
KYMO_API void kymo_pop(void);

/*
 * Pop, and say whether `name` (NULL: any) is what was pushed last. On a mismatch, or with nothing pushed, nothing is
 * popped, KYMO_EMISMATCH comes back and the sentence has both names, the stack, the thread and where the push was.
 * Needs check_nesting to have been on since the push; without it this is kymo_pop().
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_pop_checked(const char *name);
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_end_checked(kymo_id id);

/* End a range that may have begun before nesting was checked: nothing is compared, and it may be on no stack. */
KYMO_API void kymo_end_unchecked(kymo_id id);

/* A value that travels with one range or mark. */
enum kymo_payload_type {
    KYMO_PAYLOAD_I64 = 1,
    KYMO_PAYLOAD_U64,
    KYMO_PAYLOAD_F64,
    KYMO_PAYLOAD_TEXT
};
struct kymo_payload {
    enum kymo_payload_type type;
    uint32_t len; /* of text, in bytes; what is past 4096 is cut */
    union {
        int64_t i64;
        uint64_t u64;
        double f64;
        const char *text; /* lent for the call */
    } as;
};
KYMO_API void kymo_begin_payload(kymo_id id, const struct kymo_payload *payload);
KYMO_API void kymo_mark_payload(kymo_id id, const struct kymo_payload *payload);

/* A range that may end on another thread and need not nest. 0 comes back while off; ending 0 does nothing. */
typedef uint64_t kymo_async;
KYMO_API kymo_async kymo_async_begin(kymo_id id);
KYMO_API void kymo_async_end(kymo_async range);

/*
 * What thread `tid` of this process, as gettid() has it, is called in recordings, instead of by the kernel's name for it.
 * Before or during a recording; 63 bytes are kept, and the latest 256 names. Any thread, not from a signal handler.
 */
KYMO_API void kymo_name_thread(int64_t tid, const char *name);

/*
 * Into the recording alone: neither checked for nesting nor passed on to an NVTX tool. For instruments that tell of
 * ranges which somebody else begins and ends, libkymo-nvtx among them. An end of `id` ends what was begun after it as
 * well; kymo_put_end_of() leaves that open, where ranges lie across one another. `payload` of a mark may be NULL.
 */
KYMO_API void kymo_put_begin(kymo_id id);
KYMO_API void kymo_put_begin_payload(kymo_id id, const struct kymo_payload *payload);
KYMO_API void kymo_put_end(kymo_id id);
KYMO_API void kymo_put_end_of(kymo_id id);
KYMO_API void kymo_put_mark(kymo_id id, const struct kymo_payload *payload);
KYMO_API kymo_async kymo_put_async_begin(kymo_id id);
KYMO_API void kymo_put_async_end(kymo_async range);

/* A site of this very place, in any expression: KYMO_ID("step"), KYMO_ID("step", .category = "train"). */
#define KYMO_ID(...)                                                                               \
    (__extension__({                                                                               \
        static struct kymo_site kymo_site_ = KYMO_SITE(__VA_ARGS__);                               \
        kymo_site_id(&kymo_site_);                                                                 \
    }))

#define KYMO_CAT2_(a, b) a##b
#define KYMO_CAT_(a, b) KYMO_CAT2_(a, b)

/* The scope's own variable holds the id it began, or 0; its cleanup ends it. */
static inline kymo_id kymo_scope_enter_(struct kymo_site *site)
{
    if (KYMO_LIKELY(!kymo_on()))
        return 0;
    const kymo_id id = kymo_site_id(site);
    kymo_begin_on(id);
    return id;
}

static inline void kymo_scope_leave_(const kymo_id *id)
{
    if (KYMO_UNLIKELY(*id != 0))
        kymo_end_on(*id);
}

#define KYMO_SCOPE_AT_(n, ...)                                                                     \
    static struct kymo_site KYMO_CAT_(kymo_site_, n) = KYMO_SITE(__VA_ARGS__);                     \
    __attribute__((cleanup(kymo_scope_leave_), unused)) const kymo_id KYMO_CAT_(kymo_scope_, n) =  \
        kymo_scope_enter_(&KYMO_CAT_(kymo_site_, n))
#define KYMO_SCOPE(...) KYMO_SCOPE_AT_(__COUNTER__, __VA_ARGS__)

/* The loop's variable is the id it began, 0 when off, with a bit above it that makes the loop run once. */
#define KYMO_RANGE_ONCE_ (UINT64_C(1) << 32)
static inline uint64_t kymo_range_enter_(kymo_id id)
{
    if (id != 0)
        kymo_begin_on(id);
    return KYMO_RANGE_ONCE_ | id;
}

static inline uint64_t kymo_range_leave_(uint64_t range)
{
    if ((kymo_id)range != 0)
        kymo_end_on((kymo_id)range);
    return 0;
}

#define KYMO_RANGE_AT_(n, ...)                                                                     \
    for (uint64_t KYMO_CAT_(kymo_range_, n) =                                                      \
             kymo_range_enter_(kymo_on() ? KYMO_ID(__VA_ARGS__) : 0);                              \
         KYMO_CAT_(kymo_range_, n) != 0;                                                           \
         KYMO_CAT_(kymo_range_, n) = kymo_range_leave_(KYMO_CAT_(kymo_range_, n)))
#define KYMO_RANGE(...) KYMO_RANGE_AT_(__COUNTER__, __VA_ARGS__)

#ifdef __cplusplus
}

namespace kymo {
/* RAII over an id: `kymo::scope s(KYMO_ID("forward"));` Ends on exceptions too, and only if it began. */
class scope {
  public:
    explicit scope(kymo_id id) : id_(kymo_on() ? id : 0)
    {
        if (id_ != 0)
            kymo_begin_on(id_);
    }
    ~scope()
    {
        if (id_ != 0)
            kymo_end_on(id_);
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

  private:
    kymo_id id_;
};
} // namespace kymo
#endif
#endif
