/* Tables of samples with a row for each function, line, file, module or stack. */
#include <string.h>

#include "analyze/samples_whole.h"
#include "unwind/unwind.h"

void kymo__samples_put_wait(kymo_table *table, uint32_t wait)
{
    char text[64];
    if (wait != 0)
        kymo__put_string(table, kymo__wait_text(wait, text, sizeof text));
    else
        kymo_table_null(table);
}

void kymo__samples_put_row(kymo_table *table, const struct kymo__samples_sums *sums,
                           const struct kymo__samples_row *row, bool has_total)
{
    const struct kymo__samples_sum *const own = &row->own;
    kymo_table_u64(table, own->n);
    kymo_table_u64(table, own->ns);
    if (has_total)
        kymo_table_u64(table, row->total_ns);
    kymo__put_share(table, own->ns, sums->whole.ns);
    if (has_total)
        kymo__put_share(table, row->total_ns, sums->whole.ns);
    kymo_table_f64(table, kymo__samples_error(sums, own->ns));
    kymo__put_share(table, own->cpu_ns, own->known_ns);
    kymo__put_share(table, own->gil_ns, own->ns);
    kymo__samples_put_wait(table, row->wait);
}

static void put_line(kymo_table *table, uint32_t line)
{
    if (line != 0)
        kymo_table_u64(table, line);
    else
        kymo_table_null(table);
}

void kymo__samples_put_place(kymo_table *table, const kymo_samples *samples, uint32_t location)
{
    const struct kymo_samples_location l = kymo_samples_get_location(samples, location);
    const struct kymo_samples_function *const f = kymo_samples_get_function(samples, l.function);
    if (location == 0) {
        kymo_table_null(table);
        kymo_table_null(table);
        kymo_table_null(table);
        return;
    }
    kymo__put_string(table, f->name);
    kymo__put_string(table, f->file[0] != '\0' ? f->file : f->module);
    put_line(table, l.line);
}

/* ---- what frames are of ---- */

/* Entities in the making: of each location one, numbered from 1 in the order of their first one. */
struct making {
    struct kymo_samples_report *report;
    uint32_t *of_location;
    struct kymo__names names;
    struct kymo__arena texts;
    bool failed;
};

static bool making_init(struct making *m, struct kymo_samples_report *report)
{
    const uint32_t n = kymo_samples_n_locations(report->set.samples);
    *m = (struct making){.report = report};
    m->of_location = kymo__calloc((size_t)n + 1, sizeof *m->of_location);
    return m->of_location != NULL;
}

static void making_fini(struct making *m)
{
    kymo__free(m->of_location);
    kymo__names_fini(&m->names);
    kymo__arena_fini(&m->texts);
}

/* Texts to entities; of functions, which have fewer. */
static bool name_entities(struct making *m,
                          void (*name)(struct kymo__buf *, const struct kymo_samples_function *))
{
    const kymo_samples *const s = m->report->set.samples;
    const uint32_t n = kymo_samples_n_functions(s);
    uint32_t *const of_function = kymo__calloc((size_t)n + 1, sizeof *of_function);
    struct kymo__buf text = {0};
    m->failed = of_function == NULL;
    for (uint32_t i = 1; !m->failed && i <= n; i++) {
        text.len = 0;
        name(&text, kymo_samples_get_function(s, i));
        const char *const kept = kymo__arena_text(&m->texts, text.data, text.len);
        const uint32_t number =
            kept != NULL ? kymo__names_number(&m->names, kept, text.len) : KYMO__NO_NAME;
        m->failed = text.failed || number == KYMO__NO_NAME;
        of_function[i] = number + 1;
    }
    for (uint32_t i = 1; !m->failed && i <= kymo_samples_n_locations(s); i++)
        m->of_location[i] = of_function[kymo_samples_get_location(s, i).function];
    kymo__buf_fini(&text);
    kymo__free(of_function);
    return !m->failed;
}

static void name_file(struct kymo__buf *text, const struct kymo_samples_function *f)
{
    kymo__buf_puts(text, f->file[0] != '\0' ? f->file : f->module);
}

