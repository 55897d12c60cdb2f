/* The API of the dumper: values come in here, and leave as steps. On and off is in dump_switch.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dump/dump_internal.h"

struct kymo__dump kymo__dump = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                .work = PTHREAD_COND_INITIALIZER,
                                .gpu_work = PTHREAD_COND_INITIALIZER,
                                .measure_work = PTHREAD_COND_INITIALIZER,
                                .done = PTHREAD_COND_INITIALIZER,
                                .room = PTHREAD_COND_INITIALIZER,
                                .place_lock = PTHREAD_MUTEX_INITIALIZER};

static struct kymo__dump *const dump = &kymo__dump;

/* ---- which steps ---- */

bool kymo__dump_selects(uint64_t count)
{
    const struct kymo_dump_options *const o = &dump->options;
    return count >= o->first && (o->last == 0 || count <= o->last) &&
           (o->every <= 1 || (count - o->first) % o->every == 0);
}

void kymo__dump_set_step(uint64_t count)
{
    __atomic_store_n(&dump->count, count, __ATOMIC_RELAXED);
    __atomic_store_n(&dump->is_wanted, kymo__dump_selects(count), __ATOMIC_RELAXED);
}

int kymo_dump_is_wanted(void)
{
    return kymo_dump_is_enabled() && __atomic_load_n(&dump->is_wanted, __ATOMIC_RELAXED) != 0;
}

uint64_t kymo_dump_count(void)
{
    return __atomic_load_n(&dump->count, __ATOMIC_RELAXED);
}

void kymo_dump_set_count(uint64_t count)
{
    pthread_mutex_lock(&dump->lock);
    kymo__dump_set_step(count);
    pthread_mutex_unlock(&dump->lock);
}

/* ---- adding ---- */

static void count_one(uint64_t *what)
{
    pthread_mutex_lock(&dump->lock);
    ++*what;
    pthread_mutex_unlock(&dump->lock);
}

/* No room in memory, and no use in waiting for it. */
static kymo_status do_without(struct kymo__dump_item *item)
{
    if (dump->options.policy == KYMO_DUMP_FALL_TO_STATS && !item->is_of_gpu) {
        count_one(&dump->counts.n_only_stats);
        return kymo__dump_item_measure(item, KYMO__MEASURE_STATS | KYMO__MEASURE_DIGEST);
    }
    item->missing = "dropped";
    count_one(&dump->counts.n_dropped);
    return KYMO_OK;
}

/* Of a GPU: once it is sent for, the item is another thread's until it is back. */
static kymo_status send_for(struct kymo__dump_item *item, uint32_t measures, bool *is_away)
{
    const kymo_status st = kymo__dump_gpu_take(item, measures);
    *is_away = st == KYMO_OK;
    return st;
}

/*
 * Data that are handed over and lie as they are written stay where they are. A step that is larger than the budget goes on
 * in files, where the policy is to keep everything.
 */
static kymo_status keep_data(struct kymo__dump_item *item, const struct kymo_dump_value *value,
                             bool *is_away)
{
    if (kymo__dump_reserve(item->n_bytes))
        item->n_counted = item->n_bytes;
    else if (dump->options.policy == KYMO_DUMP_BLOCK)
        item->is_spilled = true;
    else
        return do_without(item);
    if (item->is_of_gpu)
        return send_for(item, 0, is_away);
    if (value->release == NULL || item->strides != NULL || item->is_spilled)
        return kymo__dump_item_copy(item);
    item->value.tensor.strides = NULL;
    item->value.release = value->release;
    return KYMO_OK;
}

static kymo_status keep(struct kymo__dump_item *item, const struct kymo_dump_value *value,
                        bool *is_away)
{
    const enum kymo_dump_mode mode = dump->options.mode;
    const uint32_t measures = mode == KYMO_DUMP_STATS ? KYMO__MEASURE_STATS : KYMO__MEASURE_DIGEST;
    if (mode == KYMO_DUMP_FULL || item->value.type != KYMO_DUMP_CONTAINER)
        return item->n_bytes > 0 ? keep_data(item, value, is_away) : KYMO_OK;
    return item->is_of_gpu && item->n_bytes > 0 ? send_for(item, measures, is_away)
                                                : kymo__dump_item_measure(item, measures);
}

/* Nothing is left of what the program lent, but what it handed over. */
static void take_data(struct kymo__dump_item *item, const struct kymo_dump_value *value)
{
    if (item->value.kind != KYMO_DUMP_TENSOR)
        return;
    item->is_of_gpu = item->value.tensor.memory == KYMO_MEMORY_CUDA;
    bool is_away = false;
    const kymo_status st = keep(item, value, &is_away);
    if (is_away)
        return;
    if (st != KYMO_OK) {
        kymo__say("dump: a tensor is missing: %s", kymo_last_error());
        item->missing = item->is_of_gpu ? "gpu" : "memory";
        count_one(&dump->counts.n_failed);
    }
    if (item->copy == NULL && item->value.release == NULL)
        item->value.tensor.data = NULL;
    item->value.tensor.strides = NULL;
    item->value.tensor.memory = KYMO_MEMORY_HOST;
}

