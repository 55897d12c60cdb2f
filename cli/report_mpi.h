/* `mpirun -n N marey report RUN.marey`: each process reads its share of the logs, rank 0 has the answer. */
#ifndef CLI_REPORT_MPI_H
#define CLI_REPORT_MPI_H

#include "cli.h"

enum report_mpi {
    REPORT_ALONE, /* nobody helps: go on as ever */
    REPORT_LEAVE, /* another process has the answer */
    REPORT_DONE,  /* all have helped, and here is the report */
    REPORT_BAD,   /* a sentence was said */
};

struct report_share {
    marey_report *report; /* "ranges", the caller's */
    const char *damaged;  /* the first recording that is, lent with `recordings`; NULL: none */
    bool is_job;          /* an MPI launcher has started us; filled always */
    bool has_below;       /* analyses whose lines come below the report, and are not in it */
    struct cli_recordings recordings; /* as this process has opened them, with its logs alone */
};

/*
 * Share the work, when an MPI launcher has started several of us with the same command. `alone`: an option whose report is
 * made by one process, or NULL. `out` is filled for REPORT_DONE, and its report and recordings are then the caller's.
 */
enum report_mpi report_mpi(int n_paths, char **paths, const struct marey_report_options *options,
                           const char *alone, struct report_share *out);

#endif
