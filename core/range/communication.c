/* What a range communicates: one more record, behind its begin or before its end. */
#include <string.h>

#include "range/range_internal.h"
#include <kymo/communication.h>

kymo_id kymo_communication_group(const char *name, const char *ranks)
{
    const struct kymo_site site = {.name = name != NULL ? name : "", .domain = ranks};
    return kymo_site_intern_whole(&site, strlen(site.name));
}

void kymo_communication_tell_on(const struct kymo_communication *what)
{
    if ((kymo_on() & KYMO_ON_RECORD) == 0)
        return;
    const uint64_t words[] = {(what->group & 0xfffffu) | (uint64_t)(what->what & 0xffu) << 20,
                              what->bytes_in, what->bytes_out, what->sequence,
                              what->group_size | (uint64_t)(uint32_t)what->peer << 32};
    kymo__lane_put_record(KYMO_RECORD_COMMUNICATION, words, KYMO__COUNT_OF(words));
}

void kymo_communication_begin_on(kymo_id id, const struct kymo_communication *what)
{
    kymo_begin_on(id);
    kymo_communication_tell_on(what);
}
