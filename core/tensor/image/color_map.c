/* Colours for numbers: a few of each map, and straight lines between. */
#include "tensor/image/internal.h"

static const uint32_t viridis[] = {0x440154, 0x482878, 0x3e4a89, 0x31688e, 0x26828e,
                                   0x1f9e89, 0x35b779, 0x6ece58, 0xb5de2b, 0xfde725};
static const uint32_t heat[] = {0x000000, 0x3b0a2a, 0x8c1127, 0xd4361b,
                                0xf7801a, 0xfcc740, 0xfffbe0};
static const uint32_t diverging[] = {0x1a3f8f, 0x5b86cf, 0xaec8ea, 0xf7f7f7,
                                     0xf1b7a5, 0xd56253, 0x8f1326};
static const uint32_t grey[] = {0x000000, 0xffffff};

static const struct {
    const uint32_t *colors;
    size_t n;
} maps[MAREY_N_MAPS] = {
    [MAREY_MAP_NONE] = {grey, MAREY__COUNT_OF(grey)},
    [MAREY_MAP_VIRIDIS] = {viridis, MAREY__COUNT_OF(viridis)},
    [MAREY_MAP_HEAT] = {heat, MAREY__COUNT_OF(heat)},
    [MAREY_MAP_DIVERGING] = {diverging, MAREY__COUNT_OF(diverging)},
};

void marey__color_map_fill(enum marey_color_map map, uint8_t table[256][3])
{
    const size_t n_between = maps[map].n - 1;
    for (size_t i = 0; i < 256; i++) {
        const size_t place = i * n_between; /* in 255ths of a colour */
        const size_t left = MAREY__MIN(place / 255, n_between - 1), behind = place - left * 255;
        for (uint32_t c = 0; c < 3; c++) {
            const size_t a = maps[map].colors[left] >> (16 - 8 * c) & 0xff;
            const size_t b = maps[map].colors[left + 1] >> (16 - 8 * c) & 0xff;
            table[i][c] = (uint8_t)((a * (255 - behind) + b * behind + 127) / 255);
        }
    }
}
