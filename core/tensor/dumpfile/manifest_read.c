/*
 * Manifests, line by line. Each line is whole or was never written, so that a program that died leaves a last one
 * that does not end; the others count.
 */
#include <inttypes.h>
#include <string.h>

#include "base/internal.h"
#include "tensor/dumpfile/internal.h"

/* ---- the first line ---- */

struct head {
    struct marey__dumpfile_step *step;
    uint64_t version, data_start;
};

static bool read_rank(struct marey__json *json, int64_t *out)
{
    uint64_t value;
    if (marey__json_peek(json) == 'n')
        return marey__json_skip(json);
    if (!marey__json_count(json, &value))
        return false;
    *out = (int64_t)value;
    return true;
}

static bool head_text(struct marey__json *json, char **out)
{
    if (marey__json_peek(json) == 'n')
        return marey__json_skip(json);
    if (!marey__json_string(json))
        return false;
    marey__free(*out);
    *out = marey__strndup(json->text, json->text_len);
    if (*out == NULL)
        marey__json_fail_memory(json);
    return *out != NULL;
}

#define HEAD(NAME, CALL)                                                                           \
    static bool head_##NAME(struct marey__json *json, void *into)                                  \
    {                                                                                              \
        struct head *const head = into;                                                            \
        return CALL;                                                                               \
    }
HEAD(version, marey__json_count(json, &head->version))
HEAD(step, marey__json_count(json, &head->step->info.step))
HEAD(rank, read_rank(json, &head->step->info.rank))
HEAD(world, read_rank(json, &head->step->info.world))
HEAD(pid, marey__json_count(json, &head->step->info.pid))
HEAD(unix_ns, marey__json_count(json, &head->step->info.unix_ns))
HEAD(host, head_text(json, &head->step->texts[0]))
HEAD(run, head_text(json, &head->step->texts[1]))
HEAD(mode, head_text(json, &head->step->texts[2]))
HEAD(reason, head_text(json, &head->step->texts[3]))
HEAD(data_start, marey__json_count(json, &head->data_start))

static const struct marey__json_key head_keys[] = {{"marey_dump", head_version},
                                                   {MAREY__OLD_DUMP, head_version},
                                                   {"step", head_step},
                                                   {"rank", head_rank},
                                                   {"world", head_world},
                                                   {"pid", head_pid},
                                                   {"unix_ns", head_unix_ns},
                                                   {"host", head_host},
                                                   {"run", head_run},
                                                   {"mode", head_mode},
                                                   {"reason", head_reason},
                                                   {"data_start", head_data_start},
                                                   {NULL, NULL}};

marey_status marey__manifest_head(struct marey__dumpfile_step *step, const char *text, size_t len,
                                  uint64_t *data_start)
{
    struct head head = {.step = step};
    struct marey__json json;
    marey__json_init_text(&json, text, len, MAREY__DUMP_JSON);
    marey_status status = MAREY_OK;
    if (!marey__json_object(&json, head_keys, &head) || !marey__json_end(&json))
        status = marey__json_status(&json, step->path, "the manifest of a dump");
    else if (head.version != 1)
        status = marey__fail(
            MAREY_EFORMAT,
            "%s is a manifest that this version cannot read: its marey_dump is %" PRIu64,
            step->path, head.version);
    marey__json_fini(&json);
    *data_start = head.data_start;
    step->info.host = step->texts[0];
    step->info.run = step->texts[1];
    step->info.mode = step->texts[2];
    step->info.reason = step->texts[3];
    return status;
}

/* ---- all lines ---- */

/* A line that cannot be read is noted and left out. MAREY_ENOMEM. */
static marey_status read_line(struct marey_dumps *dumps, struct marey__dumpfile_step *step,
                              uint64_t data_start, const char *text, size_t len, size_t number,
                              bool *is_end)
{
    struct marey__json json;
    marey_status status = MAREY_OK;
    marey__json_init_text(&json, text, len, MAREY__DUMP_JSON);
    if (!marey__manifest_value_read(&json, dumps, step, data_start, is_end)) {
        if (json.status == MAREY_ENOMEM)
            status = marey__json_status(&json, step->path, "a manifest");
        else
            marey__dumps_note(dumps, "%s: line %zu is left out: %s", step->path, number,
                              json.mistake);
    }
    marey__json_fini(&json);
    return status;
}

marey_status marey__manifest_parse(struct marey_dumps *dumps, struct marey__dumpfile_step *step,
                                   const struct marey__map *text)
{
    const char *line = text->data;
    const char *const end = text->data + text->len;
    uint64_t data_start = 0;
    marey_status status = MAREY_OK;
    bool is_end = false;
    for (size_t number = 1; line < end && !is_end && status == MAREY_OK; number++) {
        const char *const stop = memchr(line, '\n', (size_t)(end - line));
        if (stop == NULL)
            break;
        if (number == 1)
            status = marey__manifest_head(step, line, (size_t)(stop - line), &data_start);
        else
            status = read_line(dumps, step, data_start, line, (size_t)(stop - line), number, &is_end);
        line = stop + 1;
    }
    if (status == MAREY_OK && line == text->data)
        return marey__fail(MAREY_EFORMAT,
                           "%s is not the manifest of a dump: its first line does not end",
                           step->path);
    if (status == MAREY_OK && !is_end)
        marey__dumps_note(dumps, "%s does not end: the program died, or still writes it", step->path);
    return status;
}
