/* The communication of a range: one more record, after its begin or before its end. */
#include <string.h>

#include "instrument/range/internal.h"
#include <marey/communication.h>

marey_id marey_communication_group(const char *name, const char *ranks)
{
    const struct marey_site site = {.name = name != NULL ? name : "", .domain = ranks};
    return marey_site_intern_whole(&site, strlen(site.name));
}

void marey_communication_tell_on(const struct marey_communication *what)
{
    if ((marey_on() & MAREY_ON_RECORD) == 0)
        return;
    const uint64_t words[] = {(what->group & 0xfffffu) | (uint64_t)(what->what & 0xffu) << 20,
                              what->bytes_in, what->bytes_out, what->sequence,
                              what->group_size | (uint64_t)(uint32_t)what->peer << 32};
    marey__lane_put_record(MAREY_RECORD_COMMUNICATION, words, MAREY__COUNT_OF(words));
}

void marey_communication_begin_on(marey_id id, const struct marey_communication *what)
{
    marey_begin_on(id);
    marey_communication_tell_on(what);
}
