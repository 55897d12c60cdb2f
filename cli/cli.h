/*
 * The command line. A command is a row of the table in main.c; it declares its options in a table
 * of its own, from which come values, errors, the help text, the manual page and the completion of
 * shells, so that these cannot disagree.
 *
 * What a value or an argument is called says what a shell offers for it: FILE and DIR are files and
 * directories, a name with ".marey" in it is a recording or a trace, KEY=VALUE,... are options of a
 * recording, a|b|c is one of these words.
 *
 * Answers go to stdout, everything else to stderr.
 */
#ifndef MAREY_CLI_H
#define MAREY_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <marey/marey.h>

/* Exit statuses; `marey run` otherwise passes on the program's own. */
enum cli_exit {
    CLI_FINE = 0,
    CLI_NO = 1,          /* the answer is no: a gate failed, things differ */
    CLI_BAD = 2,         /* wrong usage or input */
    CLI_NOT_STARTED = 3, /* the program to measure could not be started */
};

/* ---- options ---- */

enum cli_kind {
    CLI_FLAG,   /* bool: present or not */
    CLI_TEXT,   /* const char *: any */
    CLI_CHOICE, /* const char *: one of the words in `value`, written a|b|c */
    CLI_COUNT,  /* uint32_t */
    CLI_TEXTS,  /* struct cli_texts: it may be given several times */
    CLI_MAYBE,  /* const char *: any, but only as --name=VALUE; "" without one */
    /*
     * With one of the above: a setting of an analysis, which checks it. The value is a const char *, "" for a flag, but of
     * CLI_TEXTS as above. Several may share a name.
     */
    CLI_SETTING = 8,
    CLI_UNDER = 16, /* with CLI_SETTING: help lists it below the switch of the analysis */
};

enum { CLI_MAX_TEXTS = 64 };
struct cli_texts {
    const char *list[CLI_MAX_TEXTS];
    size_t n;
};

struct cli_command;
struct cli_option {
    const char *name; /* without its dashes */
    char letter;      /* short form; 0: none */
    enum cli_kind kind;
    const char *value; /* what help calls the value; NULL for a flag */
    void *into;        /* where the value goes; what is there before is the default */
    const char *help;  /* may have several lines */
};

/* Options that several commands have. */
#define CLI_COLOR_OPTION(into)                                                                        \
    {                                                                                                 \
        "color", 0, CLI_CHOICE, "auto|always|never", into, "auto: when standard output is a terminal" \
    }
#define CLI_UNIT_OPTION(into)                                                                      \
    {                                                                                              \
        "unit", 'u', CLI_CHOICE, "ns|us|ms|s", into,                                               \
            "one unit for all times (default: what fits each)"                                     \
    }

/* Without CLI_SETTING and CLI_UNDER. */
static inline enum cli_kind cli_kind(const struct cli_option *option)
{
    return (enum cli_kind)(option->kind & (CLI_SETTING - 1));
}

/* The option of "--name", "--name=value" or "-n"; NULL: there is none. */
const struct cli_option *cli_find_option(const struct cli_command *command, const char *word);

/* Whether an option before this one of the command has its name. */
bool cli_is_repeated(const struct cli_command *command, size_t option);

/* What was given for an option of a command itself, "" for a flag; NULL: nothing, or a count. */
const char *cli_given(const struct cli_option *option);

/* Whether the next word may be its value. */
static inline bool cli_takes_word(const struct cli_option *option)
{
    return cli_kind(option) != CLI_FLAG && cli_kind(option) != CLI_MAYBE;
}

/* A word that an option or an argument may be, such as a format. */
struct cli_term {
    const char *word, *meaning;
    const char *extensions; /* ".db .sqlite", of files; NULL: none */
};

struct cli_command {
    const char *name;
    const char *usage; /* after "marey NAME" */
    const char *brief; /* one line in `marey --help` */
    const char *about; /* paragraphs in its own help */
    const char *terms; /* the title of a list in its help: "Formats"; NULL: none */
    bool (*term)(size_t i,
                 struct cli_term *term); /* entry `i` of that list, or of what its argument can be; false past the last */
    void (*prepare)(void); /* completes the table of options, before anything reads it; NULL: it is complete */
    const struct cli_option *options;
    size_t n_options;
    const char *examples; /* lines, and what they do */
    const char *exits; /* its exit statuses, where there is more to say than `marey --help` does */
    int *divider; /* set to how many arguments come before "--", for two lists of them; NULL: it ends the options */
    bool is_itwinai_command; /* a command that itwinai has: listed after our own */
    bool stops_at_argument;  /* options end at the first argument: the rest is another program's */
    int (*run)(int n_args, char **args);
};

/* The table of a command's options. */
#define CLI_OPTIONS(table) .options = (table), .n_options = sizeof(table) / sizeof((table)[0])

extern struct cli_command cli_command_breakdown, cli_command_report, cli_command_scale,
    cli_command_compare, cli_command_diff;
