/* Options of analyses: from the registry to the command's table, and from the command line to settings. */
#include "report/report_options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_OPTIONS = 256, MAX_SETTINGS = 64, MAX_GIVEN = MAX_SETTINGS + 2 * CLI_MAX_TEXTS };

/* Shared by all prepared commands. */
static struct cli_option pool[MAX_OPTIONS];
static size_t n_pool;

/* A setting by name, which several analyses may share. */
static struct setting {
    const char *name;
    const char *value;      /* NULL: not given */
    struct cli_texts texts; /* for a repeatable setting */
} given[MAX_SETTINGS];
static size_t n_given;

/* By index of the analysis. */
static bool switches[MAX_SETTINGS];

/* Settings of the analysis, and of a section added to its report. */
static struct settings {
    const char *list[MAX_GIVEN + 2];
    size_t n;
    bool takes_limit;
} settings, section_settings;

/* ---- from the registry ---- */

static struct setting *setting_of(const char *name)
{
    for (size_t i = 0; i < n_given; i++)
        if (strcmp(given[i].name, name) == 0)
            return &given[i];
    given[n_given].name = name;
    return &given[n_given++];
}

static enum cli_kind kind_of(enum marey_setting_kind kind)
{
    switch (kind) {
    case MAREY_SETTING_FLAG:
        return CLI_FLAG;
    case MAREY_SETTING_COUNT:
        return CLI_COUNT;
    case MAREY_SETTING_CHOICE:
        return CLI_CHOICE;
    case MAREY_SETTING_TEXTS:
        return CLI_TEXTS;
    case MAREY_SETTING_NUMBER:
    case MAREY_SETTING_TEXT:
        break;
    }
    return CLI_TEXT;
}

/* The choices of --by: "epoch|rank|phase"; NULL: none. */
static const char *words_by(const struct marey_analysis *analysis)
{
    char *words = NULL;
    size_t len = 0;
    FILE *const out = open_memstream(&words, &len);
    const char *between = "";
    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < analysis->n_tables; i++) {
        if (analysis->tables[i].by == NULL)
            continue;
        fprintf(out, "%s%s", between, analysis->tables[i].by);
        between = "|";
    }
    fclose(out);
    if (len != 0)
        return words;
    free(words);
    return NULL;
}

/* Examples of the default analysis, of the command, then of each other analysis. */
static const char *all_examples(const char *own_lines)
{
    char *lines = NULL;
    size_t len = 0;
    FILE *const out = open_memstream(&lines, &len);
    const struct marey_analysis *analysis;
    if (out == NULL)
        return own_lines;
    fprintf(out, "%s\n%s", marey_analysis_at(0)->examples, own_lines);
    for (size_t i = 1; (analysis = marey_analysis_at(i)) != NULL; i++)
        if (analysis->command == NULL && analysis->examples != NULL)
            fprintf(out, "\n%s", analysis->examples);
    fclose(out);
    return lines;
}

static void add(struct cli_command *command, const struct cli_option *option)
{
    if (n_pool == MAX_OPTIONS)
        return;
    pool[n_pool++] = *option;
    command->n_options++;
}

void report_options_append(struct cli_command *command, const struct cli_option *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add(command, &list[i]);
}

static void add_setting(struct cli_command *command, const struct marey_setting *setting,
                        enum cli_kind where)
{
    struct setting *const to = setting_of(setting->name);
    add(command,
        &(struct cli_option){.name = setting->name,
                             .letter = setting->letter,
                             .kind = kind_of(setting->kind) | CLI_SETTING | where,
                             .value = setting->value,
                             .into = setting->kind == MAREY_SETTING_TEXTS ? (void *)&to->texts
                                                                          : (void *)&to->value,
                             .help = setting->help});
}

static const struct marey_setting *find_setting(const struct marey_analysis *analysis,
                                                const char *name)
{
    for (size_t i = 0; analysis != NULL && i < analysis->n_settings; i++)
        if (strcmp(analysis->settings[i].name, name) == 0)
            return &analysis->settings[i];
    return NULL;
}

