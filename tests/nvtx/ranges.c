/*
 * A program in C whose ranges a tool is to see: everything that <kymo/range.h> and <kymo/nvtx.h> can say, once.
 *
 *     nvtx_ranges            without a recording; with KYMO=RUN.kymo into one as well
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <kymo/kymo.h>

static struct kymo_site in_library = {
    .name = "io.read", .category = "disk", .domain = "loader", .color = 0xff336699};

static void kinds_of_ranges(void)
{
    KYMO_SCOPE("scope", .category = "model", .color = 0xff00ff00);
    KYMO_RANGE ("block") {
        kymo_push("by name");
        kymo_pop();
    }
    kymo_begin(kymo_site_id(&in_library));
    kymo_end(kymo_site_id(&in_library));
    kymo_mark(KYMO_ID("here"));
}

static void payloads(void)
{
    const struct kymo_payload values[] = {
        {.type = KYMO_PAYLOAD_I64, .as.i64 = -7},
        {.type = KYMO_PAYLOAD_U64, .as.u64 = UINT64_MAX},
        {.type = KYMO_PAYLOAD_F64, .as.f64 = 0.25},
        {.type = KYMO_PAYLOAD_TEXT, .len = 5, .as.text = "3x224"},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        kymo_begin_payload(KYMO_ID("with payload"), &values[i]);
        kymo_end(0);
    }
    kymo_mark_payload(KYMO_ID("mark with payload"), &values[0]);
}

static void *end_elsewhere(void *range)
{
    kymo_async_end(*(kymo_async *)range);
    return NULL;
}

static void across_threads(void)
{
    pthread_t thread;
    kymo_async range = kymo_async_begin(KYMO_ID("request"));
    if (pthread_create(&thread, NULL, end_elsewhere, &range) == 0)
        pthread_join(thread, NULL);
}

static int wrapper(void)
{
    const struct kymo_nvtx_options options = {.keep_track_of_range_order = 1};
    kymo_nvtx_push(KYMO_ID("too early"));
    if (kymo_nvtx_enable(&options) != KYMO_OK || kymo_nvtx_enable(&options) != KYMO_ESTATE)
        return 1;
    kymo_nvtx_push(KYMO_ID("outer"));
    kymo_nvtx_push(KYMO_ID("inner"));
    if (kymo_nvtx_pop("outer") != KYMO_EMISMATCH)
        return 1;
    puts(kymo_last_error());
    if (kymo_nvtx_pop("inner") != KYMO_OK || kymo_nvtx_pop(NULL) != KYMO_OK)
        return 1;
    if (kymo_nvtx_pop(NULL) != KYMO_EMISMATCH)
        return 1;
    puts(kymo_last_error());
    kymo_nvtx_disable();
    return kymo_nvtx_pop("any") != KYMO_OK;
}

static void handles(void)
{
    const uint64_t handle = kymo_nvtx_register("compiled", strlen("compiled"));
    kymo_nvtx_push_handle(handle);
    kymo_nvtx_push_handle(handle + 1);
    kymo_nvtx_pop_handle();
    kymo_nvtx_pop_handle();
}

int main(void)
{
    kinds_of_ranges();
    payloads();
    across_threads();
    handles();
    return wrapper();
}