static bool is_wanted(const struct kymo_samples_report *report, const char *name)
{
    return kymo__name_matches(report->options.names, name, strlen(name));
}

static bool has_row(const struct kymo__samples_row *row)
{
    return row->own.n != 0 || row->total_ns != 0;
}

static const char no_frames[] = KYMO__NO_FRAMES;

/* ---- functions and lines ---- */

static const char *kind_name(enum kymo_frame_kind kind)
{
    static const char *const names[] = {"python", "native", "kernel", "mark"};
    return names[kind];
}

static void put_module(kymo_table *table, const struct kymo_samples_function *f)
{
    struct kymo__buf module = {0};
    kymo__samples_module(&module, f);
    kymo_table_text(table, module.len != 0 ? module.data : "", module.len);
    kymo__buf_fini(&module);
}

static void put_function(kymo_table *table, const struct kymo_samples_function *f, uint32_t line,
                         bool is_line)
{
    kymo__put_string(table, f->name);
    kymo__put_string(table, f->file[0] != '\0' ? f->file : f->module);
    put_line(table, line);
    put_module(table, f);
    if (!is_line)
        kymo__put_string(table, kind_name(f->kind));
}

/* Functions, then locations: each line of top-level code has its own row, because <module> always begins at line 1. */
static bool put_functions(struct kymo_samples_report *report)
{
    const kymo_samples *const s = report->set.samples;
    kymo_table *const table = report->tables[KYMO__SAMPLES_FUNCTIONS];
    const uint32_t n_functions = kymo_samples_n_functions(s), n = kymo_samples_n_locations(s);
    struct making m;
    bool done = making_init(&m, report);
    for (uint32_t i = 1; done && i <= n; i++) {
        const uint32_t function = kymo_samples_get_location(s, i).function;
        m.of_location[i] =
            kymo__is_top_level(kymo_samples_get_function(s, function)) ? n_functions + i : function;
    }
    const struct kymo__samples_entities entities = {m.of_location, n_functions + n};
    struct kymo__samples_row *const rows = done ? kymo__samples_rows(report, &entities) : NULL;
    done = rows != NULL;
    for (uint32_t i = 0; done && i <= entities.n; i++) {
        const struct kymo_samples_location l = kymo_samples_get_location(
            s, i > n_functions ? i - n_functions : 0); /* of top-level code */
        struct kymo_samples_function f =
            *kymo_samples_get_function(s, i > n_functions ? l.function : i);
        f.name = i == 0 ? no_frames : f.name;
        if (!has_row(&rows[i]) || !is_wanted(report, f.name))
            continue;
        put_function(table, &f, i > n_functions ? l.line : f.first_line, false);
        kymo__samples_put_row(table, &report->sums, &rows[i], true);
    }
    kymo__free(rows);
    making_fini(&m);
    return done;
}

static bool put_lines(struct kymo_samples_report *report)
{
    const kymo_samples *const s = report->set.samples;
    kymo_table *const table = report->tables[KYMO__SAMPLES_LINES];
    struct making m;
    bool done = making_init(&m, report);
    for (uint32_t i = 1; done && i <= kymo_samples_n_locations(s); i++)
        m.of_location[i] = i;
    const struct kymo__samples_entities entities = {m.of_location, kymo_samples_n_locations(s)};
    struct kymo__samples_row *const rows = done ? kymo__samples_rows(report, &entities) : NULL;
    done = rows != NULL;
    for (uint32_t i = 0; done && i <= entities.n; i++) {
        const struct kymo_samples_location l = kymo_samples_get_location(s, i);
        struct kymo_samples_function f = *kymo_samples_get_function(s, l.function);
        f.name = i == 0 ? no_frames : f.name;
        if (!has_row(&rows[i]) || !is_wanted(report, f.name))
            continue;
        put_function(table, &f, l.line, true);
        kymo__samples_put_row(table, &report->sums, &rows[i], true);
    }
    kymo__free(rows);
    making_fini(&m);
    return done;
}

/* ---- files and modules ---- */

