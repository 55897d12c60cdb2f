/*
 * report: what the tables of all analyses have in common: column descriptions, cells, notes.
 *
 * Comes in: values of an analysis. Goes out: rows of a marey_table. Knows recordings and processes by their public
 * types; knows no analysis and no output format.
 */
#ifndef MAREY_REPORT_ROOM_H
#define MAREY_REPORT_ROOM_H

#include "base/base_internal.h"
#include "base/table_internal.h"
#include <marey/recording.h>
#include <marey/report.h>

/* ---- columns ---- */

#define MAREY__NAME_COLUMN                                                                         \
    {                                                                                              \
        "name", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE                                             \
    }
#define MAREY__RANK_COLUMN                                                                         \
    {                                                                                              \
        "rank", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE                                              \
    }
#define MAREY__PID_COLUMN                                                                          \
    {                                                                                              \
        "pid", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE                                               \
    }
#define MAREY__COUNT_COLUMN                                                                        \
    {                                                                                              \
        "count", NULL, MAREY_TYPE_U64, MAREY_UNIT_COUNT                                            \
    }
#define MAREY__NS_COLUMN(name, title)                                                              \
    {                                                                                              \
        name, title, MAREY_TYPE_U64, MAREY_UNIT_NS                                                 \
    }
/* The title has what it is a share of. */
#define MAREY__SHARE_COLUMN(title)                                                                 \
    {                                                                                              \
        "share", title, MAREY_TYPE_F64, MAREY_UNIT_SHARE                                           \
    }
#define MAREY__NUMBER_COLUMN(name, title)                                                          \
    {                                                                                              \
        name, title, MAREY_TYPE_F64, MAREY_UNIT_NONE                                               \
    }
#define MAREY__TALLY_COLUMN(name, title)                                                           \
    {                                                                                              \
        name, title, MAREY_TYPE_U64, MAREY_UNIT_COUNT                                              \
    }

/* ---- rows.c: cells and rows that many tables have ---- */

void marey__put_string(marey_table *table, const char *text);
/* Its rank, null when that is unknown, and its pid. */
void marey__put_process(marey_table *table, const struct marey_process *process);
/* Null when there is no whole. */
void marey__put_share(marey_table *table, uint64_t part_ns, uint64_t whole_ns);
void marey__sort_by(marey_table *table, const char *column, int descending);
/* The column of a table of notes. */
extern const struct marey_column marey__warning_columns[1];
/* A process's notes, one per line; the process is named unless it is the only one. */
void marey__put_notes(marey_table *table, const struct marey_process *process, bool is_alone);
/* "a.marey", "a.marey and b.marey", "a.marey and 7 more"; free with marey__free. NULL on out of memory. */
char *marey__recordings_title(marey_recording *const *recordings, size_t n);

#endif
