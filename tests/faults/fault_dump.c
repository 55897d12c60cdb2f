/*
 * fault_dump DIR STEPS HOW
 *
 * Dumps STEPS steps (0: for ever) of three tensors: "small" of 300 floats, "large" of 700,000, "list[0]" of 5. Each element
 * of step s is s. DIR "-" is the recording's. HOW says how it ends or what else it does:
 *
 *   disable   the proper way             exit      return from main without a word
 *   _exit     after all is written       fork      a child dumps as many steps of its own, with numbers from 1000 on
 *   abort     after all is written       trigger   marey_dump_trigger("test") before the end
 *   fsize     files may have 2 MiB, and SIGXFSZ is ignored
 *   wait      all is written, then a line from stdin is waited for
 *
 * Options come by MAREY_OPTIONS. What failed, and the counts, go to stdout.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <marey/dump.h>

enum { SMALL = 300, LARGE = 700000 };

static float numbers[LARGE];

static void add(const char *path, int64_t n)
{
    if (marey_dump_add(path,
                       &(struct marey_tensor){
                           .data = numbers, .dtype = MAREY_F32, .rank = 1, .sizes = &n}) != MAREY_OK)
        printf("%s: %s\n", path, marey_last_error());
}

static void add_to_list(void)
{
    const int64_t n = 5;
    const struct marey_dump_part parts[] = {{.key = "list", .key_len = 4}, {.index = 0}};
    const struct marey_dump_value value = {
        .tensor = {.data = numbers, .dtype = MAREY_F32, .rank = 1, .sizes = &n}};
    if (marey_dump_put(MAREY_DUMP_TENSORS, parts, 2, &value) != MAREY_OK)
        printf("list: %s\n", marey_last_error());
}

static void dump(long n_steps)
{
    for (long i = 0; n_steps == 0 || i < n_steps; i++) {
        for (size_t k = 0; k < LARGE; k++)
            numbers[k] = (float)marey_dump_count();
        add("small", SMALL);
        add("large", LARGE);
        add_to_list();
        memset(numbers, 0, sizeof numbers);
        if (marey_dump_flush(NULL) != MAREY_OK)
            printf("flush: %s\n", marey_last_error());
    }
}

static void write_counts(void)
{
    struct marey_dump_counts c;
    marey_dump_counts_get(&c);
    printf("steps %llu tensors %llu failed %llu dropped %llu stats %llu\n",
           (unsigned long long)c.n_steps, (unsigned long long)c.n_tensors,
           (unsigned long long)c.n_failed, (unsigned long long)c.n_dropped,
           (unsigned long long)c.n_only_stats);
    fflush(stdout);
}

static int be_child(long n_steps)
{
    marey_dump_set_count(1000);
    dump(n_steps);
    const int status = marey_dump_disable() == MAREY_OK ? 0 : 1;
    _exit(status);
}

static int end(const char *how, long n_steps)
{
    int status = 0;
    if (strcmp(how, "exit") == 0)
        return 0;
    if (strcmp(how, "trigger") == 0 && marey_dump_trigger("test") != MAREY_OK)
        printf("trigger: %s\n", marey_last_error());
    if (strcmp(how, "fork") == 0) {
        const pid_t child = fork();
        if (child == 0)
            be_child(n_steps);
        waitpid(child, &status, 0);
    }
    const marey_status st =
        strcmp(how, "_exit") == 0 || strcmp(how, "abort") == 0 || strcmp(how, "wait") == 0
            ? marey_dump_wait()
            : marey_dump_disable();
    if (st != MAREY_OK)
        printf("end: %s\n", marey_last_error());
    write_counts();
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "wait") == 0)
        getchar();
    return status == 0 ? 0 : 3;
}

int main(int argc, char **argv)
{
    const char *how = argc > 3 ? argv[3] : "";
    if (strcmp(how, "fsize") == 0) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){2 << 20, 2 << 20});
    }
    const char *dir = argc > 1 && strcmp(argv[1], "-") != 0 ? argv[1] : NULL;
    if (argc < 4 || marey_dump_enable(&(struct marey_dump_options){.dir = dir}) != MAREY_OK) {
        fprintf(stderr, "%s\n", argc < 4 ? "fault_dump DIR STEPS HOW" : marey_last_error());
        return 2;
    }
    const long n_steps = atol(argv[2]);
    dump(n_steps);
    return end(how, n_steps);
}
