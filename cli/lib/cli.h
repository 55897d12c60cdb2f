/*
 * The command line. A command is a row of the table in main.c. It declares its options in a table, from which parsing,
 * errors, help, the manual page and shell completion are generated, so that they agree.
 *
 * The placeholder of a value or argument determines its completion: FILE and DIR complete files and directories, a name
 * with ".marey" in it recordings and traces, KEY=VALUE,... options of a recording, a|b|c these words.
 *
 * Results go to stdout, everything else to stderr.
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

/* Exit statuses; `marey run` otherwise returns the program's status. */
enum cli_exit {
    CLI_FINE = 0,
    CLI_NO = 1,          /* a negative result: a gate failed, things differ */
    CLI_BAD = 2,         /* wrong usage or input */
    CLI_NOT_STARTED = 3, /* the program to measure could not be started */
};

/* ---- options ---- */

enum cli_kind {
    CLI_FLAG,   /* bool: present or not */
    CLI_TEXT,   /* const char *: any */
    CLI_CHOICE, /* const char *: one of the words in `value`, written a|b|c */
    CLI_COUNT,  /* uint32_t */
    CLI_TEXTS,  /* struct cli_texts: repeatable */
    CLI_MAYBE,  /* const char *: any, but only as --name=VALUE; "" without one */
    /*
     * With one of the above: a setting of an analysis, which validates it. The value is a const char *, "" for a flag;
     * for CLI_TEXTS as above. Several may share a name.
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
    const char *name; /* without dashes */
    char letter;      /* short form; 0: none */
    enum cli_kind kind;
    const char *value; /* placeholder in help; NULL for a flag */
    void *into;        /* gets the value; its initial value is the default */
    const char *help;  /* may have several lines */
};

/* Options shared by several commands. */
#define CLI_COLOR_OPTION(into)                                                                        \
    {                                                                                                 \
        "color", 0, CLI_CHOICE, "auto|always|never", into, "auto: when standard output is a terminal" \
    }
#define CLI_UNIT_OPTION(into)                                                                      \
    {                                                                                              \
        "unit", 'u', CLI_CHOICE, "ns|us|ms|s", into,                                               \
            "one unit for all times (default: what fits each)"                                     \
    }

/* The kind without CLI_SETTING and CLI_UNDER. */
static inline enum cli_kind cli_kind(const struct cli_option *option)
{
    return (enum cli_kind)(option->kind & (CLI_SETTING - 1));
}

/* The option of "--name", "--name=value" or "-n", or NULL. */
const struct cli_option *cli_find_option(const struct cli_command *command, const char *word);

/* Whether an earlier option of the command has the same name. */
bool cli_is_repeated(const struct cli_command *command, size_t option);

/* The value given for a command's own option, "" for a flag; NULL if not given, or for a count. */
const char *cli_given(const struct cli_option *option);

/* False, with a sentence, when two of these options were given: "json csv html". */
bool cli_exclude(const struct cli_command *command, const char *names);

/* Whether the next word may be its value. */
static inline bool cli_takes_word(const struct cli_option *option)
{
    return cli_kind(option) != CLI_FLAG && cli_kind(option) != CLI_MAYBE;
}

/* A word that an option or argument accepts, such as a format. */
struct cli_term {
    const char *word, *meaning;
    const char *extensions; /* of files, ".db .sqlite"; NULL: none */
};

struct cli_command {
    const char *name;
    const char *usage; /* after "marey NAME" */
    const char *brief; /* one line in `marey --help` */
    const char *about; /* paragraphs in the command's help */
    const char *terms; /* the title of a list in its help: "Formats"; NULL: none */
    bool (*term)(size_t i,
                 struct cli_term *term); /* entry `i` of that list, or a completion of its argument; false past the last */
    void (*prepare)(void); /* completes the table of options before its first use; NULL: already complete */
    const struct cli_option *options;
    size_t n_options;
    const char *examples; /* lines with explanations */
    const char *exits;    /* its exit statuses, if `marey --help` does not suffice */
    int *divider; /* set to how many arguments come before "--", for two lists of them; NULL: it ends the options */
    bool is_itwinai_command; /* a command of itwinai: listed after our own */
    bool stops_at_argument; /* options end at the first argument: the rest belongs to another program */
    int (*run)(int n_args, char **args);
};

/* The table of a command's options. */
#define CLI_OPTIONS(table) .options = (table), .n_options = sizeof(table) / sizeof((table)[0])

extern struct cli_command cli_command_breakdown, cli_command_report, cli_command_scale,
    cli_command_compare, cli_command_diff, cli_command_export;
