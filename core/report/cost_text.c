/* What marey cost the program, as text and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "present/draw/internal.h"
#include "report/internal.h"

static const struct {
    const char *key, *operation, *instrument;
} kinds[MAREY_N_COSTS] = {
    [MAREY_COST_GPU] = {"gpu", "CUDA call", "GPU tracing"},
    [MAREY_COST_CALLS] = {"calls", "Python call", "the call profiler"},
    [MAREY_COST_MEMORY] = {"memory", "allocation", "memory profiling"},
};

/* One value if both print alike, else two. */
static void put_between(struct marey__buf *line, double low, double high,
                        void (*put)(struct marey__buf *, double))
{
    const size_t begin = line->len;
    put(line, low);
    const size_t middle = line->len;
    marey__buf_puts(line, " to ");
    const size_t second = line->len;
    put(line, high);
    if (!line->failed && line->len - second == middle - begin &&
        memcmp(line->data + begin, line->data + second, middle - begin) == 0)
        line->len = middle;
}

static void put_duration(struct marey__buf *line, double ns)
{
    marey__text_duration(line, ns, NULL);
}

static void put_part(struct marey__buf *line, const struct marey_cost_part *part,
                     const char *operation)
{
    const double n = (double)part->count;
    if (part->count == 0)
        return;
    marey__buf_puts(line, "; ");
    marey__text_count_of(line, part->count, operation);
    marey__buf_puts(line, " x ");
    put_between(line, (double)part->low_ns / n, (double)part->high_ns / n, put_duration);
    marey__buf_puts(line, " = ");
    put_between(line, (double)part->low_ns, (double)part->high_ns, put_duration);
}

static void put_upper_share(struct marey__buf *line, const struct marey_cost *cost)
{
    if (cost->high_ns == cost->low_ns)
        return;
    marey__buf_puts(line, ", ");
    marey__text_share(line, (double)cost->high_ns / (double)cost->program_ns);
    marey__buf_puts(line, " with cold caches");
}

bool marey__cost_put(struct marey__buf *line, const struct marey_cost *cost)
{
    bool has_parts = false;
    for (size_t i = 0; i < MAREY_N_COSTS; i++)
        has_parts = has_parts || cost->parts[i].n_processes != 0;
    if (cost->events == 0 && !has_parts)
        return false;
    marey__buf_puts(line, "marey cost: ");
    marey__text_count_of(line, cost->events, "event");
    if (cost->in_program_ns != 0) {
        marey__buf_printf(line, " x %.1f ns = ", (double)cost->in_program_ns / (double)cost->events);
        put_duration(line, (double)cost->in_program_ns);
    }
    for (size_t i = 0; i < MAREY_N_COSTS; i++)
        put_part(line, &cost->parts[i], kinds[i].operation);
    if (cost->high_ns != 0 && cost->program_ns != 0) {
        marey__buf_puts(line, has_parts ? "; together at least " : ", ");
        marey__text_share(line, (double)cost->low_ns / (double)cost->program_ns);
        marey__buf_puts(line, " of the program");
        put_upper_share(line, cost);
    }
    if (cost->flush_cpu_ns != 0) {
        marey__buf_puts(line, "; flush thread ");
        put_duration(line, (double)cost->flush_cpu_ns);
        marey__buf_puts(line, " CPU");
    }
    marey__buf_puts(line, "; log ");
    marey__text_bytes(line, (double)cost->log_bytes);
    return true;
}

static void put_item(struct marey__buf *line, size_t begin, const char *item)
{
    marey__buf_puts(line, line->len == begin ? "  not included: " : ", ");
    marey__buf_puts(line, item);
}

bool marey__cost_put_missing(struct marey__buf *line, const struct marey_cost *cost)
{
    const size_t begin = line->len;
    char item[128];
    for (size_t i = 0; i < MAREY_N_COSTS; i++) {
        const struct marey_cost_part *part = &cost->parts[i];
        snprintf(item, sizeof item, "%s (not measured in %u of %u processes)", kinds[i].instrument,
                 part->n_unknown, part->n_processes);
        if (part->n_unknown != 0)
            put_item(line, begin, part->n_processes == 1 ? kinds[i].instrument : item);
    }
    if (cost->is_sampled)
        put_item(line, begin, "sampling (see --samples)");
    if (cost->parts[MAREY_COST_GPU].n_processes != 0)
        put_item(line, begin, "slower kernels and CUDA graphs while CUPTI traces");
    return line->len != begin;
}

void marey__cost_put_json(struct marey__buf *buf, const struct marey_cost *cost)
{
    bool is_first = true;
    marey__buf_puts(buf, "[");
    for (size_t i = 0; i < MAREY_N_COSTS; i++) {
        const struct marey_cost_part *part = &cost->parts[i];
        if (part->n_processes == 0)
            continue;
        marey__buf_printf(buf,
                          "%s{\"instrument\": \"%s\", \"count\": %" PRIu64 ", \"low_ns\": %" PRIu64
                          ", \"high_ns\": %" PRIu64 ", \"processes\": %u, \"unknown\": %u}",
                          is_first ? "" : ", ", kinds[i].key, part->count, part->low_ns,
                          part->high_ns, part->n_processes, part->n_unknown);
        is_first = false;
    }
    marey__buf_puts(buf, "]");
}
