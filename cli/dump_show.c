/* marey dump ls, show and stats: print the content of a dump. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "dump.h"

enum { MAX_ODD = 10, CHUNK = 4096 };

/* ---- tables ---- */

#define N_OF(array) (sizeof(array) / sizeof(array)[0])

#define COLUMN(name, title, type, unit)                                                            \
    {                                                                                              \
        name, title, MAREY_TYPE_##type, MAREY_UNIT_##unit                                          \
    }

/* NULL and missing numbers become null. */
static void put_texts(marey_table *table, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (texts[i] != NULL)
            marey_table_text(table, texts[i], strlen(texts[i]));
        else
            marey_table_null(table);
}

static void put_reals(marey_table *table, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(values[i]))
            marey_table_null(table);
        else
            marey_table_f64(table, values[i]);
}

static void put_step(marey_table *table, const struct marey_dumped_step *step)
{
    marey_table_u64(table, step->step);
    if (step->rank >= 0)
        marey_table_i64(table, step->rank);
    else
        marey_table_null(table);
}

static int print_table(const marey_table *table)
{
    const struct marey_text_options wants = {.width = cli_terminal_width(stdout),
                                             .color = cli_wants_color(stdout, dump_given.color)};
    const marey_status status = dump_given.json  ? marey_present_json(table, stdout)
                                : dump_given.csv ? marey_present_csv(table, stdout)
                                                 : marey_present_text(table, &wants, stdout);
    return cli_status(status);
}

/* ---- ls ---- */

static const struct marey_column value_columns[] = {
    COLUMN("step", NULL, U64, NONE),    COLUMN("rank", NULL, I64, NONE),
    COLUMN("seq", NULL, U64, NONE),     COLUMN("name", NULL, TEXT, NONE),
    COLUMN("tree", NULL, TEXT, NONE),   COLUMN("dtype", "type", TEXT, NONE),
    COLUMN("shape", NULL, TEXT, NONE),  COLUMN("bytes", NULL, U64, BYTES),
    COLUMN("kept", NULL, TEXT, NONE),   COLUMN("phase", NULL, TEXT, NONE),
    COLUMN("source", NULL, TEXT, NONE),
};

/* The kept form of the value. */
static const char *kept_of(const struct marey_dumped_value *value)
{
    if (value->missing != NULL)
        return value->missing;
    if (value->has_data)
        return "data";
    if (value->kind == MAREY_DUMP_BYTES)
        return "pickle";
    if (value->dtype == MAREY_DTYPE_NONE)
        return "value";
    return value->digest != NULL ? "digest" : value->stats != NULL ? "stats" : "nothing";
}

static int list_value(void *ctx, const struct dump_choice *choice)
{
    const struct marey_dumped_value *value = choice->value;
    const bool is_tensor = value->dtype != MAREY_DTYPE_NONE;
    marey_table *table = ctx;
    char shape[512];
    const char *const texts[] = {value->name,
                                 value->tree == MAREY_DUMP_GRADIENTS ? "gradients" : "tensors",
                                 is_tensor ? marey_dtype_name(value->dtype) : NULL,
                                 is_tensor ? dump_shape(value, shape, sizeof shape) : NULL},
                      *const more[] = {kept_of(value), value->phase, value->source};
    put_step(table, &choice->step);
    marey_table_u64(table, value->seq);
    put_texts(table, texts, N_OF(texts));
    if (is_tensor)
        marey_table_u64(table, value->n_bytes);
    else
        marey_table_null(table);
    put_texts(table, more, N_OF(more));
    return CLI_FINE;
}

static const struct marey_column step_columns[] = {
    COLUMN("step", NULL, U64, NONE),    COLUMN("rank", NULL, I64, NONE),
    COLUMN("values", NULL, U64, COUNT), COLUMN("bytes", NULL, U64, BYTES),
    COLUMN("mode", NULL, TEXT, NONE),   COLUMN("complete", NULL, BOOL, NONE),
    COLUMN("reason", NULL, TEXT, NONE), COLUMN("path", NULL, TEXT, NONE),
};

