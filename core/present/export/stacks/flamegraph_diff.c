/*
 * A flame graph with a baseline: colors by the change of self time, their legend, and removed paths.
 *
 * Changes are plain differences of sums without scaling: a run that is twice as long is slower everywhere, and the
 * header has both totals. Seven colors are as many as can be distinguished; their limits are round times, derived from
 * the largest change.
 */
#include <math.h>

#include "present/export/stacks/internal.h"

static uint64_t change_of(uint64_t now, uint64_t before)
{
    return now > before ? now - before : before - now;
}

/* ---- colors ---- */

/* The largest of 1, 2, 5, 10, 20, ... that is not above `ns`; 0 for 0. */
static uint64_t round_down(uint64_t ns)
{
    uint64_t power = 1;
    if (ns == 0)
        return 0;
    while (power <= ns / 10)
        power *= 10;
    return ns >= 5 * power ? 5 * power : ns >= 2 * power ? 2 * power : power;
}

int marey__flame_change_class(const struct marey__flame *f, uint64_t now, uint64_t before)
{
    const uint64_t change = change_of(now, before);
    int class = 0;
    for (size_t i = 0; i < MAREY__COUNT_OF(f->change_steps_ns); i++)
        class += change != 0 && change >= f->change_steps_ns[i];
    return now > before ? class : -class;
}

uint32_t marey__flame_change_color(int class)
{
    static const uint32_t colors[] = {0x5a9bd4, 0x9ac6e6, 0xd3e6f4, 0xe8e8e8,
                                      0xfbdccb, 0xf5ab89, 0xe3705a};
    return colors[class + 3];
}

/* ---- removed paths ---- */

static int longest_first(const void *a, const void *b, void *ctx)
{
    const struct marey__stack_times *old = ctx;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (old[x].total_ns != old[y].total_ns)
        return old[x].total_ns < old[y].total_ns ? 1 : -1;
    return (x > y) - (x < y);
}

static bool find_gone(struct marey__flame *f)
{
    const struct marey__stacks *stacks = &f->e.stacks;
    const struct marey__stack_times *now = stacks->times[MAREY__NEW];
    for (size_t i = 0; i < f->e.n; i++) {
        const uint32_t node = f->e.order[i], parent = stacks->tree.nodes[node].parent;
        if (now[node].total_ns != 0 || (parent != 0 && now[parent].total_ns == 0))
            continue;
        if (!MAREY__PUSH(f->gone, f->n_gone, f->gone_cap, node))
            return false;
    }
    if (f->n_gone > 1)
        qsort_r(f->gone, f->n_gone, sizeof *f->gone, longest_first, stacks->times[MAREY__OLD]);
    return true;
}

bool marey__flame_compare(struct marey__flame *f)
{
    const struct marey__stacks *stacks = &f->e.stacks;
    uint64_t largest = 0;
    for (size_t i = 1; i < stacks->tree.n; i++) {
        const uint64_t now = stacks->times[MAREY__NEW][i].self_ns;
        /* Removed paths are in the list and have no box. */
        if (stacks->times[MAREY__NEW][i].total_ns != 0)
            largest = MAREY__MAX(largest, change_of(now, stacks->times[MAREY__OLD][i].self_ns));
    }
    static const uint64_t parts[] = {100, 10, 2};
    for (size_t i = 0; i < MAREY__COUNT_OF(parts); i++)
        f->change_steps_ns[i] = round_down(largest / parts[i]);
    return find_gone(f);
}

/* ---- the legend ---- */

static void put_boundary(struct marey__flame *f, double x, double y, uint64_t ns, char sign)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_put(&text, &sign, 1);
    marey__text_duration(&text, (double)ns, NULL);
    marey__flame_text(f, x, y, "m", &text);
}

static void put_words(struct marey__flame *f, double x, double y, const char *kind, const char *words)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_puts(&text, words);
    marey__flame_text(f, x, y, kind, &text);
}

/* Seven swatches in a row, with the limits between them below. */
void marey__flame_put_legend(struct marey__flame *f, double y)
{
    enum { SWATCH = 72, LEFT = 240 };
    put_words(f, MAREY__FLAME_PAD, y + 12, "n", "change of self time: faster");
    for (int class = -3; class <= 3; class ++) {
        const double x = LEFT + (class + 3) * SWATCH;
        marey__buf_printf(&f->buf,
                          "<rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"14\" fill=\"#%06x\"/>",
                          x, y + 1, SWATCH - 1, marey__flame_change_color(class));
        const unsigned strength = (unsigned)abs(class);
        if (strength != 0 && f->change_steps_ns[2] != 0)
            put_boundary(f, class < 0 ? x + SWATCH : x, y + 28, f->change_steps_ns[strength - 1],
                         class < 0 ? '-' : '+');
    }
    put_words(f, LEFT + 7 * SWATCH + 8, y + 12, "n",
              f->change_steps_ns[2] != 0 ? "slower" : "slower (nothing changed)");
}

