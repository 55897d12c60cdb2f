/*
 * Manual pages, generated from the tables of the help. The build creates one page per command with `marey help --man`.
 * A page has no date, so that builds of one version are identical.
 */
#include <ctype.h>
#include <limits.h>

#include "lib/cli.h"

/* ---- text ---- */

/* Escapes characters that roff would interpret, or replace typographically. */
static void print_char(char c)
{
    static const char *const names[UCHAR_MAX + 1] = {
        ['\\'] = "\\(rs", ['-'] = "\\-",   ['\''] = "\\(aq", ['`'] = "\\(ga",
        ['^'] = "\\(ha",  ['~'] = "\\(ti", ['"'] = "\\(dq"};
    if (names[(unsigned char)c] != NULL)
        fputs(names[(unsigned char)c], stdout);
    else
        putchar(c);
}

static void print_span(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        print_char(text[i]);
}

/* A line that begins with a period would be a request; blank lines separate paragraphs. */
static void print_text(const char *text)
{
    bool at_start = true;
    for (; *text != '\0'; text++) {
        if (at_start && *text == '\n') {
            fputs(".PP\n", stdout);
            continue;
        }
        if (at_start && *text == '.')
            fputs("\\&", stdout);
        print_char(*text);
        at_start = *text == '\n';
    }
    if (!at_start)
        putchar('\n');
}

static void print_bold(const char *text)
{
    fputs("\\fB", stdout);
    print_span(text, strlen(text));
    fputs("\\fR", stdout);
}

static void print_meaning(const char *word, const char *meaning)
{
    puts(".TP");
    print_bold(word);
    putchar('\n');
    print_text(meaning);
}

/* Prints lines without filling. */
static void print_lines(const char *text)
{
    puts(".EX");
    for (const char *line = text; *line != '\0';) {
        const size_t len = strcspn(line, "\n"), indent = strspn(line, " ");
        fputs("\\&", stdout);
        print_span(line + (indent < len ? indent : len), len - (indent < len ? indent : len));
        putchar('\n');
        line += len + (line[len] == '\n');
    }
    puts(".EE");
}

static void print_upper(const char *text)
{
    for (; *text != '\0'; text++)
        print_char((char)toupper((unsigned char)*text));
}

/* ---- options ---- */

/* Literal words are bold, placeholders italic. */
static void print_value(const struct cli_option *option)
{
    const char *const font = cli_kind(option) == CLI_CHOICE ? "\\fB" : "\\fI";
    const char *word = option->value;
    for (;;) {
        const size_t len = cli_kind(option) == CLI_CHOICE ? strcspn(word, "|") : strlen(word);
        fputs(font, stdout);
        print_span(word, len);
        fputs("\\fR", stdout);
        if (word[len] == '\0')
            return;
        fputs("|\\:", stdout); /* permits a line break */
        word += len + 1;
    }
}

static void print_option(const struct cli_option *option)
{
    const char letter[] = {'-', option->letter, '\0'};
    puts(".TP");
    if (option->letter != 0) {
        print_bold(letter);
        fputs(", ", stdout);
    }
    fputs("\\fB\\-\\-", stdout);
    print_span(option->name, strlen(option->name));
    fputs("\\fR", stdout);
    if (option->value != NULL) {
        fputs(cli_kind(option) == CLI_MAYBE ? "[=" : " ", stdout);
        print_value(option);
        fputs(cli_kind(option) == CLI_MAYBE ? "]" : "", stdout);
    }
    putchar('\n');
    print_text(option->help);
}

static void print_options(const struct cli_command *command)
{
    static const struct cli_option common[] = {
        {.name = "help", .letter = 'h', .help = "show a short help and exit"},
        {.name = "version", .letter = 'V', .help = "print the version and exit"},
    };
    puts(".SH OPTIONS");
    for (size_t i = 0; i < command->n_options; i++) {
        const bool is_under = (command->options[i].kind & CLI_UNDER) != 0;
        if (is_under)
            puts(".RS");
        print_option(&command->options[i]);
        if (is_under)
            puts(".RE");
    }
    print_option(&common[0]);
    if (command == &cli_program)
        print_option(&common[1]);
}

