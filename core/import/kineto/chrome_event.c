/*
 * Parses one event of a Chrome trace. Keys come in any order, so a value's position is noted first and interpreted once
 * the kind of event is known. Nested values are skipped; the arguments of most events are never read.
 *
 * If a key is duplicated, its last value counts.
 */
#include "codec/json_chars.h"
#include "import/kineto/internal.h"

/* ---- values ---- */

/* Parse the value at `p`. Returns the position after it, or NULL if it is truncated. */
static inline const char *take_value(const char *p, const char *end, struct marey__chrome_value *value)
{
    const char *begin = p;
    bool has_escapes = false;
    if (*p == '"') {
        begin++;
        p = json_end_of_string(begin, end, &has_escapes);
        value->kind = MAREY__CHROME_STRING;
    } else if (*p == '{' || *p == '[') {
        p = json_skip_nested(p, end);
        value->kind = MAREY__CHROME_NESTED;
        if (p == NULL)
            return NULL;
    } else {
        p = json_find_delimiter(p);
        value->kind = (*begin >= '0' && *begin <= '9') || *begin == '-' ? MAREY__CHROME_NUMBER
                                                                        : MAREY__CHROME_OTHER;
    }
    if (p >= end)
        return NULL;
    value->at = begin;
    value->len = (uint32_t)(p - begin);
    value->has_escapes = has_escapes;
    return p + (value->kind == MAREY__CHROME_STRING);
}

/* After a key: skip the colon and surrounding whitespace. NULL if there is none. */
static inline const char *skip_colon(const char *p)
{
    if (MAREY_LIKELY(p[0] == ':' && p[1] == ' '))
        return json_skip_spaces(p + 2);
    p = json_skip_spaces(p);
    return *p == ':' ? json_skip_spaces(p + 1) : NULL;
}

/* ---- keys of an event ---- */

/* The letters of a key and its closing quote, as one number. */
#define LETTERS_2(a, b) ((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)'"' << 16)
#define LETTERS_3(a, b, c)                                                                         \
    ((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)(c) << 16 | (uint64_t)'"' << 24)
#define LETTERS_4(a, b, c, d)                                                                      \
    ((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)(c) << 16 | (uint64_t)(d) << 24 |              \
     (uint64_t)'"' << 32)
#define FIRST_BYTES(word, n) ((word) & ((UINT64_C(1) << 8 * (n)) - 1))

static struct marey__chrome_value *find_long_key(struct marey__chrome_event *event, const char *key,
                                                 size_t len)
{
    if (marey__text_is(key, len, "bind_id"))
        return &event->bind_id;
    if (marey__text_is(key, len, "flow_in"))
        return &event->flow_in;
    return marey__text_is(key, len, "flow_out") ? &event->flow_out : NULL;
}

static inline uint64_t load_letters(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The field for the value of the key whose opening quote is at `p`; NULL: none. `*len` is the key's length. */
static inline struct marey__chrome_value *find_key(struct marey__chrome_event *event, const char *p,
                                                   const char *end, size_t *len)
{
    const uint64_t word = load_letters(p);
    *len = 2;
    switch (FIRST_BYTES(word, 3)) {
    case LETTERS_2('p', 'h'):
        return &event->phase;
    case LETTERS_2('t', 's'):
        return &event->ts;
    case LETTERS_2('i', 'd'):
        return &event->id;
    }
    *len = 3;
    switch (FIRST_BYTES(word, 4)) {
    case LETTERS_3('c', 'a', 't'):
        return &event->category;
    case LETTERS_3('p', 'i', 'd'):
        return &event->pid;
    case LETTERS_3('t', 'i', 'd'):
        return &event->tid;
    case LETTERS_3('d', 'u', 'r'):
        return &event->dur;
    case LETTERS_3('i', 'd', '2'):
        return &event->id2;
    }
    *len = 4;
    if (FIRST_BYTES(word, 5) == LETTERS_4('n', 'a', 'm', 'e'))
        return &event->name;
    if (FIRST_BYTES(word, 5) == LETTERS_4('a', 'r', 'g', 's'))
        return &event->args;
    bool has_escapes = false;
    *len = (size_t)(json_end_of_string(p, end, &has_escapes) - p);
    return find_long_key(event, p, *len);
}

static enum marey__chrome_result stop(const char *p, const char *end, const char *words,
                                      const char **next, const char **mistake)
{
    *next = p;
    *mistake = words;
    return p >= end ? MAREY__CHROME_CUT : MAREY__CHROME_MISTAKE;
}

enum marey__chrome_result marey__chrome_parse(struct marey__chrome_event *event, const char *p,
                                              const char *end, const char **next,
                                              const char **mistake)
{
    memset(event, 0, sizeof *event);
    struct marey__chrome_value ignored;
    for (p++;;) {
        p = json_skip_blanks(p);
        if (MAREY_UNLIKELY(*p != '"' || p >= end))
            break;
        size_t len;
        struct marey__chrome_value *value = find_key(event, p + 1, end, &len);
        const char *colon = p + 1 + len + 1;
        p = colon <= end ? skip_colon(colon) : end;
        if (MAREY_UNLIKELY(p == NULL))
            return stop(json_skip_spaces(colon), end, "a key without a colon", next, mistake);
        if (MAREY_UNLIKELY(p >= end || *p == '}' || *p == ']' || *p == ','))
            return stop(p, end, "a key without a value", next, mistake);
        p = take_value(p, end, value != NULL ? value : &ignored);
        if (MAREY_UNLIKELY(p == NULL))
            return stop(end, end, NULL, next, mistake);
    }
    if (*p != '}' || p >= end)
        return stop(p, end, "a key that is not in quotes", next, mistake);
    *next = p + 1;
    return MAREY__CHROME_WHOLE;
}

/* ---- interpreting values ---- */

const char *marey__chrome_next_key(const char *p, const char *end, struct marey__chrome_value *key,
                                   struct marey__chrome_value *value)
{
    p = json_skip_blanks(p);
    if (*p != '"' || p >= end)
        return NULL;
    p = take_value(p, end, key);
    if (p == NULL || (p = skip_colon(p)) == NULL || p >= end)
        return NULL;
    return take_value(p, end, value);
}

static bool is_number(const struct marey__chrome_value *value)
{
    return value->kind == MAREY__CHROME_NUMBER || value->kind == MAREY__CHROME_STRING;
}

bool marey__chrome_ns(const struct marey__chrome_value *value, int64_t *ns)
{
    return is_number(value) && marey__decimal(value->at, value->len, 3, ns);
}

bool marey__chrome_integer(const struct marey__chrome_value *value, int64_t *out)
{
    return is_number(value) && marey__decimal(value->at, value->len, 0, out);
}

/* ---- known arguments ---- */

/* The field for each key, indexed by the length of its name. */
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

static struct marey__chrome_value *find_argument(struct marey__chrome_args *args,
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
        struct marey__chrome_value *field = find_argument(args, &key);
        if (field != NULL)
            *field = value;
    }
}
