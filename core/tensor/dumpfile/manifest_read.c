/*
 * Manifests, line by line. Each line is whole or was never written, so that a program that died leaves a last one
 * that does not end; the others count.
 */
#include <inttypes.h>
#include <string.h>

#include "base/old_name.h"
#include "tensor/dumpfile/dumpfile_internal.h"

/* ---- the first line ---- */

struct head {
    struct marey__step *step;
    uint64_t version, data_start;
};

static bool read_rank(struct marey__cursor *cursor, int64_t *out)
{
    uint64_t value;
    if (marey__cursor_word(cursor, "null"))
        return true;
    if (!marey__cursor_count(cursor, &value))
        return false;
    *out = (int64_t)value;
    return true;
}

static bool head_text(struct marey__cursor *cursor, char **out)
{
    if (marey__cursor_word(cursor, "null"))
        return true;
    if (!marey__cursor_string(cursor))
        return false;
    marey__free(*out);
    *out = marey__strndup(cursor->text.data, cursor->text.len);
    cursor->text.failed |= *out == NULL;
    return *out != NULL || marey__cursor_fail(cursor, "out of memory");
}

#define HEAD(NAME, CALL)                                                                           \
    static bool head_##NAME(struct marey__cursor *cursor, void *into)                              \
    {                                                                                              \
        struct head *const head = into;                                                            \
        return CALL;                                                                               \
    }
HEAD(version, marey__cursor_count(cursor, &head->version))
HEAD(step, marey__cursor_count(cursor, &head->step->info.step))
HEAD(rank, read_rank(cursor, &head->step->info.rank))
HEAD(world, read_rank(cursor, &head->step->info.world))
HEAD(pid, marey__cursor_count(cursor, &head->step->info.pid))
HEAD(unix_ns, marey__cursor_count(cursor, &head->step->info.unix_ns))
HEAD(host, head_text(cursor, &head->step->texts[0]))
HEAD(run, head_text(cursor, &head->step->texts[1]))
HEAD(mode, head_text(cursor, &head->step->texts[2]))
HEAD(reason, head_text(cursor, &head->step->texts[3]))
HEAD(data_start, marey__cursor_count(cursor, &head->data_start))

static const struct marey__key head_keys[] = {{"marey_dump", head_version},
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

marey_status marey__manifest_head(struct marey__step *step, const char *text, size_t len,
                                  uint64_t *data_start)
{
    struct head head = {.step = step};
    struct marey__cursor cursor;
    marey__cursor_init(&cursor, text, len);
    const bool is_fine =
        marey__cursor_object(&cursor, head_keys, &head) && marey__cursor_done(&cursor);
    marey_status status = MAREY_OK;
    if (!is_fine)
        status = marey__cursor_status(&cursor, step->path, "manifest of a dump");
    else if (head.version != 1)
        status = marey__fail(
            MAREY_EFORMAT,
            "%s is no manifest of a dump that this version can read: its marey_dump is %" PRIu64,
            step->path, head.version);
    marey__cursor_fini(&cursor);
    *data_start = head.data_start;
    step->info.host = step->texts[0];
    step->info.run = step->texts[1];
    step->info.mode = step->texts[2];
    step->info.reason = step->texts[3];
    return status;
}

/* ---- all lines ---- */

marey_status marey__manifest_parse(struct marey_dumps *dumps, struct marey__step *step,
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
        struct marey__cursor cursor;
        marey__cursor_init(&cursor, line, (size_t)(stop - line));
        if (number == 1) {
            status = marey__manifest_head(step, line, (size_t)(stop - line), &data_start);
        } else if (!marey__manifest_value_read(&cursor, dumps, step, data_start, &is_end)) {
            if (cursor.text.failed)
                status = marey__cursor_status(&cursor, step->path, "manifest");
            else
                marey__dumps_note(dumps, "%s: line %zu is left out: %s", step->path, number,
                                  cursor.mistake);
        }
        marey__cursor_fini(&cursor);
        line = stop + 1;
    }
    if (status == MAREY_OK && line == text->data)
        return marey__fail(MAREY_EFORMAT,
                           "%s is no manifest of a dump: its first line does not end", step->path);
    if (status == MAREY_OK && !is_end)
        marey__dumps_note(dumps, "%s does not end: the program died, or still writes it", step->path);
    return status;
}
