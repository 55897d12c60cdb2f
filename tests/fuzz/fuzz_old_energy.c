/* Any bytes as a file of GPU power or epoch times, in pieces of any size: no crash, and every figure is a number. */
#include <math.h>

#include "analyze/legacy_energy.h"
#include "fuzz.h"

static void check_numbers(const kymo_table *table)
{
    for (size_t row = 0; row < kymo_table_n_rows(table); row++)
        for (size_t c = 0; c < kymo_table_n_columns(table); c++) {
            const struct kymo_cell cell = kymo_table_cell(table, row, c);
            if (!cell.is_null && kymo_table_column(table, c)->type == KYMO_TYPE_F64)
                KYMO_ASSERT(isfinite(cell.as.f64));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"fuzzed", "a/gpu-energy-data/fuzzed",
                                        "scalability-metrics/run/epoch-time/fuzzed"};
    struct kymo__old_energy energy = {0};
    if (size < 2)
        return 0;
    /* Twice: as two files of one run, or of two. */
    for (size_t i = 0; i < 2; i++) {
        kymo__byte_source *bytes = NULL;
        bool is_other = false;
        if (kymo__bytes_open_memory(data + 2, size - 2, &bytes) != KYMO_OK)
            break;
        kymo__bytes_cut(bytes, data[0]);
        const kymo_status status =
            kymo__old_energy_read(&energy, bytes, paths[(data[1] >> i) % 3], &is_other);
        KYMO_ASSERT(status == KYMO_OK || status == KYMO_EFORMAT);
        KYMO_ASSERT(!is_other || status == KYMO_EFORMAT);
        kymo__bytes_close(bytes);
    }
    kymo_table *runs = NULL, *repeats = NULL;
    if (kymo__old_energy_tables(&energy, &runs, &repeats) == KYMO_OK) {
        KYMO_ASSERT(kymo_table_n_rows(repeats) <= kymo_table_n_rows(runs));
        check_numbers(runs);
        check_numbers(repeats);
    }
    kymo_table_destroy(runs);
    kymo_table_destroy(repeats);
    kymo__old_energy_fini(&energy);
    return 0;
}
