/* Functions and signatures by number, found by their strings. */
#include <string.h>

#include "instrument/calls/internal.h"

static uint64_t hash_text(uint64_t seed, const char *text)
{
    return marey__hash_bytes(seed, text, strlen(text));
}

static uint32_t hash_of_name(const struct marey_calls_function *f)
{
    const uint64_t hash = hash_text(hash_text(f->line, f->name), f->qualified);
    return (uint32_t)hash_text(hash_text(hash, f->file), f->module);
}

/* Charges the growth of the index to the budget. Returns false on out of memory. */
static bool put(struct marey_calls *calls, struct marey__index *index, uint32_t hash, uint32_t number)
{
    const size_t n_slots = index->n_slots;
    const bool is_put = marey__index_put(index, hash, number);
    marey__calls_spend(calls, (index->n_slots - n_slots) * sizeof *index->slots, true);
    return is_put;
}

/* ---- functions ---- */

static const char *text_of(const char *text)
{
    return text != NULL ? text : "";
}

static bool is_same_name(const struct marey_calls_function *a, const struct marey_calls_function *b)
{
    return a->line == b->line && a->kind == b->kind && strcmp(a->name, b->name) == 0 &&
           strcmp(a->qualified, b->qualified) == 0 && strcmp(a->file, b->file) == 0 &&
           strcmp(a->module, b->module) == 0;
}

/* Copies a function's strings into one allocation, which begins with the name. */
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

/* Caller holds the lock. */
static uint32_t add_function(struct marey_calls *calls, const struct marey_calls_function *wanted)
{
    const size_t cap = calls->names_cap;
    const uint32_t hash = hash_of_name(wanted);
    uint32_t number;
    for (size_t at = hash; (number = marey__index_next(&calls->by_texts, hash, &at)) != 0;)
        if (calls->names[number - 1].is_released &&
            is_same_name(&calls->names[number - 1].function, wanted)) {
            calls->names[number - 1].is_released = false;
            return number;
        }
    struct marey__calls_name name = {0};
    if (!marey__grow(&calls->names, &calls->names_cap, calls->n_names + 1, sizeof *calls->names) ||
        !copy_texts(calls, wanted, &name.function))
        return 0;
    marey__calls_spend(calls, (calls->names_cap - cap) * sizeof *calls->names, true);
    number = (uint32_t)calls->n_names + 1;
    if (!put(calls, &calls->by_texts, hash, number)) {
        marey__free((char *)name.function.name);
        return 0;
    }
    calls->names[calls->n_names++] = name;
    return number;
}

uint32_t marey_calls_define(struct marey_calls *calls, const struct marey_calls_function *function)
{
    struct marey_calls_function wanted = *function;
    wanted.name = text_of(wanted.name);
    wanted.qualified = text_of(wanted.qualified);
    wanted.file = text_of(wanted.file);
    wanted.module = text_of(wanted.module);
    MAREY__HOLD(&calls->lock);
    return add_function(calls, &wanted);
}

void marey_calls_release_function(struct marey_calls *calls, uint32_t function)
{
    MAREY__HOLD(&calls->lock);
    if (function != 0 && function <= calls->n_names)
        calls->names[function - 1].is_released = true;
}

int marey_calls_function_get(struct marey_calls *calls, uint32_t number,
                             struct marey_calls_function *out)
{
    MAREY__HOLD(&calls->lock);
    const bool is_there = number != 0 && number <= calls->n_names;
    if (is_there)
        *out = calls->names[number - 1].function;
    return is_there;
}

/* ---- signatures ---- */

/* Caller holds the lock. */
static uint32_t add_signature(struct marey_calls *calls, struct marey__calls_text wanted)
{
    const size_t cap = calls->texts_cap;
    const uint32_t hash = (uint32_t)marey__hash_bytes(wanted.function, wanted.text, wanted.len);
    uint32_t number;
    for (size_t at = hash; (number = marey__index_next(&calls->known, hash, &at)) != 0;) {
        const struct marey__calls_text *const text = &calls->texts[number - 1];
        if (text->function == wanted.function && text->len == wanted.len &&
            memcmp(text->text, wanted.text, wanted.len) == 0)
            return number;
    }
    number = (uint32_t)calls->n_texts + 1;
    if (!marey__grow(&calls->texts, &calls->texts_cap, calls->n_texts + 1, sizeof *calls->texts))
        return 0;
    marey__calls_spend(calls, (calls->texts_cap - cap) * sizeof *calls->texts, true);
    wanted.text = marey__strndup(wanted.text, wanted.len);
    if (wanted.text == NULL || !put(calls, &calls->known, hash, number)) {
        marey__free(wanted.text);
        return 0;
    }
    marey__calls_spend(calls, wanted.len + 1, true);
    calls->texts[calls->n_texts++] = wanted;
    return number;
}

uint32_t marey_calls_signature(struct marey_calls *calls, uint32_t function, const char *text,
                               size_t len, double elements)
{
    const struct marey__calls_text wanted = {function, (char *)(uintptr_t)text, len, elements};
    MAREY__HOLD(&calls->lock);
    return add_signature(calls, wanted);
}

int marey_calls_signature_get(struct marey_calls *calls, uint32_t number, uint32_t *function,
                              const char **text, double *elements)
{
    MAREY__HOLD(&calls->lock);
    if (number == 0 || number > calls->n_texts)
        return 0;
    const struct marey__calls_text *const found = &calls->texts[number - 1];
    *function = found->function;
    *text = found->text;
    *elements = found->elements;
    return 1;
}

void marey__calls_names_fini(struct marey_calls *calls)
{
    for (size_t i = 0; i < calls->n_names; i++)
        marey__free((char *)(uintptr_t)calls->names[i].function.name);
    for (size_t i = 0; i < calls->n_texts; i++)
        marey__free(calls->texts[i].text);
    MAREY__FREE_ALL(calls->names, calls->texts);
    marey__index_fini(&calls->by_texts);
    marey__index_fini(&calls->known);
}