extern const struct cli_command cli_command_run, cli_command_attach, cli_command_top,
    cli_command_stacks, cli_command_watch, cli_command_export, cli_command_artifacts,
    cli_command_import, cli_command_dump, cli_command_doctor, cli_command_explain,
    cli_command_completion, cli_command_generate_py_spy_report, cli_command_generate_flamegraph,
    cli_command_generate_scalability_report;

/* What SIGPIPE was set to when we were started; `marey run` gives it to its program. In main.c. */
extern void (*cli_inherited_sigpipe)(int sig);

/* Every command, then NULL; and the program itself, described as a command. In main.c. */
extern const struct cli_command *const cli_commands[];
extern const struct cli_command cli_program;
/* The command of that name; NULL: there is none. */
const struct cli_command *cli_find_command(const char *name);

/* The scripts for shells: completion_scripts.c. */
extern const char cli_completion_bash[], cli_completion_zsh[], cli_completion_fish[];

/*
 * Take the options out of `args` (NULL-terminated) and leave the arguments, `*n_args` of them.
 * CLI_FINE to go on; else the command is over with *status: help was asked for, or a sentence about
 * the mistake is on stderr.
 */
bool cli_parse(const struct cli_command *command, char **args, int *n_args, int *status);
/* The words of `term` as the value of a CLI_CHOICE, "a|b|c", into `into`. */
void cli_term_choices(bool (*term)(size_t i, struct cli_term *term), char *into, size_t size);
void cli_print_help(const struct cli_command *command);
/* The manual page of a command, or of `cli_program`, in roff. */
void cli_print_man(const struct cli_command *command);

/*
 * The options of a recording, from what marey_options_help() says: `at` begins with NULL and is kept
 * for the next call; false after the last.
 */
struct cli_key {
    char name[64], values[96]; /* "policy", "keep-oldest|keep-newest|block" */
    char meaning[256];         /* with the default in parentheses */
};
bool cli_next_key(const char **at, struct cli_key *key);

/* ---- sentences ---- */

/* "marey: sentence" on stderr. Fail returns CLI_BAD, refuse false. */
int cli_fail(const char *fmt, ...) MAREY_PRINTF(1, 2);
#define cli_say(...) ((void)cli_fail(__VA_ARGS__))
#define cli_refuse(...) (cli_say(__VA_ARGS__), false)
/* CLI_FINE, or of a failure its sentence on stderr and CLI_BAD. */
int cli_status(marey_status status);
/* Return the exit status `status` from this function unless it is CLI_FINE. */
#define CLI_TRY(status)                                                                            \
    do {                                                                                           \
        const int status_ = (status);                                                              \
        if (status_ != CLI_FINE)                                                                   \
            return status_;                                                                        \
    } while (0)

/* The page of a finding, whose id has `len` bytes; NULL, with a sentence that lists the ids. In cmd_explain.c. */
const struct marey_finding_page *cli_find_page(const char *id, size_t len);

/* ---- behind the name of a local variable: what becomes of it at the end of the block ---- */

#define CLI_FINALLY(function) __attribute__((cleanup(function), unused))
#define CLI_FREED CLI_FINALLY(cli_free)
static inline void cli_free(const void *pointer)
{
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    free(memory);
}
static inline void cli_destroy_report(marey_report *const *report)
{
    marey_report_destroy(*report);
}
static inline void cli_destroy_table(marey_table *const *table)
{
    marey_table_destroy(*table);
}

/* ---- words ---- */
/* "left out N THINGs: WHY"; nothing where `n` is 0. */
void cli_say_left_out(uint64_t n, const char *thing, const char *why);

/* The one of `n` words (at `words`, `stride` bytes apart) that `word` was probably meant to be, or NULL. */
const char *cli_nearest(const char *word, const void *words, size_t n, size_t stride);

/* `path` as one can paste it into a shell. Returned in `into`, of `size` bytes. */
const char *cli_quote(const char *path, char *into, size_t size);

/* A recording as the user would type it: relative when it lies below the current directory. A part of `path`. */
const char *cli_short_path(const char *path);

/* Append `text`, as far as it fits, to the string in `into`, of `size` bytes; after the first with `separator` before. */
void cli_append(char *into, size_t size, const char *separator, const char *text);

/* The next word of "a b c", `*len` bytes; `*at` begins with the list and moves on. NULL past the last. */
const char *cli_next_word(const char **at, size_t *len);

/* Whether `text` ends with `len` bytes of `end`. */
bool cli_ends_with(const char *text, const char *end, size_t len);

/* The value of an environment variable; NULL where it is not set or empty. */
const char *cli_env(const char *name);

/*
 * The name of a recording or a trace without folders and endings, "rank0" for "runs/rank0.json.gz"; `otherwise` when
 * nothing is left of it. Returned in `into`, of `size` bytes.
 */
const char *cli_stem(const char *path, char *into, size_t size, const char *otherwise);

