/* Any bytes as a CSV of measurements, in pieces of any size: no crash, and runs that can be
 * reported. */
#include <math.h>

#include "analyze/scaling/internal.h"
#include "fuzz.h"

static void check(const struct marey__scaling_run *run)
{
    MAREY_ASSERT(run->workers != 0);
    for (size_t i = 0; i < run->n_epochs; i++) {
        MAREY_ASSERT(run->epoch_s[i] > 0 && isfinite(run->epoch_s[i]));
        MAREY_ASSERT(run->epoch_j == NULL || !(isinf(run->epoch_j[i]) || run->epoch_j[i] < 0));
    }
    for (size_t i = 0; i < run->n_steps; i++)
        MAREY_ASSERT(run->step_s[i] > 0 && isfinite(run->step_s[i]));
    MAREY_ASSERT(!isinf(run->numbers.joules) && !(run->numbers.joules < 0));
    MAREY_ASSERT(!isinf(run->numbers.compute_s) && !(run->numbers.utilization > 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct marey__scaling_read_options options;
    struct marey__measurements m = {0};
    marey__byte_source *bytes = NULL;
    struct marey__scaling_runs runs = {0};
    if (size < 1)
        return 0;
    (void)marey__scaling_csv_kind((const char *)data + 1, size - 1);
    const struct marey__scaling_reading reading = {
        .runs = &runs, .options = &options, .name = "fuzzed", .n_jobs = 1};
    if (marey__bytes_open_memory(data + 1, size - 1, &bytes) == MAREY_OK) {
        marey__bytes_cut(bytes, data[0]);
        const marey_status status = marey__measurements_read(&m, bytes, "fuzzed");
        MAREY_ASSERT(status == MAREY_OK || status == MAREY_EFORMAT);
        MAREY_ASSERT(marey__measurements_add(&reading, &m) == MAREY_OK);
        for (size_t i = 0; i < runs.n; i++)
            check(&runs.list[i]);
        marey__bytes_close(bytes);
    }
    marey__measurements_fini(&m);
    marey__scaling_runs_fini(&runs);
    return 0;
}
