/* marey explain: what a finding of the diagnosis means, how to fix it, and when it is wrong. */
#include "lib/cli.h"

static bool finding_term(size_t i, struct cli_term *term)
{
    const struct marey_finding_page *const page = marey_finding_page_at(i);
    if (page != NULL)
        *term = (struct cli_term){page->id, page->brief, NULL};
    return page != NULL;
}

const struct marey_finding_page *cli_find_page(const char *id, size_t len)
{
    char ids[512] = "";
    const struct marey_finding_page *page;
    for (size_t i = 0; (page = marey_finding_page_at(i)) != NULL; i++) {
        if (strlen(page->id) == len && memcmp(page->id, id, len) == 0)
            return page;
        cli_append(ids, sizeof ids, ", ", page->id);
    }
    cli_say("unknown finding '%.*s'; the findings are %s", (int)len, id, ids);
    return NULL;
}

static int list(void)
{
    const struct marey_finding_page *page;
    for (size_t i = 0; (page = marey_finding_page_at(i)) != NULL; i++)
        printf("%-23s %s\n", page->id, page->brief);
    return CLI_FINE;
}

static int explain(int n_args, char **args)
{
    if (n_args > 1)
        return cli_fail("explain takes one finding; '%s' is a second one", args[1]);
    if (n_args == 0)
        return list();
    const struct marey_finding_page *const page = cli_find_page(args[0], strlen(args[0]));
    if (page == NULL)
        return CLI_BAD;
    fputs(page->text, stdout);
    return CLI_FINE;
}

const struct cli_command cli_command_explain = {
    .name = "explain",
    .usage = "[ID]",
    .brief = "what a finding of the diagnosis means, and how to fix it",
    .about =
        "Prints the page of a finding: what it means, how to fix it, with code before and after,\n"
        "and when it is wrong. Without an ID, lists all findings.",
    .term = finding_term,
    .examples = "  marey explain               all findings, one per line\n"
                "  marey explain input-bound   the page of one of them",
    .run = explain,
};
