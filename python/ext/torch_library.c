/* PyTorch's functions by their C++ names. */
#include "torch_abi.h"

#include <dlfcn.h>
#include <string.h>

struct torch_api torch_api;

static bool find(void *library, const char *name, void *place)
{
    void *const symbol = dlsym(library, name);
    memcpy(place, &symbol, sizeof symbol); /* ISO C has no way from an object to a function */
    return symbol != NULL;
}

const char *torch_library_open(const char *path)
{
#if defined(__x86_64__)
    void *const library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL)
        return "operators cannot be recorded: libtorch_cpu.so of this PyTorch is not loaded; "
               "import torch first";
    struct torch_api found = {0};
    const bool is_whole =
        find(library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE", &found.add) &&
        find(library, "_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE", &found.add_here) &&
        find(library, "_ZN2at14removeCallbackEm", &found.remove) &&
        find(library, "_ZNK2at14RecordFunction4nameEv", &found.name) &&
        find(library, "_ZNK2at14RecordFunction10num_inputsEv", &found.n_inputs) &&
        find(library, "_ZNK2at14RecordFunction7isAsyncEv", &found.is_async) &&
        find(library, "_ZN3c1019UndefinedTensorImpl10_singletonE", &found.undefined);
    if (!is_whole)
        return "operators cannot be recorded: this PyTorch does not have the functions that marey "
               "knows; use "
               "engine=\"torch\"";
    torch_api = found;
    return NULL;
#else
    (void)path;
    return "operators can be recorded on x86-64 only; use engine=\"torch\"";
#endif
}
