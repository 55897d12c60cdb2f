/* Lists the processes on this machine that run Python, for `marey top` without arguments. */
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/cli.h"

struct process {
    int pid;
    bool is_readable;
    double cpu_s, age_s;
    char command[100];
};

static size_t read_proc(int pid, const char *name, char *into, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    FILE *const file = fopen(path, "re");
    const size_t n = file != NULL ? fread(into, 1, size - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    into[n] = '\0';
    return n;
}

/* The command line, separated by blanks. */
static bool read_command(struct process *p)
{
    size_t n = read_proc(p->pid, "cmdline", p->command, sizeof p->command);
    while (n > 0 && p->command[n - 1] == '\0')
        n--;
    for (size_t i = 0; i < n; i++)
        if (iscntrl((unsigned char)p->command[i]))
            p->command[i] = ' ';
    return n > 0;
}

static bool is_named_python(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return strncmp(slash != NULL ? slash + 1 : path, "python", 6) == 0;
}

/* Whether it is an interpreter, or a program that embeds one. */
static bool runs_python(struct process *p)
{
    char path[64], line[4096];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", p->pid);
    FILE *const maps = fopen(path, "re");
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) {
        const char *const file = strchr(line, '/');
        p->is_readable = true;
        found = file != NULL && (is_named_python(file) || strstr(file, "/libpython") != NULL);
    }
    if (maps != NULL)
        fclose(maps);
    return found || (!p->is_readable && is_named_python(p->command));
}

static bool read_times(struct process *p)
{
    char text[1024];
    unsigned long long user, system, start;
    struct timespec now;
    read_proc(p->pid, "stat", text, sizeof text);
    const char *const name_end = strrchr(text, ')');
    if (name_end == NULL ||
        sscanf(
            name_end + 1,
            " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu",
            &user, &system, &start) != 3)
        return false;
    const double hz = (double)sysconf(_SC_CLK_TCK);
    clock_gettime(CLOCK_BOOTTIME, &now);
    p->cpu_s = (double)(user + system) / hz;
    p->age_s = (double)now.tv_sec + (double)now.tv_nsec / 1e9 - (double)start / hz;
    return true;
}

static int by_cpu(const void *a, const void *b)
{
    const double x = ((const struct process *)a)->cpu_s, y = ((const struct process *)b)->cpu_s;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Returns how many; the caller frees `*list`. */
static size_t find_processes(struct process **list)
{
    size_t n = 0;
    DIR *const proc = opendir("/proc");
    const struct dirent *entry;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        struct process p = {.pid = atoi(entry->d_name)};
        if (p.pid <= 0 || p.pid == getpid() || !read_command(&p) || !runs_python(&p) ||
            !read_times(&p))
            continue;
        struct process *const more = realloc(*list, (n + 1) * sizeof p);
        if (more == NULL)
            break;
        *list = more;
        more[n++] = p;
    }
    if (proc != NULL)
        closedir(proc);
    return n;
}

int cli_list_processes(void)
{
    struct process *list = NULL;
    const size_t n = find_processes(&list);
    if (n == 0)
        return cli_fail("no running process uses Python; start one, or: marey run python train.py");
    qsort(list, n, sizeof *list, by_cpu);
    printf("    pid   CPU time  running for  command\n");
    for (size_t i = 0; i < n; i++) {
        char cpu[32], age[32];
        printf("%7d %10s %12s  %s%s\n", list[i].pid,
               marey_text_number(list[i].cpu_s * 1e9, MAREY_UNIT_NS, cpu, sizeof cpu),
               marey_text_number(list[i].age_s * 1e9, MAREY_UNIT_NS, age, sizeof age),
               list[i].command, list[i].is_readable ? "" : "  (of another user: needs sudo)");
    }
    printf("\nnext: marey top %d\n", list[0].pid);
    free(list);
    return CLI_FINE;
}
