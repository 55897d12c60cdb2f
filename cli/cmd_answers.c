/* kymo answers: every question that recordings answer, a line for each, and one page with all that is behind them. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static struct {
    struct cli_texts time, iterations, epochs, breakdown, energy, samples, calls, memory, gpu;
    struct cli_texts compare, diff, scale, text, link;
    const char *html, *title, *color;
    bool json;
} given = {.color = "auto"};

static const struct cli_option options[] = {
    {"time", 0, CLI_TEXTS, "RUN.kymo", &given.time,
     "where the time of this one goes. As with the next eight, where\n"
     "there is no answer it is said why"},
    {"iterations", 0, CLI_TEXTS, "RUN.kymo", &given.iterations, "how long an iteration takes"},
    {"epochs", 0, CLI_TEXTS, "RUN.kymo", &given.epochs, "how long an epoch takes, and in what"},
    {"breakdown", 0, CLI_TEXTS, "RUN.kymo", &given.breakdown, "computation, communication, other"},
    {"energy", 0, CLI_TEXTS, "RUN.kymo", &given.energy, "how much energy it takes"},
    {"samples", 0, CLI_TEXTS, "RUN.kymo", &given.samples, "what the program does, by samples"},
    {"calls", 0, CLI_TEXTS, "RUN.kymo", &given.calls, "which function, with which arguments"},
    {"memory", 0, CLI_TEXTS, "RUN.kymo", &given.memory, "what takes the memory, and what leaks"},
    {"gpu", 0, CLI_TEXTS, "RUN.kymo", &given.gpu, "is the GPU slow, or launching on it"},
    {"compare", 0, CLI_TEXTS, "A.kymo,B.kymo", &given.compare, "is B faster than A"},
    {"diff", 0, CLI_TEXTS, "NEW,REFERENCE", &given.diff, "are the numbers of two dumps the same"},
    {"scale", 0, CLI_TEXTS, "RUN.kymo", &given.scale,
     "does it scale: with this run and all others that are given so"},
    {"text", 0, CLI_TEXTS, "QUESTION=FILE", &given.text,
     "a question of your own: the first line of FILE is the answer,\n"
     "the rest its details"},
    {"html", 0, CLI_TEXT, "FILE", &given.html,
     "a page to look at: each answer, with all that its command\n"
     "prints below; - is standard output"},
    {"link", 0, CLI_TEXTS, "TEXT=FILE", &given.link, "a link to another file, in the page"},
    {"title", 0, CLI_TEXT, "TEXT", &given.title, "the page's title (default: Answers)"},
    {"json", 0, CLI_FLAG, NULL, &given.json, "a list of objects: question, answer, command, details"},
    {"color", 0, CLI_CHOICE, "auto|always|never", &given.color,
     "auto: when standard output is a terminal"},
};

/* ---- asking ---- */

static int told(kymo_status status)
{
    return status == KYMO_OK ? CLI_FINE : cli_fail("%s", kymo_last_error());
}

/* `question` NULL: all. */
static int ask(kymo_answers *answers, const char *question, const char *path)
{
    struct cli_recordings recordings;
    char *paths[] = {(char *)path}, quoted[4096];
    if (!cli_open(&recordings, paths, 1))
        return CLI_BAD;
    int status = told(kymo_answers_ask(answers, question, recordings.list, recordings.n,
                                       cli_quote(path, quoted, sizeof quoted)));
    status = cli_tell_damage(&recordings, status);
    cli_close(&recordings);
    return status;
}

static int ask_each(kymo_answers *answers, const char *question, const struct cli_texts *paths)
{
    int status = CLI_FINE;
    for (size_t i = 0; i < paths->n && status == CLI_FINE; i++)
        status = ask(answers, question, paths->list[i]);
    return status;
}

/* Two sides, "A,B", or a question and its file, "Q=F": at the last `mark`. */
typedef kymo_status two_sided(kymo_answers *answers, const char *left, const char *right);

static int ask_both(kymo_answers *answers, const char *option, const struct cli_texts *pairs,
                    char mark, two_sided *ask_pair)
{
    for (size_t i = 0; i < pairs->n; i++) {
        char *left = strdup(pairs->list[i]);
        char *at = left != NULL ? strrchr(left, mark) : NULL;
        if (at == NULL || at == left || at[1] == '\0') {
            free(left);
            return cli_fail("--%s takes two things with a '%c' between, not '%s'", option, mark,
                            pairs->list[i]);
        }
        *at = '\0';
        const int status = told(ask_pair(answers, left, at + 1));
        free(left);
        if (status != CLI_FINE)
            return status;
    }
    return CLI_FINE;
}

