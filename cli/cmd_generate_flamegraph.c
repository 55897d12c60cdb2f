/* marey generate-flamegraph: itwinai's command of that name, without Perl. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

static struct {
    const char *file, *output, *by;
} given = {.output = "flamegraph.svg"};

static const struct cli_option options[] = {
    {"file", 0, CLI_TEXT, "FILE|DIR", &given.file,
     "what py-spy record -f raw wrote, or stacks and numbers of another\n"
     "tool; of a folder every such file in it"},
    {"output-filename", 0, CLI_TEXT, "FILE", &given.output,
     "the picture (default: flamegraph.svg); - is standard output"},
    {"by", 0, CLI_CHOICE, "thread|rank", &given.by, "threads or ranks apart (default: all added up)"},
};

static marey_status write_picture(void *ctx, int fd)
{
    const struct cli_recordings *const recordings = ctx;
    uint64_t n_too_deep = 0;
    const struct marey_export_options wants = {.by = given.by,
                                               .n_too_deep = &n_too_deep,
                                               .progress = cli_progress,
                                               .progress_ctx = (void *)"writing"};
    const marey_status status =
        marey_export(recordings->list, recordings->n, "flamegraph", &wants, fd);
    cli_progress_end();
    if (status == MAREY_OK)
        cli_say_left_out(n_too_deep, "range", "nested too deep");
    return status;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

static int generate(int n_args, char **args)
{
    if (n_args > 0)
        return cli_fail("generate-flamegraph takes its file by --file, not as '%s'", args[0]);
    if (given.file == NULL)
        return cli_fail("generate-flamegraph needs --file: what py-spy record -f raw wrote");
    if (is_same_file(given.file, given.output))
        return cli_fail("%s is what is read; choose another --output-filename", given.output);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error to tell, like a full disk */
    struct cli_recordings recordings;
    if (!cli_open(&recordings, (char **)&given.file, 1))
        return CLI_BAD;
    const int status =
        cli_write_file(given.output, write_picture, &recordings,
                       "open it in a browser; click a box to zoom, Ctrl-F to search");
    const int damage = cli_tell_damage(&recordings, status);
    cli_close(&recordings);
    return damage;
}

const struct cli_command cli_command_generate_flamegraph = {
    .name = "generate-flamegraph",
    .usage = "--file FILE|DIR [--output-filename FILE]",
    .brief = "a flame graph of py-spy's stacks",
    .about =
        "Draws a flame graph of what 'py-spy record -f raw' wrote, or of any profile or trace "
        "that\n"
        "marey knows: itwinai's command of this name, without Perl. The picture opens in any "
        "browser\n"
        "and can be searched and zoomed. A picture that is there already stays until the new one "
        "is\n"
        "whole. 'marey export -o FILE.svg' has more: filters, and what changed between two runs.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .examples =
        "  marey generate-flamegraph --file train.raw\n"
        "  marey generate-flamegraph --file train.raw --output-filename train.svg --by thread",
    .is_of_itwinai = true,
    .run = generate,
};
