/* The flame graph file: boxes with colors, labels and tooltips; header, footer, style and script. */
#include <math.h>

#include "present/export/stacks/internal.h"

/* flamegraph.js and flamegraph.css, which the build turns into strings. */
extern const char marey__flamegraph_js[], marey__flamegraph_css[];

/* Write f->buf to the file. */
static void flush(struct marey__flame *f)
{
    if (!f->buf.failed)
        marey__out_put(&f->x->out, f->buf.data, f->buf.len);
    f->buf.len = 0;
}

static void put_escaped(struct marey__buf *into, const struct marey__buf *text)
{
    into->failed |= text->failed;
    marey__xml_put(into, text->data, text->len);
}

void marey__flame_text(struct marey__flame *f, double x, double y, const char *kind,
                       const struct marey__buf *text)
{
    marey__buf_printf(&f->buf, "<text x=\"%.0f\" y=\"%.0f\" class=\"%s\">", x, y, kind);
    put_escaped(&f->buf, text);
    marey__buf_puts(&f->buf, "</text>\n");
}

/* "+1.20 ms", "-300 us", "no change". */
static void put_change(struct marey__buf *buf, uint64_t now, uint64_t before)
{
    if (now == before) {
        marey__buf_puts(buf, "no change");
        return;
    }
    marey__buf_puts(buf, now > before ? "+" : "-");
    marey__text_duration(buf, (double)(now > before ? now - before : before - now), NULL);
}

/* ---- layout ---- */

static int heaviest_first(const struct marey__node *a, const struct marey__node *b, const void *ctx)
{
    const struct marey__stack_export *e = ctx;
    if (e->options.label != NULL && a->depth == 1) /* threads and ranks keep their order */
        return a < b ? -1 : a > b;
    for (int side = MAREY__NEW; side <= MAREY__OLD; side++) {
        const uint64_t x = e->stacks.times[side][marey__stack_node(e, a)].total_ns;
        const uint64_t y = e->stacks.times[side][marey__stack_node(e, b)].total_ns;
        if (x != y)
            return x < y ? 1 : -1;
    }
    return marey__stack_by_name(a, b, ctx);
}

static double width_of(const struct marey__flame *f, uint64_t ns)
{
    const uint64_t all = marey__flame_total(f, MAREY__NEW);
    return all != 0 ? (double)ns / (double)all * MAREY__FLAME_INNER : 0;
}

static bool is_narrow(const struct marey__flame *f, uint64_t ns)
{
    return width_of(f, ns) < MAREY__FLAME_NARROWEST;
}

static bool add_box(struct marey__flame *f, const struct marey__flame_box *box)
{
    if (!MAREY__PUSH(f->boxes, f->n_boxes, f->boxes_cap, *box))
        return false;
    if (!is_narrow(f, box->total_ns))
        f->n_rows = MAREY__MAX(f->n_rows, box->row + 1);
    return true;
}

/*
 * A box too narrow to see. Siblings are sorted by width, so the narrow ones are adjacent and share one box: otherwise
 * their time would look like their parent's self time.
 */
static bool add_narrow(struct marey__flame *f, const struct marey__flame_box *box, uint32_t parent)
{
    f->n_narrow++;
    if (is_narrow(f, marey__stack_times_of(&f->e, MAREY__NEW, parent)->total_ns))
        return true; /* contained in its parent's shared box */
    f->narrow_ns += box->total_ns;
    struct marey__flame_box *last = &f->boxes[f->n_boxes - 1];
    if (last->n_narrow == 0 || last->row != box->row ||
        last->start_ns + last->total_ns != box->start_ns) {
        struct marey__flame_box shared = *box;
        shared.n_narrow = 1;
        return add_box(f, &shared);
    }
    last->n_narrow++;
    last->total_ns += box->total_ns;
    if (!is_narrow(f, last->total_ns))
        f->n_rows = MAREY__MAX(f->n_rows, box->row + 1);
    return true;
}

