/* The frame of a chart: title, legend, axes, grid; marks and texts shared by lines and bars. */
#include <math.h>

#include "present/draw/internal.h"

/* chart.css, which the build turns into C. */
extern const char marey__chart_css[];

/* Pixels. */
enum {
    MARGIN = 16,
    TITLE_LINE = 30,
    LEGEND_LINE = 22,
    LEGEND_MARK = 26, /* from a mark to its name */
    LEGEND_GAP = 20,
    AXIS_TITLE = 24,
    PLOT_HEIGHT = 270,
    TICK_LABELS = 24,
    NOTE_LINE = 22,
    MOST_NAME = 44, /* characters of a name */
};

/* ---- axes: ends, ticks, positions and labels of values ---- */

/* A logarithmic axis over a wider ratio has ticks only at powers; over less than the second limit, ticks are linear. */
#define MANY_TIMES 100
#define FEW_TIMES 4

enum { MOST_TICKS = MAREY__COUNT_OF(((struct marey__axis *)0)->ticks), GOOD_TICKS = 8 };

static double log_of(enum marey__chart_scale scale, double value)
{
    return scale == MAREY__CHART_LOG2 ? log2(value) : log10(value);
}

double marey__axis_at(const struct marey__axis *axis, double value)
{
    double share;
    if (axis->scale == MAREY__CHART_LINEAR)
        share = (value - axis->low) / (axis->high - axis->low);
    else
        share = log(value / axis->low) / log(axis->high / axis->low);
    return axis->from + share * (axis->to - axis->from);
}

static void add_tick(struct marey__axis *axis, double value)
{
    /* Rounding must not drop the first or last tick. */
    const double slack = (axis->scale == MAREY__CHART_LINEAR ? axis->high - axis->low : value) * 1e-9;
    if (axis->n_ticks < MOST_TICKS && value >= axis->low - slack && value <= axis->high + slack)
        axis->ticks[axis->n_ticks++] = value;
}

/* 1, 2 or 5 times a power of ten, for about six steps in `range`. */
static double round_step(double range)
{
    const double rough = range / 6, power = pow(10, floor(log10(rough)));
    const double times = rough / power;
    return power * (times < 1.5 ? 1 : times < 3.5 ? 2 : times < 7.5 ? 5 : 10);
}

static void add_even_ticks(struct marey__axis *axis)
{
    const double step = round_step(axis->high - axis->low);
    const double first = ceil(axis->low / step - 1e-9);
    for (size_t i = 0; i < MOST_TICKS; i++)
        add_tick(axis, (first + (double)i) * step);
}

/* Powers; for powers of ten 1, 2 and 5 times each if there is space. */
static void add_power_ticks(struct marey__axis *axis)
{
    const double base = axis->scale == MAREY__CHART_LOG2 ? 2 : 10;
    const bool is_dense = base == 10 && axis->high / axis->low < MANY_TIMES;
    const double low = log_of(axis->scale, axis->low), last = floor(log_of(axis->scale, axis->high));
    const double first = is_dense ? floor(low) : ceil(low);
    const double every = ceil((last - first + 1) / GOOD_TICKS);
    const double step = is_dense ? 1 : every;
    for (int i = 0; first + i * step <= last; i++) {
        const double e = first + i * step;
        add_tick(axis, pow(base, e));
        if (is_dense) {
            add_tick(axis, 2 * pow(base, e));
            add_tick(axis, 5 * pow(base, e));
        }
    }
}

/* A linear axis begins at 0, so that heights can be compared, and ends at a tick. */
static void fit_linear(struct marey__axis *axis, double low, double high)
{
    axis->low = fmin(0, low);
    axis->high = high > axis->low ? high : axis->low + 1;
    const double step = round_step(axis->high - axis->low);
    axis->high = ceil(axis->high / step - 1e-9) * step;
    add_even_ticks(axis);
}

static void fit_logarithmic(struct marey__axis *axis, double low, double high)
{
    const double room = fmax(pow(high / low, 0.06), 1.05);
    axis->low = low / room;
    axis->high = high * room;
    if (axis->high / axis->low < FEW_TIMES)
        add_even_ticks(axis);
    else
        add_power_ticks(axis);
}

void marey__axis_fit(struct marey__axis *axis, double low, double high)
{
    axis->n_ticks = 0;
    if (axis->scale == MAREY__CHART_LINEAR)
        fit_linear(axis, low, high);
    else
        fit_logarithmic(axis, low, high);
}

