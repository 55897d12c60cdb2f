/* The pictures of marey scale, as files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scale.h"

static const char *const own[] = {"epoch-time", "speedup",     "efficiency", "step-breakdown",
                                  "energy",     "utilization", "throughput", NULL};
static const char *const itwinai[] = {"absolute_epoch_time",
                                      "relative_epoch_time_speedup",
                                      "gpu_energy_plot",
                                      "utilization_plot",
                                      "computation_vs_other_plot",
                                      "computation_vs_communication_plot",
                                      NULL};

struct picture {
    char *svg;
    size_t len;
};

/* Drawn in memory first: what the runs do not have leaves no file. */
static marey_status draw(const marey_report *report, const char *name, struct picture *picture)
{
    FILE *out = open_memstream(&picture->svg, &picture->len);
    if (out == NULL)
        return MAREY_ENOMEM;
    const struct marey_write_options wants = {.table = name};
    const marey_status status = marey_report_write(report, "svg", &wants, out);
    return fclose(out) == 0 ? status : MAREY_ENOMEM;
}

static marey_status write_svg(void *ctx, int fd)
{
    const struct picture *picture = ctx;
    FILE *out = fdopen(dup(fd), "w");
    if (out == NULL)
        return MAREY_EIO;
    const bool is_whole = fwrite(picture->svg, 1, picture->len, out) == picture->len;
    return fclose(out) == 0 && is_whole ? MAREY_OK : MAREY_EIO;
}

/* Into a directory that is there, and `*n_written` one higher; a picture without data leaves no file. */
static int write_picture(const marey_report *report, const char *directory, const char *name,
                         size_t *n_written)
{
    struct picture picture = {0};
    char path[4096];
    const marey_status status = draw(report, name, &picture);
    int written = CLI_FINE;
    if (snprintf(path, sizeof path, "%s/%s.svg", directory, name) >= (int)sizeof path)
        written = cli_fail("the path %s is too long", directory);
    else if (status == MAREY_OK)
        written = cli_write_file(path, write_svg, &picture, NULL);
    else if (status != MAREY_EFORMAT) /* that one: the runs do not have it */
        written = cli_fail("%s", marey_last_error());
    *n_written += status == MAREY_OK && written == CLI_FINE;
    free(picture.svg);
    return written;
}

int scale_write_pictures(const marey_report *report, const char *directory, bool has_itwinai_names)
{
    char quoted[4096];
    size_t n = 0, n_names = 0;
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return cli_fail("cannot make the directory %s: %s", directory, strerror(errno));
    for (const char *const *name = has_itwinai_names ? itwinai : own; *name != NULL; name++) {
        const int status = write_picture(report, directory, *name, &n);
        if (status != CLI_FINE)
            return status;
        n_names++;
    }
    cli_say("wrote %zu pictures into %s%s", n, cli_quote(directory, quoted, sizeof quoted),
            n < n_names ? "; for the others these runs have no data" : "");
    return CLI_FINE;
}
