/* The dumper's API: values come in here and leave as steps. dump_switch.c switches it on and off. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "instrument/dump/internal.h"

struct marey__dump marey__dump = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                  .work = PTHREAD_COND_INITIALIZER,
                                  .done = PTHREAD_COND_INITIALIZER,
                                  .room = PTHREAD_COND_INITIALIZER,
                                  .place_lock = PTHREAD_MUTEX_INITIALIZER};

static struct marey__dump *const dump = &marey__dump;

/* ---- which steps ---- */

static bool is_selected(uint64_t count)
{
    const struct marey_dump_options *const o = &dump->options;
    return count >= o->first && (o->last == 0 || count <= o->last) &&
           (o->every <= 1 || (count - o->first) % o->every == 0);
}

void marey__dump_set_step(uint64_t count)
{
    __atomic_store_n(&dump->count, count, __ATOMIC_RELAXED);
    __atomic_store_n(&dump->is_wanted, is_selected(count), __ATOMIC_RELAXED);
}

int marey_dump_is_wanted(void)
{
    return marey_dump_is_enabled() && __atomic_load_n(&dump->is_wanted, __ATOMIC_RELAXED) != 0;
}

uint64_t marey_dump_count(void)
{
    return __atomic_load_n(&dump->count, __ATOMIC_RELAXED);
}

void marey_dump_set_count(uint64_t count)
{
    MAREY__HOLD(&dump->lock);
    marey__dump_set_step(count);
}

/* ---- adding ---- */

static void count_one(uint64_t *what)
{
    MAREY__HOLD(&dump->lock);
    ++*what;
}

/* Handles a value for which the memory budget has no room now or later. */
static marey_status do_without(struct marey__dump_item *item)
{
    if (dump->options.policy == MAREY_DUMP_FALL_TO_STATS && !item->is_of_gpu) {
        count_one(&dump->counts.n_only_stats);
        return marey__dump_item_measure(item, MAREY__MEASURE_STATS | MAREY__MEASURE_DIGEST);
    }
    item->missing = "dropped";
    count_one(&dump->counts.n_dropped);
    return MAREY_OK;
}

/* Data whose ownership was passed stay in place. With policy block, a step over the budget continues in files. */
static marey_status keep_data(struct marey__dump_item *item, const struct marey_dump_value *value,
                              bool *is_away)
{
    *is_away = false;
    if (marey__dump_reserve(item->n_bytes))
        item->n_counted = item->n_bytes;
    else if (dump->options.policy == MAREY_DUMP_BLOCK)
        item->is_spilled = true;
    else
        return do_without(item);
    *is_away = item->is_of_gpu;
    if (item->is_of_gpu)
        return marey__dump_gpu_take(item, 0);
    if (value->release == NULL || item->strides != NULL || item->is_spilled)
        return marey__dump_item_copy(item);
    item->value.tensor.strides = NULL;
    item->value.release = value->release;
    return MAREY_OK;
}

/* For a GPU tensor: once the copy is started (`*is_away`), the item belongs to another thread until it arrives. */
static marey_status keep(struct marey__dump_item *item, const struct marey_dump_value *value,
                         bool *is_away)
{
    const enum marey_dump_mode mode = dump->options.mode;
    const uint32_t measures = mode == MAREY_DUMP_STATS ? MAREY__MEASURE_STATS : MAREY__MEASURE_DIGEST;
    if (mode == MAREY_DUMP_FULL || item->value.type != MAREY_DUMP_CONTAINER)
        return item->n_bytes > 0 ? keep_data(item, value, is_away) : MAREY_OK;
    *is_away = item->is_of_gpu && item->n_bytes > 0;
    return *is_away ? marey__dump_gpu_take(item, measures) : marey__dump_item_measure(item, measures);
}

/* Copies lent data and takes owned data. */
static void take_data(struct marey__dump_item *item, const struct marey_dump_value *value)
{
    if (item->value.kind != MAREY_DUMP_TENSOR)
        return;
    item->is_of_gpu = item->value.tensor.memory == MAREY_MEMORY_CUDA;
    bool is_away = false;
    const marey_status st = keep(item, value, &is_away);
    if (is_away && st == MAREY_OK)
        return;
    if (st != MAREY_OK) {
        marey__say("dump: a tensor is missing: %s", marey_last_error());
        item->missing = item->is_of_gpu ? "gpu" : "memory";
        count_one(&dump->counts.n_failed);
    }
    if (item->copy == NULL && item->value.release == NULL)
        item->value.tensor.data = NULL;
    item->value.tensor.strides = NULL;
    item->value.tensor.memory = MAREY_MEMORY_HOST;
}

