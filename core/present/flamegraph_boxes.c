/* The boxes of a flame graph: where they go, their colours, labels and tooltips. */
#include <math.h>

#include "present/flamegraph_internal.h"

/* ---- places ---- */

int kymo__flame_heaviest_first(const struct kymo__node *a, const struct kymo__node *b, const void *ctx)
{
    const struct kymo__stack_export *e = ctx;
    if (e->options.label != NULL && a->depth == 1) /* threads and ranks stay in their order */
        return a < b ? -1 : a > b;
    for (int side = KYMO__NEW; side <= KYMO__OLD; side++) {
        const uint64_t x = e->stacks.times[side][kymo__stack_node(e, a)].total_ns;
        const uint64_t y = e->stacks.times[side][kymo__stack_node(e, b)].total_ns;
        if (x != y)
            return x < y ? 1 : -1;
    }
    return kymo__stack_by_name(a, b, ctx);
}

static double width_of(const struct kymo__flame *f, uint64_t ns)
{
    const uint64_t all = kymo__flame_total(f, KYMO__NEW);
    return all != 0 ? (double)ns / (double)all * KYMO__FLAME_INNER : 0;
}

static bool is_narrow(const struct kymo__flame *f, uint64_t ns)
{
    return width_of(f, ns) < KYMO__FLAME_NARROWEST;
}

static bool add_box(struct kymo__flame *f, const struct kymo__flame_box *box)
{
    if (!kymo__grow(&f->boxes, &f->boxes_cap, f->n_boxes + 1, sizeof *f->boxes))
        return false;
    f->boxes[f->n_boxes++] = *box;
    if (!is_narrow(f, box->total_ns))
        f->n_rows = KYMO__MAX(f->n_rows, box->row + 1);
    return true;
}

/*
 * A box that nobody would see. Siblings come with the widest first, so those that are too narrow stand side by side and
 * share one box: without it their time would look like their parent's own.
 */
static bool add_narrow(struct kymo__flame *f, const struct kymo__flame_box *box, uint32_t parent)
{
    f->n_narrow++;
    if (is_narrow(f, kymo__stack_times_of(&f->e, KYMO__NEW, parent)->total_ns))
        return true; /* it is in what its parent is in */
    f->narrow_ns += box->total_ns;
    struct kymo__flame_box *last = &f->boxes[f->n_boxes - 1];
    if (last->n_narrow == 0 || last->row != box->row ||
        last->start_ns + last->total_ns != box->start_ns) {
        struct kymo__flame_box shared = *box;
        shared.n_narrow = 1;
        return add_box(f, &shared);
    }
    last->n_narrow++;
    last->total_ns += box->total_ns;
    if (!is_narrow(f, last->total_ns))
        f->n_rows = KYMO__MAX(f->n_rows, box->row + 1);
    return true;
}

