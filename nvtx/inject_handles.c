/* Names of categories and threads, and handles: what NVTX calls instead of its own empty functions. */
#include "inject.h"

/* ---- names ---- */

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

void inject_name_category(uint32_t category, const char *name)
{
    inject_domain_name(&inject_default_domain, category, or_empty(name));
    INJECT_NEXT(name_category, category, name);
}

void inject_name_category_wide(uint32_t category, const wchar_t *name)
{
    char text[INJECT_TEXT_MAX];
    inject_text_narrow(name, text);
    inject_domain_name(&inject_default_domain, category, text);
    INJECT_NEXT(name_category_wide, category, name);
}

void inject_domain_name_category(void *handle, uint32_t category, const char *name)
{
    struct inject_domain *const domain = inject_domain_of(handle);
    inject_domain_name(domain, category, or_empty(name));
    INJECT_NEXT(domain_name_category, inject_next_domain(domain), category, name);
}

void inject_domain_name_category_wide(void *handle, uint32_t category, const wchar_t *name)
{
    char text[INJECT_TEXT_MAX];
    struct inject_domain *const domain = inject_domain_of(handle);
    inject_text_narrow(name, text);
    inject_domain_name(domain, category, text);
    INJECT_NEXT(domain_name_category_wide, inject_next_domain(domain), category, name);
}

void inject_name_thread(uint32_t tid, const char *name)
{
    marey_name_thread(tid, name);
    INJECT_NEXT(name_thread, tid, name);
}

void inject_name_thread_wide(uint32_t tid, const wchar_t *name)
{
    char text[INJECT_TEXT_MAX];
    inject_text_narrow(name, text);
    marey_name_thread(tid, text);
    INJECT_NEXT(name_thread_wide, tid, name);
}

/* ---- handles ---- */

/*
 * A domain stays when it is destroyed, ours and a second tool's: other objects may have one of that name, and handles of
 * strings in it. Two threads that ask for the same at once may both ask the second tool; both of its handles serve.
 */
static bool is_theirs_missing(void *const *place)
{
    return inject_next_is_there() && __atomic_load_n(place, __ATOMIC_ACQUIRE) == NULL;
}

static void keep_theirs(void **place, void *theirs)
{
    __atomic_store_n(place, theirs, __ATOMIC_RELEASE);
}

void *inject_domain_register(void *handle, const char *text)
{
    struct inject_domain *const domain = inject_domain_of(handle);
    struct inject_name *const name = inject_name_register(domain, or_empty(text));
    if (name != NULL && is_theirs_missing(&name->theirs))
        keep_theirs(&name->theirs,
                    INJECT_NEXT_OR(NULL, domain_register, inject_next_domain(domain), text));
    return name;
}

void *inject_domain_register_wide(void *handle, const wchar_t *wide)
{
    char text[INJECT_TEXT_MAX];
    struct inject_domain *const domain = inject_domain_of(handle);
    inject_text_narrow(wide, text);
    struct inject_name *const name = inject_name_register(domain, text);
    if (name != NULL && is_theirs_missing(&name->theirs))
        keep_theirs(&name->theirs,
                    INJECT_NEXT_OR(NULL, domain_register_wide, inject_next_domain(domain), wide));
    return name;
}

void *inject_domain_create(const char *name)
{
    struct inject_domain *const domain = inject_domain_make(or_empty(name));
    if (domain != NULL && is_theirs_missing(&domain->theirs))
        keep_theirs(&domain->theirs, INJECT_NEXT_OR(NULL, domain_create, name));
    return domain;
}

void *inject_domain_create_wide(const wchar_t *wide)
{
    char text[INJECT_TEXT_MAX];
    inject_text_narrow(wide, text);
    struct inject_domain *const domain = inject_domain_make(text);
    if (domain != NULL && is_theirs_missing(&domain->theirs))
        keep_theirs(&domain->theirs, INJECT_NEXT_OR(NULL, domain_create_wide, wide));
    return domain;
}

/* ---- what only a second tool has a use for ---- */

void *inject_resource_create(void *handle, void *attributes)
{
    return INJECT_NEXT_OR(NULL, resource_create, inject_next_domain(inject_domain_of(handle)),
                          attributes);
}

void *inject_sync_user_create(void *handle, const void *attributes)
{
    return INJECT_NEXT_OR(NULL, sync_user_create, inject_next_domain(inject_domain_of(handle)),
                          attributes);
}
