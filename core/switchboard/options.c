/* Options by name: the recording's and those of the registered instruments. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "switchboard/internal.h"

enum { POOL_DEFAULT = 32u << 20 };

static bool read_size(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    const uint64_t number = strtoull(text, &end, 10);
    static const char letters[] = "kmgt";
    int shift = 0;
    if (text[0] < '0' || text[0] > '9' || errno != 0)
        return false;
    const char *letter = *end != '\0' ? strchr(letters, *end | 0x20) : NULL;
    if (letter != NULL) {
        shift = 10 * (int)(letter - letters + 1);
        end++;
    }
    if (strcasecmp(end, "") != 0 && strcasecmp(end, "b") != 0 && strcasecmp(end, "ib") != 0)
        return false;
    if (number > UINT64_MAX >> shift)
        return false;
    *out = number << shift;
    return true;
}

bool marey__option_bool(const char *text, bool *out)
{
    static const char *const words[][2] = {
        {"0", "1"}, {"false", "true"}, {"no", "yes"}, {"off", "on"}};
    for (size_t i = 0; i < MAREY__COUNT_OF(words); i++)
        for (int value = 0; value < 2; value++)
            if (strcasecmp(text, words[i][value]) == 0) {
                *out = value;
                return true;
            }
    return false;
}

static bool read_number(const char *text, int *out)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < 0 || value > INT32_MAX)
        return false;
    *out = (int)value;
    return true;
}

bool marey__option_choice(const char *text, const char *words, int *out)
{
    const size_t len = strlen(text);
    int at = 0;
    for (const char *word = words; len > 0; at++) {
        const size_t n = strcspn(word, "|");
        if (n == len && strncasecmp(word, text, n) == 0) {
            *out = at;
            return true;
        }
        if (word[n] == '\0')
            break;
        word += n + 1;
    }
    return false;
}

static bool is_within(uint64_t value, const struct marey__option *o)
{
    return value >= o->least && (o->most == 0 || value <= o->most);
}

/* Sets the option's field in `settings`; false if `text` is not a valid value. */
static bool set_option(const struct marey__option *o, void *settings, const char *text)
{
    void *const field = (char *)settings + o->offset;
    uint64_t value;
    int number;
    switch (o->kind) {
    case MAREY__OPTION_BOOL:
        return marey__option_bool(text, field);
    case MAREY__OPTION_NUMBER:
        return read_number(text, field);
    case MAREY__OPTION_COUNT:
        if (!read_number(text, &number) || !is_within((uint64_t)number, o))
            return false;
        *(uint64_t *)field = (uint64_t)number;
        return true;
    case MAREY__OPTION_SIZE:
        if (!read_size(text, &value) || value == 0 || !is_within(value, o))
            return false;
        *(uint64_t *)field = value;
        return true;
    case MAREY__OPTION_CHOICE:
        return marey__option_choice(text, o->values, field);
    case MAREY__OPTION_TEXT:
        return strlen(text) >= o->least && snprintf(field, o->size, "%s", text) < (int)o->size;
    case MAREY__OPTION_PARSED:
        return o->parse(settings, text);
    }
    return false;
}

/* Any of the wrapper's options, even with value no, switches the wrapper on. */
static bool set_wrapper_bit(struct marey__settings *s, const char *text, uint32_t bit)
{
    bool value;
    if (!marey__option_bool(text, &value))
        return false;
    s->wrapper = MAREY_ON_WRAPPER | (value ? s->wrapper | bit : s->wrapper & ~bit);
    return true;
}

static bool set_sync_on_push(void *s, const char *text)
{
    return set_wrapper_bit(s, text, MAREY_ON_SYNC_PUSH);
}

static bool set_sync_on_pop(void *s, const char *text)
{
    return set_wrapper_bit(s, text, MAREY_ON_SYNC_POP);
}

static bool set_range_order(void *s, const char *text)
{
    return set_wrapper_bit(s, text, MAREY_ON_ORDER);
}

static_assert(sizeof(enum marey_policy) == sizeof(int) && sizeof(enum marey_clock) == sizeof(int) &&
                  sizeof(enum marey__pool_place) == sizeof(int),
              "choices are stored as int");