/* Put a filled item into the step. */
static kymo_status insert(struct kymo__dump_item *item, const struct kymo_dump_part *parts,
                          size_t n_parts)
{
    kymo_status st = KYMO_OK;
    pthread_mutex_lock(&dump->lock);
    if (dump->now == NULL)
        dump->now = kymo__dump_step_create();
    if (dump->now == NULL)
        st = kymo__fail(KYMO_ENOMEM, "no memory for a step of the dump");
    else
        st = kymo__dump_tree_put(&dump->now->trees[item->tree], parts, n_parts, item->value.kind,
                                 &item->node);
    if (st == KYMO_OK) {
        item->seq = dump->seq++;
        kymo__dump_step_put(dump->now, item);
    }
    pthread_mutex_unlock(&dump->lock);
    return st;
}

/* What memory refuses is told once and counted; it is no mistake of the program's. */
static kymo_status forgive(kymo_status st)
{
    if (st != KYMO_ENOMEM)
        return st;
    kymo__say("dump: a value is missing: %s", kymo_last_error());
    count_one(&dump->counts.n_failed);
    return KYMO_OK;
}

static kymo_status add(enum kymo_dump_tree tree, const struct kymo_dump_part *parts, size_t n_parts,
                       const struct kymo_dump_value *value, bool *is_handed_over)
{
    struct kymo__dump_item *item = NULL;
    kymo_status st = kymo__dump_item_create(value, &item);
    if (st != KYMO_OK)
        return forgive(st);
    item->tree = tree;
    take_data(item, value);
    *is_handed_over = item->value.release != NULL;
    st = insert(item, parts, n_parts);
    if (st == KYMO_OK)
        return KYMO_OK;
    kymo__dump_item_done(item);
    kymo__dump_item_destroy(item);
    return forgive(st);
}

kymo_status kymo_dump_put_on(enum kymo_dump_tree tree, const struct kymo_dump_part *parts,
                             size_t n_parts, const struct kymo_dump_value *value)
{
    bool is_handed_over = false;
    kymo_status st = KYMO_OK;
    if ((unsigned)tree > KYMO_DUMP_GRADIENTS)
        st = kymo__fail(KYMO_EINVAL, "tree %d is none of those kymo/dump.h names", (int)tree);
    else if (kymo_dump_is_wanted())
        st = add(tree, parts, n_parts, value, &is_handed_over);
    if (value->release != NULL && !is_handed_over)
        value->release(value->owner);
    return st;
}

kymo_status kymo_dump_add_on(const char *path, const struct kymo_tensor *tensor)
{
    size_t n_parts = 1;
    for (const char *c = path; *c != '\0'; c++)
        n_parts += *c == '.';
    struct kymo_dump_part few[KYMO__FEW_PARTS] = {{0}}, *parts = few;
    if (n_parts > KYMO__FEW_PARTS)
        parts = kymo__alloc(n_parts * sizeof *parts);
    if (parts == NULL)
        return forgive(kymo__fail(KYMO_ENOMEM, "no memory for a path of %zu parts", n_parts));
    for (size_t i = 0; i < n_parts; i++) {
        const size_t len = strcspn(path, ".");
        parts[i] = (struct kymo_dump_part){.key = path, .key_len = len};
        path += len + 1;
    }
    const kymo_status st =
        kymo_dump_put_on(KYMO_DUMP_TENSORS, parts, n_parts,
                         &(struct kymo_dump_value){.kind = KYMO_DUMP_TENSOR, .tensor = *tensor});
    if (parts != few)
        kymo__free(parts);
    return st;
}

/* ---- what waits ---- */

/* Nobody looks at the step under way. The lock is held, and given up meanwhile. */
static void wait_for_visitors(void)
{
    while (dump->n_visitors > 0)
        pthread_cond_wait(&dump->done, &dump->lock);
}

uint64_t kymo_dump_pending(enum kymo_dump_tree tree)
{
    pthread_mutex_lock(&dump->lock);
    const uint64_t n = dump->now != NULL ? dump->now->n_items[tree == KYMO_DUMP_GRADIENTS] : 0;
    pthread_mutex_unlock(&dump->lock);
    return n;
}

void kymo_dump_retype(enum kymo_dump_tree tree, enum kymo_dump_type type)
{
    pthread_mutex_lock(&dump->lock);
    wait_for_visitors();
    if (dump->now != NULL && type != KYMO_DUMP_PICKLE && (unsigned)type < KYMO_N_DUMP_TYPES)
        for (struct kymo__dump_item *item = dump->now->first; item != NULL; item = item->next)
            if (item->tree == tree && item->value.kind == KYMO_DUMP_TENSOR)
                item->value.type = type;
    pthread_mutex_unlock(&dump->lock);
}

