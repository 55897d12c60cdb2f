/*
 * A program with NVTX but without marey; the first argument selects what it does. Tests run it
 * under `marey run --nvtx`.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

#include "told_payload.h"

static nvtxEventAttributes_t event(const char *text)
{
    const nvtxEventAttributes_t e = {.version = NVTX_VERSION,
                                     .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                     .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                     .message.ascii = text};
    return e;
}

/* ---- everything once ---- */

static void ranges_and_marks(void)
{
    nvtxEventAttributes_t e = event("with attributes");
    e.colorType = NVTX_COLOR_ARGB;
    e.color = 0xff336699;
    nvtxRangePushA("outer");
    nvtxRangePushEx(&e);
    nvtxMarkA("a mark");
    e.message.ascii = "a mark with attributes";
    nvtxMarkEx(&e);
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangePushW(L"wide \u00e9\u65e5\U0001f600");
    nvtxMarkW(L"wide mark");
    nvtxRangePop();
    const nvtxRangeId_t a = nvtxRangeStartA("started"), b = nvtxRangeStartW(L"started wide");
    e.message.ascii = "started with attributes";
    const nvtxRangeId_t c = nvtxRangeStartEx(&e);
    nvtxRangeEnd(b);
    nvtxRangeEnd(a);
    nvtxRangeEnd(c);
}

static void domains(void)
{
    const nvtxDomainHandle_t one = nvtxDomainCreateA("library"), two = nvtxDomainCreateW(L"other");
    const nvtxStringHandle_t name = nvtxDomainRegisterStringA(one, "registered"),
                             wide = nvtxDomainRegisterStringW(two, L"registered \u65e5");
    nvtxEventAttributes_t e = event(NULL);
    e.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    e.message.registered = name;
    e.category = 7;
    nvtxDomainNameCategoryA(one, 7, "disk");
    nvtxNameCategoryA(7, "not this one");
    nvtxDomainRangePushEx(one, &e);
    e.message.registered = wide;
    e.category = 8;
    nvtxDomainNameCategoryW(two, 8, L"net \u00e9");
    nvtxDomainRangePushEx(two, &e);
    nvtxDomainRangePop(two);
    nvtxDomainMarkEx(two, &e);
    nvtxDomainRangePop(one);
    e = event("in the library");
    e.category = 9; /* which has no name */
    const nvtxRangeId_t id = nvtxDomainRangeStartEx(one, &e);
    nvtxDomainRangeEnd(one, id);
    nvtxDomainDestroy(one);
    nvtxDomainDestroy(two);
    e = event("in category 7");
    e.category = 7;
    nvtxRangePushEx(&e);
    nvtxRangePop();
}

static void payloads(void)
{
    nvtxEventAttributes_t e = event("payload");
    e.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    e.payload.ullValue = UINT64_MAX;
    nvtxMarkEx(&e);
    e.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    e.payload.llValue = -7;
    nvtxMarkEx(&e);
    e.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    e.payload.dValue = 0.25;
    nvtxMarkEx(&e);
    e.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
    e.payload.uiValue = UINT32_MAX;
    nvtxMarkEx(&e);
    e.payloadType = NVTX_PAYLOAD_TYPE_INT32;
    e.payload.iValue = -8;
    nvtxMarkEx(&e);
    e.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
    e.payload.fValue = 0.5F;
    nvtxRangePushEx(&e);
    nvtxRangePop();
}

static int everything(void)
{
    ranges_and_marks();
    domains();
    payloads();
    return 0;
}

/* ---- names ---- */

/* As PyTorch's emit_nvtx writes them. */
static int varying(void)
{
    char text[256];
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "aten::mul, seq = %d, op_id = %d, sizes = [[%d, 3], []]", i,
                 i + 5, i);
        nvtxRangePushA(text);
        nvtxRangePop();
    }
    const nvtxStringHandle_t fixed = nvtxDomainRegisterStringA(NULL, "aten::add, seq = 7");
    nvtxEventAttributes_t e = event(NULL);
    e.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    e.message.registered = fixed;
    nvtxRangePushEx(&e);
    nvtxRangePop();
    e = event("loss, seq = 9");
    e.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    e.payload.dValue = 0.5;
    nvtxMarkEx(&e);
    nvtxMarkA("a, b, c = d"); /* varies behind the second comma */
    nvtxMarkA("a,b=c, d =e");
    return 0;
}

