/*
 * A program with a GPU, or with a stand-in of one. It does what its arguments say, one after the other:
 *
 *   begin NAME, end                          a range
 *   launch NAME STREAM, driver NAME STREAM   a kernel, by the runtime or by the driver
 *   late NAME STREAM                         a kernel that ran before those launched before it
 *   many N STREAM                            N kernels, of ten names
 *   graph N STREAM                           a graph of N kernels
 *   copy BYTES STREAM, set BYTES STREAM, ask
 *   take BYTES, give                         memory, and back what was taken last and is still there
 *   pinned BYTES, stray                      of the host; what was taken before anything was told is given back
 *   phase NAME
 *   sync, hold, iteration, sleep MS
 *   start PATH, start_gpu PATH, stop, gpu_start W:U:A:R, gpu_stop, pause WHY, resume
 *   start_later W:U:A:R, stop_later, settle  by a thread
 *   gate 0|1                                 open or shut what MAREY_TEST_CUPTI has wait, see cupti_stand_in.c
 *   counts, is_on, is_settled                printed
 *   storm N                                  three threads with N kernels each, while tracing goes on and off
 *   storm_later N                            the same by orders, also of a fourth thread
 *   thread, fork                             the rest happens in another thread, or in a child and not here
 *   kill, quit                               by SIGKILL, by _exit
 *
 * What marey refuses is printed as "refused: " and its sentence.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stand_in.h"
#include <marey/marey.h>

static char **words;

static const char *next(void)
{
    return *words != NULL ? *words++ : "";
}

static uint32_t number(void)
{
    return (uint32_t)strtoul(next(), NULL, 10);
}

static void check(marey_status status)
{
    if (status != MAREY_OK)
        printf("refused: %s\n", marey_last_error());
}

/* ---- work ---- */

static void do_launch(void)
{
    const char *name = next();
    gpu_launch(name, number(), 8, 128);
}

static void do_driver(void)
{
    const char *name = next();
    gpu_launch_by_driver(name, number());
}

static void do_late(void)
{
    const char *name = next();
    gpu_launch_late(name, number());
}

static void do_many(void)
{
    static const char *const names[] = {"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9"};
    const uint32_t n = number(), stream = number();
    for (uint32_t i = 0; i < n; i++)
        gpu_launch(names[i % 10], stream, 1 + i % 3, 32);
}

static void do_graph(void)
{
    const uint32_t n = number();
    gpu_graph(n, number(), 3);
}

static void do_copy(void)
{
    const uint32_t bytes = number();
    gpu_copy(bytes, number());
}

static void do_set(void)
{
    const uint32_t bytes = number();
    gpu_set(bytes, number());
}

enum { MAX_TAKEN = 256 };
static struct taken {
    uint64_t address, bytes;
} taken[MAX_TAKEN];
static size_t n_taken;

static void do_take(void)
{
    const uint32_t bytes = number();
    if (n_taken == MAX_TAKEN)
        abort();
    taken[n_taken++] = (struct taken){gpu_take(bytes), bytes};
}

static void do_give(void)
{
    if (n_taken == 0)
        abort();
    n_taken--;
    gpu_give(taken[n_taken].address, taken[n_taken].bytes);
}

static void do_pinned(void)
{
    gpu_take_pinned(number());
}

static void do_stray(void)
{
    gpu_give(4096, 65536);
}

static void do_sync(void)
{
    cudaDeviceSynchronize();
}

/* ---- marey ---- */

static void do_begin(void)
{
    marey_push(next());
}

static void do_end(void)
{
    marey_pop();
}

static void do_phase(void)
{
    const char *name = next();
    marey_phase(marey_site_intern(name, strlen(name), "phase", 0, NULL, 0));
}

static void do_iteration(void)
{
    marey_iteration_finish();
}

static void do_start(void)
{
    check(marey_start(&(struct marey_options){.path = next()}));
}

static void do_start_gpu(void)
{
    check(marey_start(&(struct marey_options){.path = next(), .text = "gpu=1"}));
}

static void do_stop(void)
{
    check(marey_stop());
}

static struct marey_gpu_options schedule(void)
{
    struct marey_gpu_options o = {0};
    if (sscanf(next(), "%u:%u:%u:%u", &o.wait, &o.warmup, &o.active, &o.repeat) == 0)
        abort();
    return o;
}

static void do_gpu_start(void)
{
    const struct marey_gpu_options o = schedule();
    check(marey_gpu_start(&o));
}

static void do_start_later(void)
{
    const struct marey_gpu_options o = schedule();
    check(marey_gpu_start_later(&o));
}

static void do_stop_later(void)
{
    marey_gpu_stop_later();
}

static void do_gate(void)
{
    standin_gate_fn *gate = NULL;
    const char *path = getenv("MAREY_CUPTI_LIBRARY");
    void *library = dlopen(path != NULL ? path : "libcupti.so.13", RTLD_NOW);
    if (library != NULL)
        *(void **)&gate = dlsym(library, "marey_test_cupti_gate");
    if (gate == NULL)
        abort();
    gate((int)number());
}

static void do_pause(void)
{
    marey_gpu_pause(next());
}

static void do_resume(void)
{
    check(marey_gpu_resume());
}

