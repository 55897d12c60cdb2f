/*
 * Detecting an NVTX tool. A sign of one suffices: the first range starts it. NVTX itself checks only at its first call.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define NVTX_AS_SYSTEM_HEADER
#include <nvtx3/nvToolsExt.h>

#include "instrument/nvtx/internal.h"
#include "record/internal.h"

enum state {
    IDLE,      /* no sign of a tool */
    EXPECTED,  /* a sign: the first range starts it */
    LISTENING, /* started */
    REFUSED,   /* could not be started; NVTX does not try twice */
};

static struct {
    pthread_mutex_t lock; /* guards writes to the fields below */
    enum state state;     /* release; loaded with acquire */
    bool is_forbidden;    /* by the option nvtx=0 */
} tool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* libmarey-nvtx records the program's NVTX calls. It is not a tool for our ranges, but may pass them on to one. */
static const char *injection_path(void)
{
    const char *path = variable("NVTX_INJECTION64_PATH");
    if (path != NULL && strcmp(marey__base_name(path), "libmarey-nvtx.so") == 0)
        return variable("MAREY_NVTX_NEXT");
    return path;
}

/* A preloaded tool has this function; NVTX finds it if the variable is not set. */
static bool has_preloaded_tool(void)
{
    return variable("NVTX_INJECTION64_PATH") == NULL &&
           dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx2Preinject") != NULL;
}

static void set_state(enum state state)
{
    __atomic_store_n(&tool.state, state, __ATOMIC_RELEASE);
}

static enum state get_state(void)
{
    return __atomic_load_n(&tool.state, __ATOMIC_ACQUIRE);
}

static void switch_off(void)
{
    __atomic_fetch_and(&marey_switch[0], ~(uint32_t)MAREY_ON_NVTX, __ATOMIC_RELEASE);
}

/* Caller holds the lock. */
static void expect(void)
{
    if (tool.is_forbidden || tool.state == REFUSED)
        return;
    if (tool.state == IDLE && (injection_path() != NULL || has_preloaded_tool()))
        set_state(EXPECTED);
    if (tool.state != IDLE)
        marey__stack_needed(__atomic_fetch_or(&marey_switch[0], MAREY_ON_NVTX, __ATOMIC_RELEASE));
}

void marey__nvtx_expect(bool allowed)
{
    MAREY__HOLD(&tool.lock);
    tool.is_forbidden = !allowed;
    if (!allowed)
        switch_off();
    expect();
}

static const char *tool_name(void)
{
    return injection_path() != NULL ? injection_path() : "a preloaded library";
}

/* Starts the expected tool, unless another thread has. This loads its library. */
static void start_tool(void)
{
    bool is_refused = false;
    pthread_mutex_lock(&tool.lock);
    if (tool.state == EXPECTED) {
        nvtxInitialize(NULL);
        is_refused = NVTX_VERSIONED_IDENTIFIER(nvtxGlobals).nvtxRangePushEx_impl_fnptr == NULL;
        set_state(is_refused ? REFUSED : LISTENING);
    }
    pthread_mutex_unlock(&tool.lock);
    if (is_refused) {
        switch_off();
        marey__say("ranges go to no NVTX tool: %s could not be loaded or refused to start; see "
                   "NVTX_INJECTION64_PATH",
                   tool_name());
    }
}

bool marey__nvtx_is_listening(void)
{
    static __thread bool is_starting; /* while the tool starts, it may emit ranges itself */
    if (MAREY_LIKELY(get_state() == LISTENING))
        return true;
    if (get_state() != EXPECTED || is_starting)
        return false;
    is_starting = true;
    start_tool();
    is_starting = false;
    return get_state() == LISTENING;
}

int marey_nvtx_attach(void)
{
    pthread_mutex_lock(&tool.lock);
    expect();
    const bool is_allowed = !tool.is_forbidden;
    pthread_mutex_unlock(&tool.lock);
    return is_allowed && marey__nvtx_is_listening();
}

const char *marey_nvtx_version(void)
{
    return MAREY_NVTX_VERSION;
}

const char *marey_nvtx_state(void)
{
    /* Static TLS is scarce: this uses the loader's surplus. */
    static __thread char text[320];
    pthread_mutex_lock(&tool.lock);
    const enum state state = tool.state;
    const bool is_forbidden = tool.is_forbidden;
    pthread_mutex_unlock(&tool.lock);
    if (is_forbidden)
        return "ranges go to no NVTX tool, because of the option nvtx=0";
    if (state == IDLE)
        return "no NVTX tool: run under Nsight Systems, or let NVTX_INJECTION64_PATH name a tool's "
               "library";
    snprintf(text, sizeof text, "the NVTX tool %.256s %s", tool_name(),
             state == EXPECTED    ? "starts with the first range"
             : state == LISTENING ? "gets all ranges"
                                  : "could not be loaded or refused to start");
    return text;
}

void marey__nvtx_after_fork(void)
{
    pthread_mutex_init(&tool.lock, NULL);
    marey__nvtx_out_after_fork();
}
