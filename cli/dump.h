/* kymo dump: what its files share. cmd_dump.c chooses values, dump_show.c tells of them, dump_write.c hands them out. */
#ifndef KYMO_CLI_DUMP_H
#define KYMO_CLI_DUMP_H

#include "cli.h"
#include <kymo/dumpfile.h>

/* A value that was chosen, while its step is open. */
struct dump_choice {
    kymo_dumps *dumps;
    struct kymo_dumped_step step;
    size_t step_number, value_number;
    const struct kymo_dumped_value *value;
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
int dump_choose(kymo_dumps *dumps, const char *name, dump_use *use, void *ctx);
/* The value's numbers; CLI_BAD with a sentence when it has none. */
int dump_get(const struct dump_choice *choice, struct kymo_tensor *out);
/* "[2,3]". Returned in `into`. */
const char *dump_shape(const struct kymo_dumped_value *value, char *into, size_t size);
/* Whether this step is wanted by --step and --rank. */
bool dump_wants(const struct kymo_dumped_step *step);

int dump_list(kymo_dumps *dumps, const char *name);
int dump_print(kymo_dumps *dumps, const char *name);
int dump_stats(kymo_dumps *dumps, const char *name);
int dump_cat(kymo_dumps *dumps, const char *name);
int dump_image(kymo_dumps *dumps, const char *name);

#endif
