/* marey dump: shared by its files. cmd_dump.c chooses values, dump_show.c prints them, dump_write.c writes them to files. */
#ifndef MAREY_CLI_DUMP_H
#define MAREY_CLI_DUMP_H

#include "cli.h"
#include <marey/dumpfile.h>

/* A value that was chosen, while its step is open. */
struct dump_choice {
    marey_dumps *dumps;
    struct marey_dumped_step step;
    size_t step_number, value_number;
    const struct marey_dumped_value *value;
};

/* A status of the command; anything but CLI_FINE ends it. */
typedef int dump_use(void *ctx, const struct dump_choice *choice);

/* What was asked for, as the options say it. */
struct dump_given {
    bool json, csv, all;
    const char *step, *rank, *as, *output, *range, *map, *type, *color;
    uint32_t limit, picture;
};
extern struct dump_given dump_given;

/* Call `use` for each value whose name is `name` or matches it, NULL for all; a sentence when there is none. */
int dump_choose(marey_dumps *dumps, const char *name, dump_use *use, void *ctx);
/* The value's numbers; CLI_BAD with a sentence when it has none. */
int dump_get(const struct dump_choice *choice, struct marey_tensor *out);
/* "[2,3]". Returned in `into`. */
const char *dump_shape(const struct marey_dumped_value *value, char *into, size_t size);
/* Whether this step is wanted by --step and --rank. */
bool dump_wants(const struct marey_dumped_step *step);

int dump_list(marey_dumps *dumps, const char *name);
int dump_print(marey_dumps *dumps, const char *name);
int dump_stats(marey_dumps *dumps, const char *name);
int dump_cat(marey_dumps *dumps, const char *name);
int dump_image(marey_dumps *dumps, const char *name);

#endif
