/*
 * marey/communication.h: what a range sends to other processes and gets from them.
 *
 *     static marey_id group;                                a communicator, a process group: once for each
 *     if (group == 0)
 *         group = marey_communication_group("tensor parallel", "0-3");
 *     const struct marey_communication what = {.group = group,
 *                                             .what = MAREY_COLLECTIVE_ALL_REDUCE,
 *                                             .bytes_in = n,
 *                                             .bytes_out = n,
 *                                             .sequence = n_so_far++,
 *                                             .group_size = 4,
 *                                             .peer = -1};
 *     const marey_id id = MAREY_ID("all-reduce", .category = MAREY_COMMUNICATION);
 *     marey_communication_begin(id, &what);
 *     ...
 *     marey_end(id);
 *
 * It is a range like any other. Its category makes `marey breakdown` count its time as communication; what is told of
 * it lets that command find the same operation on all ranks, and say who waited for whom and how fast it went. MPI's
 * calls are told by `marey run --mpi`, torch.distributed's by marey.torch: this is for other libraries.
 *
 * struct marey_communication is declared in <marey/recording.h>. Its rules:
 *   group       its name and its ranks are the same on all of them: that is how they are found to be one
 *   sequence    counts what the whole group takes part in, on each rank alike, from 0. An operation that is started and
 *               waited for later has two ranges of one group and sequence, the bytes told with the first
 *   peer        as the recording numbers ranks, not the group
 *
 * Cost: off, a load and a branch. On, some 20 ns besides the range. From any thread, not from signal handlers.
 */
#ifndef MAREY_COMMUNICATION_H
#define MAREY_COMMUNICATION_H

#include <marey/range.h>
#include <marey/recording.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The category of ranges that communicate. */
#define MAREY_COMMUNICATION "communication"

/*
 * The id of a group for struct marey_communication: `name`, and `ranks` as a list in the group's order, "0-3" or "0,2,4-7";
 * both copied, NULL for unknown. Equal texts give equal ids. Takes a lock when new.
 */
MAREY_API marey_id marey_communication_group(const char *name, const char *ranks);

/* The out-of-line halves; they test the enable word again. */
MAREY_API void marey_communication_begin_on(marey_id id, const struct marey_communication *what);
MAREY_API void marey_communication_tell_on(const struct marey_communication *what);

/* Begin the range `id` that does `what` (lent); marey_end(id) ends it. */
static inline void marey_communication_begin(marey_id id, const struct marey_communication *what)
{
    if (MAREY_UNLIKELY(marey_on()))
        marey_communication_begin_on(id, what);
}

/*
 * Say it of the range that was begun last on this thread and is still open: before its end, where what came is known
 * only then. Said twice, the later counts.
 */
static inline void marey_communication_tell(const struct marey_communication *what)
{
    if (MAREY_UNLIKELY(marey_on()))
        marey_communication_tell_on(what);
}

#ifdef __cplusplus
}
#endif
#endif
