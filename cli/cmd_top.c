/*
 * marey top: what Python processes are doing, live. A thread samples; this one requests a table twice a second, draws
 * it and waits for keys. Without a terminal, prints a table per second.
 */
#include <poll.h>
#include <signal.h>

#include "lib/terminal.h"
#include "sampling.h"
#include "top.h"

enum { DRAW_MS = 500, PRINT_MS = 1000, ANSWER_MS = 400 };

static struct {
    const char *rate, *by, *window, *color;
    bool total, idle, once, native, no_children;
    uint32_t limit;
} given = {.by = "functions", .color = "auto", .limit = 20};

static const struct cli_option options[] = {
    {"by", 0, CLI_CHOICE, "functions|lines|threads|ranks", &given.by, "what to begin with"},
    {"total", 0, CLI_FLAG, NULL, &given.total, "sort by total time, including callees"},
    {"idle", 0, CLI_FLAG, NULL, &given.idle,
     "count all threads always; default: main threads always, others\n"
     "while on a CPU core"},
    {"window", 'w', CLI_TEXT, "TIME", &given.window, "time covered by the table (default: 5s)"},
    {"rate", 'r', CLI_TEXT, "HZ", &given.rate, "samples per second and process (default: 100)"},
    {"once", 0, CLI_FLAG, NULL, &given.once,
     "print one table after --window (then default: 1s) and exit"},
    {"limit", 'l', CLI_COUNT, "N", &given.limit, "maximum rows without a terminal (default: 20)"},
    {"native", 'n', CLI_FLAG, NULL, &given.native, "include frames of C and C++"},
    {"no-children", 0, CLI_FLAG, NULL, &given.no_children, "only these processes"},
    CLI_COLOR_OPTION(&given.color),
};

struct top {
    struct sampling sampling;
    marey_live *live;
    struct top_screen screen;
};

/* ---- the table ---- */

static void refresh(struct top *top, uint32_t wait_ms)
{
    marey_table *table;
    const unsigned flags = (top->screen.view.by_total ? MAREY_LIVE_BY_TOTAL : 0u) |
                           (top->screen.view.is_idle ? MAREY_LIVE_IDLE : 0u);
    top->screen.has_ended = !sampling_goes_on(&top->sampling);
    if (top->screen.has_ended ||
        marey_live_table(top->live, top->screen.view.by, flags, wait_ms, &table) != MAREY_OK)
        return; /* keep the last table */
    marey_table_destroy(top->screen.table);
    top->screen.table = table;
    marey_live_state_get(top->live, 0, &top->screen.state, sizeof top->screen.state);
    marey_sampler_counts_get(top->sampling.sampler, &top->screen.counts, sizeof top->screen.counts);
}

static void draw(struct top *top)
{
    uint32_t columns, rows;
    char *text CLI_FREED = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (out == NULL)
        return;
    terminal_size(&columns, &rows);
    const bool is_drawn = top_draw(&top->screen, columns, rows, out);
    if (fclose(out) == 0 && is_drawn)
        terminal_show(text, len);
}

/* ---- with a terminal ---- */

/* Until a key, a signal or the end of all processes; then the last table stays until a key is pressed. */
static void watch_terminal(struct top *top)
{
    for (;;) {
        if (!top->screen.view.is_paused)
            refresh(top, ANSWER_MS);
        draw(top);
        const int event = terminal_wait(top->screen.has_ended ? -1 : DRAW_MS);
        if (event == TERMINAL_ENDED || (event > 0 && !top_key(&top->screen.view, event)))
            return;
    }
}

static int show_on_terminal(struct top *top, marey_sampler *sampler)
{
    if (!terminal_open()) {
        terminal_close();
        return cli_fail("cannot use the terminal; 'marey top --once' works without one");
    }
    if (sampling_start(&top->sampling, sampler))
        watch_terminal(top);
    sampling_stop(&top->sampling);
    terminal_close();
    const int sig = terminal_signal();
    if (sig != 0 && sig != SIGINT) {
        signal(sig, SIG_DFL);
        raise(sig);
    }
    return CLI_FINE;
}

