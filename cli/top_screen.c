/*
 * The screen of `marey top`: a title line, the table, a line of keys. On a small terminal the table gets most room.
 */
#include "lib/cli.h"
#include "top.h"

enum { KEY_CTRL_D = 4, FIRST_NS = 300000000 /* earlier rates are noise */ };

const char *const top_view_names[4] = {"functions", "lines", "threads", "ranks"};

bool top_key(struct top_view *view, int key)
{
    static const char views[] = "fltr"; /* by enum marey_live_by */
    const char *const by = key > 0 && key < 128 ? strchr(views, key) : NULL;
    if (by != NULL)
        view->by = (enum marey_live_by)(by - views);
    else if (key == 's' || key == 'o')
        view->by_total = key == 'o';
    else if (key == 'i')
        view->is_idle = !view->is_idle;
    else if (key == 'p' || key == ' ')
        view->is_paused = !view->is_paused;
    return key != 'q' && key != 'Q' && key != KEY_CTRL_D;
}

/* ---- lines ---- */

static const char *style(const struct top_screen *screen, const char *code)
{
    return screen->has_color ? code : "";
}

static void put_head(const struct top_screen *screen, uint32_t columns, FILE *out)
{
    const struct marey_live_state *state = &screen->state;
    char line[256];
    int len = snprintf(line, sizeof line, "%s  %.1f cpu  %.0f%% GIL  %.0f Hz", screen->title,
                       state->cpu, state->gil * 100, screen->counts.achieved_hz);
    if (state->n_processes > 1)
        len = snprintf(line, sizeof line, "%s, %llu processes  %.1f cpu  %.1f GIL  %.0f Hz",
                       screen->title, (unsigned long long)state->n_processes, state->cpu,
                       state->gil, screen->counts.achieved_hz);
    if (state->seen_ns < FIRST_NS)
        len = snprintf(line, sizeof line, "%s", screen->title);
    const int room = columns != 0 && (int)columns < len ? (int)columns : len;
    fprintf(out, "%s%.*s%s%s\n", style(screen, "\033[1m"), room, line, style(screen, "\033[0m"),
            screen->view.is_paused ? " [paused]"
            : screen->has_ended    ? " [ended]"
                                   : "");
}

/* Adds the sort order and the counted time if there is room. */
static void put_keys(const struct top_screen *screen, uint32_t columns, FILE *out)
{
    const struct top_view *view = &screen->view;
    if (columns == 0)
        return;
    if (columns < 76)
        fprintf(out, "%s%.*s%s", style(screen, "\033[2m"), (int)columns,
                "f l t r  s self o total  i p  q quit", style(screen, "\033[0m"));
    else
        fprintf(out, "%s%s by %s%s | f l t r view  s self o total  i idle  p pause  q quit%s",
                style(screen, "\033[2m"), top_view_names[view->by], view->by_total ? "total" : "self",
                view->is_idle ? ", idle too" : "", style(screen, "\033[0m"));
}

/* The table, at most `rows` lines. */
static bool put_table(const struct top_screen *screen, uint32_t columns, uint32_t rows, FILE *out)
{
    const struct marey_text_options options = {.width = columns, .color = screen->has_color};
    char *text CLI_FREED = NULL;
    size_t len = 0;
    if (screen->table == NULL) {
        fputs("no sample yet\n", out);
        return true;
    }
    FILE *lines = open_memstream(&text, &len);
    if (lines == NULL)
        return false;
    const marey_status status = marey_present_text(screen->table, &options, lines);
    const bool is_fine = fclose(lines) == 0 && status == MAREY_OK;
    const char *end = text;
    for (uint32_t row = 0; is_fine && row < rows && end != NULL && *end != '\0'; row++) {
        end = strchr(end, '\n');
        end += end != NULL;
    }
    if (is_fine && text != NULL)
        fwrite(text, 1, end != NULL ? (size_t)(end - text) : len, out);
    return is_fine;
}

bool top_draw(const struct top_screen *screen, uint32_t columns, uint32_t rows, FILE *out)
{
    const uint32_t around = 2; /* lines above and below the table */
    put_head(screen, columns, out);
    const bool is_fine = put_table(screen, columns, rows > around ? rows - around : 1, out);
    put_keys(screen, columns, out);
    return is_fine;
}
