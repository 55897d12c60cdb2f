/* The flame graph as a file: header, boxes, footer, style and script. See flamegraph_internal.h. */
#include "present/export/stacks/internal.h"

/* flamegraph.js and flamegraph.css, which the build turns into strings. */
extern const char marey__flamegraph_js[], marey__flamegraph_css[];

void marey__flame_flush(struct marey__flame *f)
{
    if (!f->buf.failed)
        marey__out_put(&f->x->out, f->buf.data, f->buf.len);
    f->buf.len = 0;
}

void marey__flame_text(struct marey__flame *f, double x, double y, const char *kind,
                       const struct marey__buf *text)
{
    marey__buf_printf(&f->buf, "<text x=\"%.0f\" y=\"%.0f\" class=\"%s\">", x, y, kind);
    f->buf.failed |= text->failed;
    marey__xml_put(&f->buf, text->data, text->len);
    marey__buf_puts(&f->buf, "</text>\n");
}

void marey__flame_change(struct marey__buf *buf, uint64_t now, uint64_t before)
{
    if (now == before) {
        marey__buf_puts(buf, "no change");
        return;
    }
    marey__buf_puts(buf, now > before ? "+" : "-");
    marey__text_duration(buf, (double)(now > before ? now - before : before - now), NULL);
}

/* ---- header ---- */

static void put_title(const struct marey__flame *f, struct marey__buf *title)
{
    const size_t widest = f->e.has_baseline ? 23 : 48; /* the search stands to the right of it */
    marey__buf_puts(title, f->e.has_baseline ? "What changed: " : "Where the time went: ");
    marey__text_put(title, f->titles[MAREY__NEW], strlen(f->titles[MAREY__NEW]), widest);
    if (!f->e.has_baseline)
        return;
    marey__buf_puts(title, " against ");
    marey__text_put(title, f->titles[MAREY__OLD], strlen(f->titles[MAREY__OLD]), widest);
}

/* "5.12 s in ranges of 2 processes and 8 threads" */
static void put_sum(const struct marey__flame *f, struct marey__buf *text, enum marey__side side)
{
    const struct marey__stacks *stacks = &f->e.stacks;
    marey__text_duration(text, (double)marey__flame_total(f, side), NULL);
    marey__buf_puts(text, side == MAREY__NEW ? " in ranges of " : " of ");
    marey__text_count_of(text, stacks->n_processes[side], "process");
    marey__buf_puts(text, " and ");
    marey__text_count_of(text, stacks->n_threads[side], "thread");
}

static void put_totals(const struct marey__flame *f, struct marey__buf *text)
{
    const uint64_t now = marey__flame_total(f, MAREY__NEW),
                   before = marey__flame_total(f, MAREY__OLD);
    put_sum(f, text, MAREY__NEW);
    if (f->e.has_baseline) {
        marey__buf_puts(text, "; before, ");
        put_sum(f, text, MAREY__OLD);
        marey__buf_puts(text, "; ");
        marey__flame_change(text, now, before);
        if (before != 0)
            marey__buf_printf(text, " (%+.1f %%)", 100 * ((double)now / (double)before - 1));
    }
    marey__buf_puts(text, ".");
}

static void put_header(struct marey__flame *f)
{
    struct marey__buf title = {0}, totals = {0};
    put_title(f, &title);
    put_totals(f, &totals);
    marey__buf_printf(&f->buf,
                      "<g id=\"header\"><rect width=\"100%%\" height=\"%.0f\" fill=\"#fff\"/>\n",
                      f->top - 4);
    marey__flame_text(f, MAREY__FLAME_PAD, 24, "t", &title);
    marey__flame_text(f, MAREY__FLAME_PAD, 46, "n", &totals);
    marey__buf_printf(
        &f->buf, "<text id=\"details\" x=\"%d\" y=\"66\" class=\"n\">%s</text>\n", MAREY__FLAME_PAD,
        f->e.has_baseline
            ? "Width is total time now; colour is how the time in the box itself changed."
            : "Width is total time. Where nothing stands below a box, it was busy itself.");
    if (f->e.has_baseline)
        marey__flame_put_legend(f, MAREY__FLAME_HEADER);
    marey__buf_puts(&f->buf, "</g>\n");
    marey__buf_fini(&title);
    marey__buf_fini(&totals);
}

/* ---- footer ---- */

