/* The results as tables. Each is made under the lock from what stands there at that moment. */
#include <string.h>

#include "instrument/stopwatch/internal.h"

#define TEXT_OF(column)                                                                            \
    {                                                                                              \
        column, NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE                                             \
    }
#define COUNT_OF(column)                                                                           \
    {                                                                                              \
        column, NULL, MAREY_TYPE_U64, MAREY_UNIT_COUNT                                             \
    }
#define CPU_OF(column)                                                                             \
    {                                                                                              \
        column, NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE                                              \
    } /* 1.0: one processor */
#define NS_OF(column, title)                                                                       \
    {                                                                                              \
        column, title, MAREY_TYPE_U64, MAREY_UNIT_NS                                               \
    }
#define NS_F64_OF(column, title)                                                                   \
    {                                                                                              \
        column, title, MAREY_TYPE_F64, MAREY_UNIT_NS                                               \
    }
#define STATS_COLUMNS                                                                              \
    NS_OF("total_ns", "total"), NS_F64_OF("mean_ns", "mean"), NS_F64_OF("std_ns", "std"),          \
        NS_OF("min_ns", "min"), NS_OF("p50_ns", "p50"), NS_OF("p90_ns", "p90"),                    \
        NS_OF("p99_ns", "p99"), NS_OF("max_ns", "max")

enum { MAX_COLUMNS = 14 };
static const struct {
    const char *name;
    marey_status (*put)(marey_table *table, double tick_ns);
    struct marey_column columns[MAX_COLUMNS]; /* up to the first without a name */
} tables[] = {
    {"intervals",
     marey__stopwatch_put_intervals,
     {TEXT_OF("name"),
      COUNT_OF("threads"),
      COUNT_OF("count"),
      STATS_COLUMNS,
      NS_OF("self_ns", "self"),
      {"running", NULL, MAREY_TYPE_BOOL, MAREY_UNIT_NONE}}},
    {"iterations",
     marey__stopwatch_put_iterations,
     {TEXT_OF("name"),
      COUNT_OF("iterations"),
      STATS_COLUMNS,
      {"share", NULL, MAREY_TYPE_F64, MAREY_UNIT_SHARE}}},
    {"iteration",
     marey__stopwatch_put_iteration,
     {COUNT_OF("iterations"),
      STATS_COLUMNS,
      {"samples", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE},
      {"samples_per_s", "samples/s", MAREY_TYPE_F64, MAREY_UNIT_NONE}}},
    {"threads",
     marey__stopwatch_put_threads,
     {TEXT_OF("name"),
      TEXT_OF("thread"),
      {"tid", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},
      COUNT_OF("count"),
      STATS_COLUMNS,
      NS_OF("self_ns", "self"),
      CPU_OF("thread_cpu")}},
    {"gpu",
     marey__stopwatch_put_gpu,
     {TEXT_OF("name"), COUNT_OF("count"), STATS_COLUMNS, COUNT_OF("pending")}},
    {"usage",
     marey__stopwatch_put_usage,
     {TEXT_OF("name"),
      CPU_OF("thread_cpu"),
      CPU_OF("process_cpu"),
      CPU_OF("tree_cpu"),
      CPU_OF("machine_cpu"),
      COUNT_OF("context_switches"),
      COUNT_OF("involuntary_switches"),
      COUNT_OF("page_faults"),
      COUNT_OF("major_faults"),
      {"rss_bytes", "rss", MAREY_TYPE_I64, MAREY_UNIT_BYTES}}},
    {"once",
     marey__stopwatch_put_once,
     {TEXT_OF("name"), NS_OF("total_ns", "total"), {"running", NULL, MAREY_TYPE_BOOL, MAREY_UNIT_NONE}}},
    {"series",
     marey__stopwatch_put_series,
     {COUNT_OF("iteration"), TEXT_OF("name"), NS_OF("total_ns", "total")}},
    {"outliers",
     marey__stopwatch_put_outliers,
     {COUNT_OF("iteration"),
      TEXT_OF("name"),
      NS_OF("total_ns", "total"),
      NS_OF("median_ns", "median"),
      {"times", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE}}},
    {"misuse", marey__stopwatch_put_misuse, {TEXT_OF("name"), TEXT_OF("what"), COUNT_OF("count")}},
};

static marey_status unknown_table(const char *name)
{
    char list[256];
    size_t len = 0;
    for (size_t i = 0; i < MAREY__COUNT_OF(tables); i++)
        marey__append(list, sizeof list, &len, "%s%s", i > 0 ? ", " : "", tables[i].name);
    return marey__fail(MAREY_EINVAL, "the stopwatch has no table '%s'; the tables are %s",
                       name != NULL ? name : "", list);
}

static marey_status make(size_t which, marey_table **out)
{
    size_t n = 0;
    while (n < MAX_COLUMNS && tables[which].columns[n].name != NULL)
        n++;
    marey_table *table;
    MAREY_TRY(marey_table_create(tables[which].name, tables[which].columns, n, &table));
    marey__stopwatch_gpu_collect();
    marey__stopwatch_lock();
    marey_status st = tables[which].put(table, marey__stopwatch_tick_ns());
    marey__stopwatch_unlock();
    if (st == MAREY_OK)
        st = marey_table_status(table);
    if (st != MAREY_OK) {
        marey_table_destroy(table);
        return st;
    }
    *out = table;
    return MAREY_OK;
}

marey_status marey_stopwatch_table(const char *name, marey_table **out)
{
    for (size_t i = 0; name != NULL && i < MAREY__COUNT_OF(tables); i++)
        if (strcmp(name, tables[i].name) == 0)
            return make(i, out);
    return unknown_table(name);
}