const char *marey__axis_number(double value, char into[24])
{
    const double size = fabs(value);
    if (size < 1e-12)
        snprintf(into, 24, "0");
    else if (size >= 1e15 || size < 1e-4)
        snprintf(into, 24, "%.3g", value);
    else if (size >= 1e6)
        snprintf(into, 24, "%.4g %s", value / (size >= 1e9 ? 1e9 : 1e6), size >= 1e9 ? "G" : "M");
    else if (size >= 1000)
        snprintf(into, 24, "%.0f", value);
    else
        snprintf(into, 24, "%.3g", value);
    return into;
}

/*
 * Estimate: about 7 pixels per byte at chart.css's font size; a non-ASCII character counts as its bytes, at most two.
 */
double marey__text_pixels(const char *text)
{
    return 7.0 * (double)strlen(text);
}

/* ---- texts ---- */

static void put_escaped(struct marey__buf *svg, const char *text)
{
    marey__xml_put(svg, text, strlen(text));
}

/* An untrusted name: control characters made visible, long names truncated. */
static void put_name(struct marey__buf *svg, const char *name)
{
    struct marey__buf cut = {0};
    marey__text_put(&cut, name, strlen(name), MOST_NAME);
    marey__xml_put(svg, cut.data, cut.len);
    marey__buf_end(&cut, svg);
}

static double name_pixels(const char *name)
{
    return fmin(marey__text_pixels(name), 7.0 * MOST_NAME);
}

/* ---- marks ---- */

void marey__plot_text(struct marey__buf *svg, double x, double y, const char *style, const char *text)
{
    marey__buf_printf(svg, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, style);
    put_escaped(svg, text);
    marey__buf_puts(svg, "</text>\n");
}

static void put_tip(struct marey__buf *svg, const char *tip)
{
    marey__buf_puts(svg, "><title>");
    put_escaped(svg, tip);
    marey__buf_puts(svg, "</title></path>\n");
}

/* Shapes distinguish series where colors do not: circle, square, triangle, diamond. */
void marey__plot_mark(struct marey__buf *svg, double x, double y, uint32_t shape, uint32_t color,
                      const char *tip)
{
    marey__buf_printf(svg, "<path class=\"mark f%u\" d=\"M%.1f %.1f", color, x, y);
    if (shape == MAREY__MARK_BOX)
        marey__buf_puts(svg, "m-6 -6h12v12h-12z\"");
    else if (shape % MAREY__MARK_SHAPES == 0)
        marey__buf_puts(svg, "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z\"");
    else if (shape % MAREY__MARK_SHAPES == 1)
        marey__buf_puts(svg, "m-4 -4h8v8h-8z\"");
    else if (shape % MAREY__MARK_SHAPES == 2)
        marey__buf_puts(svg, "m0 -5.5l5 9h-10z\"");
    else
        marey__buf_puts(svg, "m0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z\"");
    if (tip != NULL)
        put_tip(svg, tip);
    else
        marey__buf_puts(svg, "/>\n");
}

void marey__plot_error_bar(struct marey__buf *svg, double x, double low, double high, uint32_t color)
{
    marey__buf_printf(svg, "<path class=\"bound ");
    if (color == MAREY__CHART_MUTED)
        marey__buf_puts(svg, "over");
    else
        marey__buf_printf(svg, "s%u", color);
    marey__buf_printf(svg, "\" d=\"M%.1f %.1fV%.1fM%.1f %.1fh8M%.1f %.1fh8\"/>\n", x, low, high,
                      x - 4, low, x - 4, high);
}

/* ---- the legend ---- */

static double entry_pixels(const struct marey__legend_entry *entry)
{
    return LEGEND_MARK + name_pixels(entry->name) + LEGEND_GAP;
}

/* The position of each entry: the next after (x, line), which starts with zeros. */
static void step_legend(const struct marey__plot *frame, size_t i, double *x, size_t *line)
{
    const double wide = entry_pixels(&frame->legend[i]);
    if (*x > MARGIN && *x + wide > frame->width) {
        *x = MARGIN;
        ++*line;
    }
}

static size_t legend_lines(const struct marey__plot *frame)
{
    double x = MARGIN;
    size_t line = 0;
    for (size_t i = 0; i < frame->n_legend; i++) {
        step_legend(frame, i, &x, &line);
        x += entry_pixels(&frame->legend[i]);
    }
    return frame->n_legend != 0 ? line + 1 : 0;
}