static void put_left_out(const struct marey__flame *f, struct marey__buf *text)
{
    if (marey__flame_total(f, MAREY__NEW) == 0)
        marey__buf_puts(text, "No range was begun and ended here. ");
    if (f->n_narrow != 0) {
        marey__text_count_of(text, f->n_narrow, "path");
        marey__buf_printf(text, " narrower than %.2g pixels, together ", MAREY__FLAME_NARROWEST);
        marey__text_duration(text, (double)f->narrow_ns, NULL);
        marey__buf_puts(text, ", left out; light grey stands for them. ");
    }
    if (f->e.options.filter != NULL) {
        marey__buf_puts(text, "Only names that match ");
        marey__text_put(text, f->e.options.filter, strlen(f->e.options.filter), 40);
        marey__buf_puts(text, "; the rest counts as time of what is around it. ");
    }
    for (int side = MAREY__NEW; side <= MAREY__OLD; side++) {
        const uint64_t n_lost = f->e.stacks.lost_events[side];
        if (n_lost == 0)
            continue;
        marey__text_count_of(text, n_lost, "event");
        marey__buf_puts(text, side == MAREY__NEW ? " lost: times are of what is there. "
                                                 : " lost in the baseline. ");
    }
}

static void put_footer(struct marey__flame *f, double y)
{
    struct marey__buf text = {0};
    put_left_out(f, &text);
    if (f->e.stacks.has_async)
        marey__buf_puts(&text, "Async ranges overlap and are not shown. ");
    marey__buf_printf(&text, "Made by marey %s.", marey_version());
    marey__flame_text(f, MAREY__FLAME_PAD, y, "f", &text);
    marey__buf_fini(&text);
}

/* ---- the file ---- */

static const char *const hatching =
    "<defs><pattern id=\"gone\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#fff\"/>"
    "<rect width=\"2\" height=\"6\" fill=\"#bbb\"/></pattern></defs>\n";

static void put_start(struct marey__flame *f, double height)
{
    struct marey__buf title = {0};
    put_title(f, &title);
    marey__buf_printf(&f->buf,
                      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
                      "viewBox=\"0 0 %d %.0f\">\n<title>",
                      MAREY__FLAME_WIDTH, height, MAREY__FLAME_WIDTH, height);
    f->buf.failed |= title.failed;
    marey__xml_put(&f->buf, title.data, title.len);
    marey__buf_printf(&f->buf, "</title>\n<style>\n%s</style>\n", marey__flamegraph_css);
    if (f->n_gone != 0)
        marey__buf_puts(&f->buf, hatching);
    marey__buf_puts(&f->buf, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    marey__buf_fini(&title);
}

/* The header comes last: the script keeps it in sight above boxes that scroll away below it. */
static void put_picture(struct marey__flame *f)
{
    f->top = MAREY__FLAME_HEADER + (f->e.has_baseline ? MAREY__FLAME_LEGEND : 0);
    const double gone_at = f->top + (double)f->n_rows * MAREY__FLAME_ROW;
    const double foot_at = gone_at + marey__flame_gone_height(f) + 22;
    put_start(f, foot_at + 12);
    marey__flame_put_boxes(f);
    marey__flame_put_gone(f, gone_at);
    put_footer(f, foot_at);
    put_header(f);
    marey__buf_printf(&f->buf, "<script><![CDATA[\n%s]]></script>\n</svg>\n", marey__flamegraph_js);
    marey__flame_flush(f);
}

static marey_status draw(struct marey__flame *f, marey_recording *const *recordings, size_t n)
{
    const struct marey_export_options *wants = f->x->options;
    MAREY_TRY(marey__stack_export_init(&f->e, f->x, recordings, n, NULL, marey__flame_heaviest_first));
    f->titles[MAREY__NEW] = marey__recordings_title(recordings, n);
    f->titles[MAREY__OLD] = marey__recordings_title(wants->baseline, wants->n_baseline);
    const bool is_ready = f->titles[MAREY__NEW] != NULL && f->titles[MAREY__OLD] != NULL &&
                          marey__flame_layout(f) && (!f->e.has_baseline || marey__flame_compare(f));
    if (is_ready)
        put_picture(f);
    MAREY__TRY_MEMORY(is_ready && !f->buf.failed);
    return MAREY_OK;
}

static marey_status on_whole(struct marey__export *x, marey_recording *const *recordings, size_t n)
{
    struct marey__flame f = {.x = x};
    const marey_status status = draw(&f, recordings, n);
    marey__stack_export_fini(&f.e);
    for (size_t s = 0; s < MAREY__N_SIDES; s++)
        marey__free(f.titles[s]);
    marey__free(f.boxes);
    marey__free(f.gone);
    marey__buf_fini(&f.buf);
    return status;
}

const struct marey__export_format marey__export_flamegraph = {
    .info =
        {
            .name = "flamegraph",
            .extensions = ".svg",
            .brief = "flame graph in one SVG file, for any browser",
            .details =
                "Can be searched and zoomed; with a baseline, colors show the change. Async ranges "
                "are left out. "
                "Time of ranges that a filter removes counts as time of the range around them.",
            .next = "open it in a browser; click a box to zoom, Ctrl-F to search",
            .content = MAREY_EXPORT_PATHS,
            .takes = MAREY_EXPORT_FILTER | MAREY_EXPORT_BY | MAREY_EXPORT_BASELINE |
                     MAREY_EXPORT_STARTUP,
        },
    .whole = on_whole,
};
