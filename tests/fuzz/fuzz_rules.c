/* Any text as a file of rules, applied to some names. */
#include <stdlib.h>
#include <string.h>

#include "analyze/device/internal.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"", "ncclDevKernel_AllReduce",
                                        "void at::native::x<int>(a, b)"};
    struct marey__rules rules = {0};
    char *text = malloc(size > 0 ? size : 1); /* separate, to detect reads past its end */
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    const marey_status status = marey__rules_parse(&rules, "fuzzed", text, size);
    free(text); /* the rules have copies */
    for (size_t i = 0; status == MAREY_OK && rules.n > 0 && i < MAREY__COUNT_OF(names); i++) {
        const struct marey_site_info site = {
            .name = names[i], .name_len = (uint32_t)strlen(names[i]), .category = "data"};
        for (uint8_t kind = MAREY__KIND_RANGE; kind <= MAREY_WORK_SET; kind++)
            MAREY_ASSERT(marey__rules_find(&rules, &(struct marey__rule_subject){
                                                       .site = &site, .kind = kind}) < rules.n);
    }
    marey__rules_fini(&rules);
    return 0;
}
