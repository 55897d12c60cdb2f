/* Tables of samples with a row for each function, line, file, module or stack. */
#include <string.h>

#include "analyze/samples/internal.h"
#include "sampler/unwind/internal.h"

void marey__samples_put_wait(marey_table *table, uint32_t wait)
{
    char text[64];
    if (wait != 0)
        marey__put_string(table, marey__wait_text(wait, text, sizeof text));
    else
        marey_table_null(table);
}

void marey__samples_put_row(marey_table *table, const struct marey__samples_sums *sums,
                            const struct marey__samples_row *row, bool has_total)
{
    const struct marey__samples_sum *const own = &row->own;
    marey_table_u64(table, own->n);
    marey_table_u64(table, own->ns);
    if (has_total)
        marey_table_u64(table, row->total_ns);
    marey__put_share(table, own->ns, sums->whole.ns);
    if (has_total)
        marey__put_share(table, row->total_ns, sums->whole.ns);
    marey_table_f64(table, marey__samples_error(sums, own->ns));
    marey__put_share(table, own->cpu_ns, own->known_ns);
    marey__put_share(table, own->gil_ns, own->ns);
    marey__samples_put_wait(table, row->wait);
}

static void put_line(marey_table *table, uint32_t line)
{
    if (line != 0)
        marey_table_u64(table, line);
    else
        marey_table_null(table);
}

void marey__samples_put_place(marey_table *table, const marey_samples *samples, uint32_t location)
{
    const struct marey_samples_location l = marey_samples_get_location(samples, location);
    const struct marey_samples_function *const f = marey_samples_get_function(samples, l.function);
    if (location == 0) {
        marey_table_null(table);
        marey_table_null(table);
        marey_table_null(table);
        return;
    }
    marey__put_string(table, f->name);
    marey__put_string(table, f->file[0] != '\0' ? f->file : f->module);
    put_line(table, l.line);
}

/* ---- what frames are of ---- */

/* Entities in the making: of each location one, numbered from 1 in the order of their first one. */
struct making {
    struct marey__samples_report *report;
    uint32_t *of_location;
    struct marey__names names;
    struct marey__arena texts;
    bool failed;
};

static bool making_init(struct making *m, struct marey__samples_report *report)
{
    const uint32_t n = marey_samples_n_locations(report->set.samples);
    *m = (struct making){.report = report};
    m->of_location = marey__calloc((size_t)n + 1, sizeof *m->of_location);
    return m->of_location != NULL;
}

static void making_fini(struct making *m)
{
    marey__free(m->of_location);
    marey__names_fini(&m->names);
    marey__arena_fini(&m->texts);
}

/* Texts to entities; of functions, which have fewer. */
static bool name_entities(struct making *m,
                          void (*name)(struct marey__buf *, const struct marey_samples_function *))
{
    const marey_samples *const s = m->report->set.samples;
    const uint32_t n = marey_samples_n_functions(s);
    uint32_t *const of_function = marey__calloc((size_t)n + 1, sizeof *of_function);
    struct marey__buf text = {0};
    m->failed = of_function == NULL;
    for (uint32_t i = 1; !m->failed && i <= n; i++) {
        text.len = 0;
        name(&text, marey_samples_get_function(s, i));
        const char *const kept = marey__arena_text(&m->texts, text.data, text.len);
        const uint32_t number =
            kept != NULL ? marey__names_number(&m->names, kept, text.len) : MAREY__NO_NAME;
        m->failed = text.failed || number == MAREY__NO_NAME;
        of_function[i] = number + 1;
    }
    for (uint32_t i = 1; !m->failed && i <= marey_samples_n_locations(s); i++)
        m->of_location[i] = of_function[marey_samples_get_location(s, i).function];
    marey__buf_fini(&text);
    marey__free(of_function);
    return !m->failed;
}

static void name_file(struct marey__buf *text, const struct marey_samples_function *f)
{
    marey__buf_puts(text, f->file[0] != '\0' ? f->file : f->module);
}

