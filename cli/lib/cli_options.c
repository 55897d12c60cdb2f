/* The option parser and the help printer, which use the same tables as cli_man.c and cmd_completion.c. */
#include "lib/cli.h"

/* ---- finding ---- */

static const struct cli_option *find_long(const struct cli_command *command, const char *name,
                                          size_t len)
{
    for (size_t i = 0; i < command->n_options; i++) {
        if (strlen(command->options[i].name) == len &&
            memcmp(command->options[i].name, name, len) == 0)
            return &command->options[i];
    }
    return NULL;
}

static const struct cli_option *find_letter(const struct cli_command *command, char letter)
{
    for (size_t i = 0; i < command->n_options; i++) {
        if (command->options[i].letter == letter)
            return &command->options[i];
    }
    return NULL;
}

const struct cli_option *cli_find_option(const struct cli_command *command, const char *word)
{
    if (word[1] == '-')
        return find_long(command, word + 2, strcspn(word + 2, "="));
    return word[1] != '\0' && word[2] == '\0' ? find_letter(command, word[1]) : NULL;
}

bool cli_is_repeated(const struct cli_command *command, size_t option)
{
    return find_long(command, command->options[option].name,
                     strlen(command->options[option].name)) != &command->options[option];
}

static int unknown_option(const struct cli_command *command, const char *word)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    const char *nearest = word[1] == '-'
                              ? cli_nearest(name, &command->options[0].name, command->n_options,
                                            sizeof command->options[0])
                              : NULL;
    if (nearest != NULL)
        return cli_fail("%s has no option '%s'; did you mean '--%s'?", command->name, word, nearest);
    return cli_fail("%s has no option '%s'; 'marey %s --help' lists them", command->name, word,
                    command->name);
}

/* ---- values ---- */

/* Whether `text` is one of the words of `choices`, a|b|c. */
static bool is_choice(const char *choices, const char *text)
{
    const size_t len = strlen(text);
    for (const char *word = choices; word != NULL; word = strchr(word, '|')) {
        word += *word == '|';
        if (strcspn(word, "|") == len && memcmp(word, text, len) == 0)
            return true;
    }
    return false;
}

static bool parse_count(const char *text, uint32_t *out)
{
    char *end;
    const unsigned long value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value > UINT32_MAX)
        return false;
    *out = (uint32_t)value;
    return true;
}

static int add_text(const struct cli_option *option, struct cli_texts *texts, const char *text)
{
    if (texts->n == CLI_MAX_TEXTS)
        return cli_fail("--%s may be given %d times at most", option->name, CLI_MAX_TEXTS);
    texts->list[texts->n++] = text;
    return CLI_FINE;
}

/* A setting is stored as a string, which its analysis validates; only a number is parsed here. */
static int set_value(const struct cli_option *option, const char *text)
{
    const enum cli_kind kind = cli_kind(option);
    const bool is_setting = (option->kind & CLI_SETTING) != 0;
    uint32_t count = 0;
    if (kind == CLI_TEXTS)
        return add_text(option, option->into, text);
    if (kind == CLI_CHOICE && !is_setting && !is_choice(option->value, text))
        return cli_fail("--%s may be one of %s, not '%s'", option->name, option->value, text);
    if (kind == CLI_COUNT && !parse_count(text, &count))
        return cli_fail("--%s takes a whole number, not '%s'", option->name, text);
    if (kind == CLI_COUNT && !is_setting)
        *(uint32_t *)option->into = count;
    else if (kind == CLI_FLAG && !is_setting)
        *(bool *)option->into = true;
    else
        *(const char **)option->into = text != NULL ? text : "";
    return CLI_FINE;
}

const char *cli_given(const struct cli_option *option)
{
    if (option->kind == CLI_FLAG)
        return *(const bool *)option->into ? "" : NULL;
    const bool is_text = option->kind != CLI_COUNT && option->kind != CLI_TEXTS;
    return is_text ? *(const char *const *)option->into : NULL;
}

bool cli_exclude(const struct cli_command *command, const char *names)
{
    const char *first = NULL;
    size_t len;
    for (const char *name; (name = cli_next_word(&names, &len)) != NULL;)
        for (size_t i = 0; i < command->n_options; i++) {
            const struct cli_option *const option = &command->options[i];
            if (strncmp(option->name, name, len) != 0 || option->name[len] != '\0' ||
                cli_given(option) == NULL)
                continue;
            if (first != NULL)
                return cli_refuse("--%s and --%s exclude one another", first, option->name);
            first = option->name;
        }
    return true;
}

/* ---- parsing ---- */

struct parser {
    const struct cli_command *command;
    char **next; /* the next word */
    bool wants_help;
};

/* `text`: a value in the same word, or NULL to use the next one. */
static int take_value(struct parser *parser, const struct cli_option *option, const char *text)
{
    if (cli_kind(option) == CLI_FLAG && text != NULL)
        return cli_fail("--%s takes no value", option->name);
    if (cli_takes_word(option) && text == NULL) {
        text = *parser->next;
        if (text == NULL)
            return cli_fail("--%s needs a value: %s", option->name, option->value);
        parser->next++;
    }
    return set_value(option, text);
}

static int take_long(struct parser *parser, const char *word)
{
    const size_t len = strcspn(word + 2, "=");
    if (strcmp(word, "--help") == 0) {
        parser->wants_help = true;
        return CLI_FINE;
    }
    const struct cli_option *option = find_long(parser->command, word + 2, len);
    if (option == NULL)
        return unknown_option(parser->command, word);
    return take_value(parser, option, word[2 + len] == '=' ? word + 3 + len : NULL);
}

