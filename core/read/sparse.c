/* Sparse arrays, and warnings. A large index in a damaged file costs one page, not everything below it. */
#include "read/internal.h"

/* Small pages, and a smaller first one: most processes have one thread, and there may be thousands of processes. */
enum { PAGE_ELEMENTS = 8, FIRST_ELEMENTS = 2, FIRST = PAGE_ELEMENTS - FIRST_ELEMENTS };

void *marey__sparse_get(const struct marey__sparse *sparse, size_t i, size_t size)
{
    const size_t page = (i + FIRST) / PAGE_ELEMENTS;
    if (page >= sparse->n_pages || sparse->pages[page] == NULL)
        return NULL;
    return (char *)sparse->pages[page] + (page == 0 ? i : (i + FIRST) % PAGE_ELEMENTS) * size;
}

void *marey__sparse_make(struct marey__sparse *sparse, size_t i, size_t size)
{
    const size_t page = (i + FIRST) / PAGE_ELEMENTS;
    if (page >= sparse->n_pages) {
        const size_t n = page == 0 ? 1 : MAREY__MAX(2 * sparse->n_pages, page + 1);
        void **const pages = marey__realloc(sparse->pages, n * sizeof *pages);
        if (pages == NULL)
            return NULL;
        sparse->pages = pages;
        while (sparse->n_pages < n)
            pages[sparse->n_pages++] = NULL;
    }
    if (sparse->pages[page] == NULL) {
        sparse->pages[page] = marey__calloc(page == 0 ? FIRST_ELEMENTS : PAGE_ELEMENTS, size);
        if (sparse->pages[page] == NULL)
            return NULL;
    }
    return marey__sparse_get(sparse, i, size);
}

void marey__sparse_fini(struct marey__sparse *sparse)
{
    for (size_t p = 0; p < sparse->n_pages; p++)
        marey__free(sparse->pages[p]);
    marey__free(sparse->pages);
    *sparse = (struct marey__sparse){0};
}

enum { MAX_WARNINGS = 1000 }; /* a garbage file could produce any number */

static void keep(struct marey__warnings *warnings, const char *fmt, va_list args)
{
    if (warnings->n == MAX_WARNINGS)
        return;
    char sentence[1200];
    vsnprintf(sentence, sizeof sentence, fmt, args);
    char *kept = marey__strndup(sentence, strlen(sentence));
    if (kept == NULL || !marey__grow(&warnings->sentences, &warnings->cap, warnings->n + 1,
                                     sizeof *warnings->sentences)) {
        marey__free(kept);
        warnings->failed = true;
        return;
    }
    warnings->sentences[warnings->n++] = kept;
}

void marey__warn(struct marey__warnings *warnings, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (warnings != NULL)
        keep(warnings, fmt, args);
    va_end(args);
}

void marey__warn_damage(struct marey__warnings *warnings, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (warnings != NULL) {
        warnings->n_damaged++;
        keep(warnings, fmt, args);
    }
    va_end(args);
}

void marey__warnings_move(struct marey__warnings *into, struct marey__warnings *from)
{
    const size_t n = MAREY__MIN(from->n, MAX_WARNINGS - into->n);
    into->n_damaged += from->n_damaged;
    into->failed |= from->failed;
    if (n != 0 && !marey__grow(&into->sentences, &into->cap, into->n + n, sizeof *into->sentences)) {
        into->failed = true;
    } else {
        for (size_t i = 0; i < n; i++) {
            into->sentences[into->n++] = from->sentences[i];
            from->sentences[i] = NULL;
        }
    }
    marey__warnings_fini(from);
}

void marey__warnings_fini(struct marey__warnings *warnings)
{
    for (size_t i = 0; i < warnings->n; i++)
        marey__free(warnings->sentences[i]);
    marey__free(warnings->sentences);
    *warnings = (struct marey__warnings){0};
}
