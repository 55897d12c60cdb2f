/* Functions and signatures by number, found again by their texts. */
#include <string.h>

#include "instrument/calls/internal.h"

/* ---- an index: numbers by hash ---- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *const at = bytes;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text, strlen(text) + 1);
}

static const uint64_t hash_begin = UINT64_C(0xcbf29ce484222325);

static uint64_t hash_of_name(const struct marey_calls_function *f)
{
    uint64_t hash = hash_text(hash_text(hash_begin, f->name), f->qualified);
    hash = hash_text(hash_text(hash, f->file), f->module);
    return hash_bytes(hash, &f->line, sizeof f->line);
}

static uint64_t hash_of_text(uint32_t function, const char *text, size_t len)
{
    return hash_bytes(hash_bytes(hash_begin, &function, sizeof function), text, len);
}

/* The slot of an equal one, or the empty one where it would go. */
typedef bool is_equal(const struct marey_calls *calls, uint32_t number, const void *wanted);
static uint32_t *find(const struct marey_calls *calls, const struct marey__calls_index *index,
                      uint64_t hash, is_equal *equal, const void *wanted)
{
    const size_t mask = index->n_slots - 1;
    size_t i = (size_t)(hash ^ hash >> 32) & mask;
    while (index->slots[i] != 0 && !equal(calls, index->slots[i], wanted))
        i = (i + 1) & mask;
    return &index->slots[i];
}

static uint64_t hash_of_number(const struct marey_calls *calls,
                               const struct marey__calls_index *index, uint32_t number)
{
    if (index == &calls->by_texts)
        return hash_of_name(&calls->names[number - 1].function);
    const struct marey__calls_text *const text = &calls->texts[number - 1];
    return hash_of_text(text->function, text->text, text->len);
}

static bool never_equal(const struct marey_calls *calls, uint32_t number, const void *wanted)
{
    (void)calls, (void)number, (void)wanted;
    return false;
}

/* Room for one more. */
static bool grow_index(struct marey_calls *calls, struct marey__calls_index *index)
{
    enum { FIRST = 64 };
    if (index->n_used * 2 < index->n_slots)
        return true;
    struct marey__calls_index grown = {.n_slots = index->n_slots != 0 ? index->n_slots * 2 : FIRST,
                                       .n_used = index->n_used};
    grown.slots = marey__calloc(grown.n_slots, sizeof *grown.slots);
    if (grown.slots == NULL)
        return false;
    for (size_t i = 0; i < index->n_slots; i++)
        if (index->slots[i] != 0)
            *find(calls, &grown, hash_of_number(calls, index, index->slots[i]), never_equal, NULL) =
                index->slots[i];
    marey__calls_spend(calls, (grown.n_slots - index->n_slots) * sizeof *grown.slots, true);
    marey__free(index->slots);
    *index = grown;
    return true;
}

/* ---- functions ---- */

static const char *text_of(const char *text)
{
    return text != NULL ? text : "";
}

static bool is_same_name(const struct marey_calls *calls, uint32_t number, const void *wanted)
{
    const struct marey_calls_function *const a = &calls->names[number - 1].function, *const b =
                                                                                         wanted;
    return a->line == b->line && a->kind == b->kind && strcmp(a->name, b->name) == 0 &&
           strcmp(a->qualified, b->qualified) == 0 && strcmp(a->file, b->file) == 0 &&
           strcmp(a->module, b->module) == 0;
}

/* The texts of a function in one piece of memory, which begins with the name. */
static bool copy_texts(struct marey_calls *calls, const struct marey_calls_function *from,
                       struct marey_calls_function *to)
{
    const char *const texts[] = {from->name, from->qualified, from->file, from->module};
    size_t lens[4], n = 0;
    for (size_t i = 0; i < 4; i++)
        n += lens[i] = strlen(texts[i]) + 1;
    char *at = marey__alloc(n);
    if (at == NULL)
        return false;
    marey__calls_spend(calls, n, true);
    *to = *from;
    const char **const into[] = {&to->name, &to->qualified, &to->file, &to->module};
    for (size_t i = 0; i < 4; at += lens[i++])
        *into[i] = memcpy(at, texts[i], lens[i]);
    return true;
}

