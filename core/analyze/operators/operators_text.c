/*
 * The table of operators in torch's layout: right-aligned columns of fixed widths, two blanks between, a rule of dashes
 * above and below. One difference: torch prints FLOPs under "Source Location" and the source under FLOPs.
 */
#include "analyze/operators/internal.h"
#include "present/draw/internal.h"

#define FIELD(name) offsetof(struct marey__operator, name)

enum {
    WIDTH = 12, /* of a column of numbers */
    MAX_NAME = 55,
    MAX_SHAPES = 80,
    MAX_SOURCE = 75,
};

struct layout {
    const struct marey__operators *operators;
    size_t name_width, shapes_width, source_width;
    bool has_memory, has_device_memory, has_flops;
    const char *device; /* "CUDA" */
    double flops_scale;
    char flops_title[16];
    struct marey__buf line, text;
};

/* ---- cells ---- */

/* Characters, not bytes. */
static size_t count_characters(const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

/* The position of character `number`. */
static size_t character_at(const char *text, size_t len, size_t number)
{
    size_t at = 0;
    while (at < len && number > 0) {
        at++;
        while (at < len && ((unsigned char)text[at] & 0xc0) == 0x80)
            at++;
        number--;
    }
    return at;
}

static void put_blanks(struct marey__buf *line, size_t n)
{
    char *room = marey__buf_extend(line, n);
    if (room != NULL)
        memset(room, ' ', n);
}

static void put_cell(struct layout *layout, const char *text, size_t len, size_t width, bool is_left)
{
    const size_t n = count_characters(text, len);
    const size_t blanks = n < width ? width - n : 0;
    put_blanks(&layout->line, is_left ? 0 : blanks);
    marey__buf_put(&layout->line, text, len);
    put_blanks(&layout->line, (is_left ? blanks : 0) + 2);
}

static void put_word(struct layout *layout, const char *word)
{
    put_cell(layout, word, strlen(word), WIDTH, false);
}

/* Microseconds, milliseconds or seconds, the largest unit with a value of at least 1. */
static const char *format_time(double ns, char into[32])
{
    if (ns >= 1e9)
        snprintf(into, 32, "%.3fs", ns / 1e9);
    else if (ns >= 1e6)
        snprintf(into, 32, "%.3fms", ns / 1e6);
    else
        snprintf(into, 32, "%.3fus", ns / 1e3);
    return into;
}

static void put_time(struct layout *layout, double ns)
{
    char text[32];
    put_word(layout, format_time(ns, text));
}

static void put_share(struct layout *layout, int64_t part, int64_t whole)
{
    char text[32] = "NaN";
    if (whole != 0)
        snprintf(text, sizeof text, "%.2f%%", (double)part * 100.0 / (double)whole);
    put_word(layout, text);
}

static void put_memory(struct layout *layout, int64_t bytes)
{
    static const char *const units[] = {"KB", "MB", "GB"};
    char text[32];
    const double size = bytes < 0 ? -(double)bytes : (double)bytes;
    double scale = 1024;
    size_t i = 0;
    while (i < 2 && size >= scale * 1024) {
        scale *= 1024;
        i++;
    }
    if (size < 1024)
        snprintf(text, sizeof text, "%lld B", (long long)bytes);
    else
        snprintf(text, sizeof text, "%.2f %s", (double)bytes / scale, units[i]);
    put_word(layout, text);
}

/* ---- widths ---- */

/* Write a text of the trace as printed to layout->text. */
static size_t show(struct layout *layout, const char *text, size_t len)
{
    layout->text.len = 0;
    marey__text_put(&layout->text, text, len, 0);
    return count_characters(layout->text.data, layout->text.len);
}

static uint32_t n_entries(const struct marey__operators *operators, const struct marey__operator *row)
{
    if (operators->texts.names[row->key.top].len == 0)
        return 0;
    return MAREY__MIN(operators->stacks[row->stack].n, operators->stack_depth);
}

static const struct marey__torch_entry *entry_of(const struct marey__operators *operators,
                                                 const struct marey__operator *row, uint32_t i)
{
    return &operators->entries[operators->stacks[row->stack].first + i];
}

static void measure(struct layout *layout)
{
    const struct marey__operators *operators = layout->operators;
    for (size_t i = 0; i < operators->n_rows; i++) {
        const struct marey__operator *row = &operators->rows[i];
        const struct marey__operator_text name = marey__operator_name(operators, row),
                                          shapes = marey__operator_shapes(operators, row);
        layout->name_width = MAREY__MAX(layout->name_width, show(layout, name.text, name.len) + 4);
        layout->shapes_width =
            MAREY__MAX(layout->shapes_width, show(layout, shapes.text, shapes.len) + 4);
        for (uint32_t e = 0; e < n_entries(operators, row); e++) {
            const struct marey__torch_entry *entry = entry_of(operators, row, e);
            layout->source_width =
                MAREY__MAX(layout->source_width, show(layout, entry->text, entry->len) + 4);
        }
    }
    layout->name_width = MAREY__MIN(layout->name_width, (size_t)MAX_NAME);
    layout->shapes_width = MAREY__MIN(layout->shapes_width, (size_t)MAX_SHAPES);
    layout->source_width = MAREY__MIN(layout->source_width, (size_t)MAX_SOURCE);
}

/* Use the unit of the smallest value for all. */
static void scale_flops(struct layout *layout)
{
    static const char *const titles[] = {"FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"};
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < layout->operators->n_rows; i++) {
        const uint64_t flops = layout->operators->rows[i].flops;
        least = flops > 0 && flops < least ? flops : least;
    }
    layout->has_flops = layout->operators->trace->header.has_flops && least != UINT64_MAX;
    size_t i = 0;
    layout->flops_scale = 1;
    for (uint64_t limit = 1000; i < MAREY__COUNT_OF(titles) - 1 && least >= limit; limit *= 1000) {
        layout->flops_scale *= 1000;
        i++;
    }
    snprintf(layout->flops_title, sizeof layout->flops_title, "Total %s", titles[i]);
}

