/* sqlite_peer.h: a straightforward SQLite export, for comparison. */
#ifndef MAREY_BENCH_SQLITE_PEER_H
#define MAREY_BENCH_SQLITE_PEER_H

#include "bench.h"

/* Write the ranges of a recording of one process and one thread to a new database at `to`, which is
 * removed first. */
marey_status sqlite_peer_export(marey_recording *recording, const char *to);

#endif
