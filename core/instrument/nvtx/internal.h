/*
 * nvtx: ranges to an NVTX tool in this process, in addition to the recording.
 *
 * nvtx_tool.c and nvtx_out.c are built with NVTX's headers, nvtx_absent.c without them. A tool is loaded with the first
 * range, and only if there is a sign of one (NVTX_INJECTION64_PATH, a preloaded library): without a tool, NVTX would
 * disable itself permanently.
 *
 * Input: ranges and marks. Output: NVTX calls, also while nothing is recorded. Does not know lanes or log files: of
 * record/ it uses only the names of ids.
 */
#ifndef MAREY_INSTRUMENT_NVTX_INTERNAL_H
#define MAREY_INSTRUMENT_NVTX_INTERNAL_H

#include "base/internal.h"
#include <marey/nvtx.h>

/* At load and at marey_start(): sets MAREY_ON_NVTX if there is a sign of a tool. `allowed` false hides ranges from tools. */
void marey__nvtx_expect(bool allowed);

/* Begin, end, mark. False, with MAREY_ON_NVTX cleared, if no tool listens. `payload` may be NULL. */
bool marey__nvtx_push(marey_id id, const struct marey_payload *payload);
void marey__nvtx_pop(marey_id id);
void marey__nvtx_mark(marey_id id, const struct marey_payload *payload);
void marey__nvtx_async_begin(marey_async range);
void marey__nvtx_async_end(marey_async range);

/* Whether a tool listens; starts an expected one. */
bool marey__nvtx_is_listening(void);

/* In a forked child, whose parent's threads may have held locks; nvtx_tool.c calls the one in nvtx_out.c. */
void marey__nvtx_after_fork(void);
void marey__nvtx_out_after_fork(void);

#endif
