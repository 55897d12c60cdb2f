/*
 * Which values of two steps belong together.
 *
 * Usually both have the same paths. Otherwise something was added or removed, and paths with numbers in them
 * ("ops[12].out") may be shifted. Then the two sequences are aligned as a whole: pairs must not cross, equal paths
 * score more than paths that differ in numbers, and equal digests score more than both. Different paths are paired only
 * with equal digests, or if the numbers are positions and neither side has the other's path. The rest is paired by path
 * again, at any position: so a value that changed its shape is reported as such.
 */
#include <string.h>

#include "tensor/diff/internal.h"

enum {
    SAME_PATH = 2,
    MOVED = 1,
    SAME_DIGEST = 4,
    MAX_CELLS = 1 << 25, /* of the table, a byte each */
};

struct key {
    uint64_t name;   /* tree and path */
    uint64_t family; /* tree, path without digits, type, sizes */
    uint64_t places; /* the same, but only without positions: "[12]", ".12." */
    size_t partner;  /* the value of this name on the other side, or MAREY__DIFF_NONE */
};

struct sequences {
    const struct marey__diff_side *a, *b;
    struct key *keys_a, *keys_b;
    size_t *pair_of_a, *pair_of_b; /* MAREY__DIFF_NONE: none */
};

/* ---- keys ---- */

