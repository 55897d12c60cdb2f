/*
 * marey/communication.h: ranges that send data to other processes or receive it.
 *
 *     static marey_id group;                                once per communicator or process group
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
 * It is a range like any other. Its category makes `marey breakdown` count its time as communication. The details let that
 * command match the operation across ranks and report who waited for whom, and the bandwidth. `marey run --mpi` records
 * MPI calls and marey.torch those of torch.distributed; this header is for other libraries.
 *
 * struct marey_communication is declared in <marey/recording.h>. Its rules:
 *   group       name and ranks must be the same on all its ranks: reports match groups by them
 *   sequence    counts the operations of the whole group, from 0, the same on each rank. A nonblocking operation has two
 *               ranges (start and wait) with the same group and sequence; the first has the bytes
 *   peer        rank in the recording, not in the group
 *
 * Cost: off, a load and a branch. On, about 20 ns more than a range. Any thread; not from signal handlers.
 */
#ifndef MAREY_COMMUNICATION_H
#define MAREY_COMMUNICATION_H

#include <marey/range.h>
#include <marey/recording.h>

MAREY_BEGIN_C

/* The category of communication ranges. */
#define MAREY_COMMUNICATION "communication"

/*
 * The id of a group for struct marey_communication: `name`, and `ranks` as a list in the group's order, "0-3" or "0,2,4-7";
 * both copied, NULL: unknown. Equal strings have equal ids. Takes a lock for a new group.
 */
MAREY_API marey_id marey_communication_group(const char *name, const char *ranks);

/* Out of line; they test the enable word again. */
MAREY_API void marey_communication_begin_on(marey_id id, const struct marey_communication *what);
MAREY_API void marey_communication_tell_on(const struct marey_communication *what);

/* Begin the range `id`, which performs `what` (lent); marey_end(id) ends it. */
static inline void marey_communication_begin(marey_id id, const struct marey_communication *what)
{
    if (MAREY_UNLIKELY(marey_on()))
        marey_communication_begin_on(id, what);
}

/*
 * Attach `what` to the innermost open range of this thread. For details known only at its end, such as the bytes received.
 * A second call replaces the first.
 */
static inline void marey_communication_tell(const struct marey_communication *what)
{
    if (MAREY_UNLIKELY(marey_on()))
        marey_communication_tell_on(what);
}

MAREY_END_C
#endif
