/* The flame graph as a file: header, boxes, footer, style and script. See flamegraph_internal.h. */
#include "present/flamegraph_internal.h"

/* flamegraph.js and flamegraph.css, which the build turns into strings. */
extern const char kymo__flamegraph_js[], kymo__flamegraph_css[];

void kymo__flame_flush(struct kymo__flame *f)
{
    if (!f->buf.failed)
        kymo__out_put(&f->x->out, f->buf.data, f->buf.len);
    f->buf.len = 0;
}

void kymo__flame_text(struct kymo__flame *f, double x, double y, const char *kind,
                      const struct kymo__buf *text)
{
    kymo__buf_printf(&f->buf, "<text x=\"%.0f\" y=\"%.0f\" class=\"%s\">", x, y, kind);
    f->buf.failed |= text->failed;
    kymo__xml_put(&f->buf, text->data, text->len);
    kymo__buf_puts(&f->buf, "</text>\n");
}

void kymo__flame_change(struct kymo__buf *buf, uint64_t now, uint64_t before)
{
    if (now == before) {
        kymo__buf_puts(buf, "no change");
        return;
    }
    kymo__buf_puts(buf, now > before ? "+" : "-");
    kymo__text_duration(buf, (double)(now > before ? now - before : before - now), NULL);
}

/* ---- header ---- */

static void put_title(const struct kymo__flame *f, struct kymo__buf *title)
{
    const size_t widest = f->e.has_baseline ? 23 : 48; /* the search stands to the right of it */
    kymo__buf_puts(title, f->e.has_baseline ? "What changed: " : "Where the time went: ");
    kymo__text_put(title, f->titles[KYMO__NEW], strlen(f->titles[KYMO__NEW]), widest);
    if (!f->e.has_baseline)
        return;
    kymo__buf_puts(title, " against ");
    kymo__text_put(title, f->titles[KYMO__OLD], strlen(f->titles[KYMO__OLD]), widest);
}

/* "5.12 s in ranges of 2 processes and 8 threads" */
static void put_sum(const struct kymo__flame *f, struct kymo__buf *text, enum kymo__side side)
{
    const struct kymo__stacks *stacks = &f->e.stacks;
    kymo__text_duration(text, (double)kymo__flame_total(f, side), NULL);
    kymo__buf_puts(text, side == KYMO__NEW ? " in ranges of " : " of ");
    kymo__text_count_of(text, stacks->n_processes[side], "process");
    kymo__buf_puts(text, " and ");
    kymo__text_count_of(text, stacks->n_threads[side], "thread");
}

static void put_totals(const struct kymo__flame *f, struct kymo__buf *text)
{
    const uint64_t now = kymo__flame_total(f, KYMO__NEW), before = kymo__flame_total(f, KYMO__OLD);
    put_sum(f, text, KYMO__NEW);
    if (f->e.has_baseline) {
        kymo__buf_puts(text, "; before, ");
        put_sum(f, text, KYMO__OLD);
        kymo__buf_puts(text, "; ");
        kymo__flame_change(text, now, before);
        if (before != 0)
            kymo__buf_printf(text, " (%+.1f %%)", 100 * ((double)now / (double)before - 1));
    }
    kymo__buf_puts(text, ".");
}

static void put_header(struct kymo__flame *f)
{
    struct kymo__buf title = {0}, totals = {0};
    put_title(f, &title);
    put_totals(f, &totals);
    kymo__buf_printf(&f->buf,
                     "<g id=\"header\"><rect width=\"100%%\" height=\"%.0f\" fill=\"#fff\"/>\n",
                     f->top - 4);
    kymo__flame_text(f, KYMO__FLAME_PAD, 24, "t", &title);
    kymo__flame_text(f, KYMO__FLAME_PAD, 46, "n", &totals);
    kymo__buf_printf(
        &f->buf, "<text id=\"details\" x=\"%d\" y=\"66\" class=\"n\">%s</text>\n", KYMO__FLAME_PAD,
        f->e.has_baseline
            ? "Width is total time now; colour is how the time in the box itself changed."
            : "Width is total time. Where nothing stands below a box, it was busy itself.");
    if (f->e.has_baseline)
        kymo__flame_put_legend(f, KYMO__FLAME_HEADER);
    kymo__buf_puts(&f->buf, "</g>\n");
    kymo__buf_fini(&title);
    kymo__buf_fini(&totals);
}

/* ---- footer ---- */

