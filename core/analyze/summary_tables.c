/* The summary's tables, from what was merged. Each has its columns beside the function that fills it. */
#include <inttypes.h>
#include <string.h>

#include "analyze/analyze_internal.h"

struct making {
    const struct kymo__merge *merge;
    const char *filter;
    kymo_recording *const *recordings;
    size_t n_recordings;
    const struct kymo_cost *cost;
};

/* ---- cells ---- */

static void put_string(kymo_table *table, const char *text)
{
    kymo_table_text(table, text, strlen(text));
}

static void put_name(kymo_table *table, const struct making *m, uint32_t name)
{
    kymo_table_text(table, m->merge->names.names[name].text, m->merge->names.names[name].len);
}

static void put_rank(kymo_table *table, const struct kymo_process *process)
{
    if (process->rank < 0)
        kymo_table_null(table);
    else
        kymo_table_i64(table, process->rank);
}

static void put_share(kymo_table *table, uint64_t part_ns, uint64_t whole_ns)
{
    if (whole_ns == 0)
        kymo_table_null(table);
    else
        kymo_table_f64(table, (double)part_ns / (double)whole_ns);
}

static bool is_wanted(const struct making *m, uint32_t name)
{
    const struct kymo__name *n = &m->merge->names.names[name];
    return kymo__name_matches(m->filter, n->text, n->len);
}

static uint64_t duration_of(const struct kymo_process *process)
{
    return process->last_ns > process->first_ns ? process->last_ns - process->first_ns : 0;
}

static void sort_by(kymo_table *table, const char *column, int descending)
{
    kymo_table_sort(table, (size_t)kymo_table_find(table, column), descending);
}

/* ---- ranges and async ranges ---- */

#define NAME_COLUMN {"name", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE}
#define RANK_COLUMN {"rank", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE}
#define PID_COLUMN {"pid", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE}
#define COUNT_COLUMN {"count", NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT}
#define NS_COLUMN(name, title) {name, title, KYMO_TYPE_U64, KYMO_UNIT_NS}
#define SHARE_COLUMN {"share", NULL, KYMO_TYPE_F64, KYMO_UNIT_SHARE}