/* The value that a flag takes with another analysis: --iterations is a flag, but has a value with --samples. NULL: none. */
static const char *other_value(const char *name)
{
    const struct marey_analysis *analysis;
    for (size_t i = 1; (analysis = marey_analysis_at(i)) != NULL; i++) {
        const struct marey_setting *const setting = find_setting(analysis, name);
        if (analysis->command == NULL && setting != NULL && setting->value != NULL)
            return setting->value;
    }
    return NULL;
}

/* The default analysis has no switch: its settings are options of the command. */
static void add_default(struct cli_command *command)
{
    const struct marey_analysis *const analysis = marey_analysis_at(0);
    for (size_t i = 0; i < analysis->n_settings; i++) {
        struct marey_setting setting = analysis->settings[i];
        const char *const value =
            setting.kind == MAREY_SETTING_FLAG ? other_value(setting.name) : NULL;
        if (value != NULL)
            setting.value = value;
        add_setting(command, &setting, 0);
        if (value != NULL)
            pool[n_pool - 1].kind = CLI_MAYBE | CLI_SETTING;
    }
}

/* The option of the command itself, from which settings of that name have their values; NULL: none. */
static const struct cli_option *own_option(const struct cli_command *command, const char *name)
{
    for (size_t i = 0; i < command->n_options; i++)
        if (command->options[i].kind < CLI_SETTING && strcmp(command->options[i].name, name) == 0)
            return &command->options[i];
    return NULL;
}

/* Moves the options to the pool, where others can follow; returns the command as it was. */
static struct cli_command begin(struct cli_command *command)
{
    const struct cli_command before = *command;
    command->options = &pool[n_pool];
    command->n_options = 0;
    return before;
}

void report_options_add(struct cli_command *command)
{
    const struct marey_analysis *analysis;
    const struct cli_command before = begin(command);
    command->examples = all_examples(command->examples);
    add_default(command);
    report_options_append(command, before.options, before.n_options);
    for (size_t i = 1; (analysis = marey_analysis_at(i)) != NULL; i++) {
        if (analysis->command != NULL)
            continue;
        const struct marey_setting by = {"by", MAREY_SETTING_CHOICE, words_by(analysis),
                                         "only the table of these", 'b'};
        add(command, &(struct cli_option){.name = analysis->name,
                                          .kind = CLI_FLAG,
                                          .into = &switches[i],
                                          .help = analysis->help});
        if (by.value != NULL)
            add_setting(command, &by, CLI_UNDER);
        for (size_t k = 0; k < analysis->n_settings; k++)
            add_setting(command, &analysis->settings[k], CLI_UNDER);
    }
}

const struct marey_analysis *report_options_find(const char *name)
{
    const struct marey_analysis *analysis;
    size_t i = 0;
    while ((analysis = marey_analysis_at(i)) != NULL && strcmp(analysis->name, name) != 0)
        i++;
    return analysis;
}

void report_options_prepend(struct cli_command *command)
{
    const struct marey_analysis *const analysis = report_options_find(command->name);
    const struct cli_command before = begin(command);
    for (size_t i = 0; i < analysis->n_settings; i++)
        add_setting(command, &analysis->settings[i], 0);
    report_options_append(command, before.options, before.n_options);
}

void report_options_append_selecting(struct cli_command *command,
                                     const struct marey_analysis *analysis)
{
    const struct cli_command before = begin(command);
    report_options_append(command, before.options, before.n_options);
    for (size_t i = 0; i < analysis->n_settings; i++) {
        const struct marey_setting *const setting = &analysis->settings[i];
        if (!setting->selects || own_option(command, setting->name) != NULL)
            continue;
        add_setting(command, setting, CLI_UNDER);
        if (setting->alias == NULL)
            continue;
        add_setting(command, setting, CLI_UNDER);
        pool[n_pool - 1].name = setting->alias;
        pool[n_pool - 1].help = "the same";
    }
}

/* ---- from the command line ---- */

static bool takes(const struct marey_analysis *analysis, const char *name)
{
    if (analysis == NULL)
        return false;
    for (size_t i = 0; strcmp(name, "by") == 0 && i < analysis->n_tables; i++)
        if (analysis->tables[i].by != NULL)
            return true;
    return find_setting(analysis, name) != NULL;
}

