/* Scaling reports with given points, for tests of charts. */
#ifndef MAREY_TESTS_MADE_POINTS_H
#define MAREY_TESTS_MADE_POINTS_H

#include "analyze/scaling/internal.h"

struct made_point {
    const char *experiment, *strategy;
    uint32_t workers;
    const char *kind, *measure;
    double time_s;      /* efficiency and speedup follow from `efficiency` and the series' first */
    double efficiency;  /* 0..1; its interval is 2 % wide to each side */
    double parts[4];    /* of a step: computation, communication, copies, idle; all 0: unknown */
    double joules;      /* of an epoch; 0: unknown */
    double utilization; /* 0: unknown */
};

/* A report with these points, one run for each, and one note. NULL without memory. */
marey_report *scaling_make(const struct made_point *points, size_t n);

#endif