void kymo_dump_clear(enum kymo_dump_tree tree)
{
    struct kymo__dump_item *item = NULL;
    pthread_mutex_lock(&dump->lock);
    wait_for_visitors();
    if (dump->now != NULL && (unsigned)tree <= KYMO_DUMP_GRADIENTS)
        item = kymo__dump_step_take(dump->now, tree);
    pthread_mutex_unlock(&dump->lock);
    for (struct kymo__dump_item *next; item != NULL; item = next) {
        next = item->next;
        kymo__dump_item_done(item);
        kymo__dump_item_destroy(item);
    }
}

/* Show one; what it shows stays while there are visitors. */
static kymo_status show(const struct kymo__dump_step *step, struct kymo__dump_item *item,
                        kymo_dump_visit *visit, void *ctx, int *goes_on)
{
    struct kymo_dump_part few[KYMO__FEW_PARTS];
    kymo__dump_await(item);
    struct kymo_dump_entry entry = {.tree = item->tree, .value = item->value};
    pthread_mutex_lock(&dump->lock); /* another thread may be adding */
    struct kymo_dump_part *const parts = kymo__dump_item_path(step, item, few, &entry.n_parts);
    pthread_mutex_unlock(&dump->lock);
    if (parts == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for a path of %zu parts", entry.n_parts);
    entry.parts = parts;
    entry.value.image = item->image;
    entry.value.release = NULL;
    *goes_on = visit(ctx, &entry);
    if (parts != few)
        kymo__free(parts);
    return KYMO_OK;
}

kymo_status kymo_dump_visit_pending(kymo_dump_visit *visit, void *ctx)
{
    kymo_status st = KYMO_OK;
    int goes_on = 1;
    pthread_mutex_lock(&dump->lock);
    dump->n_visitors++;
    const struct kymo__dump_step *const step = dump->now;
    struct kymo__dump_item *item = step != NULL ? step->first : NULL;
    pthread_mutex_unlock(&dump->lock);
    while (item != NULL && goes_on && st == KYMO_OK) {
        st = show(step, item, visit, ctx, &goes_on);
        pthread_mutex_lock(&dump->lock);
        item = item->next;
        pthread_mutex_unlock(&dump->lock);
    }
    pthread_mutex_lock(&dump->lock);
    dump->n_visitors--;
    pthread_cond_broadcast(&dump->done);
    pthread_mutex_unlock(&dump->lock);
    return st;
}

/* ---- steps ---- */

/* The sentence of what could not be written, once. The lock is held. */
kymo_status kymo__dump_take_failure(void)
{
    if (dump->failure[0] == '\0')
        return KYMO_OK;
    const kymo_status st = kymo__fail(KYMO_EIO, "%s", dump->failure);
    dump->failure[0] = '\0';
    return st;
}

struct kymo__dump_step *kymo__dump_end_step(int rank, int world)
{
    struct kymo__dump_step *step = dump->now;
    dump->now = NULL;
    dump->seq = 0;
    if (step == NULL && dump->is_wanted)
        step = kymo__dump_step_create();
    if (step == NULL)
        return NULL;
    step->reason = dump->reason;
    dump->reason = NULL;
    step->number = dump->count;
    step->rank = rank;
    step->world = world;
    return step;
}

kymo_status kymo_dump_flush(uint64_t *count)
{
    int rank, world;
    if (!kymo_dump_is_enabled())
        return KYMO_OK;
    kymo_rank_get(&rank, &world);
    pthread_mutex_lock(&dump->lock);
    wait_for_visitors();
    struct kymo__dump_step *const step = kymo__dump_end_step(rank, world);
    const bool has_thread = step == NULL || kymo__dump_queue(step);
    kymo__dump_set_step(dump->count + 1);
    if (count != NULL)
        *count = dump->count;
    const kymo_status st = kymo__dump_take_failure();
    pthread_mutex_unlock(&dump->lock);
    if (!has_thread)
        kymo__dump_write_here();
    return st;
}

kymo_status kymo_dump_wait(void)
{
    kymo__dump_drain(0);
    pthread_mutex_lock(&dump->lock);
    const kymo_status st = kymo__dump_take_failure();
    pthread_mutex_unlock(&dump->lock);
    return st;
}

kymo_status kymo_dump_trigger(const char *reason)
{
    if (!kymo_dump_is_enabled())
        return KYMO_OK;
    char *const kept = kymo__strndup(reason, strlen(reason));
    pthread_mutex_lock(&dump->lock);
    kymo__free(dump->reason);
    dump->reason = kept;
    pthread_mutex_unlock(&dump->lock);
    kymo__dump_drain(0);
    return kymo__dump_flight_publish(reason);
}

void kymo_dump_counts_get(struct kymo_dump_counts *out)
{
    pthread_mutex_lock(&dump->lock);
    *out = dump->counts;
    pthread_mutex_unlock(&dump->lock);
}

const char *kymo_dump_dir(void)
{
    return dump->dir;
}
