/* What was in memory at the peak of each device, as tables. */
#include <string.h>

#include "analyze/memory_timeline.h"

enum { MAX_GROUPS = 1000 }; /* of one device: the largest */

static const struct kymo_column category_columns[] = {
    {"device", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"category", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"bytes", "size", KYMO_TYPE_I64, KYMO_UNIT_BYTES},
    {"share", NULL, KYMO_TYPE_F64, KYMO_UNIT_SHARE},
    {"blocks", NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT},
};

static const struct kymo_column stack_columns[] = {
    {"device", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"category", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"bytes", "size", KYMO_TYPE_I64, KYMO_UNIT_BYTES},
    {"blocks", NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    {"name", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"stack", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
};

static void put_text(kymo_table *table, const char *text)
{
    kymo_table_text(table, text, strlen(text));
}

static void put_categories(kymo_table *table, const char *device,
                           const struct kymo__memory_alive *alive)
{
    for (size_t c = 0; c < KYMO_MEMORY_N_CATEGORIES; c++) {
        if (alive->count_by_category[c] == 0)
            continue;
        put_text(table, device);
        put_text(table, kymo_memory_category_name((enum kymo_memory_category)c));
        kymo_table_i64(table, alive->by_category[c]);
        kymo_table_f64(table, (double)alive->by_category[c] / (double)alive->bytes);
        kymo_table_u64(table, alive->count_by_category[c]);
    }
}

static void put_string(kymo_table *table, const struct kymo__torch_trace *trace, kymo__torch_id id)
{
    size_t len;
    const char *text = kymo__torch_text(trace, id, &len);
    if (id == 0)
        kymo_table_null(table);
    else
        kymo_table_text(table, text, len);
}

static void put_groups(kymo_table *table, const char *device, const struct kymo__torch_trace *trace,
                       const struct kymo__memory_alive *alive)
{
    for (size_t i = 0; i < KYMO__MIN(alive->n_groups, (size_t)MAX_GROUPS); i++) {
        const struct kymo__memory_group *group = &alive->groups[i];
        put_text(table, device);
        put_text(table, kymo_memory_category_name((enum kymo_memory_category)group->category));
        kymo_table_i64(table, group->bytes);
        kymo_table_u64(table, group->count);
        put_string(table, trace, group->name);
        put_string(table, trace, group->stack);
    }
}

static kymo_status fill(const struct kymo__memory_timeline *timeline, struct kymo__memory_peaks *peaks)
{
    for (size_t i = 0; i < timeline->n_devices; i++) {
        const struct kymo__memory_device *device = &timeline->devices[i];
        struct kymo__memory_alive alive;
        char name[32];
        if (device->peak_bytes <= 0)
            continue;
        KYMO_TRY(kymo__memory_alive_init(&alive, timeline, device, device->peak_change));
        kymo__memory_device_name(device, name);
        put_categories(peaks->by_category, name, &alive);
        put_groups(peaks->by_stack, name, timeline->trace, &alive);
        kymo__memory_alive_fini(&alive);
    }
    KYMO_TRY(kymo_table_status(peaks->by_category));
    return kymo_table_status(peaks->by_stack);
}

kymo_status kymo__memory_peaks_init(struct kymo__memory_peaks *peaks,
                                    const struct kymo__memory_timeline *timeline)
{
    *peaks = (struct kymo__memory_peaks){0};
    KYMO_TRY(kymo_table_create("peak_by_category", category_columns,
                               KYMO__COUNT_OF(category_columns), &peaks->by_category));
    KYMO_TRY(kymo_table_create("peak_by_stack", stack_columns, KYMO__COUNT_OF(stack_columns),
                               &peaks->by_stack));
    return fill(timeline, peaks);
}

void kymo__memory_peaks_fini(struct kymo__memory_peaks *peaks)
{
    kymo_table_destroy(peaks->by_category);
    kymo_table_destroy(peaks->by_stack);
    *peaks = (struct kymo__memory_peaks){0};
}
