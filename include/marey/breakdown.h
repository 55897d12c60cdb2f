/*
 * marey/breakdown.h: the rules of the report "breakdown" (libmarey-tools). marey_report_create("breakdown", ...) of
 * <marey/report.h> creates that report. docs/reference/analyses.md lists its tables; docs/internals/breakdown.md defines
 * them.
 */
#ifndef MAREY_BREAKDOWN_H
#define MAREY_BREAKDOWN_H

#include <marey/base.h>

MAREY_BEGIN_C

/* The built-in rules, in the format of the setting "rules" (docs/formats/rules.md). Static. */
MAREY_API const char *marey_breakdown_rules(void);

MAREY_END_C
#endif
