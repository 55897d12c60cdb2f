/* Any bytes as the memory of a Python: whatever its pointers and lengths are, readers end and stay within. */
#include "../unit/remote_image.h"
#include "fuzz.h"

/* The same bytes as a list of mappings. */
static void parse_maps(const uint8_t *data, size_t size)
{
    struct kymo__remote_maps maps = {0};
    kymo__buf_put(&maps.text, data, size);
    if (kymo__remote_maps_parse(&maps))
        for (size_t i = 0; i < maps.n; i++)
            KYMO_ASSERT(maps.maps[i].begin < maps.maps[i].end && strlen(maps.maps[i].path) <= size);
    kymo__remote_maps_fini(&maps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image image;
    struct kymo__remote *remote;
    struct kymo__buf told = {0};
    parse_maps(data, size);
    if (!image_parse(data, size, &image))
        return 0;
    const struct kymo__remote_memory memory = image_memory(&image);
    if (kymo__remote_open_image(&memory, image.runtime, image.version, &remote) == KYMO_OK) {
        image_tell(remote, &told);
        kymo__remote_close(remote);
    }
    /* Tables of lines, besides, of bytes that no code object had. */
    for (int format = KYMO__REMOTE_LINES_LNOTAB; format <= KYMO__REMOTE_LINES_LOCATIONS; format++) {
        struct kymo__remote_line_run *runs = NULL;
        size_t n = 0;
        if (kymo__remote_lines_decode((enum kymo__remote_line_format)format, data, size,
                                      (uint32_t)size, &runs, &n)) {
            for (size_t i = 1; i < n; i++)
                KYMO_ASSERT(runs[i - 1].begin < runs[i].begin);
            (void)kymo__remote_lines_at(runs, n, (uint32_t)size);
            kymo__free(runs);
        }
    }
    kymo__buf_fini(&told);
    kymo__free(image.pieces);
    return 0;
}