static int list_step(marey_table *table, marey_dumps *dumps, size_t i)
{
    struct marey_dumped_step step;
    const struct marey_dumped_value *values;
    size_t n;
    uint64_t n_bytes = 0;
    if (marey_dumps_step(dumps, i, &step) != MAREY_OK ||
        marey_dumps_values(dumps, i, &values, &n) != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    for (size_t v = 0; v < n; v++)
        n_bytes += values[v].n_bytes;
    put_step(table, &step);
    marey_table_u64(table, n);
    marey_table_u64(table, n_bytes);
    put_texts(table, &step.mode, 1);
    marey_table_bool(table, step.is_complete != 0);
    put_texts(table, (const char *const[]){step.reason, step.path}, 2);
    marey_dumps_release(dumps, i);
    return CLI_FINE;
}

/* Prints a table with a row for each value, or with `use` NULL for each step. */
static int list(marey_dumps *dumps, const char *name, const char *title,
                const struct marey_column *columns, size_t n, dump_use *use)
{
    marey_table *table CLI_FINALLY(cli_destroy_table) = NULL;
    CLI_TRY(cli_status(marey_table_create(title, columns, n, &table)));
    if (use != NULL)
        CLI_TRY(dump_choose(dumps, name, use, table));
    for (size_t i = 0; use == NULL && i < marey_dumps_count(dumps); i++)
        CLI_TRY(list_step(table, dumps, i));
    CLI_TRY(cli_status(marey_table_status(table)));
    return print_table(table);
}

static size_t n_wanted(marey_dumps *dumps)
{
    size_t n = 0;
    for (size_t i = 0; i < marey_dumps_count(dumps); i++) {
        struct marey_dumped_step step;
        n += marey_dumps_step(dumps, i, &step) == MAREY_OK && dump_wants(&step);
    }
    return n;
}

int dump_list(marey_dumps *dumps, const char *name)
{
    if (name == NULL && !dump_given.all && dump_given.step == NULL && dump_given.rank == NULL &&
        n_wanted(dumps) > 1)
        return list(dumps, NULL, "steps", step_columns, N_OF(step_columns), NULL);
    return list(dumps, name, "values", value_columns, N_OF(value_columns), list_value);
}

/* ---- stats ---- */

static const struct marey_column stats_columns[] = {
    COLUMN("step", NULL, U64, NONE),       COLUMN("rank", NULL, I64, NONE),
    COLUMN("name", NULL, TEXT, NONE),      COLUMN("dtype", "type", TEXT, NONE),
    COLUMN("shape", NULL, TEXT, NONE),     COLUMN("n", NULL, U64, COUNT),
    COLUMN("min", NULL, F64, NONE),        COLUMN("max", NULL, F64, NONE),
    COLUMN("mean", NULL, F64, NONE),       COLUMN("std", NULL, F64, NONE),
    COLUMN("l2", NULL, F64, NONE),         COLUMN("nan", NULL, U64, COUNT),
    COLUMN("pos_inf", "+inf", U64, COUNT), COLUMN("neg_inf", "-inf", U64, COUNT),
    COLUMN("zero", NULL, U64, COUNT),      COLUMN("denormal", NULL, U64, COUNT),
    COLUMN("negative", NULL, U64, COUNT),
};

/* Stored statistics, or computed from the numbers; false if neither is possible. */
static bool find_stats(const struct dump_choice *choice, struct marey_tensor_stats *out)
{
    struct marey_tensor tensor;
    if (choice->value->stats != NULL) {
        *out = *choice->value->stats;
        return true;
    }
    return choice->value->has_data && dump_get(choice, &tensor) == CLI_FINE &&
           marey_tensor_stats_get(&tensor, out) == MAREY_OK;
}

static int list_stats(void *ctx, const struct dump_choice *choice)
{
    marey_table *table = ctx;
    struct marey_tensor_stats s;
    char shape[512];
    if (!find_stats(choice, &s))
        return CLI_FINE;
    const char *const texts[] = {choice->value->name, marey_dtype_name(choice->value->dtype),
                                 dump_shape(choice->value, shape, sizeof shape)};
    const double reals[] = {s.min, s.max, s.mean, s.std, s.l2};
    const uint64_t counts[] = {s.n_nan,  s.n_pos_inf,  s.n_neg_inf,
                               s.n_zero, s.n_denormal, s.n_negative};
    put_step(table, &choice->step);
    put_texts(table, texts, N_OF(texts));
    marey_table_u64(table, s.n);
    put_reals(table, reals, N_OF(reals));
    for (size_t i = 0; i < N_OF(counts); i++)
        marey_table_u64(table, counts[i]);
    return CLI_FINE;
}

int dump_stats(marey_dumps *dumps, const char *name)
{
    return list(dumps, name, "stats", stats_columns, N_OF(stats_columns), list_stats);
}

/* ---- show ---- */

static void print_index(const struct marey_tensor *tensor, uint64_t i)
{
    uint64_t places[MAREY_MAX_RANK] = {0};
    for (uint32_t d = tensor->rank; d-- > 0;) {
        places[d] = i % (uint64_t)tensor->sizes[d];
        i /= (uint64_t)tensor->sizes[d];
    }
    putchar('[');
    for (uint32_t d = 0; d < tensor->rank; d++)
        printf("%s%" PRIu64, d == 0 ? "" : ",", places[d]);
    putchar(']');
}

static void print_element(const struct marey_tensor *tensor, uint64_t i)
{
    char text[64];
    printf("  %s", marey_tensor_element(tensor, i, text, sizeof text) == MAREY_OK ? text : "?");
}

/* Prints one innermost row: its index, and numbers from both ends. */
static void print_row(const struct marey_tensor *tensor, uint64_t row, uint64_t n)
{
    const uint64_t limit = dump_given.limit;
    if (tensor->rank > 0)
        print_index(tensor, row * n);
    for (uint64_t i = 0; i < n; i++) {
        if (i == limit && n > 2 * limit) {
            printf("  ...");
            i = n - limit;
        }
        print_element(tensor, row * n + i);
    }
    putchar('\n');
}

static void print_rows(const struct marey_tensor *tensor)
{
    const uint64_t n = marey_tensor_count(tensor), limit = dump_given.limit;
    if (n == 0)
        return;
    const uint64_t n_row = tensor->rank > 0 ? (uint64_t)tensor->sizes[tensor->rank - 1] : 1;
    for (uint64_t row = 0; row < n / n_row; row++) {
        if (row == limit && n / n_row > 2 * limit) {
            printf("...\n");
            row = n / n_row - limit;
        }
        print_row(tensor, row, n_row);
    }
}

/* Prints the positions of NaNs and infinities; skips chunks without any. */
static void print_odd(const struct marey_tensor *tensor, uint64_t n_odd)
{
    const uint64_t n = marey_tensor_count(tensor), size = marey_dtype_size(tensor->dtype);
    const int64_t one = 1;
    uint64_t n_printed = 0;
    for (uint64_t begin = 0; begin < n && n_printed < MAX_ODD; begin += CHUNK) {
        const int64_t n_chunk = (int64_t)(n - begin < CHUNK ? n - begin : CHUNK);
        struct marey_tensor part = {.dtype = tensor->dtype, .rank = 1, .sizes = &n_chunk};
        struct marey_tensor_stats s;
        part.data = (const char *)tensor->data + begin * size;
        if (marey_tensor_stats_get(&part, &s) != MAREY_OK || s.n_nan + s.n_pos_inf + s.n_neg_inf == 0)
            continue;
        part.sizes = &one;
        for (uint64_t i = begin; i < begin + (uint64_t)n_chunk && n_printed < MAX_ODD; i++) {
            part.data = (const char *)tensor->data + i * size;
            if (marey_tensor_stats_get(&part, &s) != MAREY_OK ||
                s.n_nan + s.n_pos_inf + s.n_neg_inf == 0)
                continue;
            printf(n_printed++ == 0 ? "not finite:" : ",");
            print_element(tensor, i);
            printf(" at ");
            print_index(tensor, i);
        }
    }
    if (n_printed != 0)
        printf(n_odd > n_printed ? " and %" PRIu64 " more\n" : "\n", n_odd - n_printed);
}

/* Prints a string of the dump, escaped. */
static void print_safe(const char *before, const char *text, size_t len)
{
    char piece[1024];
    fputs(before, stdout);
    while (len > 0) {
        size_t n = len < 200 ? len : 200;
        while (n < len && n > 196 && (text[n] & 0xc0) == 0x80) /* not inside a character */
            n--;
        marey_text_escape(text, n, piece, sizeof piece);
        fputs(piece, stdout);
        text += n;
        len -= n;
    }
}

/* The same, keeping line breaks. */
static void print_lines(const char *text, size_t len)
{
    while (len > 0) {
        const char *const end = memchr(text, '\n', len);
        const size_t n = end != NULL ? (size_t)(end - text) : len;
        print_safe("", text, n);
        putchar('\n');
        text += n + (end != NULL);
        len -= n + (end != NULL);
    }
}

static void print_head(const struct dump_choice *choice)
{
    const struct marey_dumped_value *value = choice->value;
    char shape[512];
    printf("step %" PRIu64, choice->step.step);
    if (choice->step.rank >= 0)
        printf(", rank %" PRId64, choice->step.rank);
    if (value->phase != NULL)
        print_safe(", ", value->phase, strlen(value->phase));
    print_safe(value->tree == MAREY_DUMP_GRADIENTS ? ": gradient " : ": ", value->name,
               strlen(value->name));
    if (value->dtype != MAREY_DTYPE_NONE)
        printf(", %s %s", marey_dtype_name(value->dtype), dump_shape(value, shape, sizeof shape));
    if (value->source != NULL)
        print_safe(", added by ", value->source, strlen(value->source));
    putchar('\n');
}

static void print_stats(const struct marey_tensor_stats *s)
{
    printf("min %.6g, max %.6g, mean %.6g, std %.6g, l2 %.6g; %" PRIu64 " NaN, %" PRIu64
           " infinite, %" PRIu64 " zero\n",
           s->min, s->max, s->mean, s->std, s->l2, s->n_nan, s->n_pos_inf + s->n_neg_inf, s->n_zero);
}

static int print_value(void *ctx, const struct dump_choice *choice)
{
    const struct marey_dumped_value *value = choice->value;
    struct marey_tensor_stats stats;
    struct marey_tensor tensor;
    bool *is_first = ctx;
    if (!*is_first)
        putchar('\n');
    *is_first = false;
    print_head(choice);
    if (value->dtype == MAREY_DTYPE_NONE) {
        if (value->text != NULL)
            print_lines(value->text, value->text_len);
        return CLI_FINE;
    }
    const bool has_stats = find_stats(choice, &stats);
    if (has_stats)
        print_stats(&stats);
    if (!value->has_data) {
        printf("its numbers were not kept (%s)\n", kept_of(value));
        return CLI_FINE;
    }
    CLI_TRY(dump_get(choice, &tensor));
    const uint64_t n_odd = has_stats ? stats.n_nan + stats.n_pos_inf + stats.n_neg_inf : 0;
    if (n_odd != 0)
        print_odd(&tensor, n_odd);
    print_rows(&tensor);
    return CLI_FINE;
}

int dump_print(marey_dumps *dumps, const char *name)
{
    bool is_first = true;
    return dump_choose(dumps, name, print_value, &is_first);
}
