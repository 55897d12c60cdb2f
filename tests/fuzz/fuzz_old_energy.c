/* Any bytes as a file of GPU power or epoch times, in pieces of any size: no crash, and every figure is a number. */
#include <math.h>

#include "analyze/device/legacy_energy.h"
#include "fuzz.h"

static void check_numbers(const marey_table *table)
{
    for (size_t row = 0; row < marey_table_n_rows(table); row++)
        for (size_t c = 0; c < marey_table_n_columns(table); c++) {
            const struct marey_cell cell = marey_table_cell(table, row, c);
            if (!cell.is_null && marey_table_column(table, c)->type == MAREY_TYPE_F64)
                MAREY_ASSERT(isfinite(cell.as.f64));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"fuzzed", "a/gpu-energy-data/fuzzed",
                                        "scalability-metrics/run/epoch-time/fuzzed"};
    struct marey__old_energy energy = {0};
    if (size < 2)
        return 0;
    /* Twice: as two files of one run, or of two. */
    for (size_t i = 0; i < 2; i++) {
        marey__byte_source *bytes = NULL;
        bool is_other = false;
        if (marey__bytes_open_memory(data + 2, size - 2, &bytes) != MAREY_OK)
            break;
        marey__bytes_cut(bytes, data[0]);
        const marey_status status =
            marey__old_energy_read(&energy, bytes, paths[(data[1] >> i) % 3], &is_other);
        MAREY_ASSERT(status == MAREY_OK || status == MAREY_EFORMAT);
        MAREY_ASSERT(!is_other || status == MAREY_EFORMAT);
        marey__bytes_close(bytes);
    }
    marey_table *runs = NULL, *repeats = NULL;
    if (marey__old_energy_tables(&energy, &runs, &repeats) == MAREY_OK) {
        MAREY_ASSERT(marey_table_n_rows(repeats) <= marey_table_n_rows(runs));
        check_numbers(runs);
        check_numbers(repeats);
    }
    marey_table_destroy(runs);
    marey_table_destroy(repeats);
    marey__old_energy_fini(&energy);
    return 0;
}
