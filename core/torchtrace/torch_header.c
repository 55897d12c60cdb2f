/*
 * What stands beside the events: ranks, devices, what the profiler was asked for, and the key "kymo" that our own callback
 * adds, with what storages were (docs/formats/torch-trace.md).
 */
#include <string.h>

#include "torchtrace/torch_reader.h"

enum { MAX_DEVICES = 256, ROLE_FIELDS = 7 };

static bool is_text(const struct kymo__scan *scan, const char *text)
{
    return scan->text_len == strlen(text) && memcmp(scan->text, text, scan->text_len) == 0;
}

/* Past the rest of what a token began that is not wanted. */
static void pass_by(struct kymo__scan *scan, enum kymo__scan_token token)
{
    if (token == KYMO__SCAN_OBJECT || token == KYMO__SCAN_ARRAY)
        kymo__scan_skip(scan);
}

static bool enter(struct kymo__scan *scan, enum kymo__scan_token wanted)
{
    const enum kymo__scan_token token = kymo__scan_next(scan);
    if (token != wanted)
        pass_by(scan, token);
    return token == wanted;
}

/* The next token of a list; false at its end, and where nothing follows. */
static bool next_entry(struct kymo__scan *scan, enum kymo__scan_token *token)
{
    *token = kymo__scan_next(scan);
    return *token != KYMO__SCAN_ARRAY_END && *token != KYMO__SCAN_MISTAKE && *token != KYMO__SCAN_END;
}

static int64_t integer_of(const struct kymo__scan *scan, enum kymo__scan_token token,
                          int64_t otherwise)
{
    int64_t number;
    if ((token == KYMO__SCAN_NUMBER || token == KYMO__SCAN_STRING) &&
        kymo__decimal(scan->text, scan->text_len, 0, &number))
        return number;
    return otherwise;
}

static int64_t read_integer(struct kymo__scan *scan)
{
    const enum kymo__scan_token token = kymo__scan_next(scan);
    pass_by(scan, token);
    return integer_of(scan, token, -1);
}

static bool read_flag(struct kymo__scan *scan)
{
    const enum kymo__scan_token token = kymo__scan_next(scan);
    pass_by(scan, token);
    return token == KYMO__SCAN_TRUE || integer_of(scan, token, 0) > 0;
}

static kymo__torch_id intern(struct kymo__torch_reader *reader)
{
    kymo__torch_id id = 0;
    if (!kymo__torch_intern(&reader->trace->strings, reader->scan.text, reader->scan.text_len, &id))
        reader->has_failed = true;
    return id;
}

static kymo__torch_id read_text(struct kymo__torch_reader *reader)
{
    const enum kymo__scan_token token = kymo__scan_next(&reader->scan);
    pass_by(&reader->scan, token);
    return token == KYMO__SCAN_STRING ? intern(reader) : 0;
}

/* ---- devices and ranks ---- */

static void read_device(struct kymo__torch_reader *reader, struct kymo__torch_device *device)
{
    struct kymo__scan *scan = &reader->scan;
    while (kymo__scan_next(scan) == KYMO__SCAN_KEY) {
        if (is_text(scan, "id"))
            device->id = read_integer(scan);
        else if (is_text(scan, "totalGlobalMem"))
            device->total_memory = read_integer(scan);
        else if (is_text(scan, "numSms"))
            device->n_processors = read_integer(scan);
        else if (is_text(scan, "name"))
            device->name = read_text(reader);
        else
            kymo__scan_skip(scan);
    }
}

static void read_devices(struct kymo__torch_reader *reader)
{
    struct kymo__torch_trace *trace = reader->trace;
    enum kymo__scan_token token;
    if (!enter(&reader->scan, KYMO__SCAN_ARRAY))
        return;
    while (next_entry(&reader->scan, &token)) {
        struct kymo__torch_device device = {.id = -1, .total_memory = -1, .n_processors = -1};
        if (token != KYMO__SCAN_OBJECT) {
            pass_by(&reader->scan, token);
            continue;
        }
        read_device(reader, &device);
        if (trace->n_devices == MAX_DEVICES)
            continue;
        if (kymo__grow(&trace->devices, &trace->devices_cap, trace->n_devices + 1, sizeof device))
            trace->devices[trace->n_devices++] = device;
        else
            reader->has_failed = true;
    }
}

