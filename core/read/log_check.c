/*
 * Checks the logs of a directory together: missing, duplicate and restarted ranks, hosts whose clocks disagree,
 * versions, processes that still record. Each warning names the ranks concerned, or the first few and how many more.
 *
 * Logs of one run have one run id. A launcher that starts each rank separately may give each its own id, so runs of a
 * single rank are treated as parts of one run.
 */
#include "read/internal.h"

enum { MAX_SPANS = 6, MAX_VERSIONS = 8 };

/* ---- lists of ranks ---- */

/* "3", "3 and 5", "3, 5 to 9 and 12 more"; `ranks` are ascending and unique. */
static void put_rank_list(struct marey__buf *text, const int32_t *ranks, size_t n)
{
    size_t n_listed = 0;
    for (size_t i = 0, spans = 0; i < n && spans < MAX_SPANS; spans++) {
        size_t last = i;
        while (last + 1 < n && ranks[last + 1] == ranks[last] + 1)
            last++;
        const bool is_final = last + 1 == n;
        marey__buf_printf(text, "%s%d", i == 0 ? "" : is_final ? " and " : ", ", ranks[i]);
        if (last > i)
            marey__buf_printf(text, "%s%d", last == i + 1 ? (is_final ? " and " : ", ") : " to ",
                              ranks[last]);
        n_listed = i = last + 1;
    }
    if (n_listed < n)
        marey__buf_printf(text, " and %zu more", n - n_listed);
}

/* Add the buffer as a warning of the recording. */
static void warn_text(struct marey__warnings *warnings, struct marey__buf *text)
{
    marey__buf_put(text, "", 1);
    if (text->failed)
        warnings->failed = true;
    else
        marey__warn(warnings, "%s", text->data);
    text->len = 0;
}

/* A process of the program with a rank that is not a DataLoader worker of another. */
static bool is_rank(const struct marey_process *process)
{
    return process->rank >= 0 && process->worker < 0 && process->role[0] == '\0';
}

/* ---- runs ---- */

MAREY__ORDER(by_run_and_rank, struct marey__run_rank,
             MAREY__UP_BY(strcmp(x->run, y->run), 0) MAREY__UP(process->rank) MAREY__UP(begin_ns)
                 MAREY__UP_BY(strcmp(x->process->log_path, y->process->log_path), 0))

/* Joins runs of a single rank into one run, whose id is empty. */
static void join_single_runs(struct marey__run_rank *ranks, size_t n)
{
    for (size_t from = 0, to = 0; from < n; from = to) {
        bool has_several = false;
        while (to < n && strcmp(ranks[to].run, ranks[from].run) == 0)
            has_several |= ranks[to++].process->rank != ranks[from].process->rank;
        for (size_t i = from; i < to && !has_several; i++)
            ranks[i].joined = "";
        for (size_t i = from; i < to && has_several; i++)
            ranks[i].joined = ranks[from].run;
    }
}

MAREY__ORDER(by_joined_run, struct marey__run_rank,
             MAREY__UP_BY(strcmp(x->joined, y->joined), 0) MAREY__UP_BY(by_run_and_rank(x, y), 0))

/* ---- missing ranks ---- */

/* The ranks below `world` without a log in `ranks`. NULL on out of memory. */
static int32_t *find_missing(const struct marey__run_rank *ranks, size_t n, int32_t world,
                             size_t *n_missing)
{
    uint8_t *has MAREY__FREED = marey__calloc((size_t)world, 1);
    int32_t *missing = has != NULL ? marey__calloc((size_t)world, sizeof *missing) : NULL;
    *n_missing = 0;
    for (size_t i = 0; missing != NULL && i < n; i++)
        if (ranks[i].process->rank < world)
            has[ranks[i].process->rank] = 1;
    for (int32_t r = 0; missing != NULL && r < world; r++)
        if (has[r] == 0)
            missing[(*n_missing)++] = r;
    return missing;
}

/*
 * Ranks of one run; a world size above some millions is damage. Imported traces often cover only a few ranks, so
 * missing ones are not reported.
 */
static void check_world(const struct marey__run_rank *ranks, size_t n,
                        struct marey__warnings *warnings)
{
    enum { MAX_WORLD = 1 << 24 };
    int32_t world = 0, least = INT32_MAX;
    if (ranks[0].process->source[0] != '\0')
        return;
    for (size_t i = 0; i < n; i++) {
        const int32_t said = ranks[i].process->world_size;
        world = MAREY__MAX(world, said);
        least = said > 0 ? MAREY__MIN(least, said) : least;
    }
    if (world <= 1 || world > MAX_WORLD)
        return;
    size_t n_missing;
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    int32_t *missing MAREY__FREED = find_missing(ranks, n, world, &n_missing);
    warnings->failed |= missing == NULL;
    if (missing != NULL && n_missing != 0) {
        marey__buf_printf(&text, "Rank%s ", n_missing == 1 ? "" : "s");
        put_rank_list(&text, missing, n_missing);
        marey__buf_printf(
            &text,
            " of %d %s no log here: not recorded, without an event so far, or missing "
            "from a copy. Figures are for the other %zu.",
            world, n_missing == 1 ? "has" : "have", (size_t)world - n_missing);
        warn_text(warnings, &text);
    }
    if (least < world)
        marey__warn(warnings,
                    "Ranks of one run record world sizes of %d and %d: the logs belong to "
                    "different runs, or the run was restarted with another size.",
                    least, world);
}