/* ---- lines ---- */

static marey_status end_line(struct layout *layout, FILE *out)
{
    marey__buf_puts(&layout->line, "\n");
    if (layout->text.failed)
        layout->line.failed = true;
    return marey__buf_to_stream(&layout->line, out);
}

/* Columns of numbers, in torch's order. */
static const struct column {
    const char *title; /* %s: the device */
    enum { ALWAYS, WITH_DEVICE, WITH_MEMORY, WITH_DEVICE_MEMORY } when;
    enum { SHARE_OF_ALL, TIME, TIME_PER_CALL, MEMORY, CALLS } what;
    size_t field; /* offset in struct marey__operator */
} columns[] = {
    {"Self CPU %%", ALWAYS, SHARE_OF_ALL, FIELD(self_cpu_ns)},
    {"Self CPU", ALWAYS, TIME, FIELD(self_cpu_ns)},
    {"CPU total %%", ALWAYS, SHARE_OF_ALL, FIELD(cpu_ns)},
    {"CPU total", ALWAYS, TIME, FIELD(cpu_ns)},
    {"CPU time avg", ALWAYS, TIME_PER_CALL, FIELD(cpu_ns)},
    {"Self %s", WITH_DEVICE, TIME, FIELD(self_device_ns)},
    {"Self %s %%", WITH_DEVICE, SHARE_OF_ALL, FIELD(self_device_ns)},
    {"%s total", WITH_DEVICE, TIME, FIELD(device_ns)},
    {"%s time avg", WITH_DEVICE, TIME_PER_CALL, FIELD(device_ns)},
    {"CPU Mem", WITH_MEMORY, MEMORY, FIELD(cpu_bytes)},
    {"Self CPU Mem", WITH_MEMORY, MEMORY, FIELD(self_cpu_bytes)},
    {"%s Mem", WITH_DEVICE_MEMORY, MEMORY, FIELD(device_bytes)},
    {"Self %s Mem", WITH_DEVICE_MEMORY, MEMORY, FIELD(self_device_bytes)},
    {"# of Calls", ALWAYS, CALLS, FIELD(n_calls)},
};

