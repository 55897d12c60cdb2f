/* Gates of `marey report`: check the findings and the compute share of a diagnosis against limits. */
#include "report/report_gates.h"

static const char compute_option[] = "fail-if-compute-below";

static const char *next_id(const char **at, size_t *len)
{
    *at += **at == ',';
    const char *const id = *at;
    *len = strcspn(id, ",");
    *at += *len;
    return id;
}

bool report_gates_check(const struct report_gates *gates)
{
    double percent;
    size_t len;
    for (const char *at = gates->ids; at != NULL;) {
        const char *const id = next_id(&at, &len);
        if (cli_find_page(id, len) == NULL)
            return false;
        if (*at == '\0')
            break;
    }
    return gates->compute == NULL || cli_percent(compute_option, gates->compute, &percent);
}

/* The first of two lists that is in both, `*len` bytes; NULL: none. */
static const char *find_common(const char *ids, const char *found, size_t *len)
{
    size_t n;
    while (*found != '\0') {
        const char *const word = next_id(&found, len);
        for (const char *at = ids; *at != '\0';) {
            const char *const id = next_id(&at, &n);
            if (n == *len && memcmp(id, word, n) == 0)
                return word;
        }
    }
    return NULL;
}

static struct marey_cell cell_of(const marey_table *table, size_t row, const char *column)
{
    return marey_table_cell(table, row, (size_t)marey_table_find(table, column));
}

static int judge_findings(const char *ids, const marey_table *findings)
{
    int status = CLI_FINE;
    for (size_t row = 0; row < marey_table_n_rows(findings); row++) {
        size_t len;
        const char *id = find_common(ids, cell_of(findings, row, "id").as.text, &len);
        if (id == NULL)
            id = find_common(ids, cell_of(findings, row, "because").as.text, &len);
        if (id == NULL)
            continue;
        cli_say("--fail-on %.*s: %s", (int)len, id, cell_of(findings, row, "claim").as.text);
        status = CLI_NO;
    }
    return status;
}

static int judge_compute(const char *least, const marey_table *device)
{
    double percent = 0;
    if (!cli_percent(compute_option, least, &percent))
        return CLI_BAD;
    for (size_t row = 0; row < marey_table_n_rows(device); row++) {
        const double share = cell_of(device, row, "share").as.f64 * 100;
        if (strcmp(cell_of(device, row, "what").as.text, "compute") != 0)
            continue;
        if (share >= percent)
            return CLI_FINE;
        cli_say("--%s %g%%: the GPU computes %.1f %% of each step", compute_option, percent, share);
        return CLI_NO;
    }
    return cli_fail("--%s: the compute share is unknown: no typical training step was traced on a "
                    "GPU; record a longer run with 'marey run PROGRAM', or all of it with --gpu",
                    compute_option);
}

int report_gates_judge(const struct report_gates *gates, const marey_report *diagnosis)
{
    int status = CLI_FINE;
    if (gates->ids != NULL)
        status = judge_findings(gates->ids, marey_report_table(diagnosis, "findings"));
    if (gates->compute != NULL) {
        const int computed = judge_compute(gates->compute, marey_report_table(diagnosis, "device"));
        status = computed != CLI_FINE ? computed : status;
    }
    return status;
}
