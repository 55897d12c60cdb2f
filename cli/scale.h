/* marey scale: what its files share. */
#ifndef MAREY_CLI_SCALE_H
#define MAREY_CLI_SCALE_H

#include "cli.h"

/* scale_gate.c: whether each number of workers has this share of ideal, in percent. Says which do not. */
int scale_check_gate(const marey_report *report, double percent);

/* scale_pictures.c: each picture that the runs have, as a file of `directory`, which is made where it is missing. */
int scale_write_pictures(const marey_report *report, const char *directory, bool has_itwinai_names);

#endif