static void put_left_out(const struct kymo__flame *f, struct kymo__buf *text)
{
    if (kymo__flame_total(f, KYMO__NEW) == 0)
        kymo__buf_puts(text, "No range was begun and ended here. ");
    if (f->n_narrow != 0) {
        kymo__text_count_of(text, f->n_narrow, "path");
        kymo__buf_printf(text, " narrower than %.2g pixels, together ", KYMO__FLAME_NARROWEST);
        kymo__text_duration(text, (double)f->narrow_ns, NULL);
        kymo__buf_puts(text, ", left out; light grey stands for them. ");
    }
    if (f->e.options.filter != NULL) {
        kymo__buf_puts(text, "Only names that match ");
        kymo__text_put(text, f->e.options.filter, strlen(f->e.options.filter), 40);
        kymo__buf_puts(text, "; the rest counts as time of what is around it. ");
    }
    for (int side = KYMO__NEW; side <= KYMO__OLD; side++) {
        const uint64_t n_lost = f->e.stacks.lost_events[side];
        if (n_lost == 0)
            continue;
        kymo__text_count_of(text, n_lost, "event");
        kymo__buf_puts(text, side == KYMO__NEW ? " lost: times are of what is there. "
                                               : " lost in the baseline. ");
    }
}

static void put_footer(struct kymo__flame *f, double y)
{
    struct kymo__buf text = {0};
    put_left_out(f, &text);
    if (f->e.stacks.has_overlaps)
        kymo__buf_puts(&text, "Ranges that overlap others of their thread are not shown. ");
    if (f->e.stacks.has_async)
        kymo__buf_puts(&text, "Async ranges overlap and are not shown. ");
    kymo__buf_printf(&text, "Made by kymo %s.", kymo_version());
    kymo__flame_text(f, KYMO__FLAME_PAD, y, "f", &text);
    kymo__buf_fini(&text);
}

/* ---- the file ---- */

static const char *const hatching =
    "<defs><pattern id=\"gone\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#fff\"/>"
    "<rect width=\"2\" height=\"6\" fill=\"#bbb\"/></pattern></defs>\n";

static void put_start(struct kymo__flame *f, double height)
{
    struct kymo__buf title = {0};
    put_title(f, &title);
    kymo__buf_printf(&f->buf,
                     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
                     "viewBox=\"0 0 %d %.0f\">\n<title>",
                     KYMO__FLAME_WIDTH, height, KYMO__FLAME_WIDTH, height);
    f->buf.failed |= title.failed;
    kymo__xml_put(&f->buf, title.data, title.len);
    kymo__buf_printf(&f->buf, "</title>\n<style>\n%s</style>\n", kymo__flamegraph_css);
    if (f->n_gone != 0)
        kymo__buf_puts(&f->buf, hatching);
    kymo__buf_puts(&f->buf, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    kymo__buf_fini(&title);
}

/* The header comes last: the script keeps it in sight above boxes that scroll away below it. */
static void put_picture(struct kymo__flame *f)
{
    f->top = KYMO__FLAME_HEADER + (f->e.has_baseline ? KYMO__FLAME_LEGEND : 0);
    const double gone_at = f->top + (double)f->n_rows * KYMO__FLAME_ROW;
    const double foot_at = gone_at + kymo__flame_gone_height(f) + 22;
    put_start(f, foot_at + 12);
    kymo__flame_put_boxes(f);
    kymo__flame_put_gone(f, gone_at);
    put_footer(f, foot_at);
    put_header(f);
    kymo__buf_printf(&f->buf, "<script><![CDATA[\n%s]]></script>\n</svg>\n", kymo__flamegraph_js);
    kymo__flame_flush(f);
}

static kymo_status draw(struct kymo__flame *f, kymo_recording *const *recordings, size_t n)
{
    const struct kymo_export_options *wants = f->x->options;
    KYMO_TRY(kymo__stack_export_init(&f->e, f->x, recordings, n, NULL, kymo__flame_heaviest_first));
    f->titles[KYMO__NEW] = kymo__recordings_title(recordings, n);
    f->titles[KYMO__OLD] = kymo__recordings_title(wants->baseline, wants->n_baseline);
    const bool is_ready = f->titles[KYMO__NEW] != NULL && f->titles[KYMO__OLD] != NULL &&
                          kymo__flame_layout(f) && (!f->e.has_baseline || kymo__flame_compare(f));
    if (is_ready)
        put_picture(f);
    if (!is_ready || f->buf.failed)
        return kymo__fail(KYMO_ENOMEM, "no memory for the flame graph");
    return KYMO_OK;
}

static kymo_status on_whole(struct kymo__export *x, kymo_recording *const *recordings, size_t n)
{
    struct kymo__flame f = {.x = x};
    const kymo_status status = draw(&f, recordings, n);
    kymo__stack_export_fini(&f.e);
    for (size_t s = 0; s < KYMO__N_SIDES; s++)
        kymo__free(f.titles[s]);
    kymo__free(f.boxes);
    kymo__free(f.gone);
    kymo__buf_fini(&f.buf);
    return status;
}

const struct kymo__export_format kymo__export_flamegraph = {
    .name = "flamegraph",
    .whole = on_whole,
    .adds_up = true,
};
