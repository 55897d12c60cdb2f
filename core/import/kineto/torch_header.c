/*
 * What stands beside the events: ranks, devices, what the profiler was asked for, and the key "marey" that our own callback
 * adds, with what storages were (docs/formats/torch-trace.md).
 */
#include <string.h>

#include "base/old_name.h"
#include "import/kineto/torch_reader.h"

enum { MAX_DEVICES = 256, ROLE_FIELDS = 7 };

static bool is_text(const struct marey__json *scan, const char *text)
{
    return scan->text_len == strlen(text) && memcmp(scan->text, text, scan->text_len) == 0;
}

/* Past the rest of what a token began that is not wanted. */
static void pass_by(struct marey__json *scan, enum marey__json_token token)
{
    if (token == MAREY__JSON_OBJECT || token == MAREY__JSON_ARRAY)
        marey__json_skip(scan);
}

static bool enter(struct marey__json *scan, enum marey__json_token wanted)
{
    const enum marey__json_token token = marey__json_next(scan);
    if (token != wanted)
        pass_by(scan, token);
    return token == wanted;
}

/* The next token of a list; false at its end, and where nothing follows. */
static bool next_entry(struct marey__json *scan, enum marey__json_token *token)
{
    *token = marey__json_next(scan);
    return *token != MAREY__JSON_ARRAY_END && *token != MAREY__JSON_MISTAKE &&
           *token != MAREY__JSON_END;
}

static int64_t integer_of(const struct marey__json *scan, enum marey__json_token token,
                          int64_t otherwise)
{
    int64_t number;
    if ((token == MAREY__JSON_NUMBER || token == MAREY__JSON_STRING) &&
        marey__decimal(scan->text, scan->text_len, 0, &number))
        return number;
    return otherwise;
}

static int64_t read_integer(struct marey__json *scan)
{
    const enum marey__json_token token = marey__json_next(scan);
    pass_by(scan, token);
    return integer_of(scan, token, -1);
}

static bool read_flag(struct marey__json *scan)
{
    const enum marey__json_token token = marey__json_next(scan);
    pass_by(scan, token);
    return token == MAREY__JSON_TRUE || integer_of(scan, token, 0) > 0;
}

static marey__torch_id intern(struct marey__torch_reader *reader)
{
    marey__torch_id id = 0;
    if (!marey__torch_intern(&reader->trace->strings, reader->scan.text, reader->scan.text_len, &id))
        reader->has_failed = true;
    return id;
}

static marey__torch_id read_text(struct marey__torch_reader *reader)
{
    const enum marey__json_token token = marey__json_next(&reader->scan);
    pass_by(&reader->scan, token);
    return token == MAREY__JSON_STRING ? intern(reader) : 0;
}

/* ---- devices and ranks ---- */

static void read_device(struct marey__torch_reader *reader, struct marey__torch_device *device)
{
    struct marey__json *scan = &reader->scan;
    while (marey__json_next(scan) == MAREY__JSON_KEY) {
        if (is_text(scan, "id"))
            device->id = read_integer(scan);
        else if (is_text(scan, "totalGlobalMem"))
            device->total_memory = read_integer(scan);
        else if (is_text(scan, "numSms"))
            device->n_processors = read_integer(scan);
        else if (is_text(scan, "name"))
            device->name = read_text(reader);
        else
            marey__json_skip(scan);
    }
}

static void read_devices(struct marey__torch_reader *reader)
{
    struct marey__torch_trace *trace = reader->trace;
    enum marey__json_token token;
    if (!enter(&reader->scan, MAREY__JSON_ARRAY))
        return;
    while (next_entry(&reader->scan, &token)) {
        struct marey__torch_device device = {.id = -1, .total_memory = -1, .n_processors = -1};
        if (token != MAREY__JSON_OBJECT) {
            pass_by(&reader->scan, token);
            continue;
        }
        read_device(reader, &device);
        if (trace->n_devices == MAX_DEVICES)
            continue;
        if (marey__grow(&trace->devices, &trace->devices_cap, trace->n_devices + 1, sizeof device))
            trace->devices[trace->n_devices++] = device;
        else
            reader->has_failed = true;
    }
}

