/* The calls of each process that ranks do together. */
#include <stdlib.h>
#include <string.h>

#include "analyze/collectives.h"

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for the collectives");
}

/* ---- what is taken ---- */

/* A call while it is taken. */
struct taking {
    struct kymo__collectives *all;
    const struct kymo__work_set *set;
    struct kymo_communication what;
    uint32_t site;
    bool is_on_host;
    uint64_t begin_ns, end_ns;
};

static const struct kymo_site_info *site_of(const struct taking *t, uint32_t site)
{
    return kymo_recording_site(t->set->recording, t->set->process->index, site);
}

static bool is_between_two(enum kymo_collective what)
{
    return what == KYMO_COLLECTIVE_SEND || what == KYMO_COLLECTIVE_RECV;
}

/* How the kernels of NCCL and its relatives are named. Theirs for sends serves all-to-all as well. */
static enum kymo_collective guess(const struct kymo_site_info *site)
{
    static const struct {
        const char *part;
        enum kymo_collective what;
    } parts[] = {
        {"AllReduce", KYMO_COLLECTIVE_ALL_REDUCE},
        {"AllGather", KYMO_COLLECTIVE_ALL_GATHER},
        {"ReduceScatter", KYMO_COLLECTIVE_REDUCE_SCATTER},
        {"AllToAll", KYMO_COLLECTIVE_ALL_TO_ALL},
        {"Broadcast", KYMO_COLLECTIVE_BROADCAST},
        {"Reduce_", KYMO_COLLECTIVE_REDUCE},
    };
    for (size_t i = 0; i < KYMO__COUNT_OF(parts); i++)
        if (strstr(site->name, parts[i].part) != NULL)
            return parts[i].what;
    return KYMO_COLLECTIVE_OTHER;
}

/* What is done, in words: the kind, or where that says nothing the name without its arguments. */
static void put_what(const struct taking *t, struct kymo__buf *buf)
{
    if (t->what.what != KYMO_COLLECTIVE_OTHER && t->what.what != KYMO_COLLECTIVE_UNKNOWN) {
        kymo__buf_puts(buf, kymo__collective_name(t->what.what));
        return;
    }
    const struct kymo_site_info *site = site_of(t, t->site);
    kymo__buf_put(buf, site->name, strcspn(site->name, "("));
}

/* The number of a text that is copied when new; KYMO__NO_NAME without memory. */
static uint32_t number_of(struct kymo__collectives *all, struct kymo__names *names,
                          struct kymo__buf *text)
{
    if (text->failed)
        return KYMO__NO_NAME;
    const size_t n = names->n;
    const uint32_t number =
        kymo__names_number(names, text->data != NULL ? text->data : "", text->len);
    if (number != n)
        return number;
    const char *kept = kymo__arena_text(&all->texts, text->data != NULL ? text->data : "", text->len);
    if (kept == NULL) {
        names->n--; /* it is never looked up again: the caller gives up */
        return KYMO__NO_NAME;
    }
    names->names[number].text = kept;
    return number;
}

/* The group: its name and who is in it. */
static uint32_t find_group(const struct taking *t)
{
    struct kymo__buf text = {0};
    const struct kymo_site_info *site = site_of(t, t->what.group);
    if (t->what.group != 0) {
        kymo__buf_put(&text, site->name, site->name_len);
        if (site->domain[0] != '\0')
            kymo__buf_printf(&text, " %s", site->domain);
    }
    const uint32_t number = number_of(t->all, &t->all->groups, &text);
    kymo__buf_fini(&text);
    return number;
}

/* The kind of the call, made when new; KYMO__NO_NAME without memory. */
static uint32_t find_kind(const struct taking *t)
{
    struct kymo__collectives *all = t->all;
    const uint32_t group = find_group(t);
    if (group == KYMO__NO_NAME)
        return KYMO__NO_NAME;
    struct kymo__buf key = {0};
    kymo__buf_printf(&key, "%u %c ", group, t->is_on_host ? 'h' : 'd');
    const size_t what = key.len;
    put_what(t, &key);
    const size_t n = all->keys.n;
    const uint32_t number = number_of(all, &all->keys, &key);
    kymo__buf_fini(&key);
    if (number == KYMO__NO_NAME)
        return KYMO__NO_NAME;
    if (number == n) {
        if (!kymo__grow(&all->kinds, &all->kinds_cap, n + 1, sizeof *all->kinds)) {
            all->keys.n--;
            return KYMO__NO_NAME;
        }
        all->kinds[number] = (struct kymo__collective_kind){
            .what = all->keys.names[number].text + what,
            .group = group,
            .collective = t->what.what,
            .is_between_two = is_between_two(t->what.what),
            .slowest = KYMO__NO_INDEX,
        };
    }
    struct kymo__collective_kind *kind = &all->kinds[number];
    kind->group_size = KYMO__MAX(kind->group_size, t->what.group_size);
    kind->is_by_order |= t->what.sequence == UINT64_MAX;
    return number;
}

