/* Any bytes as a CSV of measurements, in pieces of any size: no crash, and runs that a report can be made of. */
#include <math.h>

#include "analyze/scaling_read.h"
#include "fuzz.h"

static void check(const struct kymo_scaling_run *run)
{
    KYMO_ASSERT(run->workers != 0);
    for (size_t i = 0; i < run->n_epochs; i++) {
        KYMO_ASSERT(run->epoch_s[i] > 0 && isfinite(run->epoch_s[i]));
        KYMO_ASSERT(run->epoch_j == NULL || !(isinf(run->epoch_j[i]) || run->epoch_j[i] < 0));
    }
    for (size_t i = 0; i < run->n_steps; i++)
        KYMO_ASSERT(run->step_s[i] > 0 && isfinite(run->step_s[i]));
    KYMO_ASSERT(!isinf(run->joules) && !(run->joules < 0));
    KYMO_ASSERT(!isinf(run->compute_s) && !(run->utilization > 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct kymo_scaling_read_options options;
    struct kymo__measurements m = {0};
    kymo__byte_source *bytes = NULL;
    kymo_scaling_runs *runs = NULL;
    if (size < 1 || kymo_scaling_runs_create(&runs) != KYMO_OK)
        return 0;
    (void)kymo__scaling_csv_kind((const char *)data + 1, size - 1);
    const struct kymo__scaling_reading reading = {.runs = runs, .options = &options, .n_jobs = 1};
    if (kymo__bytes_open_memory(data + 1, size - 1, &bytes) == KYMO_OK) {
        kymo__bytes_cut(bytes, data[0]);
        const kymo_status status = kymo__measurements_read(&m, bytes, "fuzzed");
        KYMO_ASSERT(status == KYMO_OK || status == KYMO_EFORMAT);
        KYMO_ASSERT(kymo__measurements_add(&reading, &m, "fuzzed") == KYMO_OK);
        for (size_t i = 0; i < kymo_scaling_runs_count(runs); i++)
            check(kymo_scaling_runs_at(runs, i));
        kymo__bytes_close(bytes);
    }
    kymo__measurements_fini(&m);
    kymo_scaling_runs_destroy(runs);
    return 0;
}
