/* Any bytes as a file of averages, in pieces of any size: no crash, and no row belongs to nothing. */
#include "analyze/device/legacy_internal.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct marey__legacy legacy = {0};
    marey__byte_source *bytes = NULL;
    bool is_other = false;
    if (size == 0 || marey__bytes_open_memory(data + 1, size - 1, &bytes) != MAREY_OK)
        return 0;
    marey__bytes_cut(bytes, data[0]);
    const marey_status status = marey__legacy_read_csv(&legacy, bytes, "fuzzed", &is_other);
    MAREY_ASSERT(status == MAREY_OK || status == MAREY_EFORMAT);
    MAREY_ASSERT(!is_other || (status == MAREY_EFORMAT && legacy.keys.n == 0));
    uint64_t n_all = 0, n_alone = 0;
    for (size_t i = 0; i < legacy.keys.n; i++) {
        const struct marey__legacy_group *group = &legacy.groups[i];
        MAREY_ASSERT(group->n_rows > 0);
        n_all += group->rank < 0 ? group->n_rows : 0;
        n_alone += group->rank < 0 ? 0 : group->n_rows;
    }
    MAREY_ASSERT(n_alone <= n_all);
    marey_table *table = NULL;
    if (status == MAREY_OK && marey__legacy_table(&legacy, &table) == MAREY_OK)
        MAREY_ASSERT(marey_table_n_rows(table) == legacy.keys.n);
    marey_table_destroy(table);
    marey__legacy_fini(&legacy);
    marey__bytes_close(bytes);
    return 0;
}