/* `next[d]` is the begin of the next box at depth d: children start at the left edge of their parent. */
static bool place_boxes(struct marey__flame *f, uint64_t *next)
{
    const struct marey__tree *tree = &f->e.stacks.tree;
    for (size_t i = 0; i < f->e.n; i++) {
        const uint32_t node = f->e.order[i], depth = tree->nodes[node].depth;
        const struct marey__flame_box box = {
            .node = node,
            .row = depth,
            .start_ns = next[depth],
            .total_ns = marey__stack_times_of(&f->e, MAREY__NEW, node)->total_ns,
        };
        next[depth] += box.total_ns;
        next[depth + 1] = box.start_ns;
        if (box.total_ns == 0)
            continue;
        if (!(is_narrow(f, box.total_ns) ? add_narrow(f, &box, tree->nodes[node].parent)
                                         : add_box(f, &box)))
            return false;
    }
    return true;
}

/* Place all boxes; false on out of memory. */
static bool place_all(struct marey__flame *f)
{
    uint32_t deepest = 0;
    for (size_t i = 0; i < f->e.n; i++)
        deepest = MAREY__MAX(deepest, f->e.stacks.tree.nodes[f->e.order[i]].depth);
    uint64_t *next MAREY__FREED = marey__calloc((size_t)deepest + 2, sizeof *next);
    const struct marey__flame_box whole = {.total_ns = marey__flame_total(f, MAREY__NEW)};
    f->n_rows = 1;
    return next != NULL && add_box(f, &whole) && place_boxes(f, next);
}

/* ---- colors ---- */

/* Hue in degrees, the others 0..1. */
static uint32_t rgb_of(double hue, double saturation, double lightness)
{
    const double chroma = saturation * MAREY__MIN(lightness, 1 - lightness);
    const double shift[3] = {0, 8, 4};
    uint32_t rgb = 0;
    for (int i = 0; i < 3; i++) {
        const double k = fmod(shift[i] + hue / 30, 12);
        const double bend = MAREY__MAX(MAREY__MIN(MAREY__MIN(k - 3, 9 - k), 1.0), -1.0);
        rgb = rgb << 8 | (uint32_t)lround(255 * (lightness - chroma * bend));
    }
    return rgb;
}

uint32_t marey__flame_color(uint64_t hash)
{
    const double hue = 10 + (double)(hash % 210); /* from red through green to blue */
    const double saturation = 0.50 + 0.03 * (double)(hash / 360 % 8);
    const double lightness = 0.76 + 0.01 * (double)(hash / 2880 % 8);
    return rgb_of(hue, saturation, lightness);
}

static uint32_t box_color(const struct marey__flame *f, const struct marey__flame_box *box)
{
    enum { GREY = 0xe4e4e4, LIGHT_GREY = 0xf2f2f2 };
    const uint32_t node = box->node;
    if (box->n_narrow != 0)
        return LIGHT_GREY;
    if (f->e.has_baseline) {
        const uint64_t now = marey__stack_times_of(&f->e, MAREY__NEW, node)->self_ns;
        const uint64_t before = marey__stack_times_of(&f->e, MAREY__OLD, node)->self_ns;
        return marey__flame_change_color(marey__flame_change_class(f, now, before));
    }
    if (node == 0)
        return GREY;
    const struct marey__name *const name = marey__stack_name(&f->e, node);
    return marey__flame_color(marey__hash_bytes(0, name->text, name->len));
}

/* ---- tooltips ---- */

static void put_duration(struct marey__buf *buf, const char *what, uint64_t ns)
{
    marey__buf_puts(buf, what);
    marey__text_duration(buf, (double)ns, NULL);
}

static void put_share(const struct marey__flame *f, struct marey__buf *buf, uint64_t ns)
{
    const uint64_t all = marey__flame_total(f, MAREY__NEW);
    marey__buf_puts(buf, " (");
    marey__text_share(buf, all != 0 ? (double)ns / (double)all : 0);
    marey__buf_puts(buf, ")");
}

