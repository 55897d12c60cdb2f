/* What must hold of the values of a step, whatever they were read from. */
#ifndef KYMO_FUZZ_DUMP_VALUES_H
#define KYMO_FUZZ_DUMP_VALUES_H

#include "padded.h"

static inline void check_values(struct kymo__step *step)
{
    for (size_t i = 0; i < step->n_values; i++) {
        const struct kymo_dumped_value *const value = &step->values[i];
        const struct kymo__place *const place = &step->places[i];
        struct kymo__path path;
        struct kymo_tensor_stats stats;
        KYMO_ASSERT(kymo__name_parse(value->name, strlen(value->name), &path) == KYMO_OK);
        KYMO_ASSERT(path.n_parts == value->n_parts);
        kymo__path_fini(&path);
        KYMO_ASSERT(!place->is_inside || value->n_bytes == 0 ||
                    (place->at <= step->file.len && value->n_bytes <= step->file.len - place->at));
        if (!place->is_read)
            continue;
        KYMO_ASSERT(kymo_tensor_bytes(&place->tensor) == value->n_bytes);
        /* Every number is looked at. */
        KYMO_ASSERT(kymo_tensor_stats_get(&place->tensor, &stats) == KYMO_OK);
    }
}

#endif