/* ---- the list ---- */

enum { MOST_LISTED = 30 };

static size_t n_listed(const struct marey__flame *f)
{
    return MAREY__MIN(f->n_gone, (size_t)MOST_LISTED);
}

double marey__flame_gone_height(const struct marey__flame *f)
{
    if (f->n_gone == 0)
        return 0;
    return (double)(n_listed(f) + 2 + (f->n_gone > MOST_LISTED)) * MAREY__FLAME_ROW;
}

/* "outer > inner", the whole path. */
static void put_path(const struct marey__flame *f, struct marey__buf *buf, uint32_t node)
{
    const struct marey__tree *tree = &f->e.stacks.tree;
    uint32_t path[MAREY__TREE_DEPTH + 8];
    size_t n = 0;
    for (uint32_t at = node; at != 0 && n < MAREY__COUNT_OF(path); at = tree->nodes[at].parent)
        path[n++] = at;
    while (n-- > 0) {
        const struct marey__name *name = marey__stack_name(&f->e, path[n]);
        marey__text_put(buf, name->text, name->len, 60);
        if (n > 0)
            marey__buf_puts(buf, " > ");
    }
}

static void put_gone_row(struct marey__flame *f, uint32_t node, double y)
{
    enum { BAR = 120, TIME_AT = BAR + MAREY__FLAME_PAD + 8, PATH_AT = TIME_AT + 80 };
    const struct marey__stack_times *old = marey__stack_times_of(&f->e, MAREY__OLD, node);
    const uint64_t longest = marey__stack_times_of(&f->e, MAREY__OLD, f->gone[0])->total_ns;
    MAREY__FINALLY(marey__buf_fini) struct marey__buf time = {0}, path = {0}, line = {0};
    marey__text_duration(&time, (double)old->total_ns, NULL);
    put_path(f, &path, node);
    marey__buf_puts(&path, ", ");
    marey__text_count_of(&path, old->count, "call");
    line.failed = path.failed;
    marey__text_put(&line, path.data, path.len,
                    marey__flame_room(MAREY__FLAME_WIDTH - PATH_AT, path.data, path.len));
    marey__buf_printf(&f->buf,
                      "<rect x=\"%d\" y=\"%.0f\" width=\"%.1f\" height=\"13\" fill=\"url(#gone)\" "
                      "stroke=\"#888\"/>",
                      MAREY__FLAME_PAD, y - 11,
                      MAREY__MAX((double)old->total_ns / (double)longest * BAR, 1.0));
    marey__flame_text(f, TIME_AT, y, "n", &time);
    marey__flame_text(f, PATH_AT, y, "n", &line);
}

static void put_more(struct marey__flame *f, double y)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    uint64_t rest_ns = 0;
    for (size_t i = MOST_LISTED; i < f->n_gone; i++)
        rest_ns += marey__stack_times_of(&f->e, MAREY__OLD, f->gone[i])->total_ns;
    marey__buf_printf(&text, "and %zu more, together ", f->n_gone - MOST_LISTED);
    marey__text_duration(&text, (double)rest_ns, NULL);
    marey__flame_text(f, MAREY__FLAME_PAD, y, "n", &text);
}

void marey__flame_put_gone(struct marey__flame *f, double y)
{
    if (f->n_gone == 0)
        return;
    struct marey__buf head MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_puts(&head, "Only in ");
    marey__text_put(&head, f->titles[MAREY__OLD], strlen(f->titles[MAREY__OLD]), 60);
    marey__buf_puts(&head, ", with all that was called from there:");
    marey__flame_text(f, MAREY__FLAME_PAD, y + 20, "h", &head);
    for (size_t i = 0; i < n_listed(f); i++)
        put_gone_row(f, f->gone[i], y + 20 + (double)(i + 1) * MAREY__FLAME_ROW);
    if (f->n_gone > MOST_LISTED)
        put_more(f, y + 20 + (double)(MOST_LISTED + 1) * MAREY__FLAME_ROW);
}
