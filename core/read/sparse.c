/*
 * Arrays with holes, and warnings. A number in a damaged file costs a page, not everything below
 * it.
 */
#include <stdio.h>
#include <string.h>

#include "read/read_internal.h"

/* Few: most processes have one thread and some dozen names, and there may be thousands of processes. */
enum { PAGE_ELEMENTS = 8 };

void *kymo__sparse_get(const struct kymo__sparse *sparse, size_t i, size_t size)
{
    const size_t page = i / PAGE_ELEMENTS;
    if (page >= sparse->n_pages || sparse->pages[page] == NULL)
        return NULL;
    return (char *)sparse->pages[page] + (i % PAGE_ELEMENTS) * size;
}

void *kymo__sparse_make(struct kymo__sparse *sparse, size_t i, size_t size)
{
    const size_t page = i / PAGE_ELEMENTS;
    if (page >= sparse->n_pages) {
        size_t cap = sparse->n_pages;
        if (!kymo__grow(&sparse->pages, &cap, page + 1, sizeof *sparse->pages))
            return NULL;
        while (sparse->n_pages < cap)
            sparse->pages[sparse->n_pages++] = NULL;
    }
    if (sparse->pages[page] == NULL) {
        sparse->pages[page] = kymo__calloc(PAGE_ELEMENTS, size);
        if (sparse->pages[page] == NULL)
            return NULL;
    }
    return kymo__sparse_get(sparse, i, size);
}

void kymo__sparse_fini(struct kymo__sparse *sparse)
{
    for (size_t p = 0; p < sparse->n_pages; p++)
        kymo__free(sparse->pages[p]);
    kymo__free(sparse->pages);
    *sparse = (struct kymo__sparse){0};
}

enum { MAX_WARNINGS = 1000 }; /* a file of rubbish would have no end of them */

static void keep(struct kymo__warnings *warnings, const char *fmt, va_list args)
{
    if (warnings->n == MAX_WARNINGS)
        return;
    char sentence[1200];
    vsnprintf(sentence, sizeof sentence, fmt, args);
    char *kept = kymo__strndup(sentence, strlen(sentence));
    if (kept == NULL || !kymo__grow(&warnings->sentences, &warnings->cap, warnings->n + 1,
                                    sizeof *warnings->sentences)) {
        kymo__free(kept);
        warnings->failed = true;
        return;
    }
    warnings->sentences[warnings->n++] = kept;
}

void kymo__warn(struct kymo__warnings *warnings, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (warnings != NULL)
        keep(warnings, fmt, args);
    va_end(args);
}

void kymo__warn_damage(struct kymo__warnings *warnings, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (warnings != NULL) {
        warnings->n_damaged++;
        keep(warnings, fmt, args);
    }
    va_end(args);
}

void kymo__warnings_move(struct kymo__warnings *into, struct kymo__warnings *from)
{
    const size_t n = KYMO__MIN(from->n, MAX_WARNINGS - into->n);
    into->n_damaged += from->n_damaged;
    into->failed |= from->failed;
    if (n != 0 && !kymo__grow(&into->sentences, &into->cap, into->n + n, sizeof *into->sentences)) {
        into->failed = true;
    } else {
        for (size_t i = 0; i < n; i++) {
            into->sentences[into->n++] = from->sentences[i];
            from->sentences[i] = NULL;
        }
    }
    kymo__warnings_fini(from);
}

void kymo__warnings_fini(struct kymo__warnings *warnings)
{
    for (size_t i = 0; i < warnings->n; i++)
        kymo__free(warnings->sentences[i]);
    kymo__free(warnings->sentences);
    *warnings = (struct kymo__warnings){0};
}