/* A program that makes up names without end. */
static int endless(void)
{
    char text[64];
    for (int i = 0; i < 20000; i++) {
        snprintf(text, sizeof text, "step %d of run", i);
        nvtxRangePushA(text);
        nvtxRangePop();
    }
    return 0;
}

static int awkward(void)
{
    enum { LONG = 3 << 20 };
    char *const text = malloc(LONG + 1);
    if (text == NULL)
        return 1;
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    nvtxRangePushA(text);
    nvtxRangePop();
    nvtxMarkA("\xff\xfe not \xc3 UTF-8");
    nvtxMarkA("");
    nvtxMarkA(NULL);
    nvtxRangePushA(NULL);
    nvtxRangePushEx(NULL);
    nvtxRangePop();
    nvtxRangePop();
    nvtxMarkW(NULL);
    const wchar_t invalid[] = {0xd800, 0x110000, 'y', 0};
    nvtxMarkW(invalid);
    nvtxEventAttributes_t e = event(NULL);
    nvtxMarkEx(&e);
    e.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    nvtxMarkEx(&e);
    e.messageType = 99;
    nvtxMarkEx(&e);
    nvtxNameCategoryA(3, NULL);
    nvtxDomainRegisterStringA(NULL, NULL);
    nvtxDomainCreateA(NULL);
    nvtxNameOsThreadA(0, NULL);
    nvtxRangeEnd(0);
    nvtxRangeEnd(12345);
    free(text);
    return 0;
}

/* The same address with one text after the other, which a look-up by address must not mistake. */
static int reused(void)
{
    char text[32];
    for (int i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "text %c", 'a' + i % 3);
        nvtxRangePushA(text);
        nvtxRangePop();
    }
    return 0;
}

/* A category that gets its name later, and one that gets another. */
static int renamed(void)
{
    nvtxEventAttributes_t e = event("range");
    e.category = 5;
    nvtxMarkEx(&e);
    nvtxNameCategoryA(5, "first");
    nvtxMarkEx(&e);
    nvtxNameCategoryA(5, "second");
    nvtxMarkEx(&e);
    for (uint32_t i = 0; i < 1000; i++) { /* looks without end */
        e.colorType = NVTX_COLOR_ARGB;
        e.color = 0xff000000 | i;
        nvtxMarkEx(&e);
    }
    return 0;
}

/* ---- order ---- */

/* What is returned: the level in the domain; nothing below the first. Domains need not nest with one another. */
static int levels(void)
{
    const nvtxDomainHandle_t one = nvtxDomainCreateA("one"), two = nvtxDomainCreateA("two");
    nvtxEventAttributes_t a = event("a"), b = event("b"), c = event("c");
    int fine = nvtxRangePop() < 0;
    fine &= nvtxDomainRangePushEx(one, &a) == 0;
    fine &= nvtxDomainRangePushEx(two, &b) == 0;
    fine &= nvtxDomainRangePushEx(one, &c) == 1;
    fine &= nvtxDomainRangePop(two) == 0; /* b ends, c goes on */
    fine &= nvtxRangePop() < 0;
    fine &= nvtxDomainRangePop(two) < 0;
    fine &= nvtxDomainRangePop(one) == 1;
    fine &= nvtxDomainRangePop(one) == 0;
    fine &= nvtxDomainRangePop(one) < 0;
    fine &= nvtxRangePushA("never popped") == 0;
    return !fine;
}

/* Deeper than any room that was made for it. */
static int deep(void)
{
    enum { DEPTH = (1 << 20) + 1000 };
    for (int i = 0; i < DEPTH; i++)
        nvtxRangePushA("deep");
    for (int i = 0; i < DEPTH; i++)
        nvtxRangePop();
    const int is_empty = nvtxRangePop() < 0;
    nvtxRangePushA("after");
    nvtxRangePop();
    return !is_empty;
}

