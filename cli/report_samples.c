/* marey report --samples: where samplers found the threads of a job. */
#include <string.h>
#include <unistd.h>

#include "report_samples.h"

static const struct {
    const char *by, *table;
} ways[] = {
    {"function", "functions"}, {"line", "lines"},        {"file", "files"}, {"module", "modules"},
    {"thread", "threads"},     {"process", "processes"}, {"rank", "ranks"}, {"stack", "stacks"},
};

static const char *table_of(const char *by)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(ways[i].by, by) == 0)
            return ways[i].table;
    return NULL;
}

bool report_samples_knows(const char *by)
{
    return table_of(by) != NULL;
}

/* NULL: functions and lines. */
static const char *table_wanted(const struct report_samples *wants)
{
    if (wants->table != NULL)
        return wants->table;
    if (wants->by != NULL)
        return table_of(wants->by);
    return wants->library != NULL ? "contacts" : NULL;
}

static marey_status print_table(marey_samples_report *report, const struct report_samples *wants,
                                FILE *out)
{
    const char *const name = table_wanted(wants);
    marey_table *const table = marey_samples_report_table(report, name != NULL ? name : "functions");
    if (wants->json)
        return marey_samples_report_json(report, out);
    if (wants->csv && wants->limit != 0)
        marey_table_truncate(table, wants->limit);
    if (wants->csv)
        return marey_present_csv(table, out);
    const struct marey_samples_text_options options = {
        .text = wants->text, .table = name, .limit = wants->limit, .is_short = wants->is_short};
    return marey_samples_report_text(report, &options, out);
}

static int print(marey_samples_report *report, const struct report_samples *wants, FILE *out)
{
    const char *const name = table_wanted(wants);
    if (name != NULL && marey_samples_report_table(report, name) == NULL)
        return cli_fail("no table '%s' of samples; --json has all of them", name);
    return print_table(report, wants, out) == MAREY_OK ? CLI_FINE
                                                       : cli_fail("%s", marey_last_error());
}

int report_samples(const struct cli_recordings *recordings, const struct report_samples *wants,
                   FILE *out)
{
    const struct marey_samples_report_options options = {.filter = wants->which,
                                                         .sort = wants->sort,
                                                         .library = wants->library,
                                                         .names = wants->filter,
                                                         .native = wants->native};
    marey_samples_report *report = NULL;
    const marey_status status =
        marey_samples_report_create(recordings->list, recordings->n, &options, &report);
    cli_progress_end();
    if (status != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    const int result = print(report, wants, out);
    marey_samples_report_destroy(report);
    return result;
}

static bool tells_iterations(const char *word)
{
    return strcmp(word, "slow") == 0 ||
           (word[0] != '\0' && word[strspn(word, "0123456789.")] == '\0');
}

const char *report_samples_take_iterations(char **args, int *n_args)
{
    for (int i = 0; i < *n_args; i++) {
        char *const word = args[i];
        if (!tells_iterations(word) || access(word, F_OK) == 0)
            continue;
        memmove(&args[i], &args[i + 1], (size_t)(*n_args - i) * sizeof *args);
        --*n_args;
        return word;
    }
    return NULL;
}
