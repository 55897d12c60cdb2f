/* Any text as a manifest, with a container of a few bytes. */
#include "dump_values.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct marey_dumps *const dumps = marey__calloc(1, sizeof *dumps);
    struct marey__dumpfile_step step = {
        .path = (char[]){"fuzzed"}, .stem = (char[]){"stem"}, .file = {.len = 4096 + 256}};
    struct marey__map text = padded_copy(data, size);
    if (dumps != NULL && marey__manifest_parse(dumps, &step, &text) == MAREY_OK) {
        check_values(&step);
        for (size_t i = 0; i < step.n_values; i++)
            for (size_t k = 0; k < step.values[i].n_files; k++)
                MAREY_ASSERT(strncmp(step.values[i].files[k], "stem/", 5) == 0 &&
                             strchr(step.values[i].files[k] + 5, '/') == NULL);
    }
    step.path = step.stem = NULL;
    marey__step_fini(&step);
    marey_dumps_close(dumps);
    free(text.data);
    return 0;
}
