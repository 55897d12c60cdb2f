/* The arguments of an event that mean something to us, each noted where it lies. */
#include <string.h>

#include "import/kineto/internal.h"

/* Where each key goes, by the length of its name. */
struct known_key {
    const char *name;
    size_t offset;
};
#define KEY(name, field)                                                                           \
    {                                                                                              \
        name, offsetof(struct marey__chrome_args, field)                                           \
    }

enum { MAX_KEYS_OF_A_LENGTH = 4, MAX_LENGTH = 25 };
static const struct known_key known_keys[MAX_LENGTH + 1][MAX_KEYS_OF_A_LENGTH] = {
    [3] = {KEY("Seq", sequence)},
    [4] = {KEY("name", name), KEY("Addr", address)},
    [5] = {KEY("bytes", bytes), KEY("dtype", type), KEY("Bytes", signed_bytes)},
    [6] = {KEY("device", device), KEY("stream", stream), KEY("labels", labels)},
    [8] = {KEY("Src Rank", source), KEY("Dst Rank", destination)},
    [9] = {KEY("Device Id", device_id)},
    [10] = {KEY("Group size", group_size), KEY("Input Dims", input_dims),
            KEY("Input type", input_types), KEY("Call stack", stack)},
    [11] = {KEY("correlation", correlation), KEY("Device Type", device_type),
            KEY("External id", external_id)},
    [13] = {KEY("In msg nelems", in_elements), KEY("Fwd thread id", forward_thread)},
    [14] = {KEY("Out msg nelems", out_elements), KEY("Total Reserved", reserved)},
    [15] = {KEY("Collective name", collective), KEY("Total Allocated", allocated),
            KEY("Sequence number", sequence_number), KEY("Concrete Inputs", concrete_inputs)},
    [18] = {KEY("Process Group Name", group_name)},
    [19] = {KEY("Process Group Ranks", group_ranks)},
    [25] = {KEY("Process Group Description", group_description)},
};

static struct marey__chrome_value *find_key(struct marey__chrome_args *args,
                                            const struct marey__chrome_value *key)
{
    if (key->len > MAX_LENGTH)
        return NULL;
    const struct known_key *known = known_keys[key->len];
    for (size_t i = 0; i < MAX_KEYS_OF_A_LENGTH && known[i].name != NULL; i++)
        if (memcmp(known[i].name, key->at, key->len) == 0)
            return (struct marey__chrome_value *)((char *)args + known[i].offset);
    return NULL;
}

void marey__chrome_parse_args(struct marey__chrome_args *args, const struct marey__chrome_value *text)
{
    memset(args, 0, sizeof *args);
    if (text->kind != MAREY__CHROME_NESTED || text->at[0] != '{')
        return;
    const char *end = text->at + text->len;
    struct marey__chrome_value key, value;
    for (const char *p = text->at + 1; (p = marey__chrome_next_key(p, end, &key, &value)) != NULL;) {
        struct marey__chrome_value *field = find_key(args, &key);
        if (field != NULL)
            *field = value;
    }
}
