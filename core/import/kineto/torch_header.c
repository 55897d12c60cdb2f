/* The key "marey" that marey's own callback adds: ranks, steps, and what storages were (docs/formats/torch-trace.md). */
#include "base/internal.h"
#include "import/kineto/internal.h"

enum { ROLE_FIELDS = 7 };

static marey__torch_id intern(struct marey__torch_reader *reader)
{
    marey__torch_id id = 0;
    const struct marey__json *json = &reader->file.json;
    if (!marey__torch_intern(&reader->trace->strings, json->text, json->text_len, &id))
        reader->has_failed = true;
    return id;
}

static bool find_role(const struct marey__json *json, uint8_t *kind)
{
    static const char *const names[] = {
        [MAREY__TORCH_PARAMETER] = "parameter",
        [MAREY__TORCH_GRADIENT] = "gradient",
        [MAREY__TORCH_OPTIMIZER_STATE] = "optimizer_state",
        [MAREY__TORCH_INPUT] = "input",
    };
    for (uint8_t i = 0; i < MAREY__COUNT_OF(names); i++)
        if (marey__json_is(json, names[i])) {
            *kind = i;
            return true;
        }
    return false;
}

static int32_t small(int64_t number)
{
    return number >= INT32_MIN && number <= INT32_MAX ? (int32_t)number : -1;
}

/* ["parameter", address, bytes, device type, device id, Unix ns, "name"]; what is longer is of a later version. */
static void read_role(struct marey__torch_reader *reader)
{
    struct marey__torch_trace *trace = reader->trace;
    struct marey__torch_role role = {0};
    int64_t numbers[ROLE_FIELDS] = {0};
    bool is_known = false;
    struct marey__json *json = &reader->file.json;
    enum marey__json_token token;
    for (size_t i = 0; marey__json_next_item(json, &token); i++) {
        if (i == 0)
            is_known = token == MAREY__JSON_STRING && find_role(json, &role.kind);
        else if (i == ROLE_FIELDS - 1 && token == MAREY__JSON_STRING)
            role.name = intern(reader);
        else if (i < ROLE_FIELDS)
            numbers[i] = marey__json_integer(json, token, 0);
        marey__json_skip_from(json, token);
    }
    if (!is_known || numbers[1] == 0)
        return;
    role.address = (uint64_t)numbers[1];
    role.bytes = numbers[2];
    role.device_type = small(numbers[3]);
    role.device_id = small(numbers[4]);
    role.ns = numbers[5];
    if (marey__grow(&trace->roles, &trace->roles_cap, trace->n_roles + 1, sizeof role))
        trace->roles[trace->n_roles++] = role;
    else
        reader->has_failed = true;
}

static void read_roles(struct marey__torch_reader *reader)
{
    struct marey__json *json = &reader->file.json;
    enum marey__json_token token;
    if (!marey__json_enter(json, MAREY__JSON_ARRAY))
        return;
    while (!reader->has_failed && marey__json_next_item(json, &token)) {
        if (token == MAREY__JSON_ARRAY)
            read_role(reader);
        else
            marey__json_skip_from(json, token);
    }
}

static void read_why(struct marey__torch_reader *reader)
{
    struct marey__json *json = &reader->file.json;
    const enum marey__json_token token = marey__json_next(json);
    reader->trace->why = token == MAREY__JSON_STRING ? intern(reader) : 0;
    marey__json_skip_from(json, token);
}

bool marey__torch_read_key(void *ctx)
{
    struct marey__torch_reader *reader = ctx;
    struct marey__json *json = &reader->file.json;
    struct marey__torch_trace *trace = reader->trace;
    if (!marey__json_is(json, "marey") && !marey__json_is(json, MAREY__OLD_ABOUT))
        return false;
    if (!marey__json_enter(json, MAREY__JSON_OBJECT))
        return true;
    while (marey__json_next_key(json)) {
        if (marey__json_is(json, "rank"))
            trace->marey_rank = marey__json_read_integer(json, -1);
        else if (marey__json_is(json, "world_size"))
            trace->marey_world_size = marey__json_read_integer(json, -1);
        else if (marey__json_is(json, "step"))
            trace->marey_step = marey__json_read_integer(json, -1);
        else if (marey__json_is(json, "steps"))
            trace->marey_steps = marey__json_read_integer(json, -1);
        else if (marey__json_is(json, "partial"))
            trace->is_partial = marey__json_read_flag(json);
        else if (marey__json_is(json, "why"))
            read_why(reader);
        else if (marey__json_is(json, "roles"))
            read_roles(reader);
        else
            marey__json_skip(json);
    }
    return true;
}
