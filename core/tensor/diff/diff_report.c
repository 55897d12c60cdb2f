/* A diff as a report: its entry in the registry, and the conversion of settings to options. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/diff/internal.h"

/* ---- settings ---- */

/* The options point into it. */
struct wanted {
    struct marey__arena texts;
    struct marey_tolerance tolerance;
    struct marey_diff_rule *rules;
    const char **partial;
    size_t rules_cap, partial_cap;
    struct marey_diff_options options;
};

static void wanted_fini(struct wanted *wanted)
{
    MAREY__FREE_ALL(wanted->rules, wanted->partial);
    marey__arena_fini(&wanted->texts);
}

static struct marey_tolerance tolerance_of(const double amounts[3], const struct wanted *wanted)
{
    return (struct marey_tolerance){
        .abs = amounts[0],
        .rel = amounts[1],
        .ulp = amounts[2] < 0x1p62 ? (uint64_t)amounts[2] : UINT64_C(1) << 62,
        .nan_equal = !wanted->options.nan_differs,
    };
}

/* Parses up to three numbers. */
static bool read_amounts(const char *text, double amounts[3])
{
    for (size_t i = 0; i < 3; i++) {
        char *end;
        amounts[i] = strtod(text, &end);
        if (end == text || !isfinite(amounts[i]) || amounts[i] < 0)
            return false;
        if (*end != ',')
            return *end == '\0';
        text = end + 1;
    }
    return false;
}

/* "PATTERN=ATOL,RTOL,ULP" */
static marey_status add_rule(struct wanted *wanted, const char *text)
{
    const char *const equals = strrchr(text, '=');
    double amounts[3] = {0};
    if (equals == NULL || equals == text || !read_amounts(equals + 1, amounts))
        return marey__fail(
            MAREY_EINVAL,
            "tolerance takes PATTERN=ATOL,RTOL,ULP with numbers of 0 or more, not '%s'", text);
    const struct marey_diff_rule rule = {
        .pattern = marey__arena_text(&wanted->texts, text, (size_t)(equals - text)),
        .tolerance = tolerance_of(amounts, wanted),
    };
    MAREY__TRY_MEMORY(rule.pattern != NULL &&
                      MAREY__PUSH(wanted->rules, wanted->options.n_rules, wanted->rules_cap, rule));
    return MAREY_OK;
}

static void read_tolerance(struct wanted *wanted, const struct marey__request *request)
{
    static const char *const names[] = {"atol", "rtol", "ulp"};
    double amounts[3] = {0};
    const bool is_bitwise = marey__setting_is_on(request, "bitwise");
    bool is_given = is_bitwise;
    for (size_t i = 0; i < 3; i++) {
        const char *const value = marey__setting(request, names[i]);
        is_given |= value != NULL;
        amounts[i] = value != NULL ? strtod(value, NULL) : 0;
    }
    wanted->tolerance = tolerance_of(amounts, wanted);
    wanted->tolerance.bitwise = is_bitwise;
    wanted->options.tolerance = is_given ? &wanted->tolerance : NULL;
}

/* Steps and ranks have 64 bits, MAREY_SETTING_COUNT fewer. */
static marey_status read_number(const struct marey__request *request, const char *name,
                                uint32_t *is_given, uint64_t *out)
{
    const char *const text = marey__setting(request, name);
    char *end;
    if (text == NULL)
        return MAREY_OK;
    errno = 0;
    *is_given = 1;
    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0
               ? MAREY_OK
               : marey__fail(MAREY_EINVAL, "%s takes a whole number, not '%s'", name, text);
}

static marey_status read_lists(struct wanted *wanted, const struct marey__request *request)
{
    const char *text;
    for (size_t i = 0; (text = marey__setting_nth(request, "tolerance", i)) != NULL; i++)
        MAREY_TRY(add_rule(wanted, text));
    for (size_t i = 0; (text = marey__setting_nth(request, "partial", i)) != NULL; i++)
        MAREY__TRY_MEMORY(
            MAREY__PUSH(wanted->partial, wanted->options.n_partial, wanted->partial_cap, text));
    wanted->options.rules = wanted->rules;
    wanted->options.partial = wanted->partial;
    return MAREY_OK;
}

static marey_status read_settings(struct wanted *wanted, const struct marey__request *request)
{
    const char *const factor = marey__setting(request, "noise-factor");
    struct marey_diff_options *const o = &wanted->options;
    *o = (struct marey_diff_options){
        .noise = marey__setting(request, "noise"),
        .noise_factor = factor != NULL ? strtod(factor, NULL) : 0,
        .allow_dtype = marey__setting_is_on(request, "allow-dtype"),
        .nan_differs = marey__setting_is_on(request, "no-nan-equal"),
        .allow_missing = marey__setting_is_on(request, "allow-missing"),
        .allow_extra = marey__setting_is_on(request, "allow-extra"),
        .filter = marey__setting(request, "filter"),
        .merge_ranks = marey__setting_is_on(request, "merge-ranks"),
        .n_jobs = request->options->n_jobs,
        .progress = request->options->progress,
        .progress_ctx = request->options->progress_ctx,
    };
    read_tolerance(wanted, request);
    MAREY_TRY(read_number(request, "step", &o->has_step, &o->step));
    MAREY_TRY(read_number(request, "rank", &o->has_rank, &o->rank));
    MAREY_TRY(read_lists(wanted, request));
    if (wanted->tolerance.bitwise && o->allow_dtype)
        return marey__fail(MAREY_EINVAL, "bitwise and allow-dtype exclude one another");
    if (factor != NULL && o->noise == NULL)
        return marey__fail(MAREY_EINVAL, "noise-factor goes with noise");
    if (o->n_partial != 0 && !o->merge_ranks)
        return marey__fail(MAREY_EINVAL, "partial goes with merge-ranks");
    return MAREY_OK;
}