static bool take(const struct taking *t)
{
    struct kymo__collectives *all = t->all;
    const uint32_t kind = find_kind(t);
    if (kind == KYMO__NO_NAME ||
        !kymo__grow(&all->calls, &all->calls_cap, all->n_calls + 1, sizeof *all->calls))
        return false;
    all->calls[all->n_calls++] = (struct kymo__rank_call){
        .begin_ns = t->begin_ns,
        .end_ns = KYMO__MAX(t->begin_ns, t->end_ns),
        .bytes = KYMO__MAX(t->what.bytes_in, t->what.bytes_out),
        .sequence = t->what.sequence,
        .kind = kind,
        .member = (uint32_t)all->n_members - 1,
    };
    return true;
}

/*
 * Which collectives are only told by the host while a device does them: those with launched work, which has a copy of
 * its own, and those of NCCL, which return at once.
 */
static uint8_t *find_superseded(const struct kymo__work_set *set)
{
    uint8_t *is_superseded = kymo__calloc(set->n_collectives + 1, 1);
    if (is_superseded == NULL)
        return NULL;
    for (size_t i = 0; i < set->n_launches; i++)
        if (set->launches[i].collective != KYMO__NO_INDEX)
            is_superseded[set->launches[i].collective] = 1;
    for (size_t i = 0; i < set->n_collectives; i++) {
        const struct kymo__collective_call *call = &set->collectives[i];
        const struct kymo_site_info *site =
            kymo_recording_site(set->recording, set->process->index, call->site);
        is_superseded[i] |= strcasestr(site->name, "nccl") != NULL;
        is_superseded[i] &= call->is_on_host;
    }
    return is_superseded;
}

static bool take_told(const struct taking *common)
{
    const struct kymo__work_set *set = common->set;
    uint8_t *is_superseded = find_superseded(set);
    if (is_superseded == NULL)
        return false;
    bool is_done = true;
    for (size_t i = 0; is_done && i < set->n_collectives; i++) {
        const struct kymo__collective_call *call = &set->collectives[i];
        struct taking t = *common;
        t.what = call->what;
        t.site = call->site;
        t.is_on_host = call->is_on_host;
        t.begin_ns = call->begin_ns;
        t.end_ns = call->end_ns;
        is_done = is_superseded[i] || take(&t);
    }
    kymo__free(is_superseded);
    return is_done;
}

/* Kernels of which nothing but the name says that they communicate. */
static bool take_untold(const struct taking *common, const struct kymo__device_work *device)
{
    for (size_t i = 0; i < device->n_work; i++) {
        const struct kymo__work *work = &device->work[i];
        if (work->class != KYMO__COMMUNICATES || work->collective != KYMO__NO_INDEX)
            continue;
        struct taking t = *common;
        t.site = work->site;
        t.what = (struct kymo_communication){
            .what = guess(site_of(common, work->site)), .sequence = UINT64_MAX, .peer = -1};
        t.begin_ns = work->begin_ns;
        t.end_ns = work->end_ns;
        if (!take(&t))
            return false;
    }
    return true;
}

kymo_status kymo__collectives_add(struct kymo__collectives *all, uint32_t recording,
                                  const struct kymo__work_set *set)
{
    const struct taking common = {.all = all, .set = set};
    if (!kymo__grow(&all->members, &all->members_cap, all->n_members + 1, sizeof *all->members))
        return no_memory();
    all->members[all->n_members++] = (struct kymo__member){set->process, recording};
    if (!take_told(&common))
        return no_memory();
    for (size_t i = 0; i < set->n_devices; i++)
        if (set->devices[i].device >= 0 && !take_untold(&common, &set->devices[i]))
            return no_memory();
    return KYMO_OK;
}

void kymo__collectives_fini(struct kymo__collectives *all)
{
    kymo__names_fini(&all->keys);
    kymo__names_fini(&all->groups);
    kymo__arena_fini(&all->texts);
    kymo__free(all->kinds);
    kymo__free(all->members);
    kymo__free(all->calls);
    kymo__free(all->sums);
    *all = (struct kymo__collectives){0};
}
