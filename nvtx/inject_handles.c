/* Names of categories and threads, and handles: our implementations of NVTX's functions. */
#include "inject.h"

/* ---- names ---- */

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* A function that takes a name, and its variant for wide characters: `use` processes `text`. */
#define NAMING(function, use, params, ...)                                                         \
    void inject_##function(MANY params, const char *name)                                          \
    {                                                                                              \
        const char *const text = or_empty(name);                                                   \
        use;                                                                                       \
        INJECT_NEXT(function, __VA_ARGS__, name);                                                  \
    }                                                                                              \
    void inject_##function##_wide(MANY params, const wchar_t *name)                                \
    {                                                                                              \
        char text[INJECT_TEXT_MAX];                                                                \
        inject_text_narrow(name, text);                                                            \
        use;                                                                                       \
        INJECT_NEXT(function##_wide, __VA_ARGS__, name);                                           \
    }
#define MANY(...) __VA_ARGS__

NAMING(name_category, inject_domain_name(&inject_default_domain, category, text),
       (uint32_t category), category)
NAMING(domain_name_category, inject_domain_name(inject_domain_of(handle), category, text),
       (void *handle, uint32_t category), inject_next_domain(inject_domain_of(handle)), category)
NAMING(name_thread, marey_name_thread(tid, text), (uint32_t tid), tid)

/* ---- handles ---- */

/*
 * Creates our handle, with the second tool's handle stored beside it.
 *
 * A destroyed domain stays, ours and the second tool's: other objects may use its name, and string handles in it. Two
 * threads may both request the same handle from the second tool; both results work.
 */
#define WITH_THEIRS(type, make, next, ...)                                                          \
    struct inject_##type *const made = make;                                                        \
    if (made != NULL && inject_next_is_there() &&                                                   \
        __atomic_load_n(&made->theirs, __ATOMIC_ACQUIRE) == NULL)                                   \
        __atomic_store_n(&made->theirs, INJECT_NEXT_OR(NULL, next, __VA_ARGS__), __ATOMIC_RELEASE); \
    return made;

void *inject_domain_register(void *handle, const char *text)
{
    struct inject_domain *const domain = inject_domain_of(handle);
    WITH_THEIRS(name, inject_name_register(domain, or_empty(text)), domain_register,
                inject_next_domain(domain), text)
}

void *inject_domain_register_wide(void *handle, const wchar_t *wide)
{
    char text[INJECT_TEXT_MAX];
    struct inject_domain *const domain = inject_domain_of(handle);
    inject_text_narrow(wide, text);
    WITH_THEIRS(name, inject_name_register(domain, text), domain_register_wide,
                inject_next_domain(domain), wide)
}

void *inject_domain_create(const char *name)
{
    WITH_THEIRS(domain, inject_domain_make(or_empty(name)), domain_create, name)
}

void *inject_domain_create_wide(const wchar_t *wide)
{
    char text[INJECT_TEXT_MAX];
    inject_text_narrow(wide, text);
    WITH_THEIRS(domain, inject_domain_make(text), domain_create_wide, wide)
}

/* ---- functions only for a second tool ---- */

#define ONLY_THEIRS(name, type)                                                                      \
    void *inject_##name(void *handle, type attributes)                                               \
    {                                                                                                \
        return INJECT_NEXT_OR(NULL, name, inject_next_domain(inject_domain_of(handle)), attributes); \
    }
ONLY_THEIRS(resource_create, void *)
ONLY_THEIRS(sync_user_create, const void *)