/* Adds a filled item to the step. */
static marey_status insert(struct marey__dump_item *item, const struct marey_dump_part *parts,
                           size_t n_parts)
{
    MAREY__HOLD(&dump->lock);
    if (dump->now == NULL)
        dump->now = marey__dump_step_create();
    MAREY__TRY_MEMORY(dump->now != NULL);
    MAREY_TRY(marey__dump_tree_put(&dump->now->trees[item->tree], parts, n_parts, item->value.kind,
                                   &item->node));
    item->seq = dump->seq++;
    marey__dump_step_put(dump->now, item);
    return MAREY_OK;
}

/* Out of memory is reported once and counted; the program gets no error. */
static marey_status forgive(marey_status st)
{
    if (st != MAREY_ENOMEM)
        return st;
    marey__say("dump: a value is missing: %s", marey_last_error());
    count_one(&dump->counts.n_failed);
    return MAREY_OK;
}

static marey_status add(enum marey_dump_tree tree, const struct marey_dump_part *parts,
                        size_t n_parts, const struct marey_dump_value *value, bool *is_handed_over)
{
    struct marey__dump_item *item = NULL;
    marey_status st = marey__dump_item_create(value, &item);
    if (st != MAREY_OK)
        return forgive(st);
    item->tree = tree;
    take_data(item, value);
    *is_handed_over = item->value.release != NULL;
    st = insert(item, parts, n_parts);
    if (st == MAREY_OK)
        return MAREY_OK;
    marey__dump_item_done(item);
    marey__dump_item_destroy(item);
    return forgive(st);
}

marey_status marey_dump_put_on(enum marey_dump_tree tree, const struct marey_dump_part *parts,
                               size_t n_parts, const struct marey_dump_value *value)
{
    bool is_handed_over = false;
    marey_status st = MAREY_OK;
    if ((unsigned)tree > MAREY_DUMP_GRADIENTS)
        st = marey__fail(MAREY_EINVAL, "tree %d is none of those marey/dump.h names", (int)tree);
    else if (marey_dump_is_wanted())
        st = add(tree, parts, n_parts, value, &is_handed_over);
    if (value->release != NULL && !is_handed_over)
        value->release(value->owner);
    return st;
}

marey_status marey_dump_add_on(const char *path, const struct marey_tensor *tensor)
{
    size_t n_parts = 1;
    for (const char *c = path; *c != '\0'; c++)
        n_parts += *c == '.';
    struct marey__dump_path split MAREY__FINALLY(marey__dump_path_fini) = {0};
    marey__dump_path_init(&split, n_parts);
    if (split.parts == NULL)
        return forgive(marey__no_memory());
    for (size_t i = 0; i < n_parts; i++) {
        const size_t len = strcspn(path, ".");
        split.parts[i] = (struct marey_dump_part){.key = path, .key_len = len};
        path += len + 1;
    }
    return marey_dump_put_on(MAREY_DUMP_TENSORS, split.parts, n_parts,
                             &(struct marey_dump_value){.kind = MAREY_DUMP_TENSOR, .tensor = *tensor});
}

/* ---- pending values ---- */

/* Waits until nobody visits the current step. Caller holds the lock, which is released meanwhile. */
static void wait_for_visitors(void)
{
    while (dump->n_visitors > 0)
        pthread_cond_wait(&dump->done, &dump->lock);
}

uint64_t marey_dump_pending(enum marey_dump_tree tree)
{
    MAREY__HOLD(&dump->lock);
    return dump->now != NULL ? dump->now->n_items[tree == MAREY_DUMP_GRADIENTS] : 0;
}

void marey_dump_retype(enum marey_dump_tree tree, enum marey_dump_type type)
{
    MAREY__HOLD(&dump->lock);
    wait_for_visitors();
    if (dump->now != NULL && type != MAREY_DUMP_PICKLE && (unsigned)type < MAREY_N_DUMP_TYPES)
        for (struct marey__dump_item *item = dump->now->first; item != NULL; item = item->next)
            if (item->tree == tree && item->value.kind == MAREY_DUMP_TENSOR)
                item->value.type = type;
}