static bool is_shown(const struct layout *layout, const struct column *column)
{
    return column->when == ALWAYS ||
           (column->when == WITH_DEVICE && layout->operators->has_device_time) ||
           (column->when == WITH_MEMORY && layout->has_memory) ||
           (column->when == WITH_DEVICE_MEMORY && layout->has_device_memory);
}

static size_t n_numbers(const struct layout *layout)
{
    size_t n = 0;
    for (size_t i = 0; i < MAREY__COUNT_OF(columns); i++)
        n += is_shown(layout, &columns[i]);
    return n;
}

static void put_dashes(struct marey__buf *line, size_t n)
{
    char *room = marey__buf_extend(line, n);
    if (room != NULL)
        memset(room, '-', n);
    put_blanks(line, 2);
}

static marey_status put_rule(struct layout *layout, FILE *out)
{
    put_dashes(&layout->line, layout->name_width);
    for (size_t i = 0; i < n_numbers(layout); i++)
        put_dashes(&layout->line, WIDTH);
    if (layout->operators->has_shapes)
        put_dashes(&layout->line, layout->shapes_width);
    if (layout->operators->has_stacks)
        put_dashes(&layout->line, layout->source_width);
    if (layout->has_flops)
        put_dashes(&layout->line, WIDTH);
    return end_line(layout, out);
}

static marey_status put_titles(struct layout *layout, FILE *out)
{
    put_cell(layout, "Name", 4, layout->name_width, false);
    for (size_t i = 0; i < MAREY__COUNT_OF(columns); i++) {
        char title[32];
        snprintf(title, sizeof title, columns[i].title, layout->device);
        if (is_shown(layout, &columns[i]))
            put_word(layout, title);
    }
    if (layout->operators->has_shapes)
        put_cell(layout, "Input Shapes", 12, layout->shapes_width, false);
    if (layout->operators->has_stacks)
        put_cell(layout, "Source Location", 15, layout->source_width, true);
    if (layout->has_flops)
        put_word(layout, layout->flops_title);
    return end_line(layout, out);
}

static void put_name(struct layout *layout, const struct marey__operator *row)
{
    const struct marey__operator_text name = marey__operator_name(layout->operators, row);
    const size_t n = show(layout, name.text, name.len), most = MAX_NAME - 3;
    if (n >= most) {
        layout->text.len = character_at(layout->text.data, layout->text.len, most);
        marey__buf_puts(&layout->text, "...");
    }
    put_cell(layout, layout->text.data, layout->text.len, layout->name_width, false);
}

static void put_number(struct layout *layout, const struct column *column,
                       const struct marey__operator *row)
{
    char text[32];
    int64_t number;
    memcpy(&number, (const char *)row + column->field, sizeof number);
    switch (column->what) {
    case SHARE_OF_ALL:
        put_share(layout, number,
                  column->when == ALWAYS ? layout->operators->sum_cpu_ns
                                         : layout->operators->sum_device_ns);
        break;
    case TIME:
        put_time(layout, (double)number);
        break;
    case TIME_PER_CALL:
        put_time(layout, (double)number / (double)row->n_calls);
        break;
    case MEMORY:
        put_memory(layout, number);
        break;
    default:
        snprintf(text, sizeof text, "%llu", (unsigned long long)number);
        put_word(layout, text);
    }
}

/* If the text is too long, its end is the most useful part. */
static void put_source(struct layout *layout, const struct marey__torch_entry *entry)
{
    const size_t n = show(layout, entry->text, entry->len);
    if (n <= layout->source_width) {
        put_cell(layout, layout->text.data, layout->text.len, layout->source_width, true);
        return;
    }
    const size_t from =
        character_at(layout->text.data, layout->text.len, n - layout->source_width + 3);
    marey__buf_puts(&layout->line, "...");
    put_cell(layout, layout->text.data + from, layout->text.len - from, layout->source_width - 3,
             true);
}

static void put_flops(struct layout *layout, uint64_t flops)
{
    char text[32] = "--";
    if (flops > 0)
        snprintf(text, sizeof text, "%8.3f", (double)flops / layout->flops_scale);
    put_word(layout, text);
}

