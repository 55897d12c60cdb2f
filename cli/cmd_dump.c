/* marey dump: inspect a dump of tensors. */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"

struct dump_given dump_given = {.color = "auto", .limit = 10, .as = "raw", .picture = UINT32_MAX};

static const struct cli_option options[] = {
    {"step", 's', CLI_TEXT, "N", &dump_given.step, "only this step"},
    {"rank", 'r', CLI_TEXT, "N", &dump_given.rank, "only this rank"},
    {"all", 'a', CLI_FLAG, NULL, &dump_given.all, "ls: list the values of all steps"},
    {"limit", 'n', CLI_COUNT, "N", &dump_given.limit,
     "show: rows and numbers from each end (default: 10)"},
    {"as", 0, CLI_CHOICE, "raw|npy|json|safetensors", &dump_given.as,
     "cat: the format (default: raw, the bytes in row-major order)"},
    {"type", 0, CLI_CHOICE, "rgb|bgr|grey", &dump_given.type,
     "image: meaning of the channels (default: rgb for 3 or 4,\n"
     "else grey)"},
    {"map", 0, CLI_CHOICE, "viridis|heat|diverging", &dump_given.map,
     "image: color map of a grey image"},
    {"range", 0, CLI_TEXT, "LOW,HIGH", &dump_given.range,
     "image: the values that become black and brightest (default: the\n"
     "minimum and maximum)"},
    {"picture", 0, CLI_COUNT, "N", &dump_given.picture,
     "image: index of one of several (default: all, FILE-0.png etc.)"},
    {"json", 0, CLI_FLAG, NULL, &dump_given.json, "ls and stats: as JSON"},
    {"csv", 0, CLI_FLAG, NULL, &dump_given.csv, "ls and stats: as CSV"},
    {"output", 'o', CLI_TEXT, "FILE", &dump_given.output,
     "cat and image: output file (default: -, standard output)"},
    CLI_COLOR_OPTION(&dump_given.color),
};

/* ---- choosing ---- */

static bool is_number(const char *text, int64_t number)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    return *end == '\0' && errno == 0 && value == number;
}

bool dump_wants(const struct marey_dumped_step *step)
{
    return (dump_given.step == NULL || is_number(dump_given.step, (int64_t)step->step)) &&
           (dump_given.rank == NULL || is_number(dump_given.rank, step->rank));
}

static bool is_named(const struct marey_dumped_value *value, const char *name)
{
    return name == NULL || strcmp(value->name, name) == 0 || fnmatch(name, value->name, 0) == 0;
}

static int choose_in_step(struct dump_choice *choice, const char *name, dump_use *use, void *ctx,
                          size_t *n_found)
{
    const struct marey_dumped_value *values;
    size_t n;
    int status = CLI_FINE;
    CLI_TRY(cli_status(marey_dumps_values(choice->dumps, choice->step_number, &values, &n)));
    for (size_t i = 0; i < n && status == CLI_FINE; i++) {
        if (!is_named(&values[i], name))
            continue;
        choice->value = &values[i];
        choice->value_number = i;
        ++*n_found;
        status = use(ctx, choice);
    }
    marey_dumps_release(choice->dumps, choice->step_number);
    return status;
}

int dump_choose(marey_dumps *dumps, const char *name, dump_use *use, void *ctx)
{
    size_t n_found = 0, n_steps = 0;
    for (size_t i = 0; i < marey_dumps_count(dumps); i++) {
        struct dump_choice choice = {.dumps = dumps, .step_number = i};
        CLI_TRY(cli_status(marey_dumps_step(dumps, i, &choice.step)));
        if (!dump_wants(&choice.step))
            continue;
        n_steps++;
        CLI_TRY(choose_in_step(&choice, name, use, ctx, &n_found));
    }
    if (n_steps == 0)
        return cli_fail("the dump has no such step or rank; 'marey dump ls' lists them");
    if (n_found == 0 && name != NULL)
        return cli_fail("the dump has no value '%s'; 'marey dump ls' lists them", name);
    return CLI_FINE;
}

