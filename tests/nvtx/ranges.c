/*
 * A program in C whose ranges a tool is to see: everything that <marey/range.h> and <marey/nvtx.h> can say, once.
 *
 *     nvtx_ranges            without a recording; with MAREY=RUN.marey into one as well
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <marey/marey.h>

static struct marey_site in_library = {
    .name = "io.read", .category = "disk", .domain = "loader", .color = 0xff336699};

static void kinds_of_ranges(void)
{
    MAREY_SCOPE("scope", .category = "model", .color = 0xff00ff00);
    MAREY_RANGE ("block") {
        marey_push("by name");
        marey_pop();
    }
    marey_begin(marey_site_id(&in_library));
    marey_end(marey_site_id(&in_library));
    marey_mark(MAREY_ID("here"));
}

static void payloads(void)
{
    const struct marey_payload values[] = {
        {.type = MAREY_PAYLOAD_I64, .as.i64 = -7},
        {.type = MAREY_PAYLOAD_U64, .as.u64 = UINT64_MAX},
        {.type = MAREY_PAYLOAD_F64, .as.f64 = 0.25},
        {.type = MAREY_PAYLOAD_TEXT, .len = 5, .as.text = "3x224"},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        marey_begin_payload(MAREY_ID("with payload"), &values[i]);
        marey_end(0);
    }
    marey_mark_payload(MAREY_ID("mark with payload"), &values[0]);
}

static void *end_elsewhere(void *range)
{
    marey_async_end(*(marey_async *)range);
    return NULL;
}

static void across_threads(void)
{
    pthread_t thread;
    marey_async range = marey_async_begin(MAREY_ID("request"));
    if (pthread_create(&thread, NULL, end_elsewhere, &range) == 0)
        pthread_join(thread, NULL);
}

static int wrapper(void)
{
    const struct marey_nvtx_options options = {.keep_track_of_range_order = 1};
    marey_nvtx_push(MAREY_ID("too early"));
    if (marey_nvtx_enable(&options) != MAREY_OK || marey_nvtx_enable(&options) != MAREY_ESTATE)
        return 1;
    marey_nvtx_push(MAREY_ID("outer"));
    marey_nvtx_push(MAREY_ID("inner"));
    if (marey_nvtx_pop("outer") != MAREY_EMISMATCH)
        return 1;
    puts(marey_last_error());
    if (marey_nvtx_pop("inner") != MAREY_OK || marey_nvtx_pop(NULL) != MAREY_OK)
        return 1;
    if (marey_nvtx_pop(NULL) != MAREY_EMISMATCH)
        return 1;
    puts(marey_last_error());
    marey_nvtx_disable();
    return marey_nvtx_pop("any") != MAREY_OK;
}

static void handles(void)
{
    const uint64_t handle = marey_nvtx_register("compiled", strlen("compiled"));
    marey_nvtx_push_handle(handle);
    marey_nvtx_push_handle(handle + 1);
    marey_nvtx_pop_handle();
    marey_nvtx_pop_handle();
}

int main(void)
{
    kinds_of_ranges();
    payloads();
    across_threads();
    handles();
    return wrapper();
}