void marey_dump_clear(enum marey_dump_tree tree)
{
    struct marey__dump_item *item = NULL;
    pthread_mutex_lock(&dump->lock);
    wait_for_visitors();
    if (dump->now != NULL && (unsigned)tree <= MAREY_DUMP_GRADIENTS)
        item = marey__dump_step_take(dump->now, tree);
    pthread_mutex_unlock(&dump->lock);
    for (struct marey__dump_item *next; item != NULL; item = next) {
        next = item->next;
        marey__dump_item_done(item);
        marey__dump_item_destroy(item);
    }
}

/* Visits one item; it stays unchanged while there are visitors. */
static marey_status show(const struct marey__dump_step *step, struct marey__dump_item *item,
                         marey_dump_visit *visit, void *ctx, int *goes_on)
{
    struct marey__dump_path path MAREY__FINALLY(marey__dump_path_fini) = {0};
    marey__dump_await(item);
    pthread_mutex_lock(&dump->lock); /* another thread may be adding */
    marey__dump_item_path(step, item, &path);
    pthread_mutex_unlock(&dump->lock);
    MAREY__TRY_MEMORY(path.parts != NULL);
    struct marey_dump_entry entry = {
        .tree = item->tree, .parts = path.parts, .n_parts = path.n_parts, .value = item->value};
    entry.value.image = item->image;
    entry.value.release = NULL;
    *goes_on = visit(ctx, &entry);
    return MAREY_OK;
}

marey_status marey_dump_visit_pending(marey_dump_visit *visit, void *ctx)
{
    marey_status st = MAREY_OK;
    int goes_on = 1;
    pthread_mutex_lock(&dump->lock);
    dump->n_visitors++;
    const struct marey__dump_step *const step = dump->now;
    struct marey__dump_item *item = step != NULL ? step->first : NULL;
    pthread_mutex_unlock(&dump->lock);
    while (item != NULL && goes_on && st == MAREY_OK) {
        st = show(step, item, visit, ctx, &goes_on);
        MAREY__HOLD(&dump->lock);
        item = item->next;
    }
    MAREY__HOLD(&dump->lock);
    dump->n_visitors--;
    pthread_cond_broadcast(&dump->done);
    return st;
}

/* ---- steps ---- */

marey_status marey__dump_take_failure(void)
{
    if (dump->failure[0] == '\0')
        return MAREY_OK;
    const marey_status st = marey__fail(MAREY_EIO, "%s", dump->failure);
    dump->failure[0] = '\0';
    return st;
}

struct marey__dump_step *marey__dump_end_step(int rank, int world)
{
    struct marey__dump_step *step = dump->now;
    dump->now = NULL;
    dump->seq = 0;
    if (step == NULL && dump->is_wanted)
        step = marey__dump_step_create();
    if (step == NULL)
        return NULL;
    step->reason = dump->reason;
    dump->reason = NULL;
    step->number = dump->count;
    step->rank = rank;
    step->world = world;
    return step;
}

marey_status marey_dump_flush(uint64_t *count)
{
    int rank, world;
    if (!marey_dump_is_enabled())
        return MAREY_OK;
    marey_rank_get(&rank, &world);
    pthread_mutex_lock(&dump->lock);
    wait_for_visitors();
    struct marey__dump_step *const step = marey__dump_end_step(rank, world);
    const bool has_thread = step == NULL || marey__dump_queue(step);
    marey__dump_set_step(dump->count + 1);
    if (count != NULL)
        *count = dump->count;
    const marey_status st = marey__dump_take_failure();
    pthread_mutex_unlock(&dump->lock);
    if (!has_thread)
        marey__dump_write_here();
    return st;
}

marey_status marey_dump_wait(void)
{
    marey__dump_drain(0);
    MAREY__HOLD(&dump->lock);
    return marey__dump_take_failure();
}

marey_status marey_dump_trigger(const char *reason)
{
    if (!marey_dump_is_enabled())
        return MAREY_OK;
    char *const kept = marey__strndup(reason, strlen(reason));
    pthread_mutex_lock(&dump->lock);
    marey__free(dump->reason);
    dump->reason = kept;
    pthread_mutex_unlock(&dump->lock);
    marey__dump_drain(0);
    return marey__dump_flight_publish(reason);
}

void marey_dump_counts_get(struct marey_dump_counts *out)
{
    MAREY__HOLD(&dump->lock);
    *out = dump->counts;
}

const char *marey_dump_dir(void)
{
    return dump->dir;
}