static marey_status put_row(struct layout *layout, const struct marey__operator *row, FILE *out)
{
    const struct marey__operators *operators = layout->operators;
    put_name(layout, row);
    for (size_t i = 0; i < MAREY__COUNT_OF(columns); i++)
        if (is_shown(layout, &columns[i]))
            put_number(layout, &columns[i], row);
    if (operators->has_shapes) {
        const struct marey__operator_text shapes = marey__operator_shapes(operators, row);
        show(layout, shapes.text, shapes.len);
        const size_t len = character_at(layout->text.data, layout->text.len, layout->shapes_width);
        put_cell(layout, layout->text.data, len, layout->shapes_width, false);
    }
    if (operators->has_stacks) {
        if (n_entries(operators, row) > 0)
            put_source(layout, entry_of(operators, row, 0));
        else
            put_cell(layout, "", 0, layout->source_width, true);
    }
    if (layout->has_flops)
        put_flops(layout, row->flops);
    return end_line(layout, out);
}

/* The remaining entries of the stack, and a blank line. */
static marey_status put_stack(struct layout *layout, const struct marey__operator *row, FILE *out)
{
    const uint32_t n = n_entries(layout->operators, row);
    const size_t before = layout->name_width + 2 + n_numbers(layout) * (WIDTH + 2) +
                          (layout->operators->has_shapes ? layout->shapes_width + 2 : 0);
    for (uint32_t i = 1; i <= MAREY__MAX(n, 1u); i++) {
        put_blanks(&layout->line, before);
        if (i < n)
            put_source(layout, entry_of(layout->operators, row, i));
        else
            put_cell(layout, "", 0, layout->source_width, true);
        if (layout->has_flops)
            put_cell(layout, "", 0, WIDTH, false);
        MAREY_TRY(end_line(layout, out));
    }
    return MAREY_OK;
}

static marey_status put_sums(struct layout *layout, FILE *out)
{
    char text[32];
    marey__buf_printf(&layout->line, "Self CPU time total: %s",
                      format_time((double)layout->operators->sum_cpu_ns, text));
    MAREY_TRY(end_line(layout, out));
    if (!layout->operators->has_device_time)
        return MAREY_OK;
    marey__buf_printf(&layout->line, "Self %s time total: %s", layout->device,
                      format_time((double)layout->operators->sum_device_ns, text));
    return end_line(layout, out);
}

static marey_status put_table(struct layout *layout, size_t n_rows, FILE *out)
{
    const struct marey__operators *operators = layout->operators;
    MAREY_TRY(put_rule(layout, out));
    MAREY_TRY(put_titles(layout, out));
    MAREY_TRY(put_rule(layout, out));
    for (size_t i = 0; i < MAREY__MIN(n_rows, operators->n_rows); i++) {
        MAREY_TRY(put_row(layout, &operators->rows[i], out));
        if (operators->has_stacks)
            MAREY_TRY(put_stack(layout, &operators->rows[i], out));
    }
    MAREY_TRY(put_rule(layout, out));
    return put_sums(layout, out);
}

static void layout_fini(struct layout *layout)
{
    marey__buf_fini(&layout->line);
    marey__buf_fini(&layout->text);
}

marey_status marey__operators_text(struct marey__report_writer *writer)
{
    const struct marey__operators *const operators = writer->report->data;
    const size_t n_rows = writer->options->limit != 0 ? writer->options->limit : SIZE_MAX;
    const struct marey__torch_trace *trace = operators->trace;
    struct layout layout MAREY__FINALLY(layout_fini) = {.operators = operators,
                                                        .has_memory = trace->header.has_memory ||
                                                                      trace->n_memory > 0,
                                                        .device = trace->has_xpu ? "XPU" : "CUDA"};
    layout.has_device_memory = layout.has_memory && operators->has_device_memory;
    measure(&layout);
    scale_flops(&layout);
    MAREY_TRY(put_table(&layout, n_rows, writer->lines.out));
    return marey__lines_put_notes(&writer->lines, writer->report->tables[1]);
}