/* ", before 2.10 s (+500 ms)" */
static void put_before(struct marey__buf *buf, uint64_t now, uint64_t before)
{
    put_duration(buf, ", before ", before);
    marey__buf_puts(buf, " (");
    put_change(buf, now, before);
    marey__buf_puts(buf, ")");
}

static void put_calls(struct marey__buf *buf, const struct marey__stack_times *now,
                      const struct marey__stack_times *before)
{
    marey__buf_puts(buf, "\n");
    marey__text_count_of(buf, now->count, "call");
    if (before != NULL && before->count != now->count) {
        marey__buf_puts(buf, ", before ");
        marey__text_amount(buf, (double)before->count);
    }
    if (now->count != 0)
        put_duration(buf, ", mean ", now->total_ns / now->count);
}

/* Lines: the name, total, self, calls. */
static void put_details(const struct marey__flame *f, struct marey__buf *buf,
                        const struct marey__flame_box *box)
{
    const uint32_t node = box->node;
    const struct marey__stack_times *now = marey__stack_times_of(&f->e, MAREY__NEW, node);
    const struct marey__stack_times *before = marey__stack_times_of(&f->e, MAREY__OLD, node);
    const bool is_label = f->e.options.label != NULL && f->e.stacks.tree.nodes[node].depth == 1;
    const bool has_before = f->e.has_baseline && (before->total_ns != 0 || before->count != 0);
    put_duration(buf, "\ntotal ", box->total_ns);
    put_share(f, buf, box->total_ns);
    if (box->n_narrow != 0)
        return;
    if (has_before)
        put_before(buf, now->total_ns, before->total_ns);
    else if (f->e.has_baseline)
        marey__buf_puts(buf, ", not there before");
    if (node == 0 || is_label)
        return;
    put_duration(buf, "\nself ", now->self_ns);
    put_share(f, buf, now->self_ns);
    if (has_before)
        put_before(buf, now->self_ns, before->self_ns);
    if (now->count != 0)
        put_calls(buf, now, has_before ? before : NULL);
    else
        marey__buf_puts(buf, "\nnever ended: as long as what ended inside it");
}

/* ---- labels ---- */

size_t marey__flame_room(double width, const char *text, size_t len)
{
    double letter = MAREY__FLAME_LETTER;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] >= 0xe1) /* from U+1000 on, characters may be twice as wide */
            letter = 2 * MAREY__FLAME_LETTER;
    const double room = (width - 6) / letter;
    return room >= 1 ? (size_t)room : 0;
}