static uint64_t mix(uint64_t hash, uint64_t part)
{
    hash = (hash ^ part) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Whether the digits from `begin` to `end` are a whole component of the path. */
static bool is_position(const char *path, size_t begin, size_t end)
{
    return (begin == 0 || path[begin - 1] == '.' || path[begin - 1] == '[') &&
           (path[end] == '\0' || path[end] == '.' || path[end] == ']');
}

static uint64_t hash_path(const struct marey_dumped_value *value, bool only_positions)
{
    uint64_t hash = value->tree + 1;
    for (size_t i = 0; value->name[i] != '\0';) {
        size_t end = i;
        while (marey__is_digit(value->name[end]))
            end++;
        if (end > i && (!only_positions || is_position(value->name, i, end))) {
            hash = mix(hash, '#');
            i = end;
            continue;
        }
        for (end = MAREY__MAX(end, i + 1); i < end; i++)
            hash = mix(hash, (unsigned char)value->name[i]);
    }
    return hash;
}

static uint64_t hash_form(uint64_t hash, const struct marey_dumped_value *value)
{
    hash = mix(mix(hash, value->dtype), value->rank);
    for (uint32_t i = 0; value->dtype != MAREY_DTYPE_NONE && i < value->rank; i++)
        hash = mix(hash, (uint64_t)value->sizes[i]);
    return hash;
}

static struct key *make_keys(const struct marey__diff_side *side)
{
    struct key *keys = marey__calloc(side->n + 1, sizeof *keys);
    for (size_t i = 0; keys != NULL && i < side->n; i++) {
        const struct marey_dumped_value *value = &side->values[i];
        keys[i] = (struct key){
            .name = marey__hash_bytes(value->tree, value->name, strlen(value->name)),
            .family = hash_form(hash_path(value, false), value),
            .places = hash_form(hash_path(value, true), value),
            .partner = MAREY__DIFF_NONE,
        };
    }
    return keys;
}

/* ---- by path ---- */

static void find_partner(const struct sequences *s, size_t i, const struct marey__index *names)
{
    const uint32_t hash = (uint32_t)s->keys_a[i].name;
    uint32_t number;
    for (size_t at = hash; (number = marey__index_next(names, hash, &at)) != 0;) {
        struct key *const b = &s->keys_b[number - 1];
        const struct marey_dumped_value *const value = &s->b->values[number - 1];
        if (b->partner == MAREY__DIFF_NONE && value->tree == s->a->values[i].tree &&
            strcmp(value->name, s->a->values[i].name) == 0) {
            s->keys_a[i].partner = number - 1;
            b->partner = i;
            return;
        }
    }
}

/* Finds all partners by name. Returns how many values have one, SIZE_MAX on out of memory. */
static size_t find_partners(const struct sequences *s)
{
    struct marey__index names MAREY__FINALLY(marey__index_fini) = {0};
    size_t n_found = 0;
    for (size_t i = 0; i < s->b->n; i++)
        if (!marey__index_put(&names, (uint32_t)s->keys_b[i].name, (uint32_t)i + 1))
            return SIZE_MAX;
    for (size_t i = 0; i < s->a->n; i++) {
        find_partner(s, i, &names);
        n_found += s->keys_a[i].partner != MAREY__DIFF_NONE;
    }
    return n_found;
}

static void put_pair(const struct sequences *s, size_t i, size_t j)
{
    s->pair_of_a[i] = j;
    s->pair_of_b[j] = i;
}

/* Pairs all unpaired values whose path is on the other side. */
static void pair_by_path(const struct sequences *s)
{
    for (size_t i = 0; i < s->a->n; i++) {
        const size_t j = s->keys_a[i].partner;
        if (j != MAREY__DIFF_NONE && s->pair_of_a[i] == MAREY__DIFF_NONE &&
            s->pair_of_b[j] == MAREY__DIFF_NONE)
            put_pair(s, i, j);
    }
}

/* ---- by order ---- */

static bool same_digest(const struct marey_dumped_value *a, const struct marey_dumped_value *b)
{
    return a->digest != NULL && b->digest != NULL &&
           memcmp(a->digest, b->digest, sizeof *a->digest) == 0;
}

/* The score of a pair; 0: not a pair. */
static int score(const struct sequences *s, size_t i, size_t j)
{
    const struct key *a = &s->keys_a[i], *b = &s->keys_b[j];
    const bool is_equal = same_digest(&s->a->values[i], &s->b->values[j]);
    if (a->family != b->family)
        return 0;
    if (a->partner == j)
        return SAME_PATH + (is_equal ? SAME_DIGEST : 0);
    if (is_equal)
        return MOVED + SAME_DIGEST;
    return a->places == b->places && a->partner == MAREY__DIFF_NONE && b->partner == MAREY__DIFF_NONE
               ? MOVED
               : 0;
}

/* Whether no other pairing of these can score more. */
static bool is_certain(const struct sequences *s, size_t i, size_t j)
{
    const struct marey_dumped_value *a = &s->a->values[i], *b = &s->b->values[j];
    return s->keys_a[i].partner == j && s->keys_a[i].family == s->keys_b[j].family &&
           (a->digest == NULL || b->digest == NULL || same_digest(a, b));
}

struct window {
    size_t begin_a, end_a, begin_b, end_b;
};

enum { SKIP_A = 1, SKIP_B, PAIR };

/* Fills Needleman and Wunsch's table, one row of scores at a time; keeps the directions. */
static void fill_table(const struct sequences *s, const struct window *w, uint32_t *scores,
                       uint8_t *ways)
{
    const size_t n_b = w->end_b - w->begin_b;
    memset(scores, 0, (n_b + 1) * sizeof *scores);
    for (size_t i = 0; i < w->end_a - w->begin_a; i++) {
        uint32_t diagonal = 0; /* from the row above, one to the left */
        for (size_t j = 0; j < n_b; j++) {
            const uint32_t above = scores[j + 1], left = scores[j];
            const int gain = score(s, w->begin_a + i, w->begin_b + j);
            uint32_t best = above;
            uint8_t way = SKIP_A;
            if (left > best) {
                best = left;
                way = SKIP_B;
            }
            if (gain > 0 && diagonal + (uint32_t)gain >= best) {
                best = diagonal + (uint32_t)gain;
                way = PAIR;
            }
            ways[i * n_b + j] = way;
            diagonal = above;
            scores[j + 1] = best;
        }
    }
}

static void walk_back(const struct sequences *s, const struct window *w, const uint8_t *ways)
{
    const size_t n_b = w->end_b - w->begin_b;
    size_t i = w->end_a - w->begin_a, j = n_b;
    while (i > 0 && j > 0) {
        const uint8_t way = ways[(i - 1) * n_b + j - 1];
        if (way == PAIR)
            put_pair(s, w->begin_a + i - 1, w->begin_b + j - 1);
        i -= way != SKIP_B;
        j -= way != SKIP_A;
    }
}

/* Pairs the certain values at both ends. */
static struct window trim(const struct sequences *s)
{
    struct window w = {0, s->a->n, 0, s->b->n};
    while (w.begin_a < w.end_a && w.begin_b < w.end_b && is_certain(s, w.begin_a, w.begin_b))
        put_pair(s, w.begin_a++, w.begin_b++);
    while (w.begin_a < w.end_a && w.begin_b < w.end_b && is_certain(s, w.end_a - 1, w.end_b - 1))
        put_pair(s, --w.end_a, --w.end_b);
    return w;
}

static marey_status align_by_order(const struct sequences *s, bool *was_too_much)
{
    const struct window w = trim(s);
    const size_t n_a = w.end_a - w.begin_a, n_b = w.end_b - w.begin_b;
    if (n_a == 0 || n_b == 0)
        return MAREY_OK;
    if (n_b > MAX_CELLS / n_a) {
        *was_too_much = true;
        return MAREY_OK;
    }
    uint32_t *const scores MAREY__FREED = marey__alloc((n_b + 1) * sizeof *scores);
    uint8_t *const ways MAREY__FREED = marey__alloc(n_a * n_b);
    MAREY__TRY_MEMORY(scores != NULL && ways != NULL);
    fill_table(s, &w, scores, ways);
    walk_back(s, &w, ways);
    return MAREY_OK;
}

/* ---- all ---- */

static void append(struct marey__diff_pairs *out, size_t a, size_t b)
{
    out->list[out->n++] = (struct marey__diff_pair){a, b};
}

/* Appends B's unpaired values up to `end`. */
static void append_unpaired(const struct sequences *s, size_t *next_b, size_t end,
                            struct marey__diff_pairs *out)
{
    for (; *next_b < end; ++*next_b)
        if (s->pair_of_b[*next_b] == MAREY__DIFF_NONE)
            append(out, MAREY__DIFF_NONE, *next_b);
}

/* In A's order; a value that only B has follows its predecessor in B. */
static marey_status list_pairs(const struct sequences *s, struct marey__diff_pairs *out)
{
    size_t next_b = 0;
    MAREY__TRY_MEMORY(marey__grow(&out->list, &out->cap, s->a->n + s->b->n + 1, sizeof *out->list));
    for (size_t i = 0; i < s->a->n; i++) {
        const size_t j = s->pair_of_a[i];
        append_unpaired(s, &next_b, j != MAREY__DIFF_NONE ? j : 0, out);
        append(out, i, j);
    }
    append_unpaired(s, &next_b, s->b->n, out);
    return MAREY_OK;
}

static marey_status align(struct sequences *s, struct marey__diff_pairs *out)
{
    MAREY__TRY_MEMORY(s->keys_a != NULL && s->keys_b != NULL && s->pair_of_a != NULL &&
                      s->pair_of_b != NULL);
    memset(s->pair_of_a, 0xff, s->a->n * sizeof *s->pair_of_a);
    memset(s->pair_of_b, 0xff, s->b->n * sizeof *s->pair_of_b);
    const size_t n_found = find_partners(s);
    if (n_found == SIZE_MAX)
        return marey__no_memory();
    if (n_found != s->a->n || n_found != s->b->n)
        MAREY_TRY(align_by_order(s, &out->by_names));
    pair_by_path(s);
    if (s->a->n == 1 && s->b->n == 1 && (s->a->is_single || s->b->is_single))
        put_pair(s, 0, 0);
    return list_pairs(s, out);
}

marey_status marey__diff_align(const struct marey__diff_side *a, const struct marey__diff_side *b,
                               struct marey__diff_pairs *out)
{
    struct key *const keys_a MAREY__FREED = make_keys(a), *const keys_b MAREY__FREED = make_keys(b);
    size_t *const pair_of_a MAREY__FREED = marey__alloc((a->n + 1) * sizeof *pair_of_a);
    size_t *const pair_of_b MAREY__FREED = marey__alloc((b->n + 1) * sizeof *pair_of_b);
    struct sequences s = {a, b, keys_a, keys_b, pair_of_a, pair_of_b};
    out->n = 0;
    return align(&s, out);
}

void marey__diff_pairs_fini(struct marey__diff_pairs *pairs)
{
    marey__free(pairs->list);
    *pairs = (struct marey__diff_pairs){0};
}
