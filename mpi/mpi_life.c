/* MPI's start and end, and the program's own switch for recording it. */
#include "mpi_internal.h"

int mpi_is_paused;

/* MPI may be called between MPI_Init and MPI_Finalize. A Fortran program initializes it without us; then query MPI. */
enum { LIFE_UNKNOWN, LIFE_UP, LIFE_OVER };
static int life; /* atomic */

bool mpi_is_up(void)
{
    const int now = __atomic_load_n(&life, __ATOMIC_ACQUIRE);
    if (MAREY_LIKELY(now != LIFE_UNKNOWN))
        return now == LIFE_UP;
    int has_begun = 0, has_ended = 0;
    if (!mpi_is_known() || mpi.Initialized(&has_begun) != 0 || mpi.Finalized(&has_ended) != 0 ||
        !has_begun || has_ended)
        return false;
    __atomic_store_n(&life, LIFE_UP, __ATOMIC_RELEASE);
    return true;
}

static void begun(int rc)
{
    struct marey_communication record;
    if (rc != 0 || !mpi_is_up())
        return;
    mpi_record_init(mpi_group_get(mpi_dialect.world), MAREY_COLLECTIVE_OTHER, &record);
    marey_communication_tell(&record);
}

MPI_PLAIN(Init, (void)0, begun(rc), (int *argc, char ***argv), (argc, argv))
MPI_PLAIN(Init_thread, (void)0, begun(rc), (int *argc, char ***argv, int required, int *provided),
          (argc, argv, required, provided))

static void end(void)
{
    __atomic_store_n(&life, LIFE_OVER, __ATOMIC_RELEASE);
}

MPI_WRAPPER(Finalize, (void), (), end(), {
    struct marey_communication record;
    mpi_record_init(mpi_group_get(mpi_is_known() ? mpi_dialect.world : 0), MAREY_COLLECTIVE_OTHER,
                    &record);
    end();
    marey_communication_begin_on(id, &record);
    const int rc = real();
    marey_end(id);
    return rc;
})

MPI_WRAPPER(Abort, (MPI_Comm comm, int code), (comm, code), (void)0, {
    marey_begin_on(id);
    return real(comm, code);
})

/* Level 0 pauses recording of MPI, other levels resume it. Further meaning depends on the program's MPI. */
MAREY_API int MPI_Pcontrol(int level, ...);
MAREY_API int MPI_Pcontrol(int level, ...)
{
    static struct mpi_slot slot;
    int (*const real)(int, ...) = (int (*)(int, ...))mpi_real(&slot, "PMPI_Pcontrol");
    __atomic_store_n(&mpi_is_paused, level == 0, __ATOMIC_RELAXED);
    return real(level);
}