/* Whether it accepts the setting with this value, "" for none. */
static bool takes_value(const struct marey_analysis *analysis, const char *name, const char *value)
{
    const struct marey_setting *const setting = find_setting(analysis, name);
    return takes(analysis, name) &&
           (setting == NULL || setting->kind != MAREY_SETTING_FLAG || value[0] == '\0');
}

/* "--by goes with --energy, --calls or --samples" */
static bool say_misplaced(const struct setting *wrong, const struct marey_analysis *chosen)
{
    char list[256] = "";
    const struct marey_analysis *analysis, *last = NULL;
    for (size_t i = 1; (analysis = marey_analysis_at(i)) != NULL; i++) {
        if (analysis->command != NULL || !takes_value(analysis, wrong->name, wrong->value))
            continue;
        if (last != NULL)
            cli_append(list, sizeof list, ", --", last->name);
        last = analysis;
    }
    if (last == NULL)
        cli_say("--%s does not go with --%s", wrong->name, chosen->name);
    else
        cli_say("--%s%s goes with %s%s%s--%s", wrong->name,
                takes(chosen, wrong->name) ? " with a value" : "", list[0] != '\0' ? "--" : "",
                list, list[0] != '\0' ? " or " : "", last->name);
    return false;
}

static bool find_switch(const struct marey_analysis **chosen)
{
    const struct marey_analysis *analysis;
    *chosen = NULL;
    for (size_t i = 0; (analysis = marey_analysis_at(i)) != NULL; i++) {
        if (!switches[i])
            continue;
        if (*chosen != NULL)
            return cli_refuse("--%s and --%s exclude one another", (*chosen)->name, analysis->name);
        *chosen = analysis;
    }
    return true;
}

static bool add_given(struct settings *to, const char *name, const char *value)
{
    char *text = NULL;
    if (to->n == MAX_GIVEN || asprintf(&text, "%s%s%s", name, value[0] != '\0' ? "=" : "", value) < 0)
        return cli_refuse("out of memory");
    to->list[to->n++] = text;
    return true;
}

/* Take the first argument that may be the value of this setting, and is not a file, out of the list. */
static bool take_value(const struct marey_analysis *analysis, struct setting *setting, char **args,
                       int *n_args)
{
    for (int i = 0; i < *n_args; i++) {
        char *text CLI_FREED = NULL;
        if (asprintf(&text, "%s=%s", setting->name, args[i]) < 0)
            return cli_refuse("out of memory");
        const char *const list[] = {text, NULL};
        if (access(args[i], F_OK) == 0 || marey_report_check(analysis->name, list) != MAREY_OK)
            continue;
        setting->value = args[i];
        memmove(&args[i], &args[i + 1], (size_t)(*n_args - i) * sizeof *args);
        --*n_args;
        break;
    }
    return true;
}

/* --iterations slow, with a space: a flag of the default analysis has no value, that of another one may. */
static bool take_values(const struct marey_analysis *analysis, char **args, int *n_args)
{
    for (size_t i = 0; analysis != NULL && i < n_given; i++) {
        const struct marey_setting *const setting = find_setting(analysis, given[i].name);
        if (setting != NULL && setting->value != NULL && given[i].value != NULL &&
            given[i].value[0] == '\0' && !take_value(analysis, &given[i], args, n_args))
            return false;
    }
    return true;
}

bool report_options_turn_on(const char *analysis, struct report_choice *choice)
{
    int no_args = 0;
    for (size_t i = 0; marey_analysis_at(i) != NULL; i++)
        switches[i] |= strcmp(marey_analysis_at(i)->name, analysis) == 0;
    return report_options_choose(choice, NULL, &no_args);
}