static bool is_inside_letter(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The offset of character `n` of the text. */
static size_t find_letter(const struct marey__buf *text, size_t n)
{
    size_t i = 0;
    for (; i < text->len && (n > 0 || is_inside_letter(text->data[i])); i++)
        n -= i + 1 == text->len || !is_inside_letter(text->data[i + 1]);
    return i;
}

static size_t count_letters(const struct marey__buf *text)
{
    size_t n = 0;
    for (size_t i = 0; i < text->len; i++)
        n += !is_inside_letter(text->data[i]);
    return n;
}

/* The name, followed by the time if there is space; nothing if too little of the name would remain. */
void marey__flame_label(struct marey__buf *label, const struct marey__buf *name, const char *time,
                        double width)
{
    enum { FEWEST = 4 };
    const size_t room = marey__flame_room(width, name->data, name->len), n = count_letters(name);
    if (n <= room) {
        marey__buf_put(label, name->data, name->len);
        if (n + 2 + strlen(time) <= room)
            marey__buf_printf(label, "  %s", time);
    } else if (room >= FEWEST) {
        const size_t head = (room - 1) / 2, tail = room - 1 - head,
                     tail_at = find_letter(name, n - tail);
        marey__buf_put(label, name->data, find_letter(name, head));
        marey__buf_puts(label, "\xe2\x80\xa6"); /* an ellipsis */
        marey__buf_put(label, name->data + tail_at, name->len - tail_at);
    }
}

static void put_name(const struct marey__flame *f, struct marey__buf *name,
                     const struct marey__flame_box *box)
{
    if (box->n_narrow != 0) {
        marey__text_count_of(name, box->n_narrow, "narrow one");
    } else if (box->node == 0) {
        marey__buf_puts(name, "all");
    } else {
        const struct marey__name *found = marey__stack_name(&f->e, box->node);
        marey__text_put(name, found->text, found->len, 0);
    }
}

/* Wide enough boxes get a white edge, which separates boxes of one color. */
static void put_shape(struct marey__flame *f, const struct marey__flame_box *box, double x,
                      double y, double width, const struct marey__buf *label)
{
    enum { EDGED = 3 };
    marey__buf_printf(&f->buf,
                      "</title><rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" "
                      "fill=\"#%06x\"%s/>",
                      x, y, width, MAREY__FLAME_ROW - 1, box_color(f, box),
                      width > EDGED ? " stroke=\"#fff\"" : "");
    marey__buf_printf(&f->buf, "<text x=\"%.2f\" y=\"%.0f\">", x + 3, y + 13);
    put_escaped(&f->buf, label);
    marey__buf_puts(&f->buf, "</text></g>\n");
}

static void put_box(struct marey__flame *f, const struct marey__flame_box *box)
{
    MAREY__FINALLY(marey__buf_fini)
    struct marey__buf name = {0}, time = {0}, details = {0}, label = {0};
    const double x = MAREY__FLAME_PAD + width_of(f, box->start_ns);
    const double width = box->row == 0 ? MAREY__FLAME_INNER : width_of(f, box->total_ns);
    put_name(f, &name, box);
    marey__text_duration(&time, (double)box->total_ns, NULL);
    marey__buf_put(&time, "", 1);
    put_details(f, &details, box);
    const char *const shown = time.failed ? "" : time.data;
    marey__flame_label(&label, &name, shown, width);
    marey__buf_printf(&f->buf, "<g class=\"b\" data-t=\"%s\"><title>", shown);
    put_escaped(&f->buf, &name);
    put_escaped(&f->buf, &details);
    put_shape(f, box, x, f->top + box->row * MAREY__FLAME_ROW, width, &label);
}

static void put_boxes(struct marey__flame *f)
{
    marey__buf_puts(&f->buf, "<g id=\"boxes\">\n");
    for (size_t i = 0; i < f->n_boxes; i++) {
        if (i == 0 || !is_narrow(f, f->boxes[i].total_ns))
            put_box(f, &f->boxes[i]);
        flush(f);
    }
    marey__buf_puts(&f->buf, "</g>\n");
}

/* ---- header ---- */

static void put_title(const struct marey__flame *f, struct marey__buf *title)
{
    const size_t widest = f->e.has_baseline ? 23 : 48; /* the search field is to the right */
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
        put_change(text, now, before);
        if (before != 0)
            marey__buf_printf(text, " (%+.1f %%)", 100 * ((double)now / (double)before - 1));
    }
    marey__buf_puts(text, ".");
}

static void put_header(struct marey__flame *f)
{
    MAREY__FINALLY(marey__buf_fini) struct marey__buf title = {0}, totals = {0};
    put_title(f, &title);
    put_totals(f, &totals);
    marey__buf_printf(&f->buf,
                      "<g id=\"header\"><rect width=\"100%%\" height=\"%.0f\" fill=\"#fff\"/>\n",
                      f->top - 4);
    marey__flame_text(f, MAREY__FLAME_PAD, 24, "t", &title);
    marey__flame_text(f, MAREY__FLAME_PAD, 46, "n", &totals);
    marey__buf_printf(
        &f->buf, "<text id=\"details\" x=\"%d\" y=\"66\" class=\"n\">%s</text>\n", MAREY__FLAME_PAD,
        f->e.has_baseline ? "Width is the total time now; color shows the change of self time."
                          : "Width is total time. A box without boxes below it is self time.");
    if (f->e.has_baseline)
        marey__flame_put_legend(f, MAREY__FLAME_HEADER);
    marey__buf_puts(&f->buf, "</g>\n");
}

/* ---- footer ---- */

