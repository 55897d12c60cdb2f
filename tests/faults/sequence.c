/* The ranges that faulty programs record. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sequence.h"

static marey_id names[SEQUENCE_NAMES], number;

void sequence_init(void)
{
    if (number != 0)
        return;
    for (int i = 0; i < SEQUENCE_NAMES; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        names[i] = marey_site_intern(name, strlen(name), NULL, 0, NULL, 0);
    }
    number = marey_site_intern("number", 6, NULL, 0, NULL, 0);
}

void sequence_range(uint64_t i)
{
    const marey_id id = names[i % SEQUENCE_NAMES];
    marey_begin(id);
    if (i % SEQUENCE_MARK_EVERY == 0)
        marey_mark_payload(number, &(struct marey_payload){.type = MAREY_PAYLOAD_U64, .as.u64 = i});
    marey_end(id);
}

void sequence_ranges(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        sequence_range(i);
}

void sequence_start(const char *path, const char *text)
{
    sequence_init();
    if (marey_start(&(struct marey_options){.path = path, .text = text}) != MAREY_OK) {
        fprintf(stderr, "%s\n", marey_last_error());
        exit(1);
    }
}
