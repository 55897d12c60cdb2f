/* Thread names set by the program: the entries of threading._active, by ident. */
#include "sampler/remote/internal.h"

enum { AGAIN_NS = 500000000, NAMES_MAX = 65536, NAME_CHARS = 200, INTERPRETERS_MAX = 64 };

static void forget(struct marey__remote_threads *threads)
{
    for (size_t i = 0; i < threads->n; i++)
        marey__free(threads->names[i].name);
    threads->n = 0;
}

/* A key of _active is an int, whose hash is its value: no need to read the object. */
static bool take_thread(void *ctx, const struct marey__remote_entry *entry)
{
    struct marey__remote *const remote = ctx;
    struct marey__remote_threads *const threads = &remote->threads;
    struct marey__buf name = {0};
    const uint64_t text = marey__remote_attribute(remote, entry->value, "_name");
    if (text != 0 && marey__remote_put_string(remote, text, NAME_CHARS, &name))
        marey__buf_put(&name, "", 1);
    if (name.failed || name.data == NULL || threads->n >= NAMES_MAX ||
        !marey__grow(&threads->names, &threads->cap, threads->n + 1, sizeof *threads->names)) {
        marey__buf_fini(&name);
        return threads->n < NAMES_MAX;
    }
    threads->names[threads->n++] = (struct marey__remote_thread_name){entry->hash, name.data};
    return true;
}

/* interpreter -> sys.modules -> threading -> its dict -> _active; 0 if threading is not imported. */
static uint64_t active_of(struct marey__remote *remote, uint64_t interpreter)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    uint64_t modules, dict;
    if (!marey__remote_read_u64(remote, interpreter + layout->interpreter.modules, &modules))
        return 0;
    const uint64_t module = marey__remote_dict_get(remote, modules, "threading");
    if (module == 0 || !marey__remote_read_u64(remote, module + layout->object.type + 8, &dict))
        return 0;
    return marey__remote_dict_get(remote, dict, "_active");
}

static void walk(struct marey__remote *remote)
{
    uint64_t interpreters[INTERPRETERS_MAX];
    struct marey__remote_threads *const threads = &remote->threads;
    forget(threads);
    /* With one interpreter, the usual case, the dict is searched once, and does not move. */
    if (threads->active != 0 && marey__remote_is_type(remote, threads->active, "dict") &&
        marey__remote_dict_each(remote, threads->active, take_thread, remote))
        return;
    forget(threads);
    const size_t n = marey__remote_interpreters(remote, interpreters, INTERPRETERS_MAX);
    for (size_t i = 0; i < n; i++) {
        const uint64_t active = active_of(remote, interpreters[i]);
        threads->active = n == 1 ? active : 0;
        if (active != 0)
            marey__remote_dict_each(remote, active, take_thread, remote);
    }
}

const char *marey__remote_python_name(struct marey__remote *remote, uint64_t ident)
{
    struct marey__remote_threads *const threads = &remote->threads;
    const uint64_t ns = marey__remote_now_ns();
    if (threads->walked_ns == 0 || ns - threads->walked_ns >= AGAIN_NS) {
        walk(remote);
        threads->walked_ns = ns;
    }
    for (size_t i = 0; i < threads->n; i++)
        if (threads->names[i].ident == ident)
            return threads->names[i].name;
    return NULL;
}

void marey__remote_threads_fini(struct marey__remote_threads *threads)
{
    forget(threads);
    MAREY__FREE_ALL(threads->names, threads->tids);
    *threads = (struct marey__remote_threads){0};
}