static void put_entry(struct marey__buf *svg, const struct marey__legend_entry *entry, double x,
                      double y)
{
    if (entry->sign[0] != '\0')
        marey__plot_text(svg, x + 9, y + 4, "sign", entry->sign);
    else if (entry->is_dashed)
        marey__buf_printf(svg, "<path class=\"ideal s%u\" d=\"M%.1f %.1fh20\"/>\n", entry->color, x,
                          y);
    else
        marey__plot_mark(svg, x + 9, y, entry->shape, entry->color, NULL);
    marey__buf_printf(svg, "<text x=\"%.1f\" y=\"%.1f\">", x + LEGEND_MARK, y + 4);
    put_name(svg, entry->name);
    marey__buf_puts(svg, "</text>\n");
}

static void put_legend(const struct marey__plot *frame)
{
    double x = MARGIN;
    size_t line = 0;
    for (size_t i = 0; i < frame->n_legend; i++) {
        step_legend(frame, i, &x, &line);
        put_entry(frame->svg, &frame->legend[i], x,
                  MARGIN + TITLE_LINE + LEGEND_LINE * (double)line + 4);
        x += entry_pixels(&frame->legend[i]);
    }
}

/* ---- the layout ---- */

void marey__plot_lay(struct marey__plot *frame, double plot_width, double below)
{
    char number[24];
    double widest = 35; /* minimum, so that charts side by side have aligned axes */
    for (size_t i = 0; i < frame->y.n_ticks; i++)
        widest = fmax(widest, marey__text_pixels(marey__axis_number(frame->y.ticks[i], number)));
    frame->x.from = MARGIN + AXIS_TITLE + widest + 8;
    frame->x.to = frame->x.from + plot_width;
    frame->width = frame->x.to + MARGIN + 8;
    frame->y.to = MARGIN + TITLE_LINE + LEGEND_LINE * (double)legend_lines(frame) + 8;
    frame->y.from = frame->y.to + PLOT_HEIGHT;
    frame->height = frame->y.from + TICK_LABELS + below + AXIS_TITLE + 4 +
                    (frame->words->note != NULL ? NOTE_LINE : 0);
}

static void put_y_axis(const struct marey__plot *frame)
{
    struct marey__buf *svg = frame->svg;
    char number[24];
    for (size_t i = 0; i < frame->y.n_ticks; i++) {
        const double y = marey__axis_at(&frame->y, frame->y.ticks[i]);
        marey__buf_printf(svg, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", frame->x.from, y,
                          frame->x.to);
        marey__plot_text(svg, frame->x.from - 8, y + 4.5, "y",
                         marey__axis_number(frame->y.ticks[i], number));
    }
    const double middle = (frame->y.from + frame->y.to) / 2;
    marey__buf_printf(svg, "<text class=\"axis\" transform=\"translate(%d %.1f) rotate(-90)\">",
                      MARGIN + 10, middle);
    put_escaped(svg, frame->words->y_title);
    marey__buf_puts(svg, "</text>\n");
}

void marey__plot_begin(struct marey__plot *frame,
                       void (*describe)(void *ctx, struct marey__buf *text), void *ctx)
{
    struct marey__buf *svg = frame->svg, about = {0};
    const char *id = frame->words->id;
    marey__buf_printf(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"marey-chart\" role=\"img\" "
        "aria-labelledby=\"%s-title %s-about\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
        "%.0f\">\n<title id=\"%s-title\">",
        id, id, frame->width, frame->height, frame->width, frame->height, id);
    put_escaped(svg, frame->words->title);
    marey__buf_printf(svg, "</title>\n<desc id=\"%s-about\">", id);
    marey__buf_printf(&about, "%s against %s.", frame->words->y_title, frame->words->x_title);
    describe(ctx, &about);
    marey__xml_put(svg, about.data, about.len);
    marey__buf_end(&about, svg);
    marey__buf_puts(svg, "</desc>\n");
    if (frame->words->has_style)
        marey__buf_printf(svg, "<style>%s</style>\n", marey__chart_css);
    marey__buf_printf(svg, "<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n", frame->width,
                      frame->height);
    marey__plot_text(svg, MARGIN, MARGIN + 12, "title", frame->words->title);
    put_legend(frame);
    put_y_axis(frame);
}

void marey__plot_end(struct marey__plot *frame)
{
    struct marey__buf *svg = frame->svg;
    const double note = frame->words->note != NULL ? NOTE_LINE : 0;
    marey__buf_printf(svg, "<path class=\"edge\" d=\"M%.1f %.1fH%.1f\"/>\n", frame->x.from,
                      frame->y.from, frame->x.to);
    marey__plot_text(svg, (frame->x.from + frame->x.to) / 2, frame->height - 14 - note, "axis",
                     frame->words->x_title);
    if (frame->words->note != NULL)
        marey__plot_text(svg, MARGIN, frame->height - 10, "note", frame->words->note);
    marey__buf_puts(svg, "</svg>\n");
}
