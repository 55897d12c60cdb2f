/* A line of a manifest that is about a value. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/dumpfile/dumpfile_internal.h"

struct line {
    struct marey__step *step;
    struct marey__buf name;
    uint64_t seq;
    bool has_seq, has_shape, has_strides, has_offset, has_digest, has_stats, is_end, has_value;
    enum marey_dump_tree tree;
    enum marey_dump_type type;
    enum marey_dump_kind kind;
    struct marey__shape shape, strides;
    uint64_t offset, n_bytes;
    char *phase, *source, *missing, *text; /* of the step's memory */
    size_t text_len;
    struct marey_digest digest;
    struct marey_digest *blocks;
    size_t n_blocks;
    struct marey_tensor_stats stats;
    char **files;
    size_t n_files;
};

static bool no_memory(struct marey__cursor *cursor)
{
    cursor->text.failed = true;
    return marey__cursor_fail(cursor, "out of memory");
}

static bool line_text(struct marey__cursor *cursor, struct line *line, char **out)
{
    if (marey__cursor_word(cursor, "null"))
        return true;
    if (!marey__cursor_string(cursor))
        return false;
    *out = marey__step_text(line->step, cursor->text.data, cursor->text.len);
    return *out != NULL || no_memory(cursor);
}

static bool line_name(struct marey__cursor *cursor, void *into)
{
    struct line *const line = into;
    if (!marey__cursor_string(cursor))
        return false;
    line->name.len = 0;
    marey__buf_put(&line->name, cursor->text.data, cursor->text.len + 1);
    return !line->name.failed || no_memory(cursor);
}

static bool line_seq(struct marey__cursor *cursor, void *into)
{
    struct line *const line = into;
    line->has_seq = true;
    return marey__cursor_count(cursor, &line->seq);
}

static bool line_type(struct marey__cursor *cursor, void *into)
{
    struct line *const line = into;
    if (!marey__cursor_string(cursor))
        return false;
    for (int i = 0; i < MAREY_N_DUMP_TYPES; i++)
        if (strcmp(marey__dump_type_name((enum marey_dump_type)i), cursor->text.data) == 0) {
            line->type = (enum marey_dump_type)i;
            return true;
        }
    return marey__cursor_fail(cursor, "a type that is not known");
}

static bool line_tree(struct marey__cursor *cursor, void *into)
{
    struct line *const line = into;
    if (!marey__cursor_string(cursor))
        return false;
    const bool is_gradients = strcmp(cursor->text.data, "gradients") == 0;
    line->tree = is_gradients ? MAREY_DUMP_GRADIENTS : MAREY_DUMP_TENSORS;
    return is_gradients || strcmp(cursor->text.data, "tensors") == 0 ||
           marey__cursor_fail(cursor, "a tree that is not known");
}

static bool line_dtype(struct marey__cursor *cursor, void *into)
{
    struct line *const line = into;
    if (!marey__cursor_string(cursor))
        return false;
    line->shape.dtype = marey_dtype_find(cursor->text.data);
    return line->shape.dtype != MAREY_DTYPE_NONE ||
           marey__cursor_fail(cursor, "a dtype that is not known");
}

static bool line_shape(struct marey__cursor *cursor, void *into)
{
    struct line *const line = into;
    line->has_shape = true;
    return marey__shape_read(cursor, &line->shape);
}

/* Strides may be negative. */
static bool line_strides(struct marey__cursor *cursor, void *into)
{
    struct line *const line = into;
    bool is_first = true;
    line->has_strides = true;
    line->strides.rank = 0;
    if (!marey__cursor_take(cursor, '['))
        return marey__cursor_fail(cursor, "a list of strides is missing");
    while (marey__cursor_next_item(cursor, &is_first)) {
        struct marey__number number;
        if (!marey__cursor_number(cursor, &number))
            return false;
        if (!number.is_integer || number.digits > INT64_MAX || line->strides.rank == MAREY_MAX_RANK)
            return marey__cursor_fail(cursor, "strides that are none");
        line->strides.sizes[line->strides.rank++] =
            number.is_negative ? -(int64_t)number.digits : (int64_t)number.digits;
    }
    return cursor->mistake == NULL;
}

static bool line_offset(struct marey__cursor *cursor, void *into)
{
    struct line *const line = into;
    line->has_offset = true;
    return marey__cursor_count(cursor, &line->offset);
}

