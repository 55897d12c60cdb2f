/* Names as sites, and ids: numbers that stand for a flow or an async range. */
#include <string.h>

#include "import/kineto/internal.h"

/* ---- texts and sites ---- */

struct marey__chrome_value marey__chrome_text(struct marey__chrome *chrome,
                                              const struct marey__chrome_value *value)
{
    if (MAREY_LIKELY(!value->has_escapes))
        return *value;
    chrome->text.len = 0;
    marey__json_decode(&chrome->text, value->at, value->len, 0);
    chrome->has_failed |= chrome->text.failed;
    return (struct marey__chrome_value){
        .at = chrome->text.data, .len = (uint32_t)chrome->text.len, .kind = MAREY__CHROME_STRING};
}

/* viztracer's "function (file:line)": its parts. A path may hold brackets, a function's name does not. */
static void split_location(struct marey__sink_site *site)
{
    const char *open = memmem(site->name, site->name_len, " (", 2),
               *p = site->name + site->name_len - 1;
    uint32_t line = 0, scale = 1;
    if (open == NULL || open == site->name || *p != ')')
        return;
    for (p--; *p >= '0' && *p <= '9' && scale < 100000000; p--, scale *= 10)
        line += (uint32_t)(*p - '0') * scale;
    if (*p != ':' || scale == 1 || p <= open + 2)
        return;
    site->file = open + 2;
    site->file_len = (size_t)(p - site->file);
    site->line = line;
    site->name_len = (size_t)(open - site->name);
}

static bool is_of_viztracer(const struct marey__chrome_value *category)
{
    return category->len == 3 && strncasecmp(category->at, "fee", 3) == 0;
}

uint32_t marey__chrome_site_named(const struct marey__chrome *chrome, marey__sink_process *process,
                                  const char *name, size_t len)
{
    const struct marey__chrome_value *category = &chrome->file.event.category;
    struct marey__sink_site site = {.name = name,
                                    .name_len = len,
                                    .category =
                                        category->kind == MAREY__CHROME_STRING ? category->at : NULL,
                                    .category_len = category->len};
    if (len > 0 && is_of_viztracer(category))
        split_location(&site);
    return marey__sink_site(process, &site);
}

uint32_t marey__chrome_site(struct marey__chrome *chrome, marey__sink_process *process)
{
    const struct marey__chrome_value name = marey__chrome_text(chrome, &chrome->file.event.name);
    return marey__chrome_site_named(chrome, process, name.at, name.len);
}

/* ---- numbers that stand for something ---- */

static uint64_t hash_of(uint64_t seed, const struct marey__chrome_value *value)
{
    return value->len > 0 ? marey__hash_bytes(seed, value->at, value->len) : seed;
}

uint64_t marey__chrome_id(const struct marey__chrome_value *value)
{
    int64_t number;
    if (marey__chrome_integer(value, &number))
        return (uint64_t)number;
    uint64_t hex = 0;
    size_t i = 2;
    bool is_hex =
        value->len > 2 && value->len <= 18 && value->at[0] == '0' && (value->at[1] | 0x20) == 'x';
    for (; is_hex && i < value->len; i++) {
        const char c = value->at[i];
        const int digit = c >= '0' && c <= '9'                     ? c - '0'
                          : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                   : -1;
        is_hex = digit >= 0;
        hex = hex << 4 | (uint64_t)(digit & 15);
    }
    return is_hex ? hex : hash_of(0, value);
}

uint64_t marey__chrome_async_id(const struct marey__chrome_event *event)
{
    struct marey__chrome_value key, value, id = event->id;
    const char *p = event->id2.at;
    if (event->id2.kind == MAREY__CHROME_NESTED && *p == '{' &&
        marey__chrome_next_key(p + 1, p + event->id2.len, &key, &value) != NULL)
        id = value;
    return hash_of(hash_of(marey__chrome_id(&id), &event->category), &event->name);
}