static bool is_wanted(const struct marey__samples_report *report, const char *name)
{
    return marey__name_matches(report->options.names, name, strlen(name));
}

static bool has_row(const struct marey__samples_row *row)
{
    return row->own.n != 0 || row->total_ns != 0;
}

static const char no_frames[] = MAREY__NO_FRAMES;

/* ---- functions and lines ---- */

static const char *kind_name(enum marey_frame_kind kind)
{
    static const char *const names[] = {"python", "native", "kernel", "mark"};
    return names[kind];
}

static void put_module(marey_table *table, const struct marey_samples_function *f)
{
    struct marey__buf module = {0};
    marey__samples_module(&module, f);
    marey_table_text(table, module.len != 0 ? module.data : "", module.len);
    marey__buf_fini(&module);
}

static void put_function(marey_table *table, const struct marey_samples_function *f, uint32_t line,
                         bool is_line)
{
    marey__put_string(table, f->name);
    marey__put_string(table, f->file[0] != '\0' ? f->file : f->module);
    put_line(table, line);
    put_module(table, f);
    if (!is_line)
        marey__put_string(table, kind_name(f->kind));
}

/* Functions, then locations: each line of top-level code has its own row, because <module> always begins at line 1. */
static bool put_functions(struct marey__samples_report *report)
{
    const marey_samples *const s = report->set.samples;
    marey_table *const table = report->tables[MAREY__SAMPLES_FUNCTIONS];
    const uint32_t n_functions = marey_samples_n_functions(s), n = marey_samples_n_locations(s);
    struct making m;
    bool done = making_init(&m, report);
    for (uint32_t i = 1; done && i <= n; i++) {
        const uint32_t function = marey_samples_get_location(s, i).function;
        m.of_location[i] = marey__is_top_level(marey_samples_get_function(s, function))
                               ? n_functions + i
                               : function;
    }
    const struct marey__samples_entities entities = {m.of_location, n_functions + n};
    struct marey__samples_row *const rows = done ? marey__samples_rows(report, &entities) : NULL;
    done = rows != NULL;
    for (uint32_t i = 0; done && i <= entities.n; i++) {
        const struct marey_samples_location l = marey_samples_get_location(
            s, i > n_functions ? i - n_functions : 0); /* of top-level code */
        struct marey_samples_function f =
            *marey_samples_get_function(s, i > n_functions ? l.function : i);
        f.name = i == 0 ? no_frames : f.name;
        if (!has_row(&rows[i]) || !is_wanted(report, f.name))
            continue;
        put_function(table, &f, i > n_functions ? l.line : f.first_line, false);
        marey__samples_put_row(table, &report->sums, &rows[i], true);
    }
    marey__free(rows);
    making_fini(&m);
    return done;
}

static bool put_lines(struct marey__samples_report *report)
{
    const marey_samples *const s = report->set.samples;
    marey_table *const table = report->tables[MAREY__SAMPLES_LINES];
    struct making m;
    bool done = making_init(&m, report);
    for (uint32_t i = 1; done && i <= marey_samples_n_locations(s); i++)
        m.of_location[i] = i;
    const struct marey__samples_entities entities = {m.of_location, marey_samples_n_locations(s)};
    struct marey__samples_row *const rows = done ? marey__samples_rows(report, &entities) : NULL;
    done = rows != NULL;
    for (uint32_t i = 0; done && i <= entities.n; i++) {
        const struct marey_samples_location l = marey_samples_get_location(s, i);
        struct marey_samples_function f = *marey_samples_get_function(s, l.function);
        f.name = i == 0 ? no_frames : f.name;
        if (!has_row(&rows[i]) || !is_wanted(report, f.name))
            continue;
        put_function(table, &f, l.line, true);
        marey__samples_put_row(table, &report->sums, &rows[i], true);
    }
    marey__free(rows);
    making_fini(&m);
    return done;
}

/* ---- files and modules ---- */