/* Collects its settings that were given; `selecting`: only those that select what is counted. */
static bool collect(struct settings *to, const struct cli_command *command,
                    const struct marey_analysis *analysis, bool selecting)
{
    static const struct marey_setting by = {.name = "by"};
    const bool has_by = !selecting && takes(analysis, "by") && find_setting(analysis, "by") == NULL;
    to->n = 0;
    for (size_t i = 0; i < analysis->n_settings + has_by; i++) {
        const struct marey_setting *const setting =
            i < analysis->n_settings ? &analysis->settings[i] : &by;
        const struct setting *const of_all = setting_of(setting->name);
        const struct cli_option *const own = own_option(command, setting->name);
        const char *const value = own != NULL ? cli_given(own) : of_all->value;
        if (setting->python != NULL || (selecting && !setting->selects))
            continue;
        if (value != NULL && !add_given(to, setting->name, value))
            return false;
        for (size_t k = 0; k < of_all->texts.n; k++)
            if (!add_given(to, setting->name, of_all->texts.list[k]))
                return false;
    }
    to->list[to->n] = NULL;
    to->takes_limit = takes(analysis, "limit");
    return marey_report_check(analysis->name, to->list) == MAREY_OK ||
           cli_refuse("%s", marey_last_error());
}

bool report_options_choose(struct report_choice *choice, char **args, int *n_args)
{
    const struct marey_analysis *found;
    if (!find_switch(&found) || !take_values(found, args, n_args))
        return false;
    choice->section = found != NULL && found->is_section ? found : NULL;
    choice->analysis = found != NULL && !found->is_section ? found : marey_analysis_at(0);
    for (size_t i = 0; i < n_given; i++)
        if (given[i].value != NULL && !takes_value(choice->analysis, given[i].name, given[i].value) &&
            (choice->section == NULL || !takes(choice->section, given[i].name)))
            return say_misplaced(&given[i], choice->analysis);
    choice->is_plain = found == NULL;
    for (size_t i = 0; i < choice->analysis->n_settings; i++)
        choice->is_plain &= choice->analysis->settings[i].kind != MAREY_SETTING_FLAG ||
                            setting_of(choice->analysis->settings[i].name)->value == NULL;
    return collect(&settings, &cli_command_report, choice->analysis, false) &&
           (choice->section == NULL ||
            collect(&section_settings, &cli_command_report, choice->section, false));
}

const char *report_options_value(const char *setting)
{
    return setting_of(setting)->value;
}

bool report_options_add_python(const struct marey_analysis *analysis, struct cli_words *words)
{
    for (size_t i = 0; i < analysis->n_settings; i++) {
        const struct marey_setting *const setting = &analysis->settings[i];
        const char *const value = setting_of(setting->name)->value;
        if (setting->python == NULL || value == NULL)
            continue;
        if (words->n == 0)
            cli_add_word(words, "%s", setting->python);
        cli_add_word(words, "--%s=%s", setting->name, value);
    }
    return words->n != 0;
}

bool report_options_check_selecting(const struct cli_command *command,
                                    const struct marey_analysis *analysis, bool *selects)
{
    for (size_t i = 0; i < analysis->n_settings; i++)
        *selects |=
            analysis->settings[i].selects && setting_of(analysis->settings[i].name)->value != NULL;
    return collect(&settings, command, analysis, true);
}

bool report_options_check(const char *analysis)
{
    return collect(&settings, cli_find_command(analysis), report_options_find(analysis), false);
}

const char *const *report_options_settings(uint32_t limit)
{
    static char text[32];
    if (settings.takes_limit && limit != 0) {
        snprintf(text, sizeof text, "limit=%u", (unsigned)limit);
        settings.list[settings.n] = text;
    }
    return settings.list;
}

const char *const *report_options_section_settings(void)
{
    return section_settings.list;
}

static const struct marey_analysis *find_there(const struct cli_recordings *recordings, bool leads,
                                               size_t i)
{
    const struct marey_analysis *analysis;
    for (size_t k = 0; (analysis = marey_analysis_at(k)) != NULL; k++)
        if ((leads ? analysis->leads : analysis->adds_lines) &&
            marey_report_is_there(analysis->name, recordings->list, recordings->n) && i-- == 0)
            return analysis;
    return NULL;
}

const struct marey_analysis *report_options_lead(const struct cli_recordings *recordings)
{
    return find_there(recordings, true, 0);
}

const struct marey_analysis *report_options_below(const struct cli_recordings *recordings, size_t i)
{
    return find_there(recordings, false, i);
}
