/* Manifests, line by line. A program that died may leave an incomplete last line; the others are valid. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/internal.h"
#include "tensor/dumpfile/internal.h"

/* ---- the first line ---- */

static bool read_count(struct marey__json *json, void *into)
{
    return marey__json_count(json, into);
}

static bool read_rank(struct marey__json *json, void *into)
{
    uint64_t value;
    if (marey__json_peek(json) == 'n')
        return marey__json_skip(json);
    if (!marey__json_count(json, &value))
        return false;
    *(int64_t *)into = (int64_t)value;
    return true;
}

static bool read_text(struct marey__json *json, void *into)
{
    char **const out = into;
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

#define AT(field) offsetof(struct marey__dumpfile_step, field)
static const struct marey__json_key head_keys[] = {{"marey_dump", read_count, AT(version)},
                                                   {MAREY__OLD_DUMP, read_count, AT(version)},
                                                   {"step", read_count, AT(info.step)},
                                                   {"rank", read_rank, AT(info.rank)},
                                                   {"world", read_rank, AT(info.world)},
                                                   {"pid", read_count, AT(info.pid)},
                                                   {"unix_ns", read_count, AT(info.unix_ns)},
                                                   {"host", read_text, AT(texts[0])},
                                                   {"run", read_text, AT(texts[1])},
                                                   {"mode", read_text, AT(texts[2])},
                                                   {"reason", read_text, AT(texts[3])},
                                                   {"data_start", read_count, AT(data_start)},
                                                   {0}};

marey_status marey__manifest_head(struct marey__dumpfile_step *step, const struct marey__map *text,
                                  const char **next)
{
    const char *const stop = text->len > 0 ? memchr(text->data, '\n', text->len) : NULL;
    if (stop == NULL)
        return marey__fail(MAREY_EFORMAT,
                           "%s is not the manifest of a dump: its first line does not end",
                           step->path);
    struct marey__json json MAREY__FINALLY(marey__json_fini);
    marey__json_init_text(&json, text->data, (size_t)(stop - text->data), MAREY__DUMP_JSON);
    step->version = step->data_start = 0;
    const bool is_fine = marey__json_object(&json, head_keys, step) && marey__json_end(&json);
    step->info.host = step->texts[0];
    step->info.run = step->texts[1];
    step->info.mode = step->texts[2];
    step->info.reason = step->texts[3];
    *next = stop + 1;
    if (!is_fine)
        return marey__json_status(&json, step->path, "the manifest of a dump");
    return step->version == 1
               ? MAREY_OK
               : marey__fail(
                     MAREY_EFORMAT,
                     "%s is a manifest that this version cannot read: its marey_dump is %" PRIu64,
                     step->path, step->version);
}

/* ---- a line of a value ---- */

struct line {
    struct marey__dumpfile_step *step;
    struct marey__buf name;
    struct marey_dumped_value value; /* without path, type and sizes; in the step's memory */
    bool has_seq, has_shape, has_offset, is_end, has_value;
    struct marey__shape shape, strides;
    uint64_t offset, n_bytes;
    struct marey_digest *blocks;
    char **files;
    size_t blocks_cap, files_cap;
};

static bool no_memory(struct marey__json *json)
{
    marey__json_fail_memory(json);
    return false;
}

/* Records a mistake unless `is_fine`, which it returns. */
static bool check(struct marey__json *json, bool is_fine, const char *mistake)
{
    if (!is_fine)
        marey__json_fail(json, mistake);
    return is_fine;
}

static bool line_text(struct marey__json *json, struct line *line, const char **out)
{
    if (marey__json_peek(json) == 'n')
        return marey__json_skip(json);
    if (!marey__json_string(json))
        return false;
    *out = marey__arena_text(&line->step->memory, json->text, json->text_len);
    return *out != NULL || no_memory(json);
}

static bool line_name(struct marey__json *json, void *into)
{
    struct line *const line = into;
    if (!marey__json_string(json))
        return false;
    line->name.len = 0;
    marey__buf_put(&line->name, json->text, json->text_len + 1);
    return !line->name.failed || no_memory(json);
}

#define LINE(NAME, CALL)                                                                           \
    static bool line_##NAME(struct marey__json *json, void *into)                                  \
    {                                                                                              \
        struct line *const line = into;                                                            \
        return CALL;                                                                               \
    }
LINE(seq, line->has_seq = marey__json_count(json, &line->value.seq))
LINE(shape, line->has_shape = marey__shape_read(json, &line->shape))
LINE(offset, line->has_offset = marey__json_count(json, &line->offset))
LINE(phase, line_text(json, line, &line->value.phase))
LINE(source, line_text(json, line, &line->value.source))
LINE(missing, line_text(json, line, &line->value.missing))

static bool line_type(struct marey__json *json, void *into)
{
    struct line *const line = into;
    if (!marey__json_string(json))
        return false;
    int i = 0;
    while (i < MAREY_N_DUMP_TYPES &&
           strcmp(marey__dump_type_name((enum marey_dump_type)i), json->text) != 0)
        i++;
    line->value.type = (enum marey_dump_type)i;
    return check(json, i < MAREY_N_DUMP_TYPES, "an unknown type");
}

/* Only validated: the name determines the tree. */
static bool line_tree(struct marey__json *json, void *into)
{
    (void)into;
    return marey__json_string(json) &&
           check(json, marey__json_is(json, "gradients") || marey__json_is(json, "tensors"),
                 "an unknown tree");
}

static bool line_dtype(struct marey__json *json, void *into)
{
    struct line *const line = into;
    if (!marey__json_string(json))
        return false;
    line->shape.dtype = marey_dtype_find(json->text);
    return check(json, line->shape.dtype != MAREY_DTYPE_NONE, "an unknown dtype");
}

/* Strides may be negative. */
static bool line_strides(struct marey__json *json, void *into)
{
    struct line *const line = into;
    enum marey__json_token token;
    line->strides.rank = 0;
    if (!marey__json_expect(json, MAREY__JSON_ARRAY, "an array of strides is missing"))
        return false;
    while (marey__json_next_item(json, &token)) {
        const bool is_whole =
            token == MAREY__JSON_NUMBER && json->text_len == strspn(json->text, "-0123456789");
        int64_t *const stride = &line->strides.sizes[line->strides.rank];
        if (!check(json,
                   is_whole && line->strides.rank < MAREY_MAX_RANK &&
                       marey__decimal(json->text, json->text_len, 0, stride),
                   "strides that are not integers"))
            return false;
        line->strides.rank++;
    }
    return json->mistake == NULL;
}

static bool line_end(struct marey__json *json, void *into)
{
    const enum marey__json_token token = marey__json_next(json);
    ((struct line *)into)->is_end = token == MAREY__JSON_TRUE;
    return marey__json_skip_from(json, token);
}

static bool read_digest(const struct marey__json *json, struct marey_digest *out)
{
    bool is_fine = json->text_len == 2 * sizeof out->bytes;
    for (size_t i = 0; is_fine && i < sizeof out->bytes; i++) {
        const int high = marey__hex_digit(json->text[2 * i]),
                  low = marey__hex_digit(json->text[2 * i + 1]);
        is_fine = high >= 0 && low >= 0;
        out->bytes[i] = (uint8_t)(high * 16 + low);
    }
    return is_fine;
}

static const char no_digest[] = "a digest without 32 digits";

static bool line_digest(struct marey__json *json, void *into)
{
    struct line *const line = into;
    struct marey_digest digest;
    if (!marey__json_string(json) || !check(json, read_digest(json, &digest), no_digest))
        return false;
    line->value.digest = marey__step_copy(line->step, &digest, sizeof digest);
    return line->value.digest != NULL || no_memory(json);
}

static bool line_blocks(struct marey__json *json, void *into)
{
    struct line *const line = into;
    struct marey_digest digest;
    enum marey__json_token token;
    if (!marey__json_expect(json, MAREY__JSON_ARRAY, "an array of digests is missing"))
        return false;
    line->value.n_blocks = 0;
    while (marey__json_next_item(json, &token)) {
        if (!check(json, token == MAREY__JSON_STRING && read_digest(json, &digest), no_digest))
            return false;
        if (!MAREY__PUSH(line->blocks, line->value.n_blocks, line->blocks_cap, digest))
            return no_memory(json);
    }
    return json->mistake == NULL;
}

/* Names without directory: a file elsewhere is not part of this step. */
static bool line_files(struct marey__json *json, void *into)
{
    struct line *const line = into;
    enum marey__json_token token;
    if (!marey__json_expect(json, MAREY__JSON_ARRAY, "an array of files is missing"))
        return false;
    line->value.n_files = 0;
    while (marey__json_next_item(json, &token)) {
        char path[PATH_MAX];
        const char *const name = json->text;
        const int n = token == MAREY__JSON_STRING
                          ? snprintf(path, sizeof path, "%s/%s", line->step->stem, name)
                          : -1;
        if (!check(json,
                   n >= 0 && (size_t)n < sizeof path && strlen(name) == json->text_len &&
                       strchr(name, '/') == NULL && name[0] != '.',
                   "a file name that is not allowed"))
            return false;
        char *const kept = marey__arena_text(&line->step->memory, path, (size_t)n);
        if (kept == NULL || !MAREY__PUSH(line->files, line->value.n_files, line->files_cap, kept))
            return no_memory(json);
    }
    return json->mistake == NULL;
}

static bool line_value(struct marey__json *json, void *into)
{
    struct line *const line = into;
    struct marey_dumped_value *const value = &line->value;
    const char first = marey__json_peek(json);
    const char *const text = json->at;
    line->has_value = true;
    value->kind = first == '"'   ? MAREY_DUMP_TEXT
                  : first == '{' ? MAREY_DUMP_DICT
                  : first == '[' ? MAREY_DUMP_LIST
                                 : MAREY_DUMP_LITERAL;
    if (value->kind == MAREY_DUMP_TEXT) {
        const bool is_fine = line_text(json, line, &value->text);
        value->text_len = is_fine ? json->text_len : 0;
        return is_fine;
    }
    if (!marey__json_skip(json))
        return false;
    if (value->kind != MAREY_DUMP_LITERAL)
        return true;
    value->text_len = (size_t)(json->at - text);
    value->text = marey__arena_text(&line->step->memory, text, value->text_len);
    return value->text != NULL || no_memory(json);
}

/* ---- statistics ---- */

/* NaN and infinities are strings. */
static bool read_double(struct marey__json *json, double *out)
{
    const enum marey__json_token token = marey__json_next(json);
    const bool is_word = token == MAREY__JSON_STRING &&
                         (marey__json_is(json, "NaN") || marey__json_is(json, "Infinity") ||
                          marey__json_is(json, "-Infinity"));
    return check(json,
                 (is_word || token == MAREY__JSON_NUMBER) &&
                     marey__decimal_double(json->text, json->text_len, out),
                 "a number is missing");
}

static bool read_histogram(struct marey__json *json, struct marey_tensor_stats *stats)
{
    if (!marey__json_expect(json, MAREY__JSON_OBJECT, "a histogram that is not an object"))
        return false;
    while (marey__json_next_key(json)) {
        uint64_t bin;
        if (!check(json,
                   marey__parse_number(json->text, json->text_len, &bin) && bin < MAREY_STATS_BINS,
                   "a histogram has no such bin") ||
            !marey__json_count(json, &stats->histogram[bin]))
            return false;
    }
    return json->mistake == NULL;
}

static bool line_stats(struct marey__json *json, void *into)
{
    struct line *const line = into;
    struct marey_tensor_stats stats = {0};
    if (!marey__json_expect(json, MAREY__JSON_OBJECT, "statistics that are not an object"))
        return false;
    while (marey__json_next_key(json)) {
        const struct marey__stats_field *field = marey__stats_fields();
        while (field->key != NULL && !marey__json_is(json, field->key))
            field++;
        void *const at = (char *)&stats + field->offset;
        if (!(marey__json_is(json, "histogram") ? read_histogram(json, &stats)
              : field->key == NULL              ? marey__json_skip(json)
              : field->is_real                  ? read_double(json, at)
                                                : marey__json_count(json, at)))
            return false;
    }
    if (json->mistake != NULL)
        return false;
    line->value.stats = marey__step_copy(line->step, &stats, sizeof stats);
    return line->value.stats != NULL || no_memory(json);
}

/* ---- the whole line ---- */

static const struct marey__json_key line_keys[] = {
    {"seq", line_seq},
    {"tree", line_tree},
    {"name", line_name},
    {"type", line_type},
    {"dtype", line_dtype},
    {"shape", line_shape},
    {"strides", line_strides},
    {"offset", line_offset},
    {"bytes", read_count, offsetof(struct line, n_bytes)},
    {"phase", line_phase},
    {"source", line_source},
    {"digest", line_digest},
    {"blocks", line_blocks},
    {"stats", line_stats},
    {"missing", line_missing},
    {"files", line_files},
    {"value", line_value},
    {"end", line_end},
    {0}};

/* Locates the numbers: in the container, if all tensors are there; in files; or nowhere. */
static void find_numbers(struct marey_dumps *dumps, const struct line *line)
{
    struct marey__dumpfile_step *const step = line->step;
    struct marey_dumped_value *const value = marey__step_last(step);
    if (line->has_offset) {
        const uint64_t len = step->file.len - MAREY__MIN(step->file.len, step->data_start);
        const bool is_there = line->offset <= len && value->n_bytes <= len - line->offset &&
                              value->n_bytes == line->n_bytes;
        if (is_there) {
            marey__step_set_offset(step, step->n_values - 1, step->data_start + line->offset);
        } else {
            value->missing = "unfinished";
            marey__dumps_note(dumps, "%s: the numbers of '%s' are not all in the file", step->path,
                              value->name);
        }
    } else if (value->n_files > 0 && line->has_shape) {
        step->places[step->n_values - 1].has_numbers = value->type != MAREY_DUMP_PICKLE;
    }
}

static marey_status put_value(struct marey_dumps *dumps, struct line *line)
{
    struct marey__dumpfile_step *const step = line->step;
    struct marey__path path MAREY__FINALLY(marey__path_fini) = {0};
    MAREY_TRY(marey__name_parse(line->name.data, line->name.len - 1, &path));
    MAREY_TRY(marey__step_add(step, path.tree, path.parts, path.n_parts, NULL));
    struct marey_dumped_value *const value = marey__step_last(step);
    const struct marey_dumped_value added = *value;
    *value = line->value;
    value->tree = added.tree;
    value->parts = added.parts;
    value->n_parts = added.n_parts;
    value->name = added.name;
    if (line->has_value) {
        value->n_blocks = value->n_files = 0;
        return MAREY_OK;
    }
    value->kind = line->has_shape ? MAREY_DUMP_TENSOR : MAREY_DUMP_BYTES;
    value->blocks = marey__step_copy(step, line->blocks, value->n_blocks * sizeof *value->blocks);
    value->files = marey__step_copy(step, line->files, value->n_files * sizeof *value->files);
    MAREY__TRY_MEMORY(value->blocks != NULL && value->files != NULL);
    if (value->n_blocks == 0)
        value->blocks = NULL;
    if (line->has_shape && line->strides.rank == line->shape.rank) {
        value->strides =
            marey__step_copy(step, line->strides.sizes, line->shape.rank * sizeof *value->strides);
        MAREY__TRY_MEMORY(value->strides != NULL);
    }
    if (line->has_shape)
        MAREY_TRY(marey__step_shape(step, &line->shape));
    find_numbers(dumps, line);
    return MAREY_OK;
}

/* What is wrong with a parsed line, or NULL. */
static const char *mistake_of(const struct line *line)
{
    uint64_t n_bytes;
    if (!line->has_seq || line->name.len == 0)
        return "a value without its number or name";
    if (line->has_offset && !line->has_shape)
        return "numbers without a shape";
    if (line->has_shape && line->shape.dtype == MAREY_DTYPE_NONE)
        return "a shape without a dtype";
    if (line->has_shape && !marey__shape_bytes(&line->shape, &n_bytes))
        return "a shape of too many bytes";
    return NULL;
}

/* Reads a value's line, or the last one, which sets *is_end. Returns false with a mistake in `json`. */
static bool read_value(struct marey__json *json, struct marey_dumps *dumps,
                       struct marey__dumpfile_step *step, bool *is_end)
{
    struct line line = {.step = step, .strides.rank = UINT32_MAX};
    bool is_fine = marey__json_object(json, line_keys, &line) && marey__json_end(json);
    *is_end = is_fine && line.is_end;
    if (is_fine && !line.is_end) {
        const char *const mistake = mistake_of(&line);
        const marey_status status = mistake == NULL ? put_value(dumps, &line) : MAREY_EFORMAT;
        is_fine = check(json, status == MAREY_OK, mistake != NULL ? mistake : "an invalid name");
        if (status == MAREY_ENOMEM)
            marey__json_fail_memory(json);
    }
    marey__buf_fini(&line.name);
    MAREY__FREE_ALL(line.blocks, line.files);
    return is_fine;
}

/* ---- all lines ---- */

/* Notes and skips a line that cannot be read. MAREY_ENOMEM. */
static marey_status read_line(struct marey_dumps *dumps, struct marey__dumpfile_step *step,
                              const char *text, size_t len, size_t number, bool *is_end)
{
    struct marey__json json MAREY__FINALLY(marey__json_fini);
    marey__json_init_text(&json, text, len, MAREY__DUMP_JSON);
    if (read_value(&json, dumps, step, is_end))
        return MAREY_OK;
    if (json.status == MAREY_ENOMEM)
        return marey__json_status(&json, step->path, "a manifest");
    marey__dumps_note(dumps, "%s: line %zu is left out: %s", step->path, number, json.mistake);
    return MAREY_OK;
}

marey_status marey__manifest_parse(struct marey_dumps *dumps, struct marey__dumpfile_step *step,
                                   const struct marey__map *text)
{
    const char *line, *stop, *const end = text->data + text->len;
    bool is_end = false;
    MAREY_TRY(marey__manifest_head(step, text, &line));
    for (size_t number = 2; line < end && !is_end; number++, line = stop + 1) {
        stop = memchr(line, '\n', (size_t)(end - line));
        if (stop == NULL)
            break;
        MAREY_TRY(read_line(dumps, step, line, (size_t)(stop - line), number, &is_end));
    }
    if (!is_end)
        marey__dumps_note(dumps, "%s does not end: the program died, or still writes it", step->path);
    return MAREY_OK;
}