#define FIELD(field) MAREY__OPTION_FIELD(struct marey__settings, field)
static const struct marey__option own_options[] = {
    {"pool", "SIZE", "32MiB", "memory for events that are not written yet", MAREY__OPTION_SIZE,
     FIELD(pool_bytes), .most = UINT64_C(1) << 40},
    {"disk", "SIZE", "4GiB or a tenth of the free space", "largest log of one process",
     MAREY__OPTION_SIZE, FIELD(disk_bytes)},
    {"policy", "keep-oldest|keep-newest|block", "keep-oldest",
     "what happens when memory and disk budget are full", MAREY__OPTION_CHOICE, FIELD(policy)},
    {"clock", "auto|tsc|monotonic", "auto", "clock of the timestamps", MAREY__OPTION_CHOICE,
     FIELD(clock)},
    {"check", "0|1", "0", "check that ranges nest", MAREY__OPTION_BOOL, FIELD(check_nesting)},
    {"children", "0|1", "1", "forked children record too", MAREY__OPTION_BOOL, FIELD(follow_fork)},
    {"rank", "N", "from the launcher", "rank of this process", MAREY__OPTION_NUMBER, FIELD(rank)},
    {"world_size", "N", "from the launcher", "number of ranks", MAREY__OPTION_NUMBER,
     FIELD(world_size)},
    {"run_id", "TEXT", "from the launcher, else random", "joins the logs of one run",
     MAREY__OPTION_TEXT, FIELD(run_id), .least = 1},
    {"experiment", "TEXT", "none", "groups runs in scaling reports", MAREY__OPTION_TEXT,
     FIELD(experiment)},
    {"strategy", "TEXT", "none", "distribution strategy: a series in scaling reports",
     MAREY__OPTION_TEXT, FIELD(strategy)},
    {"pool_in", "auto|dir|shm|memory", "auto", "where the pool is; memory does not survive kill -9",
     MAREY__OPTION_CHOICE, FIELD(pool_place)},
    {"nvtx", "0|1", "1", "ranges also go to an NVTX tool when there is one", MAREY__OPTION_BOOL,
     FIELD(nvtx_out)},
    {"nvtx.sync_on_push", "0|1", "0", "NVTXRangeWrapper waits for the GPU before a push",
     MAREY__OPTION_PARSED, .parse = set_sync_on_push},
    {"nvtx.sync_on_pop", "0|1", "0", "NVTXRangeWrapper waits for the GPU before a pop",
     MAREY__OPTION_PARSED, .parse = set_sync_on_pop},
    {"nvtx.keep_track_of_range_order", "0|1", "0", "NVTXRangeWrapper checks that ranges nest",
     MAREY__OPTION_PARSED, .parse = set_range_order},
};

/* ---- all tables, concatenated ---- */

/* The `i`-th table, with its settings inside `s` (may be NULL); false past the last. */
static bool table_at(size_t i, struct marey__settings *s, const struct marey__option **options,
                     size_t *n, void **settings)
{
    *options = own_options;
    *n = MAREY__COUNT_OF(own_options);
    *settings = s;
    if (i == 0)
        return true;
    const struct marey__instrument *const instrument = marey__instrument_at(i - 1);
    if (instrument == NULL)
        return false;
    *options = instrument->options;
    *n = instrument->n_options;
    *settings = s != NULL ? (void *)marey__settings_of(s, instrument) : NULL;
    return true;
}

void marey__settings_init(struct marey__settings *s)
{
    *s = (struct marey__settings){.pool_bytes = POOL_DEFAULT,
                                  .follow_fork = true,
                                  .nvtx_out = true,
                                  .rank = -1,
                                  .world_size = -1,
                                  .local_rank = -1};
    for (size_t i = 0; marey__instrument_at(i) != NULL; i++) {
        const struct marey__instrument *const instrument = marey__instrument_at(i);
        if (instrument->defaults != NULL)
            memcpy((void *)marey__settings_of(s, instrument), instrument->defaults,
                   instrument->settings_size);
    }
}

static marey_status unknown_key(const char *key)
{
    char list[2048];
    size_t len = 0, n;
    const struct marey__option *options;
    void *settings;
    for (size_t t = 0; table_at(t, NULL, &options, &n, &settings); t++)
        for (size_t i = 0; i < n; i++)
            marey__append(list, sizeof list, &len, "%s%s", len > 0 ? ", " : "", options[i].key);
    return marey__fail(MAREY_EINVAL, "no option is called '%s'; the options are %s", key, list);
}

static marey_status apply(struct marey__settings *s, const char *key, const char *value)
{
    const struct marey__option *options;
    void *settings;
    size_t n;
    for (size_t t = 0; table_at(t, s, &options, &n, &settings); t++)
        for (size_t i = 0; i < n; i++) {
            if (strcmp(key, options[i].key) != 0)
                continue;
            if (!set_option(&options[i], settings, value))
                return marey__fail(MAREY_EINVAL, "option %s cannot be '%s'; it takes %s", key,
                                   value, options[i].values);
            if (options[i].flag != 0)
                *(uint32_t *)settings |= options[i].flag;
            return MAREY_OK;
        }
    return unknown_key(key);
}

marey_status marey__settings_parse(struct marey__settings *s, const char *text)
{
    char pair[512];
    for (const char *at = text != NULL ? text : ""; *at != '\0';) {
        const size_t len = strcspn(at, ",");
        if (len >= sizeof pair)
            return marey__fail(MAREY_EINVAL, "an option of %zu bytes is too long", len);
        memcpy(pair, at, len);
        pair[len] = '\0';
        at += at[len] == ',' ? len + 1 : len;
        if (len == 0)
            continue;
        char *equals = strchr(pair, '=');
        if (equals == NULL)
            return marey__fail(MAREY_EINVAL, "option '%s' lacks a value: write %s=VALUE", pair, pair);
        *equals = '\0';
        MAREY_TRY(apply(s, pair, equals + 1));
    }
    return MAREY_OK;
}

marey_status marey_options_check(const char *text)
{
    struct marey__settings s;
    marey__settings_init(&s);
    return marey__settings_parse(&s, text);
}

static char help[8192];

static void make_help(void)
{
    const struct marey__option *options;
    void *settings;
    size_t len = 0, n;
    for (size_t t = 0; table_at(t, NULL, &options, &n, &settings); t++)
        for (size_t i = 0; i < n; i++) {
            char left[64];
            snprintf(left, sizeof left, "%s=%s", options[i].key, options[i].values);
            marey__append(help, sizeof help, &len, "%-38s %s (%s)\n", left, options[i].meaning,
                          options[i].fallback);
        }
}

const char *marey_options_help(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_help);
    return help;
}
