/* marey diff: compares two dumps and finds the first difference. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Rows a screen takes in at one glance. */
#define DEFAULT_LIMIT 30

static struct {
    bool json, csv, bitwise, no_nan_equal, allow_dtype, ranks, merge_ranks, all, allow_missing,
        allow_extra;
    const char *atol, *rtol, *noise, *noise_factor, *filter, *step, *rank, *color, *output, *ulp;
    struct cli_texts tolerances, partial;
    uint32_t limit, jobs;
} given = {.color = "auto", .limit = DEFAULT_LIMIT};

static const struct cli_option options[] = {
    {"atol", 0, CLI_TEXT, "X", &given.atol,
     "two numbers agree when |a - b| <= atol + rtol * |b|. Without\n"
     "--atol, --rtol and --ulp it is what torch.testing.assert_close\n"
     "allows for the type; with one of them the others are 0"},
    {"rtol", 0, CLI_TEXT, "X", &given.rtol, "see --atol"},
    {"ulp", 0, CLI_TEXT, "N", &given.ulp, "or when they are at most N representable numbers apart"},
    {"tolerance", 't', CLI_TEXTS, "PATTERN=ATOL,RTOL,ULP", &given.tolerances,
     "for paths that match, as '*.grad=1e-4' or '*norm*=0,1e-3';\n"
     "may be given several times, the last that matches counts"},
    {"bitwise", 'b', CLI_FLAG, NULL, &given.bitwise, "require equal bits: -0 is not +0"},
    {"no-nan-equal", 0, CLI_FLAG, NULL, &given.no_nan_equal, "a NaN differs from a NaN"},
    {"allow-dtype", 0, CLI_FLAG, NULL, &given.allow_dtype,
     "a different dtype by itself is not a difference. Numbers are\n"
     "compared in a type that holds both, without rounding"},
    {"noise", 0, CLI_TEXT, "DUMP", &given.noise,
     "a second run of B: ignore differences as large as between\n"
     "the two"},
    {"noise-factor", 0, CLI_TEXT, "X", &given.noise_factor, "or X times as large (default: 3)"},
    {"filter", 'f', CLI_TEXT, "PATTERN", &given.filter,
     "only paths that contain this, or match it where it has one\n"
     "of *?["},
    {"step", 's', CLI_TEXT, "N", &given.step, "only this step"},
    {"rank", 'r', CLI_TEXT, "N", &given.rank, "only this rank"},
    {"ranks", 0, CLI_FLAG, NULL, &given.ranks,
     "of one dump: compare each rank with the lowest one, for values\n"
     "that must be equal on all, such as parameters (see --filter)"},
    {"merge-ranks", 0, CLI_FLAG, NULL, &given.merge_ranks,
     "put the ranks of one side together, for tensor parallelism\n"
     "against one rank: pieces along the axis that is cut; copies"},
    {"partial", 0, CLI_TEXTS, "PATTERN", &given.partial,
     "with --merge-ranks: paths whose parts are summed"},
    {"allow-missing", 0, CLI_FLAG, NULL, &given.allow_missing, "what only B has is not a difference"},
    {"allow-extra", 0, CLI_FLAG, NULL, &given.allow_extra, "what only A has is not a difference"},
    {"all", 'a', CLI_FLAG, NULL, &given.all, "show tensors that agree, too"},
    {"limit", 'n', CLI_COUNT, "N", &given.limit, "at most N tensors (default: 30; 0: all of them)"},
    {"json", 0, CLI_FLAG, NULL, &given.json, "an object: same, first, operation, tensors, ..."},
    {"csv", 0, CLI_FLAG, NULL, &given.csv, "the tensors as CSV"},
    {"output", 'o', CLI_TEXT, "FILE", &given.output, "write there (default: -, standard output)"},
    {"color", 0, CLI_CHOICE, "auto|always|never", &given.color,
     "auto: when standard output is a terminal"},
    {"jobs", 'j', CLI_COUNT, "N", &given.jobs, "threads (default: as many as there are cores)"},
};

/* ---- what was asked for ---- */

