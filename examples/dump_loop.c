/*
 * Did a change alter the numbers, and where first? A loop with three stages dumps their results;
 * two runs are then compared.
 *
 *     cc -O2 dump_loop.c $(pkg-config --cflags --libs marey) -lm -o dump_loop
 *     ./dump_loop before
 *     ./dump_loop after 1        with a planted bug: from step 3 on a column is left out
 *     marey diff after before    names the step, the tensor and the element that differ first
 *
 * Without marey_dump_enable() an add costs a load and a branch.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <marey/dump.h>
#include <marey/range.h>

enum { ROWS = 64, COLUMNS = 256, STEPS = 6 };

struct state {
    float x[ROWS][COLUMNS];
    float sums[ROWS];
    double loss;
};

/* Print errors and continue: a dump must not end the program. */
static void check(marey_status status)
{
    if (status != MAREY_OK)
        fprintf(stderr, "dump_loop: %s\n", marey_last_error());
}

static void add(const char *path, const void *data, enum marey_dtype dtype, uint32_t rank,
                const int64_t *sizes)
{
    check(marey_dump_add(
        path, &(struct marey_tensor){.data = data, .dtype = dtype, .rank = rank, .sizes = sizes}));
}

static void stretch(struct state *s, int step)
{
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < COLUMNS; k++)
            s->x[i][k] = sinf((float)(i + 1) * 0.1f + (float)(k * step) * 0.01f);
}

/* The bug skips the last column. */
static void reduce(struct state *s, int has_bug)
{
    for (int i = 0; i < ROWS; i++) {
        s->sums[i] = 0;
        for (int k = 0; k < COLUMNS - has_bug; k++)
            s->sums[i] += s->x[i][k];
    }
}

static void judge(struct state *s)
{
    s->loss = 0;
    for (int i = 0; i < ROWS; i++)
        s->loss += (double)s->sums[i] * (double)s->sums[i];
}

int main(int argc, char **argv)
{
    static struct state s;
    static const int64_t matrix[] = {ROWS, COLUMNS}, rows[] = {ROWS};
    const int has_bug = argc > 2 && strtol(argv[2], NULL, 10) != 0;

    check(marey_dump_enable(&(struct marey_dump_options){.dir = argc > 1 ? argv[1] : "dumps"}));
    for (int step = 0; step < STEPS; step++) {
        MAREY_SCOPE("step"); /* for `marey run` */
        stretch(&s, step);
        add("stretch.out", s.x, MAREY_F32, 2, matrix);
        reduce(&s, has_bug && step >= 3);
        add("reduce.out", s.sums, MAREY_F32, 1, rows);
        judge(&s);
        add("loss", &s.loss, MAREY_F64, 0, NULL);
        check(marey_dump_flush(NULL)); /* ends the step */
    }
    check(marey_dump_disable()); /* writes everything */

    struct marey_dump_counts counts;
    marey_dump_counts_get(&counts);
    printf("%llu steps, %llu tensors, %llu bytes\n", (unsigned long long)counts.n_steps,
           (unsigned long long)counts.n_tensors, (unsigned long long)counts.n_bytes);
    return 0;
}