/* `next[d]` is where the next box of depth d begins: children stand side by side from the left edge of their parent. */
static bool place_boxes(struct kymo__flame *f, uint64_t *next)
{
    const struct kymo__tree *tree = &f->e.stacks.tree;
    for (size_t i = 0; i < f->e.n; i++) {
        const uint32_t node = f->e.order[i], depth = tree->nodes[node].depth;
        const struct kymo__flame_box box = {
            .node = node,
            .row = depth,
            .start_ns = next[depth],
            .total_ns = kymo__stack_times_of(&f->e, KYMO__NEW, node)->total_ns,
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

bool kymo__flame_layout(struct kymo__flame *f)
{
    uint32_t deepest = 0;
    for (size_t i = 0; i < f->e.n; i++)
        deepest = KYMO__MAX(deepest, f->e.stacks.tree.nodes[f->e.order[i]].depth);
    uint64_t *next = kymo__calloc((size_t)deepest + 2, sizeof *next);
    const struct kymo__flame_box whole = {.total_ns = kymo__flame_total(f, KYMO__NEW)};
    f->n_rows = 1;
    const bool done = next != NULL && add_box(f, &whole) && place_boxes(f, next);
    kymo__free(next);
    return done;
}

/* ---- colours ---- */

/* Hue in degrees, the others 0..1. */
static uint32_t rgb_of(double hue, double saturation, double lightness)
{
    const double chroma = saturation * KYMO__MIN(lightness, 1 - lightness);
    const double shift[3] = {0, 8, 4};
    uint32_t rgb = 0;
    for (int i = 0; i < 3; i++) {
        const double k = fmod(shift[i] + hue / 30, 12);
        const double bend = KYMO__MAX(KYMO__MIN(KYMO__MIN(k - 3, 9 - k), 1.0), -1.0);
        rgb = rgb << 8 | (uint32_t)lround(255 * (lightness - chroma * bend));
    }
    return rgb;
}

uint32_t kymo__flame_color(uint64_t hash)
{
    const double hue = 10 + (double)(hash % 210); /* from red over green to blue */
    const double saturation = 0.50 + 0.03 * (double)(hash / 360 % 8);
    const double lightness = 0.76 + 0.01 * (double)(hash / 2880 % 8);
    return rgb_of(hue, saturation, lightness);
}

static uint32_t box_color(const struct kymo__flame *f, const struct kymo__flame_box *box)
{
    enum { GREY = 0xe4e4e4, LIGHT_GREY = 0xf2f2f2 };
    const uint32_t node = box->node;
    if (box->n_narrow != 0)
        return LIGHT_GREY;
    if (f->e.has_baseline) {
        const uint64_t now = kymo__stack_times_of(&f->e, KYMO__NEW, node)->self_ns;
        const uint64_t before = kymo__stack_times_of(&f->e, KYMO__OLD, node)->self_ns;
        return kymo__flame_change_color(kymo__flame_change_class(f, now, before));
    }
    return node == 0 ? GREY : kymo__flame_color(kymo__stack_name(&f->e, node)->hash);
}

/* ---- tooltips ---- */

static void put_duration(struct kymo__buf *buf, const char *what, uint64_t ns)
{
    kymo__buf_puts(buf, what);
    kymo__text_duration(buf, (double)ns, NULL);
}

static void put_share(const struct kymo__flame *f, struct kymo__buf *buf, uint64_t ns)
{
    const uint64_t all = kymo__flame_total(f, KYMO__NEW);
    kymo__buf_puts(buf, " (");
    kymo__text_share(buf, all != 0 ? (double)ns / (double)all : 0);
    kymo__buf_puts(buf, ")");
}

/* ", before 2.10 s (+500 ms)" */
static void put_before(struct kymo__buf *buf, uint64_t now, uint64_t before)
{
    put_duration(buf, ", before ", before);
    kymo__buf_puts(buf, " (");
    kymo__flame_change(buf, now, before);
    kymo__buf_puts(buf, ")");
}

static void put_calls(struct kymo__buf *buf, const struct kymo__stack_times *now,
                      const struct kymo__stack_times *before)
{
    kymo__buf_puts(buf, "\n");
    kymo__text_count_of(buf, now->count, "call");
    if (before != NULL && before->count != now->count) {
        kymo__buf_puts(buf, ", before ");
        kymo__text_amount(buf, (double)before->count);
    }
    if (now->count != 0)
        put_duration(buf, ", mean ", now->total_ns / now->count);
}

/* Lines: the name, total, self, calls. */
static void put_details(const struct kymo__flame *f, struct kymo__buf *buf,
                        const struct kymo__flame_box *box)
{
    const uint32_t node = box->node;
    const struct kymo__stack_times *now = kymo__stack_times_of(&f->e, KYMO__NEW, node);
    const struct kymo__stack_times *before = kymo__stack_times_of(&f->e, KYMO__OLD, node);
    const bool is_label = f->e.options.label != NULL && f->e.stacks.tree.nodes[node].depth == 1;
    const bool has_before = f->e.has_baseline && (before->total_ns != 0 || before->count != 0);
    put_duration(buf, "\ntotal ", box->total_ns);
    put_share(f, buf, box->total_ns);
    if (box->n_narrow != 0)
        return;
    if (has_before)
        put_before(buf, now->total_ns, before->total_ns);
    else if (f->e.has_baseline)
        kymo__buf_puts(buf, ", not there before");
    if (node == 0 || is_label)
        return;
    put_duration(buf, "\nself ", now->self_ns);
    put_share(f, buf, now->self_ns);
    if (has_before)
        put_before(buf, now->self_ns, before->self_ns);
    if (now->count != 0)
        put_calls(buf, now, has_before ? before : NULL);
    else
        kymo__buf_puts(buf, "\nnever ended: as long as what ended inside it");
}

/* ---- labels ---- */

size_t kymo__flame_room(double width, const char *text, size_t len)
{
    double letter = KYMO__FLAME_LETTER;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] >= 0xe1) /* from U+1000 on letters may be twice as wide */
            letter = 2 * KYMO__FLAME_LETTER;
    const double room = (width - 6) / letter;
    return room >= 1 ? (size_t)room : 0;
}

static bool is_inside_letter(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Where the letter `n` of the text begins. */
static size_t find_letter(const struct kymo__buf *text, size_t n)
{
    size_t i = 0;
    for (; i < text->len && (n > 0 || is_inside_letter(text->data[i])); i++)
        n -= i + 1 == text->len || !is_inside_letter(text->data[i + 1]);
    return i;
}

static size_t count_letters(const struct kymo__buf *text)
{
    size_t n = 0;
    for (size_t i = 0; i < text->len; i++)
        n += !is_inside_letter(text->data[i]);
    return n;
}

/* The name and, where there is room, the time behind it; nothing where too little of the name would be left. */
void kymo__flame_label(struct kymo__buf *label, const struct kymo__buf *name, const char *time,
                       double width)
{
    enum { FEWEST = 4 };
    const size_t room = kymo__flame_room(width, name->data, name->len), n = count_letters(name);
    if (n <= room) {
        kymo__buf_put(label, name->data, name->len);
        if (n + 2 + strlen(time) <= room)
            kymo__buf_printf(label, "  %s", time);
    } else if (room >= FEWEST) {
        const size_t head = (room - 1) / 2, tail = room - 1 - head,
                     tail_at = find_letter(name, n - tail);
        kymo__buf_put(label, name->data, find_letter(name, head));
        kymo__buf_puts(label, "\xe2\x80\xa6"); /* an ellipsis */
        kymo__buf_put(label, name->data + tail_at, name->len - tail_at);
    }
}

static void put_name(const struct kymo__flame *f, struct kymo__buf *name,
                     const struct kymo__flame_box *box)
{
    if (box->n_narrow != 0) {
        kymo__text_count_of(name, box->n_narrow, "narrow one");
    } else if (box->node == 0) {
        kymo__buf_puts(name, "all");
    } else {
        const struct kymo__name *found = kymo__stack_name(&f->e, box->node);
        kymo__text_put(name, found->text, found->len, 0);
    }
}

static void put_escaped(struct kymo__buf *into, const struct kymo__buf *text)
{
    into->failed |= text->failed;
    kymo__xml_put(into, text->data, text->len);
}

/* Boxes of some width get a white edge, so that two of one colour can be told apart. */
static void put_shape(struct kymo__flame *f, const struct kymo__flame_box *box, double x, double y,
                      double width, const struct kymo__buf *label)
{
    enum { EDGED = 3 };
    kymo__buf_printf(&f->buf,
                     "</title><rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" "
                     "fill=\"#%06x\"%s/>",
                     x, y, width, KYMO__FLAME_ROW - 1, box_color(f, box),
                     width > EDGED ? " stroke=\"#fff\"" : "");
    kymo__buf_printf(&f->buf, "<text x=\"%.2f\" y=\"%.0f\">", x + 3, y + 13);
    put_escaped(&f->buf, label);
    kymo__buf_puts(&f->buf, "</text></g>\n");
}

static void put_box(struct kymo__flame *f, const struct kymo__flame_box *box)
{
    struct kymo__buf name = {0}, time = {0}, details = {0}, label = {0};
    const double x = KYMO__FLAME_PAD + width_of(f, box->start_ns);
    const double width = box->row == 0 ? KYMO__FLAME_INNER : width_of(f, box->total_ns);
    put_name(f, &name, box);
    kymo__text_duration(&time, (double)box->total_ns, NULL);
    kymo__buf_put(&time, "", 1);
    put_details(f, &details, box);
    const char *const shown = time.failed ? "" : time.data;
    kymo__flame_label(&label, &name, shown, width);
    kymo__buf_printf(&f->buf, "<g class=\"b\" data-t=\"%s\"><title>", shown);
    put_escaped(&f->buf, &name);
    put_escaped(&f->buf, &details);
    put_shape(f, box, x, f->top + box->row * KYMO__FLAME_ROW, width, &label);
    kymo__buf_fini(&name);
    kymo__buf_fini(&time);
    kymo__buf_fini(&details);
    kymo__buf_fini(&label);
}

void kymo__flame_put_boxes(struct kymo__flame *f)
{
    kymo__buf_puts(&f->buf, "<g id=\"boxes\">\n");
    for (size_t i = 0; i < f->n_boxes; i++) {
        if (i == 0 || !is_narrow(f, f->boxes[i].total_ns))
            put_box(f, &f->boxes[i]);
        kymo__flame_flush(f);
    }
    kymo__buf_puts(&f->buf, "</g>\n");
}
