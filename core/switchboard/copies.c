/*
 * A second copy of libmarey in one process (a wheel's and the system's, a vendored one) would be a second switchboard:
 * half of the program would be recorded elsewhere or not at all. So each copy checks at load whether another was loaded
 * before, and if so stays off and reports the two files.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "switchboard/internal.h"

static char my_path[PATH_MAX], earlier_path[PATH_MAX];

/* Whether the object loaded from `path` is another libmarey. */
static bool is_other_copy(const char *path)
{
    if (strstr(marey__base_name(path), "marey") == NULL)
        return false;
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL)
        return false;
    Dl_info info;
    const void *abi = dlsym(handle, "marey_abi");
    /* In a tool or extension that only links to libmarey, the symbol is ours or that of a third file. */
    const bool is_other = abi != NULL && abi != (const void *)(uintptr_t)marey_abi &&
                          dladdr(abi, &info) != 0 && info.dli_fname != NULL &&
                          strcmp(info.dli_fname, path) == 0;
    dlclose(handle);
    return is_other;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    if (earlier_path[0] == '\0' && info->dlpi_name != NULL && info->dlpi_name[0] != '\0' &&
        is_other_copy(info->dlpi_name))
        snprintf(earlier_path, sizeof earlier_path, "%s", info->dlpi_name);
    return 0;
}

__attribute__((constructor(101))) static void look_for_copies(void)
{
    Dl_info info;
    if (dladdr((const void *)(uintptr_t)marey_abi, &info) != 0 && info.dli_fname != NULL)
        snprintf(my_path, sizeof my_path, "%s", info.dli_fname);
    dl_iterate_phdr(look_at, NULL);
    if (earlier_path[0] != '\0')
        marey__say("two copies of libmarey are in this process: %s, which is used, and %s, which "
                   "stays off; remove one of "
                   "them or load both by the same path",
                   earlier_path, my_path);
}

marey_status marey__copies_check(void)
{
    if (earlier_path[0] == '\0')
        return MAREY_OK;
    return marey__fail(MAREY_EDUPLICATE,
                       "this copy of libmarey (%s) stays off, because %s was loaded before it",
                       my_path, earlier_path);
}

const char *marey_library_path(void)
{
    return my_path;
}