static bool put_named(struct kymo_samples_report *report, enum kymo__samples_table which,
                      void (*name)(struct kymo__buf *, const struct kymo_samples_function *))
{
    kymo_table *const table = report->tables[which];
    struct making m;
    bool done = making_init(&m, report) && name_entities(&m, name);
    const struct kymo__samples_entities entities = {m.of_location, (uint32_t)m.names.n};
    struct kymo__samples_row *const rows = done ? kymo__samples_rows(report, &entities) : NULL;
    done = rows != NULL;
    for (uint32_t i = 0; done && i <= entities.n; i++) {
        const char *const text = i == 0                          ? no_frames
                                 : m.names.names[i - 1].len == 0 ? "(unknown)"
                                                                 : m.names.names[i - 1].text;
        if (!has_row(&rows[i]) || !is_wanted(report, text))
            continue;
        kymo__put_string(table, text);
        kymo__samples_put_row(table, &report->sums, &rows[i], true);
    }
    kymo__free(rows);
    making_fini(&m);
    return done;
}

bool kymo__samples_put_frames(struct kymo_samples_report *report)
{
    return put_functions(report) && put_lines(report) &&
           put_named(report, KYMO__SAMPLES_FILES, name_file) &&
           put_named(report, KYMO__SAMPLES_MODULES, kymo__samples_module);
}

/* ---- stacks ---- */

static uint32_t stack_of_cell(const void *ctx, const struct kymo_samples_report *report,
                              const struct kymo__samples_cell *cell)
{
    (void)ctx, (void)report;
    return cell->stack;
}

/* Frames from the outermost, "train (loop.py:12)"; of a stack that is deeper, its two ends. */
static void put_frames(struct kymo__buf *text, const kymo_samples *s, uint32_t stack)
{
    enum { MOST = 512 };
    uint32_t frames[MOST];
    uint32_t n = 0;
    const uint32_t depth = kymo_samples_get_stack(s, stack).depth;
    for (; stack != 0 && n < MOST; stack = kymo_samples_get_stack(s, stack).parent)
        frames[n++] = kymo_samples_get_stack(s, stack).location;
    if (depth > n)
        kymo__buf_printf(text, "(%u more);", depth - n);
    for (; n > 0; n--) {
        const struct kymo_samples_location l = kymo_samples_get_location(s, frames[n - 1]);
        const struct kymo_samples_function *const f = kymo_samples_get_function(s, l.function);
        const char *const file = f->file[0] != '\0' ? f->file : f->module;
        const char *const slash = strrchr(file, '/');
        kymo__buf_puts(text, f->name);
        if (file[0] != '\0')
            kymo__buf_printf(text, " (%s", slash != NULL ? slash + 1 : file);
        if (file[0] != '\0' && l.line != 0)
            kymo__buf_printf(text, ":%u", l.line);
        kymo__buf_puts(text, file[0] != '\0' ? ")" : "");
        kymo__buf_puts(text, n > 1 ? ";" : "");
    }
}

bool kymo__samples_put_stacks(struct kymo_samples_report *report)
{
    const kymo_samples *const s = report->set.samples;
    kymo_table *const table = report->tables[KYMO__SAMPLES_STACKS];
    const uint32_t n = kymo_samples_n_stacks(s);
    struct kymo__samples_row *const rows =
        kymo__samples_rows_of_cells(report, stack_of_cell, NULL, n);
    struct kymo__buf text = {0};
    for (uint32_t i = 0; rows != NULL && !text.failed && i <= n; i++) {
        text.len = 0;
        if (rows[i].own.n == 0)
            continue;
        if (i == 0)
            kymo__buf_puts(&text, no_frames);
        put_frames(&text, s, i);
        kymo__buf_put(&text, "", 1);
        if (text.failed || !is_wanted(report, text.data))
            continue;
        kymo_table_text(table, text.data, text.len - 1);
        kymo__samples_put_row(table, &report->sums, &rows[i], false);
    }
    const bool done = rows != NULL && !text.failed;
    kymo__buf_fini(&text);
    kymo__free(rows);
    return done;
}
