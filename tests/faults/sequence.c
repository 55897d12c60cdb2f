/* The ranges that faulty programs record. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sequence.h"

static kymo_id names[SEQUENCE_NAMES], number;

void sequence_init(void)
{
    if (number != 0)
        return;
    for (int i = 0; i < SEQUENCE_NAMES; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        names[i] = kymo_site_intern(name, strlen(name), NULL, 0, NULL, 0);
    }
    number = kymo_site_intern("number", 6, NULL, 0, NULL, 0);
}

void sequence_range(uint64_t i)
{
    const kymo_id id = names[i % SEQUENCE_NAMES];
    kymo_begin(id);
    if (i % SEQUENCE_MARK_EVERY == 0)
        kymo_mark_payload(number, &(struct kymo_payload){.type = KYMO_PAYLOAD_U64, .as.u64 = i});
    kymo_end(id);
}

void sequence_ranges(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        sequence_range(i);
}

void sequence_start(const char *path, const char *text)
{
    sequence_init();
    if (kymo_start(&(struct kymo_options){.path = path, .text = text}) != KYMO_OK) {
        fprintf(stderr, "%s\n", kymo_last_error());
        exit(1);
    }
}