static marey_status check(const struct marey__request *request)
{
    struct wanted wanted MAREY__FINALLY(wanted_fini) = {.rules = NULL};
    return read_settings(&wanted, request);
}

/* ---- the report ---- */

static marey_status make(marey_report *report, const struct marey__request *request)
{
    const bool compares_ranks = marey__setting_is_on(request, "ranks");
    struct wanted wanted MAREY__FINALLY(wanted_fini) = {.rules = NULL};
    marey_diff *diff;
    if (request->n != (compares_ranks ? 1 : 2))
        return marey__fail(MAREY_EINVAL, "diff takes two dumps, or one with ranks");
    MAREY_TRY(read_settings(&wanted, request));
    MAREY_TRY(marey__diff_open(compares_ranks ? NULL : request->paths[0],
                               request->paths[request->n - 1], &wanted.options, &diff));
    diff->shows_all = marey__setting_is_on(request, "all");
    report->data = diff;
    for (size_t i = 0; i < MAREY__DIFF_ERRORS; i++) {
        marey_table_destroy(report->tables[i]);
        report->tables[i] = diff->tables[i];
    }
    return MAREY_OK;
}

/* The report owns the tables, except the errors. */
static void destroy(void *data)
{
    marey_diff *const diff = data;
    memset(diff->tables, 0, MAREY__DIFF_ERRORS * sizeof diff->tables[0]);
    marey_diff_close(diff);
}

/* ---- registry entry ---- */

static const struct marey_setting settings[] = {
    {"atol", MAREY_SETTING_NUMBER, "X",
     "two numbers agree when |a - b| <= atol + rtol * |b|. Without\n"
     "--atol, --rtol and --ulp it is what torch.testing.assert_close\n"
     "allows for the type; with one of them the others are 0"},
    {"rtol", MAREY_SETTING_NUMBER, "X", "see --atol"},
    {"ulp", MAREY_SETTING_NUMBER, "N", "or when they are at most N representable numbers apart"},
    {"tolerance", MAREY_SETTING_TEXTS, "PATTERN=ATOL,RTOL,ULP",
     "for paths that match, as '*.grad=1e-4' or '*norm*=0,1e-3';\n"
     "may be given several times, the last that matches counts",
     't'},
    {"bitwise", MAREY_SETTING_FLAG, NULL, "require equal bits: -0 is not +0", 'b'},
    {"no-nan-equal", MAREY_SETTING_FLAG, NULL, "a NaN differs from a NaN"},
    {"allow-dtype", MAREY_SETTING_FLAG, NULL,
     "a different dtype by itself is not a difference. Numbers are\n"
     "compared in a type that holds both, without rounding"},
    {"noise", MAREY_SETTING_TEXT, "DUMP",
     "a second run of B: ignore differences as large as between\n"
     "the two"},
    {"noise-factor", MAREY_SETTING_NUMBER, "X", "or X times as large (default: 3)"},
    {"filter", MAREY_SETTING_TEXT, "PATTERN",
     "only paths that contain this, or match it where it has one\n"
     "of *?[",
     'f'},
    {"step", MAREY_SETTING_TEXT, "N", "only this step", 's'},
    {"rank", MAREY_SETTING_TEXT, "N", "only this rank", 'r'},
    {"ranks", MAREY_SETTING_FLAG, NULL,
     "of one dump: compare each rank with the lowest one, for values\n"
     "that must be equal on all, such as parameters (see --filter)"},
    {"merge-ranks", MAREY_SETTING_FLAG, NULL,
     "put the ranks of one side together, for tensor parallelism\n"
     "against one rank: pieces along the axis that is cut; copies"},
    {"partial", MAREY_SETTING_TEXTS, "PATTERN", "with --merge-ranks: paths whose parts are summed"},
    {"allow-missing", MAREY_SETTING_FLAG, NULL, "what only B has is not a difference"},
    {"allow-extra", MAREY_SETTING_FLAG, NULL, "what only A has is not a difference"},
    {"all", MAREY_SETTING_FLAG, NULL, "show tensors that agree, too", 'a'},
};

extern const struct marey__analysis marey__analysis_diff;
const struct marey__analysis marey__analysis_diff = {
    .about = {.name = "diff",
              .help = "where the numbers of two dumps of tensors differ first, and by how much",
              .needs = "dumps of marey.TensorDumper, <marey/dump.h> or ACCV-Lab, or single files: "
                       ".safetensors, .npy, .json, .png, .bin",
              .settings = settings,
              .n_settings = MAREY__COUNT_OF(settings),
              .tables = marey__diff_definitions,
              .n_tables = MAREY__DIFF_ERRORS,
              .csv = "tensors",
              .command = "diff"},
    .reads_paths = true,
    .check = check,
    .make = make,
    .destroy = destroy,
    .text = marey__diff_as_text,
    .json = marey__diff_as_json,
};
