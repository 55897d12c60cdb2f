/* Some processes of a recording, by number, role or command: what `--process` asks for. */
#include <string.h>

#include "analyze/samples/internal.h"
#include "analyze/walk/internal.h"
#include "read/internal.h"

static bool parse_digits(const char *text, uint64_t *number)
{
    const size_t len = strlen(text);
    return len != 0 && strspn(text, "0123456789") == len && marey__parse_number(text, len, number);
}

bool marey__process_matches(const char *which, int64_t pid, int32_t worker, const char *command)
{
    static const char word[] = "worker";
    uint64_t number;
    if (which == NULL)
        return true;
    if (parse_digits(which, &number))
        return (uint64_t)pid == number;
    if (strcmp(which, "main") == 0)
        return worker < 0;
    if (strcmp(which, word) == 0)
        return worker >= 0;
    if (strncmp(which, word, sizeof word - 1) == 0 && parse_digits(which + sizeof word - 1, &number))
        return worker >= 0 && (uint64_t)worker == number;
    return marey__name_matches(which, command, strlen(command));
}

marey_status marey_recording_select(const marey_recording *whole, const char *process,
                                    marey_recording **out)
{
    const size_t n = marey_recording_n_logs(whole);
    bool *const keep = marey__calloc(n + 1, sizeof *keep),
                any = marey_recording_n_processes(whole) == 0;
    MAREY__TRY_MEMORY(keep != NULL);
    for (size_t i = 0; i < n; i++) {
        const struct marey_process *const p = marey_recording_process(whole, i);
        keep[i] = i >= marey_recording_n_processes(whole) ||
                  marey__process_matches(process, p->pid, p->worker, p->command);
        any = any || (keep[i] && p->role[0] == '\0');
    }
    const marey_status status =
        any ? marey__recording_part(whole, keep, NULL, out)
            : marey__fail(MAREY_EINVAL,
                          "no process '%s' is in %s: a PID, main, worker, worker0, or a part of a "
                          "command; 'marey report --json' lists them as processes",
                          process, marey_recording_name(whole));
    marey__free(keep);
    return status;
}