static kymo_status read_whole(FILE *file, char **text)
{
    size_t cap = 0;
    /* A NUL ends a text, so no file has that delimiter in it. */
    return getdelim(text, &cap, '\0', file) >= 0 || feof(file) ? KYMO_OK : KYMO_EIO;
}

static kymo_status add_text(kymo_answers *answers, const char *question, const char *path)
{
    char *text = NULL;
    FILE *file = fopen(path, "r");
    kymo_status status = file != NULL ? read_whole(file, &text) : KYMO_EIO;
    if (status != KYMO_OK)
        cli_say("cannot read %s: %s", path, strerror(errno));
    else
        status = kymo_answers_add(answers, question, text != NULL ? text : "", NULL);
    if (file != NULL)
        fclose(file);
    free(text);
    return status;
}

static int ask_all(kymo_answers *answers, int n_args, char **args)
{
    const struct {
        const char *question;
        const struct cli_texts *paths;
    } asked[] = {
        {"time", &given.time},     {"iterations", &given.iterations},
        {"epochs", &given.epochs}, {"breakdown", &given.breakdown},
        {"energy", &given.energy}, {"samples", &given.samples},
        {"calls", &given.calls},   {"memory", &given.memory},
        {"gpu", &given.gpu},
    };
    int status = ask_both(answers, "link", &given.link, '=', kymo_answers_link);
    if (status == CLI_FINE)
        status = ask_both(answers, "text", &given.text, '=', add_text);
    for (int i = 0; i < n_args && status == CLI_FINE; i++)
        status = ask(answers, NULL, args[i]);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0] && status == CLI_FINE; i++)
        status = ask_each(answers, asked[i].question, asked[i].paths);
    if (status == CLI_FINE)
        status = ask_both(answers, "compare", &given.compare, ',', kymo_answers_compare);
    if (status == CLI_FINE)
        status = ask_both(answers, "diff", &given.diff, ',', kymo_answers_diff);
    if (status == CLI_FINE && given.scale.n != 0)
        status = told(kymo_answers_scale(answers, given.scale.list, given.scale.n));
    return status;
}

/* ---- answering ---- */

static kymo_status write_page(void *answers, int fd)
{
    return kymo_answers_html(answers, given.title, fd);
}

static int print(kymo_answers *answers)
{
    const struct kymo_text_options wants = {.color = cli_wants_color(stdout, given.color)};
    if (kymo_table_n_rows(kymo_answers_table(answers)) == 0)
        return cli_fail("answers needs a recording or a question: kymo answers RUN.kymo");
    if (given.html != NULL) {
        const int status = cli_write_file(given.html, write_page, answers, "open it in a browser");
        if (status != CLI_FINE || strcmp(given.html, "-") == 0)
            return status;
    }
    return told(given.json ? kymo_present_json(kymo_answers_table(answers), stdout)
                           : kymo_answers_text(answers, &wants, stdout));
}

static int run(int n_args, char **args)
{
    kymo_answers *answers = NULL;
    signal(SIGPIPE, SIG_DFL); /* a reader that has seen enough ends us without a word */
    if (kymo_answers_create(&answers) != KYMO_OK)
        return cli_fail("%s", kymo_last_error());
    int status = ask_all(answers, n_args, args);
    if (status == CLI_FINE)
        status = print(answers);
    kymo_answers_destroy(answers);
    return status;
}

const struct cli_command cli_command_answers = {
    .name = "answers",
    .usage = "[RUN.kymo|TRACE...] [OPTIONS]",
    .brief = "every question that recordings answer, a line for each",
    .about =
        "Asks recordings where the time goes, how long an iteration and an epoch take, what is\n"
        "computation and communication, what energy and memory it takes, which functions and\n"
        "arguments, whatever each of them has something for, and prints a line for each question.\n"
        "Options ask one recording one question, compare two, or two dumps. --html writes one\n"
        "page with these lines and, below, all that the command behind each of them prints.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .examples = "  kymo answers train.kymo\n"
                "  kymo answers train.kymo --compare before.kymo,train.kymo --html answers.html\n"
                "  kymo answers --epochs train.kymo --energy train.kymo --diff new,reference",
    .run = run,
};