static bool line_bytes(struct marey__cursor *cursor, void *into)
{
    return marey__cursor_count(cursor, &((struct line *)into)->n_bytes);
}

static bool line_phase(struct marey__cursor *cursor, void *into)
{
    return line_text(cursor, into, &((struct line *)into)->phase);
}

static bool line_source(struct marey__cursor *cursor, void *into)
{
    return line_text(cursor, into, &((struct line *)into)->source);
}

static bool line_missing(struct marey__cursor *cursor, void *into)
{
    return line_text(cursor, into, &((struct line *)into)->missing);
}

static bool line_end(struct marey__cursor *cursor, void *into)
{
    ((struct line *)into)->is_end = marey__cursor_word(cursor, "true");
    return ((struct line *)into)->is_end || marey__cursor_skip(cursor);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_digest(struct marey__cursor *cursor, struct marey_digest *out)
{
    if (!marey__cursor_string(cursor))
        return false;
    if (cursor->text.len != 2 * sizeof out->bytes)
        return marey__cursor_fail(cursor, "a digest that has not 32 digits");
    for (size_t i = 0; i < sizeof out->bytes; i++) {
        const int high = hex_digit(cursor->text.data[2 * i]),
                  low = hex_digit(cursor->text.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return marey__cursor_fail(cursor, "a digest that has not 32 digits");
        out->bytes[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

static bool line_digest(struct marey__cursor *cursor, void *into)
{
    struct line *const line = into;
    line->has_digest = true;
    return read_digest(cursor, &line->digest);
}

/* How many items the list at the cursor has, so that there is room for them. */
static bool count_items(const struct marey__cursor *cursor, size_t *out)
{
    struct marey__cursor ahead = *cursor;
    ahead.text = (struct marey__buf){0};
    bool is_first = true;
    *out = 0;
    bool is_fine = marey__cursor_take(&ahead, '[');
    while (is_fine && marey__cursor_next_item(&ahead, &is_first)) {
        is_fine = marey__cursor_skip(&ahead);
        ++*out;
    }
    is_fine &= ahead.mistake == NULL && !ahead.text.failed;
    marey__cursor_fini(&ahead);
    return is_fine;
}

static bool line_blocks(struct marey__cursor *cursor, void *into)
{
    struct line *const line = into;
    bool is_first = true;
    if (!count_items(cursor, &line->n_blocks) || !marey__cursor_take(cursor, '['))
        return marey__cursor_fail(cursor, "a list of digests is missing");
    line->blocks = marey__step_keep(line->step, line->n_blocks * sizeof *line->blocks);
    if (line->blocks == NULL)
        return no_memory(cursor);
    for (size_t i = 0; marey__cursor_next_item(cursor, &is_first); i++)
        if (!read_digest(cursor, &line->blocks[i]))
            return false;
    return cursor->mistake == NULL;
}

/* Names alone: a file elsewhere is none of this step's. */
static bool line_files(struct marey__cursor *cursor, void *into)
{
    struct line *const line = into;
    bool is_first = true;
    if (!count_items(cursor, &line->n_files) || !marey__cursor_take(cursor, '['))
        return marey__cursor_fail(cursor, "a list of files is missing");
    line->files = marey__step_keep(line->step, line->n_files * sizeof *line->files);
    if (line->files == NULL)
        return no_memory(cursor);
    for (size_t i = 0; marey__cursor_next_item(cursor, &is_first); i++) {
        char path[PATH_MAX];
        if (!marey__cursor_string(cursor))
            return false;
        const char *const name = cursor->text.data;
        const int n = snprintf(path, sizeof path, "%s/%s", line->step->stem, name);
        if (strlen(name) != cursor->text.len || strchr(name, '/') != NULL || name[0] == '.' ||
            n < 0 || (size_t)n >= sizeof path)
            return marey__cursor_fail(cursor, "the name of a file that is none");
        line->files[i] = marey__step_text(line->step, path, (size_t)n);
        if (line->files[i] == NULL)
            return no_memory(cursor);
    }
    return cursor->mistake == NULL;
}

static bool line_value(struct marey__cursor *cursor, void *into)
{
    struct line *const line = into;
    const char first = marey__cursor_peek(cursor);
    const char *const text = cursor->at;
    line->has_value = true;
    if (first == '"') {
        line->kind = MAREY_DUMP_TEXT;
        line->text_len = 0;
        if (!line_text(cursor, line, &line->text))
            return false;
        line->text_len = cursor->text.len;
        return true;
    }
    if (!marey__cursor_skip(cursor))
        return false;
    line->kind = first == '{'   ? MAREY_DUMP_DICT
                 : first == '[' ? MAREY_DUMP_LIST
                                : MAREY_DUMP_LITERAL;
    if (line->kind != MAREY_DUMP_LITERAL)
        return true;
    line->text_len = (size_t)(cursor->at - text);
    line->text = marey__step_text(line->step, text, line->text_len);
    return line->text != NULL || no_memory(cursor);
}

/* ---- statistics ---- */

#define STATS_COUNT(NAME, FIELD)                                                                   \
    static bool stats_##NAME(struct marey__cursor *cursor, void *into)                             \
    {                                                                                              \
        return marey__cursor_count(cursor, &((struct marey_tensor_stats *)into)->FIELD);           \
    }
STATS_COUNT(n, n)
STATS_COUNT(nan, n_nan)
STATS_COUNT(pos_inf, n_pos_inf)
STATS_COUNT(neg_inf, n_neg_inf)
STATS_COUNT(zero, n_zero)
STATS_COUNT(denormal, n_denormal)
STATS_COUNT(negative, n_negative)

/* NaN and infinities are strings. */
static bool read_double(struct marey__cursor *cursor, double *out)
{
    struct marey__number number;
    if (marey__cursor_peek(cursor) != '"') {
        if (!marey__cursor_number(cursor, &number))
            return false;
        *out = number.value;
        return true;
    }
    if (!marey__cursor_string(cursor))
        return false;
    const char *const text = cursor->text.data;
    *out = strcmp(text, "Infinity") == 0    ? INFINITY
           : strcmp(text, "-Infinity") == 0 ? -INFINITY
                                            : NAN;
    return !isnan(*out) || strcmp(text, "NaN") == 0 ||
           marey__cursor_fail(cursor, "a number is missing");
}

#define STATS_DOUBLE(NAME)                                                                         \
    static bool stats_##NAME(struct marey__cursor *cursor, void *into)                             \
    {                                                                                              \
        return read_double(cursor, &((struct marey_tensor_stats *)into)->NAME);                    \
    }
STATS_DOUBLE(min)
STATS_DOUBLE(max)
STATS_DOUBLE(mean)
STATS_DOUBLE(std)
STATS_DOUBLE(l2)

static bool stats_histogram(struct marey__cursor *cursor, void *into)
{
    struct marey_tensor_stats *const stats = into;
    bool is_first = true;
    if (!marey__cursor_take(cursor, '{'))
        return marey__cursor_fail(cursor, "a histogram that is no object");
    while (marey__cursor_next_key(cursor, &is_first)) {
        uint64_t bin;
        if (!marey__parse_number(cursor->text.data, cursor->text.len, &bin) || bin >= MAREY_STATS_BINS)
            return marey__cursor_fail(cursor, "a bin that a histogram has not");
        if (!marey__cursor_count(cursor, &stats->histogram[bin]))
            return false;
    }
    return cursor->mistake == NULL;
}

static bool line_stats(struct marey__cursor *cursor, void *into)
{
    static const struct marey__key keys[] = {{"n", stats_n},
                                             {"nan", stats_nan},
                                             {"pos_inf", stats_pos_inf},
                                             {"neg_inf", stats_neg_inf},
                                             {"zero", stats_zero},
                                             {"denormal", stats_denormal},
                                             {"negative", stats_negative},
                                             {"min", stats_min},
                                             {"max", stats_max},
                                             {"mean", stats_mean},
                                             {"std", stats_std},
                                             {"l2", stats_l2},
                                             {"histogram", stats_histogram},
                                             {NULL, NULL}};
    struct line *const line = into;
    line->has_stats = true;
    return marey__cursor_object(cursor, keys, &line->stats);
}

/* ---- the whole line ---- */

static const struct marey__key line_keys[] = {{"seq", line_seq},
                                              {"tree", line_tree},
                                              {"name", line_name},
                                              {"type", line_type},
                                              {"dtype", line_dtype},
                                              {"shape", line_shape},
                                              {"strides", line_strides},
                                              {"offset", line_offset},
                                              {"bytes", line_bytes},
                                              {"phase", line_phase},
                                              {"source", line_source},
                                              {"digest", line_digest},
                                              {"blocks", line_blocks},
                                              {"stats", line_stats},
                                              {"missing", line_missing},
                                              {"files", line_files},
                                              {"value", line_value},
                                              {"end", line_end},
                                              {NULL, NULL}};

/* Copies of what stays with the value. */
static bool keep(struct line *line, struct marey_dumped_value *value)
{
    struct marey__step *const step = line->step;
    value->blocks = line->n_blocks > 0 ? line->blocks : NULL;
    value->n_blocks = line->n_blocks;
    if (line->has_digest) {
        struct marey_digest *const digest = marey__step_keep(step, sizeof *digest);
        if (digest == NULL)
            return false;
        *digest = line->digest;
        value->digest = digest;
    }
    if (line->has_stats) {
        struct marey_tensor_stats *const stats = marey__step_keep(step, sizeof *stats);
        if (stats == NULL)
            return false;
        *stats = line->stats;
        value->stats = stats;
    }
    if (line->has_strides && line->strides.rank == line->shape.rank) {
        int64_t *const strides = marey__step_keep(step, line->shape.rank * sizeof *strides);
        if (strides == NULL)
            return false;
        memcpy(strides, line->strides.sizes, line->shape.rank * sizeof *strides);
        value->strides = strides;
    }
    return true;
}

/* Where the numbers are: in the container, if that has all of them; in files; or nowhere. */
static void find_numbers(struct marey_dumps *dumps, const struct line *line, uint64_t data_start)
{
    struct marey__step *const step = line->step;
    struct marey_dumped_value *const value = marey__step_last(step);
    if (line->has_offset) {
        const uint64_t len = step->file.len - MAREY__MIN(step->file.len, data_start);
        const bool is_there = line->offset <= len && value->n_bytes <= len - line->offset &&
                              value->n_bytes == line->n_bytes;
        if (is_there) {
            marey__step_inside(step, step->n_values - 1, data_start + line->offset);
        } else {
            value->missing = "unfinished";
            marey__dumps_note(dumps, "%s: the numbers of '%s' are not all in the file", step->path,
                              value->name);
        }
    } else if (line->n_files > 0 && line->has_shape) {
        step->places[step->n_values - 1].has_numbers = line->type != MAREY_DUMP_PICKLE;
    }
}

static marey_status put_value(struct marey_dumps *dumps, struct line *line, uint64_t data_start)
{
    struct marey__step *const step = line->step;
    struct marey__path path = {0};
    MAREY_TRY(marey__name_parse(line->name.data, line->name.len - 1, &path));
    const marey_status added = marey__step_add(step, path.tree, path.parts, path.n_parts, NULL);
    marey__path_fini(&path);
    MAREY_TRY(added);
    struct marey_dumped_value *const value = marey__step_last(step);
    value->seq = line->seq;
    value->phase = line->phase;
    value->source = line->source;
    value->missing = line->missing;
    if (line->has_value) {
        value->kind = line->kind;
        value->text = line->text;
        value->text_len = line->text_len;
        return MAREY_OK;
    }
    value->kind = line->has_shape ? MAREY_DUMP_TENSOR : MAREY_DUMP_BYTES;
    value->type = line->type;
    MAREY__TRY_MEMORY(keep(line, value));
    MAREY_TRY(marey__step_files(step, line->files, line->n_files));
    if (line->has_shape)
        MAREY_TRY(marey__step_shape(step, &line->shape));
    find_numbers(dumps, line, data_start);
    return MAREY_OK;
}

/* What is wrong with a line that can be read; NULL: nothing. */
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

bool marey__manifest_value_read(struct marey__cursor *cursor, struct marey_dumps *dumps,
                                struct marey__step *step, uint64_t data_start, bool *is_end)
{
    struct line line = {.step = step};
    bool is_fine = marey__cursor_object(cursor, line_keys, &line) && marey__cursor_done(cursor);
    *is_end = is_fine && line.is_end;
    if (is_fine && !line.is_end) {
        const char *const mistake = mistake_of(&line);
        const marey_status status =
            mistake == NULL ? put_value(dumps, &line, data_start) : MAREY_EFORMAT;
        cursor->text.failed |= status == MAREY_ENOMEM;
        if (status != MAREY_OK)
            is_fine = marey__cursor_fail(cursor, mistake != NULL ? mistake : "a name that is none");
    }
    marey__buf_fini(&line.name);
    return is_fine;
}