/* ---- sections ---- */

static void print_head(const struct cli_command *command)
{
    const bool is_program = command == &cli_program;
    printf(".TH MAREY%s", is_program ? "" : "\\-");
    if (!is_program)
        print_upper(command->name);
    printf(" 1 \"\" \"marey %s\" \"User Commands\"\n.SH NAME\nmarey", marey_version());
    if (!is_program)
        printf("\\-%s", command->name);
    fputs(" \\- ", stdout);
    print_text(command->brief);
    fputs(".SH SYNOPSIS\n", stdout);
    print_bold("marey");
    if (!is_program) {
        putchar(' ');
        print_bold(command->name);
    }
    putchar(' ');
    print_text(command->usage);
    puts(".SH DESCRIPTION");
    print_text(command->about);
}

static void print_terms(const struct cli_command *command)
{
    struct cli_term term;
    fputs(".SH ", stdout);
    print_upper(command->terms);
    putchar('\n');
    for (size_t i = 0; command->term(i, &term); i++) {
        print_meaning(term.word, term.meaning);
        if (term.extensions != NULL) {
            putchar('(');
            print_span(term.extensions, strlen(term.extensions));
            puts(")");
        }
    }
}

static void print_commands(void)
{
    puts(".SH COMMANDS");
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        printf(".TP\n.BR marey\\-%s (1)\n", cli_commands[i]->name);
        print_text(cli_commands[i]->brief);
    }
}

static void print_exits(const struct cli_command *command)
{
    puts(".SH EXIT STATUS");
    print_text(command->exits != NULL ? command->exits
                                      : "0 fine, 1 the answer is no, 2 wrong usage or input.");
    if (strstr(command->usage, ".marey") != NULL)
        print_text(
            "If a recording is damaged, the readable part is reported, and the status is 2.");
}

/* The list of the variable's options is the same everywhere; only the page of marey itself has it. */
static void print_keys(void)
{
    struct cli_key key;
    puts(
        ".SH RECORDING OPTIONS\nOptions of a recording, for MAREY_OPTIONS and for\n.BR marey\\-run "
        "(1).");
    for (const char *at = NULL; cli_next_key(&at, &key);) {
        fputs(".TP\n\\fB", stdout);
        print_span(key.name, strlen(key.name));
        fputs("\\fR=\\fI", stdout);
        print_span(key.values, strlen(key.values));
        puts("\\fR");
        print_text(key.meaning);
    }
}

static void print_environment(void)
{
    puts(".SH ENVIRONMENT");
    print_meaning(
        "MAREY",
        "The path of a recording: a program with marey ranges records there from its first "
        "event on.");
    print_meaning("MAREY_OPTIONS",
                  "Recording options, as KEY=VALUE,KEY=VALUE. The keys are listed in marey(1).");
    print_meaning("NO_COLOR", "If set and not empty, reports have no colors.");
}

static void print_see_also(const struct cli_command *command)
{
    const char *separator = "";
    puts(".SH SEE ALSO");
    if (command != &cli_program) {
        fputs(".BR marey (1)", stdout);
        separator = ",\n";
    }
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        if (cli_commands[i] == command)
            continue;
        printf("%s.BR marey\\-%s (1)", separator, cli_commands[i]->name);
        separator = ",\n";
    }
    putchar('\n');
}

void cli_print_man(const struct cli_command *command)
{
    print_head(command);
    if (command == &cli_program)
        print_commands();
    if (command->terms != NULL)
        print_terms(command);
    print_options(command);
    print_exits(command);
    if (command == &cli_program)
        print_keys();
    print_environment();
    puts(".SH EXAMPLES");
    print_lines(command->examples);
    print_see_also(command);
}
