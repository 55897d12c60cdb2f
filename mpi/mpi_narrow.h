/*
 * What an MPI before version 4 lacks, made of what it has: MPI_Send_c(..., MPI_Count count, ...) by MPI_Send(..., int
 * count, ...). A program asks whether its MPI has such a function by a weak reference to it (mpi4py does), and finds
 * ours; so ours has to work.
 *
 *   MPI_NARROWED(name, n, params, args)     defines narrow_##name, the makeshift of MPI_##name##_c
 *
 * A count that an int cannot hold becomes -1, which MPI refuses in its own words.
 */
#ifndef MAREY_MPI_NARROW_H
#define MAREY_MPI_NARROW_H

#include "mpi_internal.h"

/* Arrays made for one call. */
struct mpi_narrowed {
    int *arrays[4];  /* two of counts and two of displacements, at the most */
    int n_arrays, n; /* how many elements each has */
};

void mpi_narrow_fini(struct mpi_narrowed *narrowed);
int mpi_narrow_one(int64_t value);
/* NULL for NULL, and without memory, which MPI refuses as well. */
const int *mpi_narrow_array(struct mpi_narrowed *narrowed, const int64_t *values);

/* Counts and displacements by their type; all else stays as it is. Whatever the type, each line must compile. */
#define MPI_NARROW(x)                                                                              \
    _Generic((x), int64_t                                                                          \
             : mpi_narrow_one((int64_t)(uintptr_t)(x)), const int64_t *                            \
             : mpi_narrow_array(&narrowed, (const int64_t *)(uintptr_t)(x)), default               \
             : (x))

#define MPI_NARROW_1(x) MPI_NARROW(x)
#define MPI_NARROW_2(x, ...) MPI_NARROW(x), MPI_NARROW_1(__VA_ARGS__)
#define MPI_NARROW_3(x, ...) MPI_NARROW(x), MPI_NARROW_2(__VA_ARGS__)
#define MPI_NARROW_4(x, ...) MPI_NARROW(x), MPI_NARROW_3(__VA_ARGS__)
#define MPI_NARROW_5(x, ...) MPI_NARROW(x), MPI_NARROW_4(__VA_ARGS__)
#define MPI_NARROW_6(x, ...) MPI_NARROW(x), MPI_NARROW_5(__VA_ARGS__)
#define MPI_NARROW_7(x, ...) MPI_NARROW(x), MPI_NARROW_6(__VA_ARGS__)
#define MPI_NARROW_8(x, ...) MPI_NARROW(x), MPI_NARROW_7(__VA_ARGS__)
#define MPI_NARROW_9(x, ...) MPI_NARROW(x), MPI_NARROW_8(__VA_ARGS__)
#define MPI_NARROW_10(x, ...) MPI_NARROW(x), MPI_NARROW_9(__VA_ARGS__)
#define MPI_NARROW_11(x, ...) MPI_NARROW(x), MPI_NARROW_10(__VA_ARGS__)
#define MPI_NARROW_12(x, ...) MPI_NARROW(x), MPI_NARROW_11(__VA_ARGS__)
#define MPI_NARROW_COUNT(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n
#define MPI_NARROW_BY(n) MPI_NARROW_##n
#define MPI_NARROW_BY_(n) MPI_NARROW_BY(n)
#define MPI_NARROW_ALL(...)                                                                        \
    MPI_NARROW_BY_(MPI_NARROW_COUNT(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0))        \
    (__VA_ARGS__)

/* `n` is how many elements arrays have. */
#define MPI_NARROWED(name, n_, params, args)                                                       \
    static int narrow_##name params                                                                \
    {                                                                                              \
        struct mpi_narrowed narrowed = {.n = (n_)};                                                \
        const int rc = MPI_##name(MPI_NARROW_ALL args);                                            \
        mpi_narrow_fini(&narrowed);                                                                \
        return rc;                                                                                 \
    }

#endif
