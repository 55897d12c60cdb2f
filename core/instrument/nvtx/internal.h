/*
 * nvtx: ranges to an NVTX tool in this process, in addition to the recording.
 *
 * nvtx_tool.c and nvtx_out.c are built with NVTX's headers, nvtx_absent.c without them. A tool is loaded only when there
 * is a sign of one (NVTX_INJECTION64_PATH, a preloaded library), with the first range: without a tool, NVTX would disable
 * itself for good.
 *
 * Input: ranges and marks. Output: NVTX calls. Knows no recording.
 */
#ifndef MAREY_INSTRUMENT_NVTX_INTERNAL_H
#define MAREY_INSTRUMENT_NVTX_INTERNAL_H

#include "base/internal.h"
#include <marey/nvtx.h>

/* At load and at marey_start(): set MAREY_ON_NVTX if there is a sign of a tool. `allowed` false keeps ranges from tools. */
void marey__nvtx_expect(bool allowed);

/* Begin, end, mark. False when no tool listens; MAREY_ON_NVTX is clear then. `payload` may be NULL. */
bool marey__nvtx_push(marey_id id, const struct marey_payload *payload);
void marey__nvtx_pop(marey_id id);
void marey__nvtx_mark(marey_id id, const struct marey_payload *payload);
void marey__nvtx_async_begin(marey_async range);
void marey__nvtx_async_end(marey_async range);

/* Whether a tool listens; one that is expected is started. */
bool marey__nvtx_is_listening(void);

/* In a forked child, whose parent's other threads may have held locks; nvtx_tool.c calls nvtx_out.c's. */
void marey__nvtx_after_fork(void);
void marey__nvtx_out_after_fork(void);

#endif