/* -o VALUE, -oVALUE, and combined flags. */
static int take_letters(struct parser *parser, const char *word)
{
    for (const char *letter = word + 1; *letter != '\0'; letter++) {
        const struct cli_option *option = find_letter(parser->command, *letter);
        if (option == NULL && *letter == 'h') {
            parser->wants_help = true;
            continue;
        }
        if (option == NULL)
            return unknown_option(parser->command, word);
        if (cli_kind(option) != CLI_FLAG)
            return take_value(parser, option, letter[1] != '\0' ? letter + 1 : NULL);
        (void)set_value(option, NULL);
    }
    return CLI_FINE;
}

static int parse(struct parser *parser, char **args, int *n_args)
{
    bool options_over = false;
    *n_args = 0;
    while (*parser->next != NULL) {
        char *word = *parser->next++;
        int status = CLI_FINE;
        if (!options_over && strcmp(word, "--") == 0) {
            options_over = parser->command->divider == NULL;
            if (!options_over)
                *parser->command->divider = *n_args;
        } else if (options_over || word[0] != '-' || word[1] == '\0') {
            args[(*n_args)++] = word; /* never past the word just read, so no unread word is lost */
            options_over |= parser->command->stops_at_argument;
        } else {
            status = word[1] == '-' ? take_long(parser, word) : take_letters(parser, word);
        }
        if (status != CLI_FINE || parser->wants_help)
            return status;
    }
    args[*n_args] = NULL;
    return CLI_FINE;
}

bool cli_parse(const struct cli_command *command, char **args, int *n_args, int *status)
{
    struct parser parser = {.command = command, .next = args};
    *status = parse(&parser, args, n_args);
    if (parser.wants_help)
        cli_print_help(command);
    return *status == CLI_FINE && !parser.wants_help;
}

/* ---- help ---- */

void cli_term_choices(bool (*at)(size_t i, struct cli_term *term), char *into, size_t size)
{
    struct cli_term term;
    into[0] = '\0';
    for (size_t i = 0; at(i, &term); i++)
        cli_append(into, size, "|", term.word);
}

#define HELP_COLUMN 24
#define HELP_WIDTH 90
#define HELP_INDENT 10

/* Long lists of choices are wrapped. Returns the width of the last line. */
static int print_left(const char *left, int len)
{
    while (len > HELP_WIDTH) {
        int end = HELP_WIDTH;
        while (end > HELP_INDENT && left[end - 1] != '|')
            end--;
        if (end <= HELP_INDENT)
            break;
        printf("%.*s\n%*s", end, left, HELP_INDENT, "");
        left += end;
        len -= end;
    }
    printf("%s", left);
    return len;
}

static void print_option(const struct cli_option *option)
{
    char left[256];
    const char lead[] = {'-', option->letter, ',', ' ', '\0'};
    const bool is_maybe = cli_kind(option) == CLI_MAYBE;
    const char *help = option->help, *const value = option->value;
    const int len =
        snprintf(left, sizeof left, "  %s%s--%s%s%s%s", option->kind & CLI_UNDER ? "  " : "",
                 option->letter != 0 ? lead : "    ", option->name,
                 is_maybe        ? "[="
                 : value != NULL ? " "
                                 : "",
                 value != NULL ? value : "", is_maybe ? "]" : "");
    if (print_left(left, len) >= HELP_COLUMN || len > HELP_WIDTH)
        printf("\n%*s", HELP_COLUMN, "");
    else
        printf("%*s", HELP_COLUMN - len, "");
    for (; *help != '\0'; help++) {
        putchar(*help);
        if (*help == '\n')
            printf("%*s", HELP_COLUMN, "");
    }
    putchar('\n');
}

static void print_terms(const struct cli_command *command)
{
    struct cli_term term;
    printf("%s:\n", command->terms);
    for (size_t i = 0; command->term(i, &term); i++)
        printf("  %-14s%s%s%s%s\n", term.word, term.meaning, term.extensions != NULL ? " (" : "",
               term.extensions != NULL ? term.extensions : "", term.extensions != NULL ? ")" : "");
    putchar('\n');
}

void cli_print_help(const struct cli_command *command)
{
    printf("Usage: marey %s %s\n\n%s\n\n", command->name, command->usage, command->about);
    if (command->terms != NULL)
        print_terms(command);
    puts("Options:");
    for (size_t i = 0; i < command->n_options; i++)
        print_option(&command->options[i]);
    print_option(&(struct cli_option){
        .name = "help", .letter = 'h', .kind = CLI_FLAG, .help = "show this and exit"});
    printf("\nExamples:\n%s\n", command->examples);
    if (command->exits != NULL)
        printf("\nExit status: %s\n", command->exits);
}

/* ---- options of a recording ---- */

/* Parses a line of marey_options_help(): key=VALUES, blanks, the meaning and the default in parentheses. */
bool cli_next_key(const char **at, struct cli_key *key)
{
    const char *line = *at != NULL ? *at : marey_options_help();
    const size_t len = strcspn(line, "\n"), left = strcspn(line, " \n");
    const size_t name = strcspn(line, "= \n");
    if (len == 0 || name >= left)
        return false;
    const size_t meaning = left + strspn(line + left, " ");
    snprintf(key->name, sizeof key->name, "%.*s", (int)name, line);
    snprintf(key->values, sizeof key->values, "%.*s", (int)(left - name - 1), line + name + 1);
    snprintf(key->meaning, sizeof key->meaning, "%.*s", (int)(len - meaning), line + meaning);
    *at = line + len + (line[len] == '\n');
    return true;
}