/* ---- without ---- */

static bool print(const struct top *top)
{
    return top_draw(&top->screen, cli_terminal_width(stdout), given.limit + 3, stdout) &&
           fputc('\n', stdout) != EOF && fflush(stdout) == 0 && !ferror(stdout);
}

static int print_tables(struct top *top, marey_sampler *sampler, double window_s)
{
    if (!sampling_start(&top->sampling, sampler))
        return CLI_BAD;
    const int first_ms = given.once ? (int)(window_s * 1000) : PRINT_MS;
    bool is_fine = true;
    do {
        poll(NULL, 0, first_ms);
        refresh(top, PRINT_MS);
        is_fine = top->screen.table == NULL || print(top);
    } while (is_fine && !given.once && !top->screen.has_ended);
    sampling_stop(&top->sampling);
    if (!is_fine)
        return cli_fail("cannot write to standard output");
    return top->screen.table != NULL ? CLI_FINE
                                     : cli_fail("nothing was sampled: the processes have ended");
}

/* ---- from the command line to the exit status ---- */

static int show(marey_sampler *sampler, double window_s, struct top_screen screen)
{
    struct top top = {.screen = screen};
    for (int i = 0; i < 4; i++)
        if (strcmp(given.by, top_view_names[i]) == 0)
            top.screen.view.by = (enum marey_live_by)i;
    CLI_TRY(cli_status(marey_live_create(window_s, &top.live)));
    marey_live_attach(top.live, sampler);
    const int status = !given.once && terminal_is_there() ? show_on_terminal(&top, sampler)
                                                          : print_tables(&top, sampler, window_s);
    marey_table_destroy(top.screen.table);
    marey_live_destroy(top.live);
    return status;
}

static int top(int n_args, char **args)
{
    struct marey_sampler_options wants = {
        .size = sizeof wants, .native = given.native, .no_children = given.no_children};
    double window_s = given.once ? 1 : 5;
    size_t n_failed;
    pid_t *pids CLI_FREED = NULL;
    if (n_args == 0)
        return cli_list_processes();
    struct top_screen screen = {.view = {.by_total = given.total, .is_idle = given.idle},
                                .has_color = cli_wants_color(stdout, given.color)};
    if ((given.rate != NULL && !cli_rate("rate", given.rate, &wants.rate_hz)) ||
        (given.window != NULL && !cli_seconds("window", given.window, &window_s)) ||
        !cli_pids(&cli_command_top, n_args, args, &pids))
        return CLI_BAD;
    signal(SIGPIPE, SIG_IGN);
    snprintf(screen.title, sizeof screen.title, "pid %d%s", (int)pids[0], n_args > 1 ? ", ..." : "");
    marey_sampler *sampler = sampling_create(&wants, pids, (size_t)n_args, &n_failed);
    if (sampler == NULL)
        return CLI_BAD;
    const int status = show(sampler, window_s, screen);
    marey_sampler_destroy(sampler);
    return status != CLI_FINE || n_failed == 0 ? status : CLI_BAD;
}

const struct cli_command cli_command_top = {
    .name = "top",
    .usage = "[PID...] [OPTIONS]",
    .brief = "live view of running Python processes",
    .about =
        "Shows where Python processes and their children have spent the last seconds, by\n"
        "function, line, thread or rank. Keys: f functions, l lines, t threads, r ranks, s sort\n"
        "by self, o by total, i include idle threads, p pause, q quit. If standard output is "
        "not a\n"
        "terminal, prints a table per second. Without a PID, lists the processes that run Python.",
    CLI_OPTIONS(options),
    .examples =
        "  marey top                                    which processes can be watched\n"
        "  marey top 4711\n"
        "  marey top $(pgrep -f train.py) --by ranks    all ranks of a job on this machine\n"
        "  marey top 4711 --once --by lines             one table, for a script",
    .run = top,
};
