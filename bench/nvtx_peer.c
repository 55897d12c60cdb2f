/* NVTX's push and pop, if its headers are available; see nvtx_peer.h. */
#include "nvtx_peer.h"

#ifdef MAREY_BENCH_NVTX_TOOL
#include <dlfcn.h>
#include <stdlib.h>

#include <nvtx3/nvToolsExt.h>

/* The variable is only set during its first call: other libraries with NVTX have no tool. */
static void (*load_speaker(const char *name))(uint64_t n)
{
    void *const library = dlopen(MAREY_BENCH_NVTX_SPEAKER, RTLD_NOW | RTLD_LOCAL);
    void (*const speak)(uint64_t n) =
        library != NULL ? (void (*)(uint64_t))dlsym(library, name) : NULL;
    if (speak == NULL)
        bench_die("cannot load " MAREY_BENCH_NVTX_SPEAKER, MAREY_OK);
    setenv("NVTX_INJECTION64_PATH", MAREY_BENCH_NVTX_RECEIVER, 1);
    speak(1);
    unsetenv("NVTX_INJECTION64_PATH");
    return speak;
}

void nvtx_peer_received(uint64_t n)
{
    static void (*speak)(uint64_t n);
    if (speak == NULL)
        speak = load_speaker("speak_registered");
    speak(n);
}

void nvtx_peer_received_text(uint64_t n)
{
    static void (*speak)(uint64_t n);
    if (speak == NULL)
        speak = load_speaker("speak_text");
    speak(n);
}

void nvtx_peer_push_pop(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        nvtxRangePushA("bench");
        __asm__ volatile("" ::: "memory");
        nvtxRangePop();
    }
}

const char *nvtx_peer_tool(void)
{
    return MAREY_BENCH_NVTX_TOOL;
}
#else
void nvtx_peer_push_pop(uint64_t n)
{
    (void)n;
}

void nvtx_peer_received(uint64_t n)
{
    (void)n;
}

void nvtx_peer_received_text(uint64_t n)
{
    (void)n;
}

const char *nvtx_peer_tool(void)
{
    return "";
}
#endif
