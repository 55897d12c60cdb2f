/* Runs in an MLflow store, for commands about scaling. */
#ifndef MAREY_CLI_MLFLOW_H
#define MAREY_CLI_MLFLOW_H

#include "cli.h"

struct cli_mlflow {
    const char *uri;        /* a folder, a database or a server, as MLflow names it, or a path */
    const char *experiment; /* NULL: all of the store */
    const char *runs;       /* names of training runs, comma separated; NULL: all */
};

/*
 * Append what the store has measured to `runs`. MLflow is asked by the package marey in a Python: $MAREY_PYTHON, else python3 or
 * python on the PATH. CLI_FINE; CLI_NO when there is nothing of the kind in the store; CLI_BAD when it cannot be read; a sentence has been
 * said unless it is fine.
 */
int cli_mlflow_read(marey_scaling_runs *runs, const struct cli_mlflow *store,
                    const struct marey_scaling_read_options *options);

#endif
