/* `mpirun -n N marey report RUN.marey`: each process reads its share of the logs, rank 0 gets the result. */
#ifndef CLI_REPORT_MPI_H
#define CLI_REPORT_MPI_H

#include "lib/cli.h"

enum report_mpi {
    REPORT_ALONE, /* not shared: continue as usual */
    REPORT_LEAVE, /* another process has the result */
    REPORT_DONE,  /* shared, and this process has the report */
    REPORT_BAD,   /* a message was printed */
};

struct report_share {
    marey_report *report; /* "ranges", owned by the caller */
    const char *damaged;  /* the first damaged recording, lent with `recordings`; NULL: none */
    bool is_job;          /* started by an MPI launcher; always set */
    bool has_below; /* there are short forms to print below the report, which does not include them */
    struct cli_recordings recordings; /* as opened by this process, with only its logs */
};

/*
 * Shares the work if an MPI launcher has started several processes with the same command. `alone`: an option whose
 * report must be made by one process, or NULL. For REPORT_DONE fills `out`, whose report and recordings the caller then
 * owns.
 */
enum report_mpi report_mpi(int n_paths, char **paths, const struct marey_report_options *options,
                           const char *alone, struct report_share *out);

#endif
