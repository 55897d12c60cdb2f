/*
 * nvtx_peer.h: NVTX without marey, with a tool that only counts, and with marey as the tool. All
 * need NVTX's headers when the benchmarks are built.
 */
#ifndef MAREY_BENCH_NVTX_PEER_H
#define MAREY_BENCH_NVTX_PEER_H

#include "bench.h"

/* Push and pop by NVTX's functions, `n` times; does nothing without the headers. */
void nvtx_peer_push_pop(uint64_t n);

/* Push and pop by NVTX's functions in a library whose tool is libmarey-nvtx: by a registered
 * string, by a string. */
void nvtx_peer_received(uint64_t n);
void nvtx_peer_received_text(uint64_t n);

/* The counting tool, for NVTX_INJECTION64_PATH; "" without the headers. */
const char *nvtx_peer_tool(void);

static inline bool nvtx_peer_is_built(void)
{
    return nvtx_peer_tool()[0] != '\0';
}

#endif
