/* Where the way into Python lies: the folder with our sitecustomize.py, and the package beside it. */
#include <unistd.h>

#include "doctor/internal.h"

/* Seen from libmarey's directory. */
static const struct layout {
    const char *boot, *package_parent;
} layouts[] = {
    {"boot", ".."},                        /* inside the Python package */
    {"marey/boot", "marey/python"},        /* a prefix, all below lib/marey */
    {"../share/marey/boot", NULL},         /* a prefix: lib and share */
    {"../../share/marey/boot", NULL},      /* a prefix with lib/ARCHITECTURE */
    {"../python/marey/boot", "../python"}, /* a build tree */
};

/* `dir`/`relative` made absolute, when it has the file `name`; else "". */
static bool find_folder(const char *dir, const char *relative, const char *name, char *out)
{
    char path[PATH_MAX];
    out[0] = '\0';
    if (relative == NULL || snprintf(path, sizeof path, "%s/%s", dir, relative) >= (int)sizeof path ||
        realpath(path, out) == NULL ||
        snprintf(path, sizeof path, "%s/%s", out, name) >= (int)sizeof path ||
        access(path, R_OK) != 0) {
        out[0] = '\0';
        return false;
    }
    return true;
}

void marey_python_boot(char *boot, char *package_parent)
{
    char lib[PATH_MAX];
    const char *wanted = getenv("MAREY_BOOT");
    boot[0] = package_parent[0] = '\0';
    if (wanted != NULL && wanted[0] != '\0') {
        find_folder(wanted, ".", "sitecustomize.py", boot);
        return;
    }
    if (realpath(marey_library_path(), lib) == NULL || strrchr(lib, '/') == NULL)
        return;
    *strrchr(lib, '/') = '\0';
    for (size_t i = 0; i < MAREY__COUNT_OF(layouts); i++) {
        if (find_folder(lib, layouts[i].boot, "sitecustomize.py", boot)) {
            find_folder(lib, layouts[i].package_parent, "marey/__init__.py", package_parent);
            return;
        }
    }
}
