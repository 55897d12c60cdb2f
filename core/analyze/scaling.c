/* What more workers bring: series and points out of runs, then tables. */
#include <string.h>

#include "analyze/scaling_whole.h"

kymo_status kymo_scaling_create(const kymo_scaling_runs *runs,
                                const struct kymo_scaling_options *options, kymo_scaling **out)
{
    (void)options;
    if (runs->n == 0)
        return kymo__fail(KYMO_EFORMAT, "there are no measured runs to tell scaling from");
    kymo_scaling *scaling = kymo__calloc(1, sizeof *scaling);
    if (scaling == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for scaling");
    const kymo_status status = kymo__scaling_make_tables(scaling);
    if (status != KYMO_OK) {
        kymo_scaling_destroy(scaling);
        return status;
    }
    *out = scaling;
    return KYMO_OK;
}

void kymo_scaling_destroy(kymo_scaling *scaling)
{
    if (scaling == NULL)
        return;
    for (size_t i = 0; i < KYMO__N_SCALING_TABLES; i++)
        kymo_table_destroy(scaling->tables[i]);
    kymo__free(scaling);
}

kymo_table *kymo_scaling_table(kymo_scaling *scaling, const char *name)
{
    for (size_t i = 0; i < KYMO__N_SCALING_TABLES; i++)
        if (strcmp(kymo_table_name(scaling->tables[i]), name) == 0)
            return scaling->tables[i];
    return NULL;
}