static void put_left_out(const struct marey__flame *f, struct marey__buf *text)
{
    if (marey__flame_total(f, MAREY__NEW) == 0)
        marey__buf_puts(text, "No range has both a begin and an end. ");
    if (f->n_narrow != 0) {
        marey__text_count_of(text, f->n_narrow, "path");
        marey__buf_printf(text, " narrower than %.2g pixels, together ", MAREY__FLAME_NARROWEST);
        marey__text_duration(text, (double)f->narrow_ns, NULL);
        marey__buf_puts(text, ", left out; light gray marks them. ");
    }
    if (f->e.options.filter != NULL) {
        marey__buf_puts(text, "Only names that match ");
        marey__text_put(text, f->e.options.filter, strlen(f->e.options.filter), 40);
        marey__buf_puts(text, "; other ranges count as time of the range around them. ");
    }
    for (int side = MAREY__NEW; side <= MAREY__OLD; side++) {
        const uint64_t n_lost = f->e.stacks.lost_events[side];
        if (n_lost == 0)
            continue;
        marey__text_count_of(text, n_lost, "event");
        marey__buf_puts(text, side == MAREY__NEW ? " lost: times do not include them. "
                                                 : " lost in the baseline. ");
    }
}

static void put_footer(struct marey__flame *f, double y)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    put_left_out(f, &text);
    if (f->e.stacks.has_async)
        marey__buf_puts(&text, "Async ranges overlap and are not shown. ");
    marey__buf_printf(&text, "Made by marey %s.", marey_version());
    marey__flame_text(f, MAREY__FLAME_PAD, y, "f", &text);
}

/* ---- the file ---- */

static const char *const hatching =
    "<defs><pattern id=\"gone\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#fff\"/>"
    "<rect width=\"2\" height=\"6\" fill=\"#bbb\"/></pattern></defs>\n";

static void put_start(struct marey__flame *f, double height)
{
    struct marey__buf title MAREY__FINALLY(marey__buf_fini) = {0};
    put_title(f, &title);
    marey__buf_printf(&f->buf,
                      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
                      "viewBox=\"0 0 %d %.0f\">\n<title>",
                      MAREY__FLAME_WIDTH, height, MAREY__FLAME_WIDTH, height);
    put_escaped(&f->buf, &title);
    marey__buf_printf(&f->buf, "</title>\n<style>\n%s</style>\n", marey__flamegraph_css);
    if (f->n_gone != 0)
        marey__buf_puts(&f->buf, hatching);
    marey__buf_puts(&f->buf, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
}

/* The header comes last: the script keeps it visible above boxes that scroll below it. */
static void put_chart(struct marey__flame *f)
{
    f->top = MAREY__FLAME_HEADER + (f->e.has_baseline ? MAREY__FLAME_LEGEND : 0);
    const double gone_at = f->top + (double)f->n_rows * MAREY__FLAME_ROW;
    const double foot_at = gone_at + marey__flame_gone_height(f) + 22;
    put_start(f, foot_at + 12);
    put_boxes(f);
    marey__flame_put_gone(f, gone_at);
    put_footer(f, foot_at);
    put_header(f);
    marey__buf_printf(&f->buf, "<script><![CDATA[\n%s]]></script>\n</svg>\n", marey__flamegraph_js);
    flush(f);
}

static marey_status draw(struct marey__flame *f, marey_recording *const *recordings, size_t n)
{
    const struct marey_export_options *wants = f->x->options;
    MAREY_TRY(marey__stack_export_init(&f->e, f->x, recordings, n, NULL, heaviest_first));
    f->titles[MAREY__NEW] = marey__recordings_title(recordings, n);
    f->titles[MAREY__OLD] = marey__recordings_title(wants->baseline, wants->n_baseline);
    const bool is_ready = f->titles[MAREY__NEW] != NULL && f->titles[MAREY__OLD] != NULL &&
                          place_all(f) && (!f->e.has_baseline || marey__flame_compare(f));
    if (is_ready)
        put_chart(f);
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
    MAREY__FREE_ALL(f.boxes, f.gone);
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
