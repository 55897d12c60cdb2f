/* What was in memory at the peak of each device, as tables. */
#include <string.h>

#include "analyze/memory_timeline.h"

enum { MAX_GROUPS = 1000 }; /* of one device: the largest */

static const struct marey_column category_columns[] = {
    {"device", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"category", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"bytes", "size", MAREY_TYPE_I64, MAREY_UNIT_BYTES},
    {"share", NULL, MAREY_TYPE_F64, MAREY_UNIT_SHARE},
    {"blocks", NULL, MAREY_TYPE_U64, MAREY_UNIT_COUNT},
};

static const struct marey_column stack_columns[] = {
    {"device", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"category", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"bytes", "size", MAREY_TYPE_I64, MAREY_UNIT_BYTES},
    {"blocks", NULL, MAREY_TYPE_U64, MAREY_UNIT_COUNT},
    {"name", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"stack", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
};

static void put_text(marey_table *table, const char *text)
{
    marey_table_text(table, text, strlen(text));
}

static void put_categories(marey_table *table, const char *device,
                           const struct marey__memory_alive *alive)
{
    for (size_t c = 0; c < MAREY_MEMORY_N_CATEGORIES; c++) {
        if (alive->count_by_category[c] == 0)
            continue;
        put_text(table, device);
        put_text(table, marey_memory_category_name((enum marey_memory_category)c));
        marey_table_i64(table, alive->by_category[c]);
        marey_table_f64(table, (double)alive->by_category[c] / (double)alive->bytes);
        marey_table_u64(table, alive->count_by_category[c]);
    }
}

static void put_string(marey_table *table, const struct marey__torch_trace *trace, marey__torch_id id)
{
    size_t len;
    const char *text = marey__torch_text(trace, id, &len);
    if (id == 0)
        marey_table_null(table);
    else
        marey_table_text(table, text, len);
}

static void put_groups(marey_table *table, const char *device, const struct marey__torch_trace *trace,
                       const struct marey__memory_alive *alive)
{
    for (size_t i = 0; i < MAREY__MIN(alive->n_groups, (size_t)MAX_GROUPS); i++) {
        const struct marey__memory_group *group = &alive->groups[i];
        put_text(table, device);
        put_text(table, marey_memory_category_name((enum marey_memory_category)group->category));
        marey_table_i64(table, group->bytes);
        marey_table_u64(table, group->count);
        put_string(table, trace, group->name);
        put_string(table, trace, group->stack);
    }
}

static marey_status fill(const struct marey__memory_timeline *timeline,
                         struct marey__memory_peaks *peaks)
{
    for (size_t i = 0; i < timeline->n_devices; i++) {
        const struct marey__memory_device *device = &timeline->devices[i];
        struct marey__memory_alive alive;
        char name[32];
        if (device->peak_bytes <= 0)
            continue;
        MAREY_TRY(marey__memory_alive_init(&alive, timeline, device, device->peak_change));
        marey__memory_device_name(device, name);
        put_categories(peaks->by_category, name, &alive);
        put_groups(peaks->by_stack, name, timeline->trace, &alive);
        marey__memory_alive_fini(&alive);
    }
    MAREY_TRY(marey_table_status(peaks->by_category));
    return marey_table_status(peaks->by_stack);
}

marey_status marey__memory_peaks_init(struct marey__memory_peaks *peaks,
                                      const struct marey__memory_timeline *timeline)
{
    *peaks = (struct marey__memory_peaks){0};
    MAREY_TRY(marey_table_create("peak_by_category", category_columns,
                                 MAREY__COUNT_OF(category_columns), &peaks->by_category));
    MAREY_TRY(marey_table_create("peak_by_stack", stack_columns, MAREY__COUNT_OF(stack_columns),
                                 &peaks->by_stack));
    return fill(timeline, peaks);
}

void marey__memory_peaks_fini(struct marey__memory_peaks *peaks)
{
    marey_table_destroy(peaks->by_category);
    marey_table_destroy(peaks->by_stack);
    *peaks = (struct marey__memory_peaks){0};
}
