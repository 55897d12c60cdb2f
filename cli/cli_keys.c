/*
 * The options of a recording, as the command needs them one by one. The library says them in a text
 * of one line each: key=VALUES, blanks, the meaning and the default in parentheses.
 */
#include "cli.h"

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
