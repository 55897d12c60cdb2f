/*
 * nvtx: the second place, beside the recording, that ranges go to: an NVTX tool in this process.
 *
 * Chosen when the library is built: nvtx_tool.c and nvtx_out.c with NVTX's headers, nvtx_absent.c without them. A tool is started only
 * when there is a sign of one (NVTX_INJECTION64_PATH, a preloaded library), and then with the first range: starting it
 * loads a library, and without a tool NVTX would switch itself off for good.
 */
#ifndef KYMO_NVTX_INTERNAL_H
#define KYMO_NVTX_INTERNAL_H

#include "base/base_internal.h"
#include <kymo/nvtx.h>

/* At load and at kymo_start(): set KYMO_ON_NVTX if there is a sign of a tool. `allowed` false keeps ranges from tools. */
void kymo__nvtx_expect(bool allowed);

/* Begin, end, mark. False when no tool listens; KYMO_ON_NVTX is clear then. `payload` may be NULL. */
bool kymo__nvtx_push(kymo_id id, const struct kymo_payload *payload);
void kymo__nvtx_pop(kymo_id id);
void kymo__nvtx_mark(kymo_id id, const struct kymo_payload *payload);
void kymo__nvtx_async_begin(kymo_async range);
void kymo__nvtx_async_end(kymo_async range);

/* Whether a tool listens; one that is expected is started. */
bool kymo__nvtx_is_listening(void);

/* In a forked child, whose parent's other threads may have held locks; nvtx_tool.c calls nvtx_out.c's. */
void kymo__nvtx_after_fork(void);
void kymo__nvtx_out_after_fork(void);

#endif
