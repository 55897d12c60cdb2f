/*
 * What the text and the JSON report share.
 */
#ifndef KYMO_REPORT_INTERNAL_H
#define KYMO_REPORT_INTERNAL_H

#include "analyze/analyze_internal.h"
#include "present/present_internal.h"

/* Sort `ranges` and `async` by a column, "-" before it for ascending; NULL leaves them. KYMO_EINVAL lists the columns. */
KYMO_WARN_UNUSED kymo_status kymo__report_sort(kymo_summary *summary, const char *sort);

/*
 * The tables called `names` (comma separated, NULL: ranges) in that order, each once, into `tables`, which has room for
 * KYMO__N_TABLES; behind `ranges` come async ranges, counters and marks where there are any. KYMO_EINVAL for an unknown one.
 */
KYMO_WARN_UNUSED kymo_status kymo__report_tables(kymo_summary *summary, const char *names,
                                                 kymo_table **tables, size_t *n);

#endif
