/*
 * Bytes of GPU activity, and how a kernel was launched. A recording has the launch as fields of the record; in earlier
 * versions as JSON in the name of a site that many kernels share; an imported trace as JSON arguments of each kernel.
 */
#include "analyze/device/internal.h"
#include "codec/internal.h"

/* ---- shapes ---- */

/* A count; 0 if it is not a valid one. */
static uint64_t whole_of(double number)
{
    return number >= 0 && number < 9007199254740992.0 ? (uint64_t)number : 0;
}

/* Read the next array into three numbers. */
static bool read_three(struct marey__json *json, uint64_t out[3])
{
    enum marey__json_token token = marey__json_next(json);
    if (token != MAREY__JSON_ARRAY)
        return marey__json_skip_from(json, token);
    for (size_t i = 0; marey__json_next_item(json, &token); i++) {
        if (token == MAREY__JSON_NUMBER && i < 3)
            out[i] = whole_of(marey__json_number(json, token));
        else if (!marey__json_skip_from(json, token))
            return false;
    }
    return json->mistake == NULL;
}

static bool read_one(struct marey__json *json, uint64_t *out)
{
    const enum marey__json_token token = marey__json_next(json);
    if (token == MAREY__JSON_NUMBER)
        *out = whole_of(marey__json_number(json, token));
    return marey__json_skip_from(json, token);
}

static bool read_value(struct marey__json *json, struct marey__launch_config *shape)
{
    if (marey__json_is(json, "grid"))
        return read_three(json, shape->grid);
    if (marey__json_is(json, "block"))
        return read_three(json, shape->block);
    if (marey__json_is(json, "registers per thread"))
        return read_one(json, &shape->registers);
    if (marey__json_is(json, "shared memory"))
        return read_one(json, &shape->shared_bytes);
    return marey__json_skip(json);
}

bool marey__launch_config_read(const char *text, size_t len, struct marey__launch_config *shape)
{
    struct marey__json json MAREY__FINALLY(marey__json_fini);
    marey__json_init_text(&json, text, len, MAREY__JSON_STRICT | MAREY__JSON_NAN);
    bool is_sound = marey__json_next(&json) == MAREY__JSON_OBJECT;
    memset(shape, 0, sizeof *shape);
    while (is_sound && marey__json_next_key(&json))
        is_sound = read_value(&json, shape);
    return is_sound && json.mistake == NULL && (shape->grid[0] != 0 || shape->block[0] != 0);
}

struct marey__launch_config marey__launch_config_at(const struct marey__names *shapes, uint32_t i)
{
    struct marey__launch_config shape;
    memcpy(&shape, shapes->names[i].text, sizeof shape);
    return shape;
}

/* The number of a shape; MAREY__NO_INDEX on out of memory. */
static uint32_t number_of(struct marey__work_set *set, const struct marey__launch_config *shape)
{
    return marey__names_keep(&set->shapes, &set->shape_texts, (const char *)shape, sizeof *shape);
}

/* ---- facts ---- */

/* The facts of a piece of work, created if needed; NULL on out of memory. */
static struct marey__work_facts *facts_of(struct marey__work_set *set, struct marey__work *work)
{
    if (work->facts != MAREY__NO_INDEX)
        return &set->facts[work->facts];
    if (set->n_facts == MAREY__NO_INDEX ||
        !marey__grow(&set->facts, &set->facts_cap, set->n_facts + 1, sizeof *set->facts))
        return NULL;
    work->facts = (uint32_t)set->n_facts++;
    set->facts[work->facts] = (struct marey__work_facts){.shape = MAREY__NO_INDEX};
    return &set->facts[work->facts];
}

static bool set_shape(struct marey__work_set *set, struct marey__work *work, uint32_t shape)
{
    struct marey__work_facts *facts = facts_of(set, work);
    if (facts == NULL)
        return false;
    facts->shape = shape;
    return true;
}

/* In `site_shapes`: the site has no shape. */
#define NO_SHAPE UINT32_MAX

bool marey__work_facts_take(struct marey__work_set *set, struct marey__work *work,
                            const uint64_t *words, uint32_t *site_shapes)
{
    if (words[4] != 0) {
        struct marey__work_facts *facts = facts_of(set, work);
        if (facts == NULL)
            return false;
        facts->bytes = words[4];
    }
    struct marey_launch launch;
    if (marey_record_launch(words, &launch)) {
        if (launch.block[0] == 0) /* a copy or memset in a CUDA graph */
            return true;
        const struct marey__launch_config shape = marey__launch_config_of(&launch);
        const uint32_t number = number_of(set, &shape);
        return number != MAREY__NO_INDEX && set_shape(set, work, number);
    }
    const uint32_t site = marey_record_work_details(words[1]);
    if (site == 0 || site > set->process->n_sites)
        return true;
    if (site_shapes[site] == 0) {
        const struct marey_site_info *info = marey__work_site(set, site);
        struct marey__launch_config shape;
        site_shapes[site] = NO_SHAPE;
        if (marey__launch_config_read(info->name, info->name_len, &shape)) {
            const uint32_t number = number_of(set, &shape);
            if (number == MAREY__NO_INDEX)
                return false;
            site_shapes[site] = number + 1;
        }
    }
    return site_shapes[site] == NO_SHAPE || set_shape(set, work, site_shapes[site] - 1);
}

bool marey__work_facts_arguments(struct marey__work_set *set, struct marey__work *work,
                                 const uint64_t *words)
{
    const uint64_t room = (marey_record_length(words[0]) - 2) * sizeof words[0];
    struct marey__launch_config shape;
    if (work->kind != MAREY_WORK_KERNEL || words[1] > room ||
        !marey__launch_config_read((const char *)&words[2], (size_t)words[1], &shape))
        return true;
    const uint32_t number = number_of(set, &shape);
    return number != MAREY__NO_INDEX && set_shape(set, work, number);
}
