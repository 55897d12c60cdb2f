/*
 * The color of a site in Chrome's format, which knows colors by name only, and only those that its
 * viewer reserves for its own purposes. The nearest one is taken.
 */
#include "present/export/internal.h"

/* As chrome://tracing draws them; a choice of those that differ from one another. */
static const struct {
    const char *name;
    uint8_t red, green, blue;
} reserved[] = {
    {"black", 0, 0, 0},
    {"generic_work", 125, 125, 125},
    {"grey", 221, 221, 221},
    {"white", 255, 255, 255},
    {"terrible", 180, 0, 0},
    {"rail_animation", 244, 74, 63},
    {"cq_build_failed", 238, 136, 136},
    {"thread_state_iowait", 255, 140, 0},
    {"bad", 180, 125, 0},
    {"yellow", 255, 255, 0},
    {"cq_build_running", 255, 255, 119},
    {"olive", 100, 100, 0},
    {"good", 0, 125, 0},
    {"rail_load", 13, 168, 97},
    {"cq_build_passed", 153, 238, 102},
    {"thread_state_running", 126, 200, 148},
    {"background_memory_dump", 0, 180, 180},
    {"vsync_highlight_color", 0, 0, 255},
    {"light_memory_dump", 0, 0, 180},
    {"rail_response", 67, 135, 253},
    {"thread_state_runnable", 133, 160, 210},
    {"detailed_memory_dump", 180, 0, 180},
    {"thread_state_uninterruptible", 182, 125, 143},
};

/* Squared, with the eye's weights: green counts most. */
static int32_t distance(size_t i, uint32_t argb)
{
    const int32_t red = (int32_t)(argb >> 16 & 0xff) - reserved[i].red;
    const int32_t green = (int32_t)(argb >> 8 & 0xff) - reserved[i].green;
    const int32_t blue = (int32_t)(argb & 0xff) - reserved[i].blue;
    return 2 * red * red + 4 * green * green + 3 * blue * blue;
}

const char *marey__chrome_color(uint32_t argb)
{
    size_t nearest = 0;
    for (size_t i = 1; i < MAREY__COUNT_OF(reserved); i++) {
        if (distance(i, argb) < distance(nearest, argb))
            nearest = i;
    }
    return reserved[nearest].name;
}
