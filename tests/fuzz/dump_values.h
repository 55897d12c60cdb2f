/* Invariants of the values of a step, from any source. */
#ifndef MAREY_FUZZ_DUMP_VALUES_H
#define MAREY_FUZZ_DUMP_VALUES_H

#include "padded.h"

static inline void check_values(struct marey__dumpfile_step *step)
{
    for (size_t i = 0; i < step->n_values; i++) {
        const struct marey_dumped_value *const value = &step->values[i];
        const struct marey__value_place *const place = &step->places[i];
        struct marey__path path;
        struct marey_tensor_stats stats;
        MAREY_ASSERT(marey__name_parse(value->name, strlen(value->name), &path) == MAREY_OK);
        MAREY_ASSERT(path.n_parts == value->n_parts);
        marey__path_fini(&path);
        MAREY_ASSERT(!place->is_inside || value->n_bytes == 0 ||
                     (place->at <= step->file.len && value->n_bytes <= step->file.len - place->at));
        if (!place->is_read)
            continue;
        MAREY_ASSERT(marey_tensor_bytes(&place->tensor) == value->n_bytes);
        /* Reads every number. */
        MAREY_ASSERT(marey_tensor_stats_get(&place->tensor, &stats) == MAREY_OK);
    }
}

#endif