/* Up to the end of `text`, or to a comma with `end`. */
static bool parse_amount(const char *option, const char *text, double *out, const char **end)
{
    char *rest;
    errno = 0;
    *out = strtod(text, &rest);
    if (rest != text && (*rest == '\0' || (end != NULL && *rest == ',')) && isfinite(*out) &&
        *out >= 0) {
        if (end != NULL)
            *end = rest;
        return true;
    }
    cli_fail("--%s takes a number that is not negative, not '%s'", option, text);
    return false;
}

static bool parse_number(const char *option, const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0)
        return true;
    cli_fail("--%s takes a whole number, not '%s'", option, text);
    return false;
}

static bool parse_tolerance(struct marey_tolerance *out)
{
    double ulp = 0;
    *out = (struct marey_tolerance){.nan_equal = !given.no_nan_equal, .bitwise = given.bitwise};
    if ((given.atol != NULL && !parse_amount("atol", given.atol, &out->abs, NULL)) ||
        (given.rtol != NULL && !parse_amount("rtol", given.rtol, &out->rel, NULL)) ||
        (given.ulp != NULL && !parse_amount("ulp", given.ulp, &ulp, NULL)))
        return false;
    out->ulp = ulp < 0x1p62 ? (uint64_t)ulp : UINT64_C(1) << 62;
    return true;
}

/* PATTERN=ATOL[,RTOL[,ULP]]; the pattern is cut off in place, in a copy. */
static bool parse_rule(char *text, struct marey_diff_rule *rule)
{
    double amounts[3] = {0};
    char *equals = strrchr(text, '=');
    if (equals == NULL || equals == text) {
        cli_fail("--tolerance takes PATTERN=ATOL,RTOL,ULP, not '%s'", text);
        return false;
    }
    const char *at = equals + 1;
    for (size_t i = 0; i < 3; i++) {
        if (!parse_amount("tolerance", at, &amounts[i], &at))
            return false;
        if (*at == '\0')
            break;
        at++;
    }
    *equals = '\0';
    *rule = (struct marey_diff_rule){
        .pattern = text,
        .tolerance = {.abs = amounts[0],
                      .rel = amounts[1],
                      .ulp = amounts[2] < 0x1p62 ? (uint64_t)amounts[2] : UINT64_C(1) << 62,
                      .nan_equal = !given.no_nan_equal},
    };
    return true;
}

/* What options are made of; it lives as long as they do. */
struct wanted {
    struct marey_tolerance tolerance;
    struct marey_diff_rule rules[CLI_MAX_TEXTS];
    char *patterns[CLI_MAX_TEXTS];
    struct marey_diff_options options;
};

static bool parse_rules(struct wanted *wanted)
{
    for (size_t i = 0; i < given.tolerances.n; i++) {
        wanted->patterns[i] = strdup(given.tolerances.list[i]);
        if (wanted->patterns[i] == NULL || !parse_rule(wanted->patterns[i], &wanted->rules[i]))
            return false;
    }
    return true;
}

static void free_wanted(struct wanted *wanted)
{
    for (size_t i = 0; i < CLI_MAX_TEXTS; i++)
        free(wanted->patterns[i]);
}

static bool parse_wanted(struct wanted *wanted)
{
    struct marey_diff_options *o = &wanted->options;
    const bool has_tolerance =
        given.bitwise || given.atol != NULL || given.rtol != NULL || given.ulp != NULL;
    if (!parse_tolerance(&wanted->tolerance) || !parse_rules(wanted))
        return false;
    *o = (struct marey_diff_options){
        .tolerance = has_tolerance ? &wanted->tolerance : NULL,
        .rules = wanted->rules,
        .n_rules = given.tolerances.n,
        .noise = given.noise,
        .allow_dtype = given.allow_dtype,
        .nan_differs = given.no_nan_equal,
        .allow_missing = given.allow_missing,
        .allow_extra = given.allow_extra,
        .filter = given.filter,
        .merge_ranks = given.merge_ranks,
        .partial = given.partial.list,
        .n_partial = given.partial.n,
        .has_step = given.step != NULL,
        .has_rank = given.rank != NULL,
        .n_jobs = given.jobs,
        .progress = cli_progress,
        .progress_ctx = (void *)"comparing",
    };
    return (given.noise_factor == NULL ||
            parse_amount("noise-factor", given.noise_factor, &o->noise_factor, NULL)) &&
           (given.step == NULL || parse_number("step", given.step, &o->step)) &&
           (given.rank == NULL || parse_number("rank", given.rank, &o->rank));
}

