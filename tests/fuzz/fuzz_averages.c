/* Any bytes as a file of averages, in pieces of any size: no crash, and no row belongs to nothing. */
#include "analyze/legacy_internal.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kymo__legacy legacy = {0};
    kymo__byte_source *bytes = NULL;
    bool is_other = false;
    if (size == 0 || kymo__bytes_open_memory(data + 1, size - 1, &bytes) != KYMO_OK)
        return 0;
    kymo__bytes_cut(bytes, data[0]);
    const kymo_status status = kymo__legacy_read_csv(&legacy, bytes, "fuzzed", &is_other);
    KYMO_ASSERT(status == KYMO_OK || status == KYMO_EFORMAT);
    KYMO_ASSERT(!is_other || (status == KYMO_EFORMAT && legacy.keys.n == 0));
    uint64_t n_all = 0, n_alone = 0;
    for (size_t i = 0; i < legacy.keys.n; i++) {
        const struct kymo__legacy_group *group = &legacy.groups[i];
        KYMO_ASSERT(group->n_rows > 0);
        n_all += group->rank < 0 ? group->n_rows : 0;
        n_alone += group->rank < 0 ? 0 : group->n_rows;
    }
    KYMO_ASSERT(n_alone <= n_all);
    kymo_table *table = NULL;
    if (status == KYMO_OK && kymo__legacy_table(&legacy, &table) == KYMO_OK)
        KYMO_ASSERT(kymo_table_n_rows(table) == legacy.keys.n);
    kymo_table_destroy(table);
    kymo__legacy_fini(&legacy);
    kymo__bytes_close(bytes);
    return 0;
}
