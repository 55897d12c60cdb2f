/*
 * Places in interpreted code, as numbers. The code may be gone when the flush thread runs, so the strings of a place
 * are copied when it is first seen, on its thread. The table only grows; once it is full, new places are "some other
 * place".
 */
#include <sched.h>
#include <string.h>

#include "instrument/memory/internal.h"

enum { N_TEXTS = 1 << 15, N_SLOTS = 2 * N_TEXTS };

static struct table {
    uint32_t is_locked;
    uint32_t n; /* assigned numbers, from 1. Release; the flush thread loads it with acquire */
    struct {
        struct marey_memory_place place;
        uint32_t number; /* 0: empty */
    } slots[N_SLOTS];
    struct marey__memory_text texts[N_TEXTS];
} * table;

static const struct marey_memory_interpreter *interpreter; /* release, set once */

void marey_memory_set_interpreter(const struct marey_memory_interpreter *it)
{
    const struct marey_memory_interpreter *none = NULL;
    __atomic_compare_exchange_n(&interpreter, &none, it, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

const struct marey_memory_interpreter *marey__memory_interpreter(void)
{
    return __atomic_load_n(&interpreter, __ATOMIC_ACQUIRE);
}

bool marey__places_open(void)
{
    if (table == NULL)
        table = marey__memory_map(sizeof *table);
    return table != NULL;
}

static size_t hash_of(const struct marey_memory_place *place)
{
    const uint64_t key = (uint64_t)(uintptr_t)place->code ^ (uint64_t)(uint32_t)place->at << 40;
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 40);
}

static bool is_same(const struct marey_memory_place *a, const struct marey_memory_place *b)
{
    return a->code == b->code && a->at == b->at && a->name == b->name && a->file == b->file &&
           a->first_line == b->first_line;
}

/* Caller holds the lock. */
static uint32_t number_of(const struct marey_memory_place *place)
{
    size_t i = hash_of(place) % N_SLOTS;
    for (; table->slots[i].number != 0; i = (i + 1) % N_SLOTS)
        if (is_same(&table->slots[i].place, place))
            return table->slots[i].number;
    if (table->n + 1 >= N_TEXTS)
        return 0;
    struct marey__memory_text *const text = &table->texts[table->n + 1];
    interpreter->describe(place, text->name, sizeof text->name, text->file, sizeof text->file,
                          &text->line);
    table->slots[i].place = *place;
    table->slots[i].number = table->n + 1;
    __atomic_store_n(&table->n, table->n + 1, __ATOMIC_RELEASE);
    return table->n;
}

size_t marey__places_now(uint32_t *out, size_t n)
{
    struct marey_memory_place places[MAREY__MEMORY_PLACES];
    const struct marey_memory_interpreter *const it = marey__memory_interpreter();
    if (it == NULL || table == NULL)
        return 0;
    n = it->places(places, MAREY__MIN(n, (size_t)MAREY__MEMORY_PLACES));
    if (n == 0)
        return 0;
    while (__atomic_exchange_n(&table->is_locked, 1, __ATOMIC_ACQUIRE) != 0)
        sched_yield();
    for (size_t i = 0; i < n; i++)
        out[i] = number_of(&places[i]);
    __atomic_store_n(&table->is_locked, 0, __ATOMIC_RELEASE);
    return n;
}

const struct marey__memory_text *marey__place_text(uint32_t number)
{
    static const struct marey__memory_text other = {.name = "(some other place)"};
    return number != 0 && number <= __atomic_load_n(&table->n, __ATOMIC_ACQUIRE)
               ? &table->texts[number]
               : &other;
}