int dump_get(const struct dump_choice *choice, struct marey_tensor *out)
{
    return cli_status(marey_dumps_get(choice->dumps, choice->step_number, choice->value_number, out));
}

const char *dump_shape(const struct marey_dumped_value *value, char *into, size_t size)
{
    size_t len = (size_t)snprintf(into, size, "[");
    for (uint32_t i = 0; i < value->rank && len + 24 < size; i++) {
        snprintf(into + len, size - len, "%s%lld", i == 0 ? "" : ",", (long long)value->sizes[i]);
        len += strlen(into + len);
    }
    snprintf(into + len, size - len, "]");
    return into;
}

/* ---- the command ---- */

static const struct {
    const char *name;
    int (*run)(marey_dumps *dumps, const char *name);
    bool needs_name;
} actions[] = {
    {"ls", dump_list, false}, {"show", dump_print, false}, {"stats", dump_stats, false},
    {"cat", dump_cat, true},  {"image", dump_image, true},
};

static int act(size_t action, char **args)
{
    marey_dumps *dumps;
    CLI_TRY(cli_status(marey_dumps_open(args[1], &dumps)));
    int status = marey_dumps_count(dumps) != 0 ? actions[action].run(dumps, args[2])
                                               : cli_fail("%s contains no step of a dump", args[1]);
    for (size_t i = 0; i < marey_dumps_n_notes(dumps); i++) {
        cli_say("%s", marey_dumps_note(dumps, i));
        status = status == CLI_FINE ? CLI_BAD : status; /* the dump is incomplete */
    }
    marey_dumps_close(dumps);
    return status;
}

static int dump(int n_args, char **args)
{
    static const char usage[] = "dump needs a command and a dump: marey dump ls DUMP";
    if (n_args < 2 || n_args > 3)
        return cli_fail("%s", usage);
    if (!cli_exclude(&cli_command_dump, "json csv"))
        return CLI_BAD;
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(actions[i].name, args[0]) != 0)
            continue;
        if (actions[i].needs_name && n_args != 3)
            return cli_fail("dump %s needs the name of a value; 'marey dump ls %s' lists them",
                            args[0], args[1]);
        return act(i, args);
    }
    const char *nearest = cli_nearest(args[0], &actions[0].name, sizeof actions / sizeof actions[0],
                                      sizeof actions[0]);
    if (nearest != NULL)
        return cli_fail("dump has no command '%s'; did you mean 'marey dump %s'?", args[0], nearest);
    return cli_fail("dump has no command '%s'; the commands are ls, show, stats, cat and image",
                    args[0]);
}

const struct cli_command cli_command_dump = {
    .name = "dump",
    .usage = "ls|show|stats|cat|image DUMP [NAME] [OPTIONS]",
    .brief = "inspect a dump of tensors: names, numbers, statistics, images",
    .about =
        "Reads a dump of marey.TensorDumper, <marey/dump.h> or ACCV-Lab, or a file of tensors.\n"
        "  ls     steps; the values of one step with type, shape and bytes\n"
        "  show   numbers from both ends, and positions of NaNs and infinities\n"
        "  stats  minimum, maximum, mean, norm, number of NaNs, zeros and so on\n"
        "  cat    one value as raw bytes, npy, JSON or safetensors\n"
        "  image  one value as PNG\n"
        "NAME is a name that ls prints, or a pattern: 'layers*.out'. Pickles are never loaded.",
    CLI_OPTIONS(options),
    .examples = "  marey dump ls dumps\n"
                "  marey dump ls dumps --step 3\n"
                "  marey dump show dumps layer0.out --step 3\n"
                "  marey dump stats dumps '*.out' --csv\n"
                "  marey dump cat dumps layer0.out --step 3 --as npy -o layer0.npy\n"
                "  marey dump image dumps features --step 3 --map viridis -o features.png",
    .exits = "0 fine, 2 wrong usage or input, or a part of the dump could not be read.",
    .run = dump,
};