static void read_distributed(struct marey__torch_reader *reader)
{
    struct marey__json *scan = &reader->scan;
    if (!enter(scan, MAREY__JSON_OBJECT))
        return;
    while (marey__json_next(scan) == MAREY__JSON_KEY) {
        if (is_text(scan, "rank"))
            reader->trace->distributed_rank = read_integer(scan);
        else if (is_text(scan, "world_size"))
            reader->trace->distributed_world_size = read_integer(scan);
        else
            marey__json_skip(scan);
    }
}

/* ---- marey's own ---- */

static bool find_role(const struct marey__json *scan, uint8_t *kind)
{
    static const char *const names[] = {
        [MAREY__TORCH_PARAMETER] = "parameter",
        [MAREY__TORCH_GRADIENT] = "gradient",
        [MAREY__TORCH_OPTIMIZER_STATE] = "optimizer_state",
        [MAREY__TORCH_INPUT] = "input",
    };
    for (uint8_t i = 0; i < MAREY__COUNT_OF(names); i++)
        if (is_text(scan, names[i])) {
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
    enum marey__json_token token;
    for (size_t i = 0; next_entry(&reader->scan, &token); i++) {
        if (i == 0)
            is_known = token == MAREY__JSON_STRING && find_role(&reader->scan, &role.kind);
        else if (i == ROLE_FIELDS - 1 && token == MAREY__JSON_STRING)
            role.name = intern(reader);
        else if (i < ROLE_FIELDS)
            numbers[i] = integer_of(&reader->scan, token, 0);
        pass_by(&reader->scan, token);
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
    enum marey__json_token token;
    if (!enter(&reader->scan, MAREY__JSON_ARRAY))
        return;
    while (!reader->has_failed && next_entry(&reader->scan, &token)) {
        if (token == MAREY__JSON_ARRAY)
            read_role(reader);
        else
            pass_by(&reader->scan, token);
    }
}

static void read_marey(struct marey__torch_reader *reader)
{
    struct marey__json *scan = &reader->scan;
    struct marey__torch_trace *trace = reader->trace;
    if (!enter(scan, MAREY__JSON_OBJECT))
        return;
    while (marey__json_next(scan) == MAREY__JSON_KEY) {
        if (is_text(scan, "rank"))
            trace->marey_rank = read_integer(scan);
        else if (is_text(scan, "world_size"))
            trace->marey_world_size = read_integer(scan);
        else if (is_text(scan, "step"))
            trace->marey_step = read_integer(scan);
        else if (is_text(scan, "steps"))
            trace->marey_steps = read_integer(scan);
        else if (is_text(scan, "partial"))
            trace->is_partial = read_flag(scan);
        else if (is_text(scan, "why"))
            trace->why = read_text(reader);
        else if (is_text(scan, "roles"))
            read_roles(reader);
        else
            marey__json_skip(scan);
    }
}

void marey__torch_read_key(struct marey__torch_reader *reader)
{
    struct marey__json *scan = &reader->scan;
    struct marey__torch_trace *trace = reader->trace;
    if (is_text(scan, "baseTimeNanoseconds"))
        trace->base_ns = read_integer(scan);
    else if (is_text(scan, "deviceProperties"))
        read_devices(reader);
    else if (is_text(scan, "distributedInfo"))
        read_distributed(reader);
    else if (is_text(scan, "record_shapes"))
        trace->has_shapes = read_flag(scan);
    else if (is_text(scan, "with_stack"))
        trace->has_stacks = read_flag(scan);
    else if (is_text(scan, "profile_memory"))
        trace->has_memory = read_flag(scan);
    else if (is_text(scan, "with_flops"))
        trace->has_flops = read_flag(scan);
    else if (is_text(scan, "marey") || is_text(scan, MAREY__OLD_ABOUT))
        read_marey(reader);
    else
        marey__json_skip(scan);
}
