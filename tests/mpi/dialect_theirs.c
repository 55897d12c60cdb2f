/* Numbers and handles as an MPI's mpi.h has them. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

void print_ours(void);

int main(void)
{
    int flag;
    MPI_Initialized(&flag); /* so that the library is there, also where handles are plain numbers */
#define PRINT(what, value) printf("theirs " what " %llx\n", (unsigned long long)(value))
    PRINT("sizeof handle", sizeof(MPI_Comm));
    PRINT("sizeof handle", sizeof(MPI_Datatype));
    PRINT("sizeof handle", sizeof(MPI_Request));
    PRINT("sizeof handle", sizeof(MPI_Message));
    PRINT("sizeof handle", sizeof(MPI_Group));
    PRINT("sizeof status", sizeof(MPI_Status));
    PRINT("offset source", offsetof(MPI_Status, MPI_SOURCE));
    PRINT("in place", (uintptr_t)MPI_IN_PLACE);
    PRINT("status ignore", (uintptr_t)MPI_STATUS_IGNORE);
    PRINT("statuses ignore", (uintptr_t)MPI_STATUSES_IGNORE);
    PRINT("proc null", MPI_PROC_NULL);
    PRINT("root", MPI_ROOT);
    PRINT("world", MPI_COMM_WORLD);
    PRINT("self", MPI_COMM_SELF);
    PRINT("comm null", MPI_COMM_NULL);
    PRINT("byte", MPI_BYTE);
    PRINT("type null", MPI_DATATYPE_NULL);
    PRINT("request null", MPI_REQUEST_NULL);
    PRINT("sizeof count", sizeof(MPI_Count));
    PRINT("sizeof displacement", sizeof(MPI_Aint));
    print_ours();
    return 0;
}
