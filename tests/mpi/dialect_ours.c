/* What libmarey-mpi takes for the numbers and handles of the MPI it is linked with here; dialect_theirs.c has MPI's own. */
#include <stdio.h>

#include "mpi_internal.h"

void print_ours(void);

void print_ours(void)
{
    if (!mpi_is_known())
        return;
#define PRINT(what, value) printf("ours " what " %llx\n", (unsigned long long)(value))
    PRINT("sizeof handle", mpi_dialect.handle_bytes);
    PRINT("sizeof status", mpi_dialect.status_bytes);
    PRINT("offset source", mpi_dialect.source_offset);
    PRINT("in place", (uintptr_t)mpi_dialect.in_place);
    PRINT("status ignore", (uintptr_t)mpi_dialect.status_ignore);
    PRINT("statuses ignore", (uintptr_t)mpi_dialect.statuses_ignore);
    PRINT("proc null", mpi_dialect.proc_null);
    PRINT("root", mpi_dialect.root);
    PRINT("world", mpi_dialect.world);
    PRINT("self", mpi_dialect.self);
    PRINT("comm null", mpi_dialect.comm_null);
    PRINT("byte", mpi_dialect.byte);
    PRINT("type null", mpi_dialect.type_null);
    PRINT("request null", mpi_dialect.request_null);
    PRINT("sizeof count", sizeof(MPI_Count));
    PRINT("sizeof displacement", sizeof(MPI_Aint));
}
