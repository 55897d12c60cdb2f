/* Any bytes as the memory of a Python: whatever its pointers and lengths are, readers end and stay within. */
#include "../unit/remote_image.h"
#include "fuzz.h"

/* The same bytes as a list of mappings. */
static void parse_maps(const uint8_t *data, size_t size)
{
    struct marey__remote_maps maps = {0};
    marey__buf_put(&maps.text, data, size);
    if (marey__remote_maps_parse(&maps))
        for (size_t i = 0; i < maps.n; i++)
            MAREY_ASSERT(maps.maps[i].begin < maps.maps[i].end && strlen(maps.maps[i].path) <= size);
    marey__remote_maps_fini(&maps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image image;
    struct marey__remote *remote;
    struct marey__buf told = {0};
    parse_maps(data, size);
    if (!image_parse(data, size, &image))
        return 0;
    const struct marey__remote_memory memory = image_memory(&image);
    if (marey__remote_open_image(&memory, image.runtime, image.version, &remote) == MAREY_OK) {
        image_tell(remote, &told);
        marey__remote_close(remote);
    }
    /* Tables of lines, besides, of bytes that no code object had. */
    for (int format = MAREY__REMOTE_LINES_LINETABLE; format <= MAREY__REMOTE_LINES_LOCATIONS;
         format++) {
        struct marey__remote_line_run *runs = NULL;
        size_t n = 0;
        if (marey__remote_lines_decode((enum marey__remote_line_format)format, data, size,
                                       (uint32_t)size, &runs, &n)) {
            for (size_t i = 1; i < n; i++)
                MAREY_ASSERT(runs[i - 1].begin < runs[i].begin);
            (void)marey__remote_lines_at(runs, n, (uint32_t)size);
            marey__free(runs);
        }
    }
    marey__buf_fini(&told);
    marey__free(image.pieces);
    return 0;
}
