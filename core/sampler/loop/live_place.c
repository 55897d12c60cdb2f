/* Where a frame is, as short as it can be and still be told from others. */
#include <string.h>

#include "sampler/loop/internal.h"

/* A path without the folder that packages are installed in; else its last part. */
static const char *short_path(const char *path)
{
    static const char *const homes[] = {"/site-packages/", "/dist-packages/", "/lib/python3"};
    for (size_t i = 0; i < MAREY__COUNT_OF(homes); i++) {
        const char *home = strstr(path, homes[i]);
        if (home == NULL)
            continue;
        const char *rest = strchr(home + strlen(homes[i]) - 1, '/');
        if (rest != NULL && rest[1] != '\0')
            return rest + 1;
    }
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

void marey__live_place(struct marey__buf *buf, const struct marey_samples_function *function,
                       uint32_t line)
{
    marey__buf_puts(buf, short_path(function->file[0] != '\0' ? function->file : function->module));
    if (line != 0)
        marey__buf_printf(buf, ":%u", line);
}
