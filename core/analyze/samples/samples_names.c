/* What module a function is of. Samplers see files; where packages are installed, the path behind that is what is imported. */
#include <string.h>

#include "analyze/samples/internal.h"

/* Behind "/lib/python3.11/" or "/lib/python3.11/site-packages/"; NULL where neither is. */
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

static bool ends_in(const char *text, size_t len, const char *end)
{
    const size_t n = strlen(end);
    return len >= n && memcmp(text + len - n, end, n) == 0;
}

static void put_dotted(struct marey__buf *module, const char *path)
{
    size_t len = strlen(path);
    if (ends_in(path, len, ".py"))
        len -= 3;
    if (ends_in(path, len, "/__init__"))
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