static void read_distributed(struct kymo__torch_reader *reader)
{
    struct kymo__scan *scan = &reader->scan;
    if (!enter(scan, KYMO__SCAN_OBJECT))
        return;
    while (kymo__scan_next(scan) == KYMO__SCAN_KEY) {
        if (is_text(scan, "rank"))
            reader->trace->distributed_rank = read_integer(scan);
        else if (is_text(scan, "world_size"))
            reader->trace->distributed_world_size = read_integer(scan);
        else
            kymo__scan_skip(scan);
    }
}

/* ---- kymo's own ---- */

static bool find_role(const struct kymo__scan *scan, uint8_t *kind)
{
    static const char *const names[] = {
        [KYMO__TORCH_PARAMETER] = "parameter",
        [KYMO__TORCH_GRADIENT] = "gradient",
        [KYMO__TORCH_OPTIMIZER_STATE] = "optimizer_state",
        [KYMO__TORCH_INPUT] = "input",
    };
    for (uint8_t i = 0; i < KYMO__COUNT_OF(names); i++)
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
static void read_role(struct kymo__torch_reader *reader)
{
    struct kymo__torch_trace *trace = reader->trace;
    struct kymo__torch_role role = {0};
    int64_t numbers[ROLE_FIELDS] = {0};
    bool is_known = false;
    enum kymo__scan_token token;
    for (size_t i = 0; next_entry(&reader->scan, &token); i++) {
        if (i == 0)
            is_known = token == KYMO__SCAN_STRING && find_role(&reader->scan, &role.kind);
        else if (i == ROLE_FIELDS - 1 && token == KYMO__SCAN_STRING)
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
    if (kymo__grow(&trace->roles, &trace->roles_cap, trace->n_roles + 1, sizeof role))
        trace->roles[trace->n_roles++] = role;
    else
        reader->has_failed = true;
}

static void read_roles(struct kymo__torch_reader *reader)
{
    enum kymo__scan_token token;
    if (!enter(&reader->scan, KYMO__SCAN_ARRAY))
        return;
    while (!reader->has_failed && next_entry(&reader->scan, &token)) {
        if (token == KYMO__SCAN_ARRAY)
            read_role(reader);
        else
            pass_by(&reader->scan, token);
    }
}

static void read_kymo(struct kymo__torch_reader *reader)
{
    struct kymo__scan *scan = &reader->scan;
    struct kymo__torch_trace *trace = reader->trace;
    if (!enter(scan, KYMO__SCAN_OBJECT))
        return;
    while (kymo__scan_next(scan) == KYMO__SCAN_KEY) {
        if (is_text(scan, "rank"))
            trace->kymo_rank = read_integer(scan);
        else if (is_text(scan, "world_size"))
            trace->kymo_world_size = read_integer(scan);
        else if (is_text(scan, "step"))
            trace->kymo_step = read_integer(scan);
        else if (is_text(scan, "steps"))
            trace->kymo_steps = read_integer(scan);
        else if (is_text(scan, "partial"))
            trace->is_partial = read_flag(scan);
        else if (is_text(scan, "why"))
            trace->why = read_text(reader);
        else if (is_text(scan, "roles"))
            read_roles(reader);
        else
            kymo__scan_skip(scan);
    }
}

void kymo__torch_read_key(struct kymo__torch_reader *reader)
{
    struct kymo__scan *scan = &reader->scan;
    struct kymo__torch_trace *trace = reader->trace;
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
    else if (is_text(scan, "kymo"))
        read_kymo(reader);
    else
        kymo__scan_skip(scan);
}