static const struct kymo_column range_columns[] = {
    NAME_COLUMN,
    COUNT_COLUMN,
    NS_COLUMN("total_ns", "total"),
    NS_COLUMN("self_ns", "self"),
    NS_COLUMN("mean_ns", "mean"),
    NS_COLUMN("min_ns", "min"),
    NS_COLUMN("p50_ns", "median"),
    NS_COLUMN("p90_ns", "p90"),
    NS_COLUMN("p99_ns", "p99"),
    NS_COLUMN("max_ns", "max"),
    SHARE_COLUMN,
    {"threads", NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    {"processes", "procs", KYMO_TYPE_U64, KYMO_UNIT_COUNT},
};

static void put_stats(kymo_table *table, const struct making *m, uint32_t name, const struct kymo__name_stats *stats,
                      bool is_async)
{
    const struct kymo__sketch *calls = &stats->calls;
    put_name(table, m, name);
    kymo_table_u64(table, calls->count);
    kymo_table_u64(table, stats->total_ns);
    kymo_table_u64(table, stats->self_ns);
    kymo_table_u64(table, (calls->sum + calls->count / 2) / calls->count);
    kymo_table_u64(table, calls->min);
    kymo_table_u64(table, kymo__sketch_quantile(calls, 0.5));
    kymo_table_u64(table, kymo__sketch_quantile(calls, 0.9));
    kymo_table_u64(table, kymo__sketch_quantile(calls, 0.99));
    kymo_table_u64(table, calls->max);
    put_share(table, stats->total_ns, m->cost->program_ns);
    if (is_async) /* it may begin on one thread and end on another */
        kymo_table_null(table);
    else
        kymo_table_u64(table, stats->n_threads);
    kymo_table_u64(table, stats->n_processes);
}

static void fill_stats(kymo_table *table, const struct making *m, const struct kymo__name_stats *stats, bool is_async)
{
    for (uint32_t name = 0; name < m->merge->n_stats; name++)
        if (stats[name].calls.count != 0 && is_wanted(m, name))
            put_stats(table, m, name, &stats[name], is_async);
    sort_by(table, "name", 0);
    sort_by(table, "total_ns", 1);
}

static kymo_status fill_ranges(kymo_table *table, const struct making *m)
{
    fill_stats(table, m, m->merge->ranges, false);
    return KYMO_OK;
}

static kymo_status fill_async(kymo_table *table, const struct making *m)
{
    fill_stats(table, m, m->merge->async, true);
    return KYMO_OK;
}

/* ---- the tree ---- */

static const struct kymo_column tree_columns[] = {
    {"depth", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    NAME_COLUMN,
    COUNT_COLUMN,
    NS_COLUMN("total_ns", "total"),
    NS_COLUMN("self_ns", "self"),
    SHARE_COLUMN,
};

/* A node as it is put in order: below its parent, heaviest first. */
struct placed {
    uint64_t total_ns;
    uint32_t node, parent, name;
};

static int by_parent_and_weight(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent > y->parent ? 1 : -1;
    if (x->total_ns != y->total_ns)
        return x->total_ns < y->total_ns ? 1 : -1;
    return (x->name > y->name) - (x->name < y->name);
}

static void put_node(kymo_table *table, const struct making *m, const struct kymo__node *node)
{
    kymo_table_u64(table, node->depth - 1);
    put_name(table, m, node->name);
    kymo_table_u64(table, node->count);
    kymo_table_u64(table, node->total_ns);
    kymo_table_u64(table, node->self_ns);
    put_share(table, node->total_ns, m->cost->program_ns);
}

/* Nodes that were counted and pass the filter, or that lead to one that does, in order. */
static size_t place_nodes(const struct making *m, struct placed *placed, uint8_t *keep)
{
    const struct kymo__tree *tree = &m->merge->tree;
    for (size_t i = tree->n; i-- > 1;) {
        keep[i] |= tree->nodes[i].count != 0 && is_wanted(m, tree->nodes[i].name);
        keep[tree->nodes[i].parent] |= keep[i];
    }
    size_t n = 0;
    for (size_t i = 1; i < tree->n; i++) {
        const struct kymo__node *node = &tree->nodes[i];
        if (keep[i])
            placed[n++] = (struct placed){node->total_ns, (uint32_t)i, node->parent, node->name};
    }
    qsort(placed, n, sizeof *placed, by_parent_and_weight);
    return n;
}

/*
 * Depth first without recursion: `next[node]` is the place of the child to be drawn next, and a node is left when that
 * place holds somebody else's child.
 */
static void draw_tree(kymo_table *table, const struct making *m, const struct placed *placed, size_t n,
                      uint32_t *next)
{
    const struct kymo__tree *tree = &m->merge->tree;
    memset(next, 0xff, tree->n * sizeof *next);
    for (size_t i = n; i-- > 0;)
        next[placed[i].parent] = (uint32_t)i;
    for (uint32_t at = 0;;) {
        const uint32_t child = next[at];
        if (child < n && placed[child].parent == at) {
            next[at]++;
            at = placed[child].node;
            put_node(table, m, &tree->nodes[at]);
        } else if (at == 0) {
            return;
        } else {
            at = tree->nodes[at].parent;
        }
    }
}

static kymo_status fill_tree(kymo_table *table, const struct making *m)
{
    const size_t n_nodes = m->merge->tree.n;
    struct placed *placed = kymo__calloc(n_nodes, sizeof *placed);
    uint8_t *keep = kymo__calloc(n_nodes, sizeof *keep);
    uint32_t *next = kymo__calloc(n_nodes, sizeof *next);
    const bool has_memory = placed != NULL && keep != NULL && next != NULL;
    if (has_memory)
        draw_tree(table, m, placed, place_nodes(m, placed, keep), next);
    kymo__free(placed);
    kymo__free(keep);
    kymo__free(next);
    return has_memory ? KYMO_OK : kymo__fail(KYMO_ENOMEM, "no memory for the call tree");
}

/* ---- threads, ranks, open ranges ---- */

static const struct kymo_column thread_columns[] = {
    RANK_COLUMN,
    PID_COLUMN,
    {"tid", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE},
    {"thread", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    NAME_COLUMN,
    COUNT_COLUMN,
    NS_COLUMN("total_ns", "total"),
    NS_COLUMN("self_ns", "self"),
    SHARE_COLUMN,
};

static kymo_status fill_threads(kymo_table *table, const struct making *m)
{
    for (size_t i = 0; i < m->merge->threads.n; i++) {
        const struct kymo__name_row *row = &m->merge->threads.rows[i];
        const struct kymo_process *process = m->merge->processes[row->process];
        if (!is_wanted(m, row->name))
            continue;
        put_rank(table, process);
        kymo_table_i64(table, process->pid);
        kymo_table_i64(table, row->lane->tid);
        put_string(table, row->lane->name);
        put_name(table, m, row->name);
        kymo_table_u64(table, row->count);
        kymo_table_u64(table, row->total_ns);
        kymo_table_u64(table, row->self_ns);
        put_share(table, row->total_ns, duration_of(process));
    }
    return KYMO_OK;
}

static const struct kymo_column rank_columns[] = {
    RANK_COLUMN, PID_COLUMN, NAME_COLUMN, COUNT_COLUMN, NS_COLUMN("total_ns", "total"), NS_COLUMN("self_ns", "self"),
};

static kymo_status fill_ranks(kymo_table *table, const struct making *m)
{
    for (size_t i = 0; i < m->merge->ranks.n; i++) {
        const struct kymo__name_row *row = &m->merge->ranks.rows[i];
        const struct kymo_process *process = m->merge->processes[row->process];
        if (!is_wanted(m, row->name))
            continue;
        put_rank(table, process);
        kymo_table_i64(table, process->pid);
        put_name(table, m, row->name);
        kymo_table_u64(table, row->count);
        kymo_table_u64(table, row->total_ns);
        kymo_table_u64(table, row->self_ns);
    }
    return KYMO_OK;
}

static const struct kymo_column open_columns[] = {
    RANK_COLUMN, PID_COLUMN, {"thread", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE}, NAME_COLUMN,
    NS_COLUMN("since_ns", "since"),
};

static kymo_status fill_open(kymo_table *table, const struct making *m)
{
    for (size_t i = 0; i < m->merge->n_open; i++) {
        const struct kymo__open_row *row = &m->merge->open[i];
        const struct kymo_process *process = m->merge->processes[row->process];
        put_rank(table, process);
        kymo_table_i64(table, process->pid);
        put_string(table, row->lane->name);
        put_name(table, m, row->name);
        kymo_table_u64(table, row->since_ns);
    }
    return KYMO_OK;
}

/* ---- processes ---- */

static const struct kymo_column process_columns[] = {
    RANK_COLUMN,
    PID_COLUMN,
    {"host", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"command", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"start_unix_ns", "start", KYMO_TYPE_U64, KYMO_UNIT_UNIX_NS},
    NS_COLUMN("duration_ns", "duration"),
    {"events", NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    {"lost_events", "lost", KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    {"event_cost_ns", "per event", KYMO_TYPE_F64, KYMO_UNIT_NS},
    NS_COLUMN("flush_cpu_ns", "flush"),
    {"log_bytes", "log", KYMO_TYPE_U64, KYMO_UNIT_BYTES},
    {"clock", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"end", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
};

static kymo_status fill_processes(kymo_table *table, const struct making *m)
{
    for (size_t i = 0; i < m->merge->n_processes; i++) {
        const struct kymo_process *process = m->merge->processes[i];
        put_rank(table, process);
        kymo_table_i64(table, process->pid);
        put_string(table, process->host);
        put_string(table, process->command);
        kymo_table_u64(table, process->start_unix_ns);
        kymo_table_u64(table, duration_of(process));
        kymo_table_u64(table, process->n_events);
        kymo_table_u64(table, process->lost_events);
        kymo_table_f64(table, process->event_cost_ns);
        kymo_table_u64(table, process->flush_cpu_ns);
        kymo_table_u64(table, process->log_bytes);
        put_string(table, process->clock);
        put_string(table, process->end);
    }
    return KYMO_OK;
}

/* ---- counters, marks, sites ---- */

static const struct kymo_column counter_columns[] = {
    NAME_COLUMN,
    COUNT_COLUMN,
    {"min", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
    {"mean", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
    {"max", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
    {"last", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
};

static kymo_status fill_counters(kymo_table *table, const struct making *m)
{
    for (uint32_t name = 0; name < m->merge->n_stats; name++) {
        const struct kymo__counter *counter = &m->merge->counters[name];
        if (counter->count == 0 || !is_wanted(m, name))
            continue;
        put_name(table, m, name);
        kymo_table_u64(table, counter->count);
        kymo_table_f64(table, counter->min);
        kymo_table_f64(table, counter->sum / (double)counter->count);
        kymo_table_f64(table, counter->max);
        kymo_table_f64(table, counter->last);
    }
    sort_by(table, "name", 0);
    return KYMO_OK;
}

static const struct kymo_column mark_columns[] = {NAME_COLUMN, COUNT_COLUMN};

static kymo_status fill_marks(kymo_table *table, const struct making *m)
{
    for (uint32_t name = 0; name < m->merge->n_stats; name++) {
        if (m->merge->marks[name] == 0 || !is_wanted(m, name))
            continue;
        put_name(table, m, name);
        kymo_table_u64(table, m->merge->marks[name]);
    }
    sort_by(table, "name", 0);
    sort_by(table, "count", 1);
    return KYMO_OK;
}

static const struct kymo_column site_columns[] = {
    NAME_COLUMN,
    {"category", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"domain", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"color", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    {"file", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"line", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
};

/* Everything that makes a site one, in one text: processes of one program share theirs. */
static void site_key(struct kymo__buf *key, const struct kymo_site_info *site)
{
    key->len = 0;
    kymo__buf_put(key, site->name, site->name_len);
    kymo__buf_put(key, "", 1);
    kymo__buf_put(key, site->category, strlen(site->category) + 1);
    kymo__buf_put(key, site->domain, strlen(site->domain) + 1);
    kymo__buf_put(key, site->file, strlen(site->file) + 1);
    kymo__buf_put(key, &site->line, sizeof site->line);
    kymo__buf_put(key, &site->color, sizeof site->color);
}

static void put_site(kymo_table *table, const struct kymo_site_info *site)
{
    kymo_table_text(table, site->name, site->name_len);
    put_string(table, site->category);
    put_string(table, site->domain);
    kymo_table_u64(table, site->color);
    put_string(table, site->file);
    kymo_table_u64(table, site->line);
}

struct seen_sites {
    struct kymo__names names;
    struct kymo__arena keys;
    struct kymo__buf key;
};

static bool put_new_sites(kymo_table *table, const struct making *m, const kymo_recording *recording, size_t process,
                          struct seen_sites *seen)
{
    const uint32_t n = kymo_recording_process(recording, process)->n_sites;
    for (uint32_t id = 1; id <= n; id++) {
        const struct kymo_site_info *site = kymo_recording_site(recording, process, id);
        if (site->name_len == 0 || !kymo__name_matches(m->filter, site->name, site->name_len))
            continue;
        site_key(&seen->key, site);
        const char *key = seen->key.failed ? NULL : kymo__arena_text(&seen->keys, seen->key.data, seen->key.len);
        if (key == NULL)
            return false;
        const size_t n_before = seen->names.n;
        if (kymo__names_number(&seen->names, key, seen->key.len) == KYMO__NO_NAME)
            return false;
        if (seen->names.n != n_before)
            put_site(table, site);
    }
    return true;
}

static kymo_status fill_sites(kymo_table *table, const struct making *m)
{
    struct seen_sites seen = {0};
    bool done = true;
    for (size_t r = 0; done && r < m->n_recordings; r++)
        for (size_t p = 0; done && p < kymo_recording_n_processes(m->recordings[r]); p++)
            done = put_new_sites(table, m, m->recordings[r], p, &seen);
    kymo__names_fini(&seen.names);
    kymo__arena_fini(&seen.keys);
    kymo__buf_fini(&seen.key);
    return done ? KYMO_OK : kymo__fail(KYMO_ENOMEM, "no memory for the table of sites");
}

/* ---- warnings ---- */

static const struct kymo_column warning_columns[] = {{"text", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE}};

/* "N THING[s] REST", the plural where it is one. */
static void put_count(kymo_table *table, uint64_t n, const char *thing, const char *rest)
{
    struct kymo__buf text = {0};
    if (n == 0)
        return;
    kymo__buf_printf(&text, "%" PRIu64 " %s%s %s", n, thing, n == 1 ? "" : "s", rest);
    if (text.failed)
        put_string(table, rest);
    else
        kymo_table_text(table, text.data, text.len);
    kymo__buf_fini(&text);
}

/* A process's own sentences, one per line; which process is said when there are several. */
static void put_notes(kymo_table *table, const struct kymo_process *process, bool is_alone)
{
    for (const char *line = process->note; *line != '\0';) {
        const size_t len = strcspn(line, "\n");
        struct kymo__buf text = {0};
        if (!is_alone)
            kymo__buf_printf(&text, "Process %" PRId64 ": ", process->pid);
        kymo__buf_put(&text, line, len);
        if (len != 0)
            kymo_table_text(table, text.failed ? line : text.data, text.failed ? len : text.len);
        kymo__buf_fini(&text);
        line += len + (line[len] == '\n');
    }
}

static kymo_status fill_warnings(kymo_table *table, const struct making *m)
{
    for (size_t r = 0; r < m->n_recordings; r++) {
        const char *sentence;
        for (size_t i = 0; (sentence = kymo_recording_warning(m->recordings[r], i)) != NULL; i++)
            put_string(table, sentence);
    }
    for (size_t p = 0; p < m->merge->n_processes; p++)
        put_notes(table, m->merge->processes[p], m->merge->n_processes == 1);
    put_count(table, m->merge->n_cut_off, "range", "had begun when events were lost; how long is not known.");
    put_count(table, m->merge->n_unwound, "range", "left open inside another, ended with that one.");
    put_count(table, m->merge->n_orphans, "end", "without a begin: left out.");
    put_count(table, m->merge->n_async_dropped, "end", "of an async range had to go unmatched: too many wait for their other end.");
    return KYMO_OK;
}

/* ---- all of them ---- */

static const struct table_kind {
    const char *name;
    const struct kymo_column *columns;
    size_t n_columns;
    kymo_status (*fill)(kymo_table *table, const struct making *m);
} kinds[KYMO__N_TABLES] = {
#define KIND(name, columns, fill) {name, columns, KYMO__COUNT_OF(columns), fill}
    [KYMO__TABLE_RANGES] = KIND("ranges", range_columns, fill_ranges),
    [KYMO__TABLE_TREE] = KIND("tree", tree_columns, fill_tree),
    [KYMO__TABLE_THREADS] = KIND("threads", thread_columns, fill_threads),
    [KYMO__TABLE_RANKS] = KIND("ranks", rank_columns, fill_ranks),
    [KYMO__TABLE_PROCESSES] = KIND("processes", process_columns, fill_processes),
    [KYMO__TABLE_ASYNC] = KIND("async", range_columns, fill_async),
    [KYMO__TABLE_COUNTERS] = KIND("counters", counter_columns, fill_counters),
    [KYMO__TABLE_MARKS] = KIND("marks", mark_columns, fill_marks),
    [KYMO__TABLE_OPEN] = KIND("open", open_columns, fill_open),
    [KYMO__TABLE_SITES] = KIND("sites", site_columns, fill_sites),
    [KYMO__TABLE_WARNINGS] = KIND("warnings", warning_columns, fill_warnings),
#undef KIND
};

kymo_status kymo__summary_make_tables(kymo_summary *summary, const struct kymo__merge *merge,
                                      kymo_recording *const *recordings, size_t n,
                                      const struct kymo_summary_options *options)
{
    const struct making making = {merge, options->filter, recordings, n, &summary->cost};
    for (size_t t = 0; t < KYMO__N_TABLES; t++) {
        KYMO_TRY(kymo_table_create(kinds[t].name, kinds[t].columns, kinds[t].n_columns, &summary->tables[t]));
        KYMO_TRY(kinds[t].fill(summary->tables[t], &making));
        KYMO_TRY(kymo_table_status(summary->tables[t]));
    }
    return KYMO_OK;
}
