/* Parsing amounts and process ids typed by the user. */
#include <math.h>

#include "lib/cli.h"

bool cli_percent(const char *option, const char *text, double *percent)
{
    char *end;
    *percent = strtod(text, &end);
    end += strspn(end, " ");
    end += *end == '%';
    if (end != text && *end == '\0' && isfinite(*percent) && *percent >= 0)
        return true;
    return cli_refuse("--%s takes a percentage such as 2 or 2%%, not '%s'", option, text);
}

bool cli_seconds(const char *option, const char *text, double *seconds)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
    char *end;
    *seconds = strtod(text, &end);
    const bool is_number = end != text && isfinite(*seconds) && *seconds > 0;
    end += strspn(end, " ");
    for (size_t i = 0; i < sizeof units / sizeof units[0] && is_number; i++)
        if (strcmp(end, units[i].name) == 0) {
            *seconds *= units[i].seconds;
            return true;
        }
    return cli_refuse("--%s takes a time such as 60s, 500ms, 5m or 1h, not '%s'", option, text);
}

bool cli_rate(const char *option, const char *text, double *hz)
{
    const double most = 1e6;
    char *end;
    *hz = strtod(text, &end);
    const bool is_number = end != text && isfinite(*hz);
    *hz *= *end == 'k' ? 1000 : 1;
    end += *end == 'k';
    if (is_number && (*end == '\0' || strcmp(end, "Hz") == 0) && *hz > 0 && *hz <= most)
        return true;
    return cli_refuse("--%s takes how often a second, such as 100 or 2k, up to %.0f, not '%s'",
                      option, most, text);
}

static bool parse_pid(const char *text, pid_t *pid)
{
    char *end;
    const long value = strtol(text, &end, 10);
    *pid = (pid_t)value;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && value > 0 && value <= INT32_MAX;
}

bool cli_pids(const struct cli_command *command, int n, char *const *args, pid_t **pids)
{
    if (n == 0)
        return cli_refuse(
            "%s needs a process id: marey %s 4711; 'marey top' lists the processes that run Python",
            command->name, command->name);
    *pids = calloc((size_t)n, sizeof **pids);
    for (int i = 0; i < n && *pids != NULL; i++)
        if (!parse_pid(args[i], &(*pids)[i]))
            return cli_refuse(
                "'%s' is not a process id; 'marey top' lists the processes that run Python", args[i]);
    return *pids != NULL || cli_refuse("out of memory");
}
