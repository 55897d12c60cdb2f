/*
 * nvtx_peer.h: NVTX as one would call it without marey, a tool that only counts, and marey as the tool. All need NVTX's headers when the
 * benchmarks are built.
 */
#ifndef MAREY_BENCH_NVTX_PEER_H
#define MAREY_BENCH_NVTX_PEER_H

#include "bench.h"

/* Push and pop by NVTX's own functions, `n` times; nothing without the headers. */
void nvtx_peer_push_pop(uint64_t n);

/* Push and pop by NVTX's own functions in a library whose tool is libmarey-nvtx: by a registered string, by a text. */
void nvtx_peer_received(uint64_t n);
void nvtx_peer_received_text(uint64_t n);

/* The library that counts, for NVTX_INJECTION64_PATH; "" without the headers. */
const char *nvtx_peer_tool(void);

static inline bool nvtx_peer_is_built(void)
{
    return nvtx_peer_tool()[0] != '\0';
}

#endif
