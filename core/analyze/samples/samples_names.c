/*
 * Recognizes functions by name and file: imports at start-up, workers waiting for a task, modules.
 *
 * Start-up consists of a script's module-level imports and, if the process counts steps, every import before its first
 * step. They dominate reports of short runs and are unrelated to the program's work. Imports are recognized by
 * importlib's frames, which are frozen into the interpreter. At module level, nothing is between the script's <module>
 * and importlib; an import inside a function is not start-up.
 */
#include <string.h>

#include "analyze/samples/internal.h"

bool marey__is_importlib(const char *file)
{
    return marey__starts_with(file, strlen(file), "<frozen importlib.");
}

bool marey__is_top_level(const struct marey_samples_function *f)
{
    return f->kind == MAREY_FRAME_PYTHON && strcmp(f->name, "<module>") == 0;
}

uint8_t marey__import_flags(uint8_t around, bool is_python, const char *name, const char *file)
{
    if (!is_python || (around & MAREY__IN_STARTUP) != 0)
        return around;
    if (marey__is_importlib(file))
        return MAREY__IN_IMPORT | ((around & MAREY__IN_FUNCTION) == 0 ? MAREY__IN_STARTUP : 0) |
               (around & MAREY__IN_FUNCTION);
    if ((around & MAREY__IN_IMPORT) != 0)
        return around;
    /* Frames that run a script, such as runpy in a launcher, are around its <module>. */
    return strcmp(name, "<module>") == 0 ? 0 : MAREY__IN_FUNCTION;
}

static bool ends_with(const char *text, const char *end)
{
    return marey__ends_with(text, strlen(text), end);
}

/* Workers of a DataLoader, a Pool or a ProcessPoolExecutor get their tasks with get() from a multiprocessing queue. */
static uint8_t task_flags(uint8_t around, const struct marey_samples_function *f)
{
    static const struct {
        const char *name, *file;
    } loops[] = {{"_worker_loop", "torch/utils/data/_utils/worker.py"},
                 {"worker", "multiprocessing/pool.py"},
                 {"_process_worker", "concurrent/futures/process.py"}};
    if ((around & MAREY__IN_TASK_WAIT) != 0)
        return MAREY__IN_TASK_WAIT;
    if ((around & MAREY__IN_TASK_LOOP) != 0 && ends_with(f->name, "get") &&
        ends_with(f->file, "multiprocessing/queues.py"))
        return MAREY__IN_TASK_WAIT;
    for (size_t i = 0; i < MAREY__COUNT_OF(loops); i++)
        if (ends_with(f->name, loops[i].name) && ends_with(f->file, loops[i].file))
            return MAREY__IN_TASK_LOOP;
    return 0;
}

uint8_t *marey__samples_stack_flags(const marey_samples *samples)
{
    const uint32_t n = marey_samples_n_stacks(samples);
    uint8_t *const flags = marey__calloc((size_t)n + 1, sizeof *flags);
    for (uint32_t i = 1; flags != NULL && i <= n; i++) {
        const struct marey_samples_stack stack = marey_samples_get_stack(samples, i);
        const uint32_t function = marey_samples_get_location(samples, stack.location).function;
        const struct marey_samples_function *const f = marey_samples_get_function(samples, function);
        const uint8_t around = flags[stack.parent],
                      imports = (uint8_t)(around & ~(MAREY__IN_TASK_LOOP | MAREY__IN_TASK_WAIT));
        flags[i] =
            (uint8_t)(marey__import_flags(imports, f->kind == MAREY_FRAME_PYTHON, f->name, f->file) |
                      task_flags(around, f));
    }
    return flags;
}

/*
 * A forked worker has its parent's frames around its own, which are not its work: its stack begins where
 * multiprocessing, also used by DataLoader workers, starts a process.
 */
bool marey__is_worker_entry(const struct marey_samples_function *f)
{
    return f->kind == MAREY_FRAME_PYTHON && ends_with(f->name, "_bootstrap") &&
           ends_with(f->file, "multiprocessing/process.py");
}

/* ---- modules: the path after the folder of installed packages is the name for import ---- */

/* The part after "/lib/python3.11/" or "/lib/python3.11/site-packages/"; NULL if there is none. */
static const char *installed_part(const char *file)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
    for (size_t i = 0; i < MAREY__COUNT_OF(folders); i++) {
        const char *const at = strstr(file, folders[i]);
        if (at != NULL)
            return at + strlen(folders[i]);
    }
    const char *at = strstr(file, "/lib/python");
    at = at != NULL ? strchr(at + strlen("/lib/python"), '/') : NULL;
    return at != NULL ? at + 1 : NULL;
}

static void put_dotted(struct marey__buf *module, const char *path)
{
    size_t len = strlen(path);
    if (marey__ends_with(path, len, ".py"))
        len -= 3;
    if (marey__ends_with(path, len, "/__init__"))
        len -= strlen("/__init__");
    for (size_t i = 0; i < len; i++)
        marey__buf_put(module, path[i] == '/' ? "." : &path[i], 1);
}

void marey__samples_module(struct marey__buf *module, const struct marey_samples_function *f)
{
    static const char frozen[] = "<frozen ";
    if (f->module[0] != '\0') {
        marey__buf_puts(module, marey__base_name(f->module));
    } else if (strncmp(f->file, frozen, sizeof frozen - 1) == 0) {
        const char *const name = f->file + sizeof frozen - 1;
        marey__buf_put(module, name, strcspn(name, ">"));
    } else if (f->kind == MAREY_FRAME_PYTHON) {
        const char *const path = installed_part(f->file);
        put_dotted(module, path != NULL ? path : marey__base_name(f->file));
    }
}
