/* marey dump: shared by its files. cmd_dump.c selects values, dump_show.c prints them, dump_write.c writes them to files. */
#ifndef MAREY_CLI_DUMP_H
#define MAREY_CLI_DUMP_H

#include "lib/cli.h"
#include <marey/dumpfile.h>

/* A selected value, while its step is open. */
struct dump_choice {
    marey_dumps *dumps;
    struct marey_dumped_step step;
    size_t step_number, value_number;
    const struct marey_dumped_value *value;
};

/* Returns an exit status; anything but CLI_FINE ends the iteration. */
typedef int dump_use(void *ctx, const struct dump_choice *choice);

/* The given options. */
struct dump_given {
    bool json, csv, all;
    const char *step, *rank, *as, *output, *range, *map, *type, *color;
    uint32_t limit, picture;
};
extern struct dump_given dump_given;

/* Calls `use` for each value whose name is or matches `name`, NULL for all; prints a message if there is none. */
int dump_choose(marey_dumps *dumps, const char *name, dump_use *use, void *ctx);
/* Reads the value's numbers; CLI_BAD with a message if it has none. */
int dump_get(const struct dump_choice *choice, struct marey_tensor *out);
/* "[2,3]". Returned in `into`. */
const char *dump_shape(const struct marey_dumped_value *value, char *into, size_t size);
/* Whether --step and --rank select this step. */
bool dump_wants(const struct marey_dumped_step *step);

int dump_list(marey_dumps *dumps, const char *name);
int dump_print(marey_dumps *dumps, const char *name);
int dump_stats(marey_dumps *dumps, const char *name);
int dump_cat(marey_dumps *dumps, const char *name);
int dump_image(marey_dumps *dumps, const char *name);

#endif
