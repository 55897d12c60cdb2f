/* The results as tables. Each is made under the lock from what stands there at that moment. */
#include <string.h>

#include "stopwatch/stopwatch_internal.h"

#define TEXT_OF(column)                                                                            \
    {                                                                                              \
        column, NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE                                               \
    }
#define COUNT_OF(column)                                                                           \
    {                                                                                              \
        column, NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT                                               \
    }
#define CPU_OF(column)                                                                             \
    {                                                                                              \
        column, NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE                                                \
    } /* 1.0: one processor */
#define NS_OF(column, title)                                                                       \
    {                                                                                              \
        column, title, KYMO_TYPE_U64, KYMO_UNIT_NS                                                 \
    }
#define NS_F64_OF(column, title)                                                                   \
    {                                                                                              \
        column, title, KYMO_TYPE_F64, KYMO_UNIT_NS                                                 \
    }
#define STATS_COLUMNS                                                                              \
    NS_OF("total_ns", "total"), NS_F64_OF("mean_ns", "mean"), NS_F64_OF("std_ns", "std"),          \
        NS_OF("min_ns", "min"), NS_OF("p50_ns", "p50"), NS_OF("p90_ns", "p90"),                    \
        NS_OF("p99_ns", "p99"), NS_OF("max_ns", "max")

enum { MAX_COLUMNS = 14 };
static const struct {
    const char *name;
    kymo_status (*put)(kymo_table *table, double tick_ns);
    struct kymo_column columns[MAX_COLUMNS]; /* up to the first without a name */
} tables[] = {
    {"intervals",
     kymo__watch_put_intervals,
     {TEXT_OF("name"),
      COUNT_OF("threads"),
      COUNT_OF("count"),
      STATS_COLUMNS,
      NS_OF("self_ns", "self"),
      {"running", NULL, KYMO_TYPE_BOOL, KYMO_UNIT_NONE}}},
    {"iterations",
     kymo__watch_put_iterations,
     {TEXT_OF("name"),
      COUNT_OF("iterations"),
      STATS_COLUMNS,
      {"share", NULL, KYMO_TYPE_F64, KYMO_UNIT_SHARE}}},
    {"iteration",
     kymo__watch_put_iteration,
     {COUNT_OF("iterations"),
      STATS_COLUMNS,
      {"samples", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
      {"samples_per_s", "samples/s", KYMO_TYPE_F64, KYMO_UNIT_NONE}}},
    {"threads",
     kymo__watch_put_threads,
     {TEXT_OF("name"),
      TEXT_OF("thread"),
      {"tid", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE},
      COUNT_OF("count"),
      STATS_COLUMNS,
      NS_OF("self_ns", "self"),
      CPU_OF("thread_cpu")}},
    {"gpu",
     kymo__watch_put_gpu,
     {TEXT_OF("name"), COUNT_OF("count"), STATS_COLUMNS, COUNT_OF("pending")}},
    {"usage",
     kymo__watch_put_usage,
     {TEXT_OF("name"),
      CPU_OF("thread_cpu"),
      CPU_OF("process_cpu"),
      CPU_OF("tree_cpu"),
      CPU_OF("machine_cpu"),
      COUNT_OF("context_switches"),
      COUNT_OF("involuntary_switches"),
      COUNT_OF("page_faults"),
      COUNT_OF("major_faults"),
      {"rss_bytes", "rss", KYMO_TYPE_I64, KYMO_UNIT_BYTES}}},
    {"once",
     kymo__watch_put_once,
     {TEXT_OF("name"), NS_OF("total_ns", "total"), {"running", NULL, KYMO_TYPE_BOOL, KYMO_UNIT_NONE}}},
    {"series",
     kymo__watch_put_series,
     {COUNT_OF("iteration"), TEXT_OF("name"), NS_OF("total_ns", "total")}},
    {"outliers",
     kymo__watch_put_outliers,
     {COUNT_OF("iteration"),
      TEXT_OF("name"),
      NS_OF("total_ns", "total"),
      NS_OF("median_ns", "median"),
      {"times", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE}}},
    {"misuse", kymo__watch_put_misuse, {TEXT_OF("name"), TEXT_OF("what"), COUNT_OF("count")}},
};

static kymo_status unknown_table(const char *name)
{
    char list[256];
    size_t len = 0;
    for (size_t i = 0; i < KYMO__COUNT_OF(tables); i++)
        kymo__append(list, sizeof list, &len, "%s%s", i > 0 ? ", " : "", tables[i].name);
    return kymo__fail(KYMO_EINVAL, "the stopwatch has no table '%s'; the tables are %s",
                      name != NULL ? name : "", list);
}

static kymo_status make(size_t which, kymo_table **out)
{
    size_t n = 0;
    while (n < MAX_COLUMNS && tables[which].columns[n].name != NULL)
        n++;
    kymo_table *table;
    KYMO_TRY(kymo_table_create(tables[which].name, tables[which].columns, n, &table));
    kymo__watch_gpu_collect();
    kymo__watch_lock();
    kymo_status st = tables[which].put(table, kymo__watch_tick_ns());
    kymo__watch_unlock();
    if (st == KYMO_OK)
        st = kymo_table_status(table);
    if (st != KYMO_OK) {
        kymo_table_destroy(table);
        return st;
    }
    *out = table;
    return KYMO_OK;
}

kymo_status kymo_stopwatch_table(const char *name, kymo_table **out)
{
    for (size_t i = 0; name != NULL && i < KYMO__COUNT_OF(tables); i++)
        if (strcmp(name, tables[i].name) == 0)
            return make(i, out);
    return unknown_table(name);
}