static bool put_named(struct marey__samples_report *report, enum marey__samples_table which,
                      void (*name)(struct marey__buf *, const struct marey_samples_function *))
{
    marey_table *const table = report->tables[which];
    struct making m;
    bool done = making_init(&m, report) && name_entities(&m, name);
    const struct marey__samples_entities entities = {m.of_location, (uint32_t)m.names.n};
    struct marey__samples_row *const rows = done ? marey__samples_rows(report, &entities) : NULL;
    done = rows != NULL;
    for (uint32_t i = 0; done && i <= entities.n; i++) {
        const char *const text = i == 0                          ? no_frames
                                 : m.names.names[i - 1].len == 0 ? "(unknown)"
                                                                 : m.names.names[i - 1].text;
        if (!has_row(&rows[i]) || !is_wanted(report, text))
            continue;
        marey__put_string(table, text);
        marey__samples_put_row(table, &report->sums, &rows[i], true);
    }
    marey__free(rows);
    making_fini(&m);
    return done;
}

bool marey__samples_put_frames(struct marey__samples_report *report)
{
    return put_functions(report) && put_lines(report) &&
           put_named(report, MAREY__SAMPLES_FILES, name_file) &&
           put_named(report, MAREY__SAMPLES_MODULES, marey__samples_module);
}

/* ---- stacks ---- */

static uint32_t stack_of_cell(const void *ctx, const struct marey__samples_report *report,
                              const struct marey__samples_cell *cell)
{
    (void)ctx, (void)report;
    return cell->stack;
}

/* Frames from the outermost, "train (loop.py:12)"; of a stack that is deeper, its two ends. */
static void put_frames(struct marey__buf *text, const marey_samples *s, uint32_t stack)
{
    enum { MOST = 512 };
    uint32_t frames[MOST];
    uint32_t n = 0;
    const uint32_t depth = marey_samples_get_stack(s, stack).depth;
    for (; stack != 0 && n < MOST; stack = marey_samples_get_stack(s, stack).parent)
        frames[n++] = marey_samples_get_stack(s, stack).location;
    if (depth > n)
        marey__buf_printf(text, "(%u more);", depth - n);
    for (; n > 0; n--) {
        const struct marey_samples_location l = marey_samples_get_location(s, frames[n - 1]);
        const struct marey_samples_function *const f = marey_samples_get_function(s, l.function);
        const char *const file = f->file[0] != '\0' ? f->file : f->module;
        const char *const slash = strrchr(file, '/');
        marey__buf_puts(text, f->name);
        if (file[0] != '\0')
            marey__buf_printf(text, " (%s", slash != NULL ? slash + 1 : file);
        if (file[0] != '\0' && l.line != 0)
            marey__buf_printf(text, ":%u", l.line);
        marey__buf_puts(text, file[0] != '\0' ? ")" : "");
        marey__buf_puts(text, n > 1 ? ";" : "");
    }
}

bool marey__samples_put_stacks(struct marey__samples_report *report)
{
    const marey_samples *const s = report->set.samples;
    marey_table *const table = report->tables[MAREY__SAMPLES_STACKS];
    const uint32_t n = marey_samples_n_stacks(s);
    struct marey__samples_row *const rows =
        marey__samples_rows_of_cells(report, stack_of_cell, NULL, n);
    struct marey__buf text = {0};
    for (uint32_t i = 0; rows != NULL && !text.failed && i <= n; i++) {
        text.len = 0;
        if (rows[i].own.n == 0)
            continue;
        if (i == 0)
            marey__buf_puts(&text, no_frames);
        put_frames(&text, s, i);
        marey__buf_put(&text, "", 1);
        if (text.failed || !is_wanted(report, text.data))
            continue;
        marey_table_text(table, text.data, text.len - 1);
        marey__samples_put_row(table, &report->sums, &rows[i], false);
    }
    const bool done = rows != NULL && !text.failed;
    marey__buf_fini(&text);
    marey__free(rows);
    return done;
}
