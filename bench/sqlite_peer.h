/* sqlite_peer.h: a recording into SQLite the way one would write it by hand, to compare the export with. */
#ifndef MAREY_BENCH_SQLITE_PEER_H
#define MAREY_BENCH_SQLITE_PEER_H

#include "bench.h"

/* The ranges of a recording of one process and one thread, into a database at `to`, which is removed first. */
marey_status sqlite_peer_export(marey_recording *recording, const char *to);

#endif