/* The lock is held. */
static uint32_t add_function(struct marey_calls *calls, const struct marey_calls_function *wanted)
{
    const size_t cap = calls->names_cap;
    if (!grow_index(calls, &calls->by_texts) ||
        !marey__grow(&calls->names, &calls->names_cap, calls->n_names + 1, sizeof *calls->names))
        return 0;
    marey__calls_spend(calls, (calls->names_cap - cap) * sizeof *calls->names, true);
    uint32_t *const first = find(calls, &calls->by_texts, hash_of_name(wanted), is_same_name, wanted);
    for (uint32_t same = *first; same != 0; same = calls->names[same - 1].next_same)
        if (calls->names[same - 1].is_released) {
            calls->names[same - 1].is_released = false;
            return same;
        }
    struct marey__calls_name name = {.next_same = *first};
    if (!copy_texts(calls, wanted, &name.function))
        return 0;
    calls->by_texts.n_used += *first == 0;
    calls->names[calls->n_names++] = name;
    return *first = (uint32_t)calls->n_names;
}

uint32_t marey_calls_define(struct marey_calls *calls, const struct marey_calls_function *function)
{
    struct marey_calls_function wanted = *function;
    wanted.name = text_of(wanted.name);
    wanted.qualified = text_of(wanted.qualified);
    wanted.file = text_of(wanted.file);
    wanted.module = text_of(wanted.module);
    pthread_mutex_lock(&calls->lock);
    const uint32_t number = add_function(calls, &wanted);
    pthread_mutex_unlock(&calls->lock);
    return number;
}

void marey_calls_release_function(struct marey_calls *calls, uint32_t function)
{
    pthread_mutex_lock(&calls->lock);
    if (function != 0 && function <= calls->n_names)
        calls->names[function - 1].is_released = true;
    pthread_mutex_unlock(&calls->lock);
}

int marey_calls_function_get(struct marey_calls *calls, uint32_t number,
                             struct marey_calls_function *out)
{
    pthread_mutex_lock(&calls->lock);
    const bool is_there = number != 0 && number <= calls->n_names;
    if (is_there)
        *out = calls->names[number - 1].function;
    pthread_mutex_unlock(&calls->lock);
    return is_there;
}

/* ---- signatures ---- */

static bool is_same_text(const struct marey_calls *calls, uint32_t number, const void *wanted)
{
    const struct marey__calls_text *const a = &calls->texts[number - 1], *const b = wanted;
    return a->function == b->function && a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* The lock is held. */
static uint32_t add_signature(struct marey_calls *calls, struct marey__calls_text wanted)
{
    const size_t cap = calls->texts_cap;
    if (!grow_index(calls, &calls->known) ||
        !marey__grow(&calls->texts, &calls->texts_cap, calls->n_texts + 1, sizeof *calls->texts))
        return 0;
    marey__calls_spend(calls, (calls->texts_cap - cap) * sizeof *calls->texts, true);
    uint32_t *const slot =
        find(calls, &calls->known, hash_of_text(wanted.function, wanted.text, wanted.len),
             is_same_text, &wanted);
    if (*slot != 0)
        return *slot;
    wanted.text = marey__strndup(wanted.text, wanted.len);
    if (wanted.text == NULL)
        return 0;
    marey__calls_spend(calls, wanted.len + 1, true);
    calls->known.n_used++;
    calls->texts[calls->n_texts++] = wanted;
    return *slot = (uint32_t)calls->n_texts;
}

uint32_t marey_calls_signature(struct marey_calls *calls, uint32_t function, const char *text,
                               size_t len, double elements)
{
    pthread_mutex_lock(&calls->lock);
    const uint32_t number =
        add_signature(calls, (struct marey__calls_text){.function = function,
                                                        .text = (char *)(uintptr_t)text,
                                                        .len = len,
                                                        .elements = elements});
    pthread_mutex_unlock(&calls->lock);
    return number;
}

int marey_calls_signature_get(struct marey_calls *calls, uint32_t number, uint32_t *function,
                              const char **text, double *elements)
{
    pthread_mutex_lock(&calls->lock);
    const bool is_there = number != 0 && number <= calls->n_texts;
    if (is_there) {
        const struct marey__calls_text *const found = &calls->texts[number - 1];
        *function = found->function;
        *text = found->text;
        *elements = found->elements;
    }
    pthread_mutex_unlock(&calls->lock);
    return is_there;
}

void marey__calls_names_fini(struct marey_calls *calls)
{
    for (size_t i = 0; i < calls->n_names; i++)
        marey__free((char *)(uintptr_t)calls->names[i].function.name);
    for (size_t i = 0; i < calls->n_texts; i++)
        marey__free(calls->texts[i].text);
    marey__free(calls->names);
    marey__free(calls->texts);
    marey__free(calls->by_texts.slots);
    marey__free(calls->known.slots);
}
