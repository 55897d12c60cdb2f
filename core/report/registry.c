/* Every analysis that makes a report, in the order of help. An analysis needs one line here and its folder. */
#include <assert.h>
#include <string.h>

#include "report/internal.h"

static const struct marey__analysis *const analyses[] = {
    &marey__analysis_ranges,    &marey__analysis_diagnosis, &marey__analysis_gpu,
    &marey__analysis_epochs,    &marey__analysis_energy,    &marey__analysis_memory,
    &marey__analysis_calls,     &marey__analysis_samples,   &marey__analysis_operators,
    &marey__analysis_breakdown, &marey__analysis_path,      &marey__analysis_scale,
    &marey__analysis_compare,   &marey__analysis_diff,
};

static_assert(MAREY__COUNT_OF(analyses) <= MAREY__MAX_ANALYSES, "more than the page has room for");

const struct marey__analysis *marey__analysis_at(size_t i)
{
    return i < MAREY__COUNT_OF(analyses) ? analyses[i] : NULL;
}

const struct marey_analysis *marey_analysis_at(size_t i)
{
    return i < MAREY__COUNT_OF(analyses) ? &analyses[i]->about : NULL;
}

const struct marey__analysis *marey__analysis_find(const char *name)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(analyses); i++)
        if (strcmp(analyses[i]->about.name, name) == 0)
            return analyses[i];
    return NULL;
}