static void check_worlds(struct marey__run_rank *ranks, size_t n, struct marey__warnings *warnings)
{
    for (size_t from = 0, to = 0; from < n; from = to) {
        while (to < n && strcmp(ranks[to].joined, ranks[from].joined) == 0)
            to++;
        check_world(ranks + from, to - from, warnings);
    }
}

/* ---- versions, and processes that still record ---- */

static void check_versions(const struct marey__checked_logs *all, struct marey__warnings *warnings)
{
    struct {
        const char *version, *path;
        size_t n;
    } seen[MAX_VERSIONS];
    size_t n_seen = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct marey_process *process = all->logs[i];
        size_t k = 0;
        while (k < n_seen && strcmp(seen[k].version, process->version) != 0)
            k++;
        if (process->version[0] == '\0' || k == MAX_VERSIONS)
            continue;
        if (k == n_seen) {
            seen[n_seen].version = process->version;
            seen[n_seen].path = process->log_path;
            seen[n_seen++].n = 0;
        }
        seen[k].n++;
    }
    if (n_seen < 2)
        return;
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_puts(&text, "Logs were written by different versions of marey: ");
    for (size_t k = 0; k < n_seen; k++) {
        marey__buf_printf(&text, "%s%s (%zu log%s, %s%s)", k == 0 ? "" : ", ", seen[k].version,
                          seen[k].n, seen[k].n == 1 ? "" : "s", seen[k].n == 1 ? "" : "such as ",
                          marey__base_name(seen[k].path));
    }
    marey__buf_puts(&text,
                    ". All of them are read; the cost of measuring may differ between them.");
    warn_text(warnings, &text);
}

static void check_running(const struct marey__checked_logs *all, struct marey__warnings *warnings)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    size_t n_running = 0, n_ranks = 0;
    int32_t *ranks MAREY__FREED = marey__calloc(all->n + 1, sizeof *ranks);
    warnings->failed |= ranks == NULL;
    for (size_t i = 0; ranks != NULL && i < all->n; i++) {
        const struct marey_process *process = all->logs[i];
        if (strcmp(process->end, "running") != 0)
            continue;
        n_running++;
        if (is_rank(process) && (n_ranks == 0 || ranks[n_ranks - 1] != process->rank))
            ranks[n_ranks++] = process->rank; /* logs are by rank */
    }
    if (n_running != 0 && all->n > 1) {
        marey__buf_printf(&text, "%zu of %zu processes still record", n_running, all->n);
        if (n_ranks != 0) {
            marey__buf_printf(&text, ", rank%s ", n_ranks == 1 ? "" : "s");
            put_rank_list(&text, ranks, n_ranks);
        }
        marey__buf_puts(&text, ": the data is incomplete; read it again at the end.");
        warn_text(warnings, &text);
    }
}

static void check_files(const struct marey__checked_logs *all, struct marey__warnings *warnings)
{
    if (all->n_broken != 0)
        marey__warn(warnings,
                    "%zu of %zu logs could not be read and %s left out; each is named above. "
                    "Figures are for the others.",
                    all->n_broken, all->n + all->n_broken, all->n_broken == 1 ? "was" : "were");
    if (all->n_empty != 0)
        marey__warn(warnings, "%zu log%s empty: %s.", all->n_empty,
                    all->n_empty == 1 ? " is" : "s are",
                    "about to be written, or its process ended before it wrote anything");
}

/* ---- all checks ---- */

static struct marey__run_rank *list_ranks(const struct marey__checked_logs *all, size_t *n)
{
    struct marey__run_rank *ranks = marey__calloc(all->n + 1, sizeof *ranks);
    *n = 0;
    for (size_t i = 0; ranks != NULL && i < all->n; i++) {
        const struct marey_process *process = all->logs[i];
        if (!is_rank(process))
            continue;
        const uint64_t begin = process->last_ns != 0
                                   ? process->first_ns + (uint64_t)process->mono_to_unix_ns
                                   : process->start_unix_ns;
        const uint64_t length =
            process->last_ns > process->first_ns ? process->last_ns - process->first_ns : 0;
        ranks[(*n)++] = (struct marey__run_rank){process, process->run_id, "", begin, begin + length};
    }
    return ranks;
}

void marey__logs_check(const struct marey__checked_logs *all, struct marey__warnings *warnings)
{
    size_t n;
    check_files(all, warnings);
    struct marey__run_rank *ranks MAREY__FREED = list_ranks(all, &n);
    if (ranks == NULL) {
        warnings->failed = true;
        return;
    }
    qsort(ranks, n, sizeof *ranks, by_run_and_rank);
    join_single_runs(ranks, n);
    marey__check_duplicate_ranks(ranks, n, warnings);
    qsort(ranks, n, sizeof *ranks, by_joined_run);
    check_worlds(ranks, n, warnings);
    marey__check_clocks(ranks, n, warnings);
    check_versions(all, warnings);
    check_running(all, warnings);
}