extern const struct cli_command cli_command_run, cli_command_attach, cli_command_top,
    cli_command_stacks, cli_command_watch, cli_command_artifacts, cli_command_import,
    cli_command_dump, cli_command_doctor, cli_command_explain, cli_command_completion,
    cli_command_generate_py_spy_report, cli_command_generate_flamegraph,
    cli_command_generate_scalability_report;

/* The inherited SIGPIPE disposition, which `marey run` passes to its program. In main.c. */
extern void (*cli_inherited_sigpipe)(int sig);

/* All commands, NULL-terminated; and the program itself, described as a command. In main.c. */
extern const struct cli_command *const cli_commands[];
extern const struct cli_command cli_program;
/* The command of that name, or NULL. */
const struct cli_command *cli_find_command(const char *name);

/* The shell scripts: completion_scripts.c. */
extern const char cli_completion_bash[], cli_completion_zsh[], cli_completion_fish[];

/*
 * Parses the options in `args` (NULL-terminated) and leaves the `*n_args` arguments there. Returns false with *status
 * if the command is done: help was printed, or a message about the mistake.
 */
bool cli_parse(const struct cli_command *command, char **args, int *n_args, int *status);
/* Writes the words of `term` into `into` as the value of a CLI_CHOICE, "a|b|c". */
void cli_term_choices(bool (*term)(size_t i, struct cli_term *term), char *into, size_t size);
void cli_print_help(const struct cli_command *command);
/* Prints the manual page of a command, or of `cli_program`, in roff. */
void cli_print_man(const struct cli_command *command);

/*
 * The options of a recording, parsed from marey_options_help(): `at` starts as NULL and is kept between calls; false
 * after the last.
 */
struct cli_key {
    char name[64], values[96]; /* "policy", "keep-oldest|keep-newest|block" */
    char meaning[256];         /* including the default in parentheses */
};
bool cli_next_key(const char **at, struct cli_key *key);

/* ---- messages ---- */

/* Print "marey: MESSAGE" on stderr. cli_fail returns CLI_BAD, cli_refuse false. */
int cli_fail(const char *fmt, ...) MAREY_PRINTF(1, 2);
#define cli_say(...) ((void)cli_fail(__VA_ARGS__))
#define cli_refuse(...) (cli_say(__VA_ARGS__), false)
/* CLI_FINE, or for a failure prints its message and returns CLI_BAD. */
int cli_status(marey_status status);
/* Returns `status` from the calling function unless it is CLI_FINE. */
#define CLI_TRY(status)                                                                            \
    do {                                                                                           \
        const int status_ = (status);                                                              \
        if (status_ != CLI_FINE)                                                                   \
            return status_;                                                                        \
    } while (0)

/* The page of a finding, whose id has `len` bytes; NULL, with a sentence that lists the ids. In cmd_explain.c. */
const struct marey_finding_page *cli_find_page(const char *id, size_t len);

/* ---- after the name of a local variable: cleanup at the end of the block ---- */

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

/* ---- strings ---- */
/* Prints "left out N THINGs: WHY" unless `n` is 0. */
void cli_say_left_out(uint64_t n, const char *thing, const char *why);

/* The most similar of `n` words (at `words`, `stride` bytes apart) to a mistyped `word`, or NULL. */
const char *cli_nearest(const char *word, const void *words, size_t n, size_t stride);

/* `path` quoted for a shell. Returned in `into`, of `size` bytes. */
const char *cli_quote(const char *path, char *into, size_t size);

/* A recording as the user would type it: relative if it is below the current directory. A substring of `path`. */
const char *cli_short_path(const char *path);

/* Appends `text` to the string in `into`, truncated to `size` bytes; preceded by `separator` unless it is the first. */
void cli_append(char *into, size_t size, const char *separator, const char *text);

/* The next word of "a b c", `*len` bytes; `*at` starts as the list and advances. NULL past the last. */
const char *cli_next_word(const char **at, size_t *len);

/* Whether `text` ends with `len` bytes of `end`. */
bool cli_ends_with(const char *text, const char *end, size_t len);

/* The value of an environment variable; NULL if unset or empty. */
const char *cli_env(const char *name);

/*
 * The name of a recording or trace without folders and extensions, "rank0" for "runs/rank0.json.gz"; `otherwise` if
 * nothing is left. Returned in `into`, of `size` bytes.
 */
const char *cli_stem(const char *path, char *into, size_t size, const char *otherwise);

/* Parse an option's value: '2' or '2%' as 2; '60', '60s', '500ms', '5m', '1h' as seconds. False with a message printed. */
bool cli_percent(const char *option, const char *text, double *percent);
bool cli_seconds(const char *option, const char *text, double *seconds);
/* Samples per second: '100', '0.5', '2k'. */
bool cli_rate(const char *option, const char *text, double *hz);