/* ---- threads, processes, objects ---- */

enum { N_THREADS = 8, N_EACH = 2000 };

static void *work(void *arg)
{
    char own[32];
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "a worker");
    snprintf(own, sizeof own, "of thread %d", (int)(intptr_t)arg);
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("threads");
    nvtxEventAttributes_t e = event("shared");
    for (int i = 0; i < N_EACH; i++) {
        e.category = (uint32_t)i % 4;
        nvtxDomainNameCategoryA(domain, (uint32_t)i % 4, i % 2 ? "odd" : "even");
        nvtxDomainRangePushEx(domain, &e);
        nvtxRangePushA(own);
        nvtxRangePop();
        nvtxDomainRangePop(domain);
    }
    return NULL;
}

static int threads(void)
{
    pthread_t all[N_THREADS];
    for (intptr_t i = 0; i < N_THREADS; i++)
        if (pthread_create(&all[i], NULL, work, (void *)i) != 0)
            return 1;
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(all[i], NULL);
    return 0;
}

/* Children of a thread while others make names: each records what it does itself. */
static int forks(void)
{
    pthread_t other;
    int failed = pthread_create(&other, NULL, work, (void *)99) != 0;
    for (int i = 0; i < 10; i++) {
        nvtxRangePushA("around the fork");
        const pid_t child = fork();
        if (child == 0) {
            char name[32];
            snprintf(name, sizeof name, "child %d", i);
            nvtxRangePushA(name);
            nvtxRangePop();
            nvtxRangePop();
            exit(0);
        }
        int status = 1;
        failed |= waitpid(child, &status, 0) != child || status != 0;
        nvtxRangePop();
    }
    pthread_join(other, NULL);
    return failed;
}

/* Named before the first event, after it, and in a child of its own. */
static int named(void)
{
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "too early a name");
    nvtxRangePushA("range");
    nvtxNameOsThreadW((uint32_t)syscall(SYS_gettid), L"the main thread, \u65e5");
    const pid_t child = fork();
    if (child == 0) {
        nvtxNameOsThreadA((uint32_t)getpid(), "a child");
        nvtxMarkA("child");
        exit(0);
    }
    nvtxRangePop();
    int status = 1;
    return waitpid(child, &status, 0) != child || status != 0;
}

static void at_exit(void)
{
    nvtxRangePushA("at exit");
    nvtxRangePop();
}

static int ends(void)
{
    atexit(at_exit);
    nvtxRangePushA("before the end");
    nvtxRangePop();
    return 0;
}

/* Libraries with NVTX of their own, given as arguments; each is closed and opened again. */
static int libraries(char **paths)
{
    for (int turn = 0; turn < 2; turn++)
        for (char **path = paths; *path != NULL; path++) {
            void *const library = dlopen(*path, RTLD_NOW | RTLD_LOCAL);
            void (*const tell)(const char *) =
                library != NULL ? (void (*)(const char *))dlsym(library, "tell") : NULL;
            if (tell == NULL) {
                fprintf(stderr, "%s\n", dlerror());
                return 1;
            }
            nvtxRangePushA("program");
            tell(*path);
            nvtxRangePop();
            dlclose(library);
        }
    return 0;
}

int main(int argc, char **argv)
{
    nvtxInitialize(NULL); /* threads that come to NVTX at once read its tables while they are filled */
    static const struct {
        const char *name;
        int (*run)(void);
    } parts[] = {
        {"everything", everything},
        {"varying", varying},
        {"endless", endless},
        {"awkward", awkward},
        {"reused", reused},
        {"renamed", renamed},
        {"levels", levels},
        {"deep", deep},
        {"threads", threads},
        {"forks", forks},
        {"named", named},
        {"ends", ends},
        {"schemas", payloads_with_schemas},
    };
    const char *part = argc > 1 ? argv[1] : "";
    if (strcmp(part, "libraries") == 0)
        return libraries(argv + 2);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strcmp(parts[i].name, part) == 0)
            return parts[i].run();
    fprintf(stderr, "no part '%s'\n", part);
    return 1;
}