static void do_counts(void)
{
    struct marey_gpu_counts c;
    marey_gpu_counts_get(&c);
    printf("kernels %llu copies %llu sets %llu syncs %llu memory %llu calls %llu dropped %llu "
           "incomplete "
           "%llu lost %llu\n",
           (unsigned long long)c.kernels, (unsigned long long)c.copies, (unsigned long long)c.sets,
           (unsigned long long)c.syncs, (unsigned long long)c.memory_operations,
           (unsigned long long)c.calls, (unsigned long long)c.dropped,
           (unsigned long long)c.incomplete, (unsigned long long)c.lost);
}

static void do_is_on(void)
{
    printf("%s\n", marey_gpu_is_on() ? "on" : "off");
}

static void do_is_settled(void)
{
    printf("%s\n", marey_gpu_is_settled() ? "settled" : "pending");
}

/* ---- threads, children, ends ---- */

static void do_all(void);

static void *in_thread(void *ctx)
{
    (void)ctx;
    do_all();
    return NULL;
}

static void do_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
        abort();
}

enum { N_THREADS = 3, N_TURNS = 20 };

static void *launch_many(void *ctx)
{
    const uint32_t *stream_and_n = ctx;
    for (uint32_t i = 0; i < stream_and_n[1]; i++)
        gpu_launch("storm", stream_and_n[0], 8, 128);
    return NULL;
}

static void storm(void (*turn)(int i))
{
    pthread_t threads[N_THREADS];
    uint32_t work[N_THREADS][2];
    const uint32_t n = number();
    for (uint32_t i = 0; i < N_THREADS; i++) {
        work[i][0] = 7 + i;
        work[i][1] = n;
        if (pthread_create(&threads[i], NULL, launch_many, work[i]) != 0)
            abort();
    }
    for (int i = 0; i < N_TURNS; i++)
        turn(i);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void turn_at_once(int i)
{
    (void)i;
    marey_gpu_pause(NULL);
    check(marey_gpu_resume());
    marey_gpu_stop();
    check(marey_gpu_start(NULL));
}

static void do_storm(void)
{
    storm(turn_at_once);
}

/* Every third turn has a pause beside the orders, every fourth waits for them. */
static void turn_later(int i)
{
    marey_gpu_stop_later();
    check(marey_gpu_start_later(NULL));
    if (i % 3 == 0) {
        marey_gpu_pause(NULL);
        check(marey_gpu_resume());
    }
    if (i % 4 == 0)
        marey_gpu_settle();
    marey_gpu_stop_later();
    if (i % 5 == 0)
        marey_gpu_stop();
    check(marey_gpu_start_later(NULL));
}

static void *meddle(void *ctx)
{
    for (int i = 0; i < N_TURNS; i++) {
        marey_gpu_settle();
        marey_gpu_pause(NULL);
        if (marey_gpu_resume() != MAREY_OK)
            return ctx;
    }
    return NULL;
}

static void do_storm_later(void)
{
    pthread_t meddler;
    void *failed;
    if (pthread_create(&meddler, NULL, meddle, words) != 0)
        abort();
    storm(turn_later);
    pthread_join(meddler, &failed);
    if (failed != NULL)
        printf("a pause could not be ended\n");
    marey_gpu_settle();
}

static void do_fork(void)
{
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0)
        return; /* and go on */
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    if (status != 0)
        printf("the child ended with %d\n", status);
    while (*words != NULL)
        words++;
}

static void do_kill(void)
{
    fflush(stdout);
    raise(SIGKILL);
}

static void do_quit(void)
{
    fflush(stdout);
    _exit(0);
}

static void do_sleep(void)
{
    usleep(1000 * number());
}

static const struct {
    const char *word;
    void (*act)(void);
} acts[] = {
    {"begin", do_begin},
    {"end", do_end},
    {"launch", do_launch},
    {"driver", do_driver},
    {"late", do_late},
    {"many", do_many},
    {"graph", do_graph},
    {"copy", do_copy},
    {"set", do_set},
    {"take", do_take},
    {"give", do_give},
    {"pinned", do_pinned},
    {"stray", do_stray},
    {"phase", do_phase},
    {"ask", gpu_ask},
    {"sync", do_sync},
    {"hold", gpu_hold},
    {"start", do_start},
    {"start_gpu", do_start_gpu},
    {"stop", do_stop},
    {"gpu_start", do_gpu_start},
    {"gpu_stop", marey_gpu_stop},
    {"pause", do_pause},
    {"resume", do_resume},
    {"counts", do_counts},
    {"is_on", do_is_on},
    {"is_settled", do_is_settled},
    {"start_later", do_start_later},
    {"stop_later", do_stop_later},
    {"settle", marey_gpu_settle},
    {"gate", do_gate},
    {"storm_later", do_storm_later},
    {"thread", do_thread},
    {"fork", do_fork},
    {"kill", do_kill},
    {"quit", do_quit},
    {"iteration", do_iteration},
    {"sleep", do_sleep},
    {"storm", do_storm},
};

static void do_all(void)
{
    while (*words != NULL) {
        const char *word = next();
        size_t i = 0;
        while (i < sizeof acts / sizeof *acts && strcmp(acts[i].word, word) != 0)
            i++;
        if (i == sizeof acts / sizeof *acts) {
            fprintf(stderr, "what is %s?\n", word);
            exit(98);
        }
        acts[i].act();
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    words = argv + 1;
    do_all();
    return 0;
}
