/*
 * Memory that grows in a known way, for tests of which growth is called a leak: grow KIND steps|time
 *
 *     steady      a block more each round
 *     stops       steady for the first half, then nothing more
 *     fills       a cache that is full after three quarters
 *     startup     large at first, then nothing more
 *     sawtooth    steady, and all is freed every 16th round
 *     flat        each round frees what it took
 *
 * With "time" the program tells of no steps and takes about 1.6 s.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <marey/marey.h>

enum { ROUNDS = 80, BYTES = 400000 };

static char *volatile held[ROUNDS * 2];
static int n_held;

__attribute__((noinline)) static void planted_growth(void)
{
    held[n_held] = malloc(BYTES);
    memset(held[n_held++], 1, BYTES);
}

static void release(void)
{
    while (n_held > 0)
        free(held[--n_held]);
}

static void grow(const char *kind, int round)
{
    if (strcmp(kind, "steady") == 0 || (strcmp(kind, "stops") == 0 && round < ROUNDS / 2) ||
        (strcmp(kind, "fills") == 0 && round < ROUNDS * 3 / 4) ||
        (strcmp(kind, "startup") == 0 && round < ROUNDS / 5)) {
        planted_growth();
    } else if (strcmp(kind, "sawtooth") == 0) {
        if (round % 16 == 0)
            release();
        planted_growth();
    } else if (strcmp(kind, "flat") == 0) {
        planted_growth();
        release();
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const int has_steps = strcmp(argv[2], "steps") == 0;
    for (int round = 0; round < ROUNDS; round++) {
        grow(argv[1], round);
        usleep(has_steps ? 2000 : 20000);
        if (has_steps)
            marey_iteration_finish();
    }
    return 0;
}