/* Parses `n` arguments as process ids. False with a message printed. Free `*pids` in either case; it must be NULL before. */
bool cli_pids(const struct cli_command *command, int n, char *const *args, pid_t **pids);

/* Lists the processes that run Python: cli_processes.c. */
int cli_list_processes(void);

/* 1234567 as "1.2 million", 12345 as "12,345". Returned in `into`. */
const char *cli_count(uint64_t n, char *into, size_t size);

/* Prints progress on stderr if that is a terminal; `ctx` is the activity: "reading". `end` erases it. */
void cli_progress(void *ctx, double share);
void cli_progress_end(void);

/* Whether a stream gets colors (`choice`: auto, always, never), and its width in columns, 0 without a terminal. */
bool cli_wants_color(FILE *out, const char *choice);
uint32_t cli_terminal_width(FILE *out);

/* ---- directories that are to become recordings ---- */

enum cli_existing {
    CLI_IS_NOTHING,
    CLI_IS_EMPTY,
    CLI_IS_RECORDING, /* it contains only our files */
    CLI_IS_OTHER_DIR,
    CLI_IS_NO_DIR,
};
enum cli_existing cli_look_at(const char *path);
/* False, with a message about `quoted`, if the path is a file or a directory with other files. */
bool cli_may_hold_recording(const char *path, const char *quoted);
/* Removes every file of a recording's directory. False with errno set. */
bool cli_empty_recording(const char *path);

/* ---- output files ---- */

/*
 * Writes the file `path`, "-" for standard output, and prints its size and `next`, a hint what to do with it; NULL:
 * prints nothing. An existing file stays unchanged until the new one is complete, or if `write` fails. All output files
 * are written by one of these two functions.
 */
int cli_write_file(const char *path, marey_status (*write)(void *ctx, int fd), void *ctx,
                   const char *next);
/* The same for a stream; a NULL path also means standard output. `print` returns an exit status and prints its failures. */
int cli_print_file(const char *path, int (*print)(void *ctx, FILE *out), void *ctx, const char *next);
/* The hint for report pages. */
#define CLI_PAGE_NEXT "open it in a browser; it needs nothing else"

/* ---- commands in Python ---- */

/* Arguments of another command, each allocated. Zero-initialized is empty. */
enum { CLI_MAX_WORDS = 40 };
struct cli_words {
    char *list[CLI_MAX_WORDS + 1];
    size_t n;
    bool failed; /* out of memory, or too many */
};
void cli_add_word(struct cli_words *words, const char *fmt, ...) MAREY_PRINTF(2, 3);
/* Adds the given options of a command; supports no repeated options. */
void cli_add_options(struct cli_words *words, const struct cli_command *command);

/*
 * Runs `python -m marey.itwinai WORDS... -- PATHS...` with standard output to `out`, and empties the words. Python is
 * $MAREY_PYTHON, else python3 or python on the PATH; prefers the package beside this program. Returns CLI_FINE, or
 * CLI_BAD after a message.
 */
int cli_python(struct cli_words *words, int n_paths, char *const *paths, FILE *out);

/* Whether `path` has the extension .csv or .csv.gz, or is a folder that contains such a file at any depth. */
bool cli_is_csv(const char *path);

/* ---- recordings as arguments ---- */

struct cli_recordings {
    marey_recording **list;
    size_t n;
    marey_recording **wholes; /* the sources if `list` is a selection; else NULL */
};

/* Sets the number of threads that open recordings; 0, the default: one per CPU core. */
void cli_use_jobs(uint32_t n_jobs);
/* Opens all `paths`, recordings or foreign traces; false, with a message printed, if one fails. */
bool cli_open(struct cli_recordings *recordings, char **paths, int n);
/* The same including the arguments of each trace event, for an export. */
bool cli_open_whole(struct cli_recordings *recordings, char **paths, int n);
void cli_close(struct cli_recordings *recordings);
/*
 * Restricts `recordings` to these processes (marey_recording_select); NULL: all. On failure prints a message, closes
 * them and returns false.
 */
bool cli_select_process(struct cli_recordings *recordings, const char *process);
/* For recordings without events: wall time, CPU time and exit status of their runs, a line each. */
void cli_print_runs(const struct cli_recordings *recordings, FILE *out);
/* Prints what an imported recording omitted or lacks. */
void cli_print_notes(const marey_recording *recording);
/*
 * Returns `status`, but if it is fine and a recording is damaged, prints that and returns CLI_BAD: the result is
 * incomplete.
 */
int cli_report_damage(const struct cli_recordings *recordings, int status);

#endif