/* ---- the answer ---- */

static int print_diff(void *ctx, FILE *out)
{
    marey_diff *const diff = ctx;
    const struct marey_diff_text_options wants = {
        .text = {.width = cli_terminal_width(out), .color = cli_wants_color(out, given.color)},
        .limit = given.limit,
        .all = given.all,
    };
    const marey_status status = given.json ? marey_diff_json(diff, out)
                                : given.csv
                                    ? marey_present_csv(marey_diff_table(diff, "tensors"), out)
                                    : marey_diff_text(diff, &wants, out);
    return status == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

static int diff_dumps(char **args, const struct marey_diff_options *wanted)
{
    marey_diff *diff = NULL;
    const marey_status status = given.ranks ? marey_diff_ranks(args[0], wanted, &diff)
                                            : marey_diff_open(args[0], args[1], wanted, &diff);
    cli_progress_end();
    if (status != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    int answer = cli_print_file(given.output, print_diff, diff, NULL);
    if (answer == CLI_FINE && marey_diff_is_partial(diff))
        answer = cli_fail("some values could not be compared, so the result is incomplete");
    else if (answer == CLI_FINE && !marey_diff_is_same(diff))
        answer = CLI_NO;
    marey_diff_close(diff);
    return answer;
}

static int diff(int n_args, char **args)
{
    struct wanted wanted = {.tolerance = {0}};
    if (given.ranks && n_args != 1)
        return cli_fail("diff --ranks takes one dump: marey diff --ranks DUMP");
    if (!given.ranks && n_args != 2)
        return cli_fail("diff takes two dumps: marey diff NEW REFERENCE");
    if (given.json && given.csv)
        return cli_fail("--json and --csv exclude one another");
    if (given.bitwise && given.allow_dtype)
        return cli_fail("--bitwise and --allow-dtype exclude one another");
    if (given.noise_factor != NULL && given.noise == NULL)
        return cli_fail("--noise-factor goes with --noise");
    if (given.partial.n != 0 && !given.merge_ranks)
        return cli_fail("--partial goes with --merge-ranks");
    const int status = parse_wanted(&wanted) ? diff_dumps(args, &wanted.options) : CLI_BAD;
    free_wanted(&wanted);
    return status;
}

const struct cli_command cli_command_diff = {
    .name = "diff",
    .usage = "A B [OPTIONS]",
    .brief = "did the numbers change, and where first: two dumps of tensors",
    .about =
        "Compares dump A, the new one, with dump B, the reference, and names the first difference\n"
        "in the order of execution: step, phase, tensor, element, both values and their bits; and\n"
        "the first operation whose inputs agree and whose outputs do not. A dump is a directory\n"
        "that marey.TensorDumper, <marey/dump.h> or ACCV-Lab wrote, or one file: .safetensors,\n"
        ".npy, .json, .png, .bin. The two may differ in layout and format. Values are paired by\n"
        "path; where paths differ, by order and digests. Equal digests are not read any further.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .examples =
        "  marey diff new reference\n"
        "  marey diff new reference --bitwise\n"
        "  marey diff new reference --atol 1e-5 --rtol 1e-4 -t '*.grad=1e-3'\n"
        "  marey diff new reference --noise reference2   two references show the noise\n"
        "  marey diff new.npy reference.safetensors --allow-missing\n"
        "  marey diff --ranks dumps --filter '*.weight'  are parameters equal on all ranks?\n"
        "  marey diff new reference --json | jq .first",
    .exits = "0 the same, 1 different, 2 wrong usage or input, or not all was comparable\n"
             "(also if the rest differs).",
    .run = diff,
};
