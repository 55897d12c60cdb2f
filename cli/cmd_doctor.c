/* marey doctor: what can be measured here, and how to enable the rest. */
#include "lib/cli.h"

static struct {
    bool json, measure;
    uint32_t wait;
    const char *color;
} given = {.wait = 1, .color = "auto"};

static const struct cli_option options[] = {
    {"json", 0, CLI_FLAG, NULL, &given.json,
     "an object: version, abi, can_record, and findings, a list of\n"
     "subject, thing, state, value, amount, unit, advice"},
    {"measure", 0, CLI_FLAG, NULL, &given.measure,
     "also write up to 64 MiB, for 0.3 s at most, and report the speed"},
    {"wait", 'w', CLI_COUNT, "SECONDS", &given.wait,
     "timeout for all libraries and interpreters together\n"
     "(default: 1)"},
    CLI_COLOR_OPTION(&given.color),
};

static int show(const marey_table *findings)
{
    const struct marey_text_options text = {.width = cli_terminal_width(stdout),
                                            .color = cli_wants_color(stdout, given.color)};
    const marey_status status = given.json ? marey_doctor_json(findings, stdout)
                                           : marey_doctor_text(findings, &text, stdout);
    CLI_TRY(cli_status(status));
    return marey_doctor_can_record(findings) ? CLI_FINE : CLI_NO;
}

static int doctor(int n_args, char **args)
{
    enum { LONGEST_WAIT = 3600 };
    marey_table *findings CLI_FINALLY(cli_destroy_table) = NULL;
    if (n_args > 1)
        return cli_fail("doctor takes one directory; '%s' is a second one", args[1]);
    if (given.wait == 0 || given.wait > LONGEST_WAIT)
        return cli_fail("--wait takes 1 to %d seconds", LONGEST_WAIT);
    const struct marey_doctor_options wants = {
        .path = args[0], .measure = given.measure, .wait_ms = given.wait * 1000};
    CLI_TRY(cli_status(marey_doctor(&wants, &findings)));
    return show(findings);
}

const struct cli_command cli_command_doctor = {
    .name = "doctor",
    .usage = "[RUN_DIR] [OPTIONS]",
    .brief = "what can be measured here, and what is missing",
    .about =
        "Reports what can be measured on this machine, with resolution and cost, what is missing,\n"
        "and how to fix it: clock, machine, files, permissions, NVTX, CUDA, Python, sampling,\n"
        "versions, launcher. Makes a small recording in RUN_DIR, or in the current directory, and\n"
        "removes it. Creates no CUDA context and uses no network.",
    CLI_OPTIONS(options),
    .examples = "  marey doctor                        about recordings in this directory\n"
                "  marey doctor /scratch/me --measure  another directory, with its speed\n"
                "  marey doctor --json | jq '.findings[] | select(.state == \"missing\")'",
    .exits = "0 fine, even if optional things are missing, 1 marey cannot record there,\n"
             "2 wrong usage.",
    .run = doctor,
};