/* What `option` says: '2' or '2%' as 2; '60', '60s', '500ms', '5m', '1h' as seconds. False with a sentence said. */
bool cli_percent(const char *option, const char *text, double *percent);
bool cli_seconds(const char *option, const char *text, double *seconds);
/* Samples a second: '100', '0.5', '2k'. */
bool cli_rate(const char *option, const char *text, double *hz);

/* Arguments that are process ids, `n` of them. False with a sentence said; free `*pids`, NULL before, either way. */
bool cli_pids(const struct cli_command *command, int n, char *const *args, pid_t **pids);

/* Print which processes run Python: cli_processes.c. */
int cli_list_processes(void);

/* 1234567 as "1.2 million", 12345 as "12,345". Returned in `into`. */
const char *cli_count(uint64_t n, char *into, size_t size);

/* Progress on stderr when that is a terminal; `ctx` is what is being done: "reading". `end` wipes it away. */
void cli_progress(void *ctx, double share);
void cli_progress_end(void);

/* How a stream wants it: colors (`choice`: auto, always, never), and columns, 0 where there is no terminal. */
bool cli_wants_color(FILE *out, const char *choice);
uint32_t cli_terminal_width(FILE *out);

/* ---- directories that are to become recordings ---- */

enum cli_existing {
    CLI_IS_NOTHING,
    CLI_IS_EMPTY,
    CLI_IS_RECORDING, /* every file in it is ours */
    CLI_IS_OTHER_DIR,
    CLI_IS_NO_DIR,
};
enum cli_existing cli_look_at(const char *path);
/* False, with a sentence about `quoted`, when the path is a file or a directory with other files. */
bool cli_may_hold_recording(const char *path, const char *quoted);
/* Remove every file of a directory that is a recording. False with errno set. */
bool cli_empty_recording(const char *path);

/* ---- files to write ---- */

/*
 * Write the file `path`, "-" for standard output, and print its size and `next`, what to do with it; NULL: print nothing.
 * A file that is there stays as it is until the new one is complete, and for good when `write` fails. Every file that a
 * user names as an output is written by one of these two.
 */
int cli_write_file(const char *path, marey_status (*write)(void *ctx, int fd), void *ctx,
                   const char *next);
/* The same for a stream; also a NULL path is standard output. `print` returns an exit status, and has said what failed. */
int cli_print_file(const char *path, int (*print)(void *ctx, FILE *out), void *ctx, const char *next);
/* The `next` of report pages. */
#define CLI_PAGE_NEXT "open it in a browser; it needs nothing else"

/* ---- commands in Python ---- */

/* Arguments of another command, each allocated. Starts from zeroes. */
enum { CLI_MAX_WORDS = 40 };
struct cli_words {
    char *list[CLI_MAX_WORDS + 1];
    size_t n;
    bool failed; /* out of memory, or too many */
};
void cli_add_word(struct cli_words *words, const char *fmt, ...) MAREY_PRINTF(2, 3);
/* The options of a command that were given; none of them several times. */
void cli_add_options(struct cli_words *words, const struct cli_command *command);

/*
 * Run `python -m marey.itwinai WORDS... -- PATHS...` with standard output to `out`, and empty the words. Python is
 * $MAREY_PYTHON, else python3 or python on the PATH; the package beside this program goes before its own. Returns CLI_FINE, or
 * CLI_BAD after a sentence.
 */
int cli_python(struct cli_words *words, int n_paths, char *const *paths, FILE *out);

/* Whether `path` has the extension .csv or .csv.gz, or is a folder with such a file at any depth. */
bool cli_is_csv(const char *path);

/* ---- recordings as arguments ---- */

struct cli_recordings {
    marey_recording **list;
    size_t n;
    marey_recording **wholes; /* that `list` was selected from; NULL: it was not */
};

/* The threads that open recordings from now on; 0, as at first: as many as there are cores. */
void cli_use_jobs(uint32_t n_jobs);
/* Open all of `paths`, recordings or traces of others; false, with a sentence said, when one cannot be. */
bool cli_open(struct cli_recordings *recordings, char **paths, int n);
/* The same with the arguments of each event of a trace, for an export. */
bool cli_open_whole(struct cli_recordings *recordings, char **paths, int n);
void cli_close(struct cli_recordings *recordings);
/*
 * Let `recordings` be of these processes only (marey_recording_select); NULL: all. False with a sentence said, and then they
 * are closed.
 */
bool cli_select_process(struct cli_recordings *recordings, const char *process);
/* Of recordings without events: wall time, CPU time and exit status of their runs, a line each. */
void cli_print_runs(const struct cli_recordings *recordings, FILE *out);
/* Say what the files of an imported recording left out or lack. */
void cli_print_notes(const marey_recording *recording);
/* `status`; but when it is fine and a recording is damaged, say so and return CLI_BAD: the answer is not whole. */
int cli_report_damage(const struct cli_recordings *recordings, int status);

#endif
