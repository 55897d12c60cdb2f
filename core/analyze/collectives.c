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
    const struct kymo__collective_call *call;
};

static const struct kymo_site_info *site_of(const struct taking *t, uint32_t site)
{
    return kymo_recording_site(t->set->recording, t->set->process->index, site);
}

static bool is_between_two(enum kymo_collective what)
{
    return what == KYMO_COLLECTIVE_SEND || what == KYMO_COLLECTIVE_RECV;
}

/* What is done, in words: the kind, or where that says nothing the name without its arguments. */
static void put_what(const struct taking *t, struct kymo__buf *buf)
{
    if (t->call->what.what != KYMO_COLLECTIVE_OTHER && t->call->what.what != KYMO_COLLECTIVE_UNKNOWN) {
        kymo__buf_puts(buf, kymo__collective_name(t->call->what.what));
        return;
    }
    const struct kymo_site_info *site = site_of(t, t->call->site);
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
    const struct kymo_site_info *site = site_of(t, t->call->what.group);
    if (t->call->what.group != 0) {
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
    kymo__buf_printf(&key, "%u %c ", group, t->call->is_on_host ? 'h' : 'd');
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
            .collective = t->call->what.what,
            .is_between_two = is_between_two(t->call->what.what),
            .slowest = KYMO__NO_INDEX,
        };
    }
    struct kymo__collective_kind *kind = &all->kinds[number];
    kind->group_size = KYMO__MAX(kind->group_size, t->call->what.group_size);
    kind->is_by_order |= t->call->what.sequence == UINT64_MAX;
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
        .begin_ns = t->call->begin_ns,
        .end_ns = KYMO__MAX(t->call->begin_ns, t->call->end_ns),
        .bytes = KYMO__MAX(t->call->what.bytes_in, t->call->what.bytes_out),
        .sequence = t->call->what.sequence,
        .kind = kind,
        .member = (uint32_t)all->n_members - 1,
    };
    return true;
}

kymo_status kymo__collectives_add(struct kymo__collectives *all, uint32_t job,
                                  const struct kymo__work_set *set)
{
    if (!kymo__grow(&all->members, &all->members_cap, all->n_members + 1, sizeof *all->members))
        return no_memory();
    all->members[all->n_members++] = (struct kymo__member){set->process, job};
    for (size_t i = 0; i < set->n_collectives; i++) {
        const struct taking t = {.all = all, .set = set, .call = &set->collectives[i]};
        if (!take(&t))
            return no_memory();
    }
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
