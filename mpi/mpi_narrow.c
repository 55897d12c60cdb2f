/* Counts of 64 bits as ints, for calls that an older MPI has with ints only. */
#include <limits.h>
#include <stdlib.h>

#include "mpi_narrow.h"

void mpi_narrow_fini(struct mpi_narrowed *narrowed)
{
    for (int i = 0; i < narrowed->n_arrays; i++)
        free(narrowed->arrays[i]);
}

int mpi_narrow_one(int64_t value)
{
    return value > INT_MAX || value < INT_MIN ? -1 : (int)value;
}

const int *mpi_narrow_array(struct mpi_narrowed *narrowed, const int64_t *values)
{
    const size_t n = narrowed->n > 0 ? (size_t)narrowed->n : 1;
    int *array = values != NULL ? malloc(n * sizeof *array) : NULL;
    if (array == NULL)
        return NULL;
    for (int i = 0; i < narrowed->n; i++)
        array[i] = mpi_narrow_one(values[i]);
    narrowed->arrays[narrowed->n_arrays++] = array;
    return array;
}
