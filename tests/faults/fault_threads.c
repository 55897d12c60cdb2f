/* fault_threads RECORDING N: N short threads, eight at a time, record ten ranges each. */
#include <pthread.h>
#include <stdlib.h>

#include "sequence.h"

enum { AT_A_TIME = 8 };

static void *record_ten(void *arg)
{
    (void)arg;
    sequence_ranges(10);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    sequence_start(argv[1], NULL);
    for (int done = 0; done < atoi(argv[2]); done += AT_A_TIME) {
        pthread_t threads[AT_A_TIME];
        for (int i = 0; i < AT_A_TIME; i++)
            pthread_create(&threads[i], NULL, record_ten, NULL);
        for (int i = 0; i < AT_A_TIME; i++)
            pthread_join(threads[i], NULL);
    }
    return marey_stop() == MAREY_OK ? 0 : 1;
}
