/*
 * Stacks as lines, for flamegraph.pl, inferno, speedscope and others:
 *
 *   epoch;step;forward 2598000123        self time of forward in nanoseconds
 *   epoch;step;forward 2100000000 2598000123        with a baseline: before, and now
 *
 * One line for each path with time, in the order of the paths.
 */
#include "present/export/stacks/internal.h"

/* The last space of "layer 12", followed by digits and at most one point; len if there is none. */
static size_t find_number(const char *text, size_t len)
{
    size_t i = len, n_points = 0;
    while (i > 0 &&
           ((text[i - 1] >= '0' && text[i - 1] <= '9') || (text[i - 1] == '.' && n_points++ == 0)))
        i--;
    return i > 0 && i < len && text[i - 1] == ' ' && text[i] != '.' ? i - 1 : len;
}

/* A frame ends at a semicolon and a line at its end, so names must contain neither. */
void marey__collapsed_text(struct marey__buf *buf, const char *text, size_t len)
{
    const size_t start = buf->len;
    marey__utf8_put(buf, text, len);
    for (size_t i = start; i < buf->len; i++) {
        const unsigned char c = (unsigned char)buf->data[i];
        if (c == ';')
            buf->data[i] = ':';
        else if (c < 0x20 || c == 0x7f)
            buf->data[i] = ' ';
    }
}

/*
 * Digits after a space at the end of a name would be parsed as the first of two numbers: "layer 12 500" is a
 * differential line for flamegraph.pl and inferno, which also skip spaces before the number. Threads and ranks have no
 * self time and never end a line.
 */
void marey__collapsed_name(struct marey__buf *buf, const char *text, size_t len)
{
    const size_t start = buf->len;
    marey__collapsed_text(buf, text, len);
    while (buf->len > start && buf->data[buf->len - 1] == ' ')
        buf->len--;
    if (buf->len == start)
        marey__buf_puts(buf, "(unnamed)");
    const size_t number = find_number(buf->data + start, buf->len - start);
    if (number < buf->len - start)
        buf->data[start + number] = '_';
}

static void put_number(struct marey__buf *line, uint64_t value)
{
    marey__buf_puts(line, " ");
    marey__buf_put_u64(line, value);
}

/* `path` holds the frames down to the node and is unchanged on return. */
static void put_line(struct marey__export *x, const struct marey__stack_export *e, uint32_t node,
                     struct marey__buf *path)
{
    const uint64_t now = marey__stack_times_of(e, MAREY__NEW, node)->self_ns;
    const uint64_t before = marey__stack_times_of(e, MAREY__OLD, node)->self_ns;
    const size_t len = path->len;
    if (now == 0 && before == 0)
        return;
    if (e->has_baseline)
        put_number(path, before);
    put_number(path, now);
    marey__buf_puts(path, "\n");
    if (!path->failed)
        marey__out_put(&x->out, path->data, path->len);
    path->len = len;
}

/* `ends[d]` is the end of the frame at depth d in the current path. */
static void put_lines(struct marey__export *x, const struct marey__stack_export *e,
                      struct marey__buf *path, size_t *ends)
{
    for (size_t i = 0; i < e->n && !path->failed; i++) {
        const uint32_t node = e->order[i], depth = e->stacks.tree.nodes[node].depth;
        const struct marey__name *name = marey__stack_name(e, node);
        path->len = ends[depth - 1];
        if (depth > 1)
            marey__buf_puts(path, ";");
        marey__buf_put(path, name->text, name->len);
        ends[depth] = path->len;
        put_line(x, e, node, path);
    }
}

static marey_status write_lines(struct marey__export *x, const struct marey__stack_export *e)
{
    size_t deepest = 0;
    for (size_t i = 0; i < e->n; i++)
        deepest = MAREY__MAX(deepest, (size_t)e->stacks.tree.nodes[e->order[i]].depth);
    size_t *ends MAREY__FREED = marey__calloc(deepest + 1, sizeof *ends);
    struct marey__buf path MAREY__FINALLY(marey__buf_fini) = {0};
    MAREY__TRY_MEMORY(ends != NULL);
    put_lines(x, e, &path, ends);
    return path.failed ? marey__no_memory() : MAREY_OK;
}

static marey_status on_whole(struct marey__export *x, marey_recording *const *recordings, size_t n)
{
    struct marey__stack_export e;
    marey_status status =
        marey__stack_export_init(&e, x, recordings, n, marey__collapsed_name, marey__stack_by_name);
    if (status == MAREY_OK)
        status = write_lines(x, &e);
    marey__stack_export_fini(&e);
    return status;
}

const struct marey__export_format marey__export_collapsed = {
    .info =
        {
            .name = "collapsed",
            .extensions = ".collapsedstack.txt",
            .brief = "self time of each path, for flamegraph.pl and others",
            .details = "Lines \"outer;inner NANOSECONDS\" in order; with a baseline \"outer;inner "
                       "OLD NEW\". Async ranges are "
                       "left out. Time of ranges that a filter removes counts as time of the range "
                       "around them.",
            .next = "self time of each path in nanoseconds",
            .content = MAREY_EXPORT_PATHS,
            .takes = MAREY_EXPORT_FILTER | MAREY_EXPORT_BY | MAREY_EXPORT_BASELINE |
                     MAREY_EXPORT_STARTUP,
        },
    .whole = on_whole,
};
