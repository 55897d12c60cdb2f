/* The calls of each process that ranks do together. */
#include <stdlib.h>
#include <string.h>

#include "analyze/device/internal.h"

/* ---- what is taken ---- */

/* A call while it is taken. */
struct taking {
    struct marey__collectives *all;
    const struct marey__work_set *set;
    const struct marey__collective_call *call;
};

static const struct marey_site_info *site_of(const struct taking *t, uint32_t site)
{
    return marey_recording_site(t->set->recording, t->set->process->index, site);
}

static bool is_between_two(enum marey_collective what)
{
    return what == MAREY_COLLECTIVE_SEND || what == MAREY_COLLECTIVE_RECV;
}

/* What is done, in words: the kind, or where that says nothing the name without its arguments. */
static void put_what(const struct taking *t, struct marey__buf *buf)
{
    if (t->call->what.what != MAREY_COLLECTIVE_OTHER &&
        t->call->what.what != MAREY_COLLECTIVE_UNKNOWN) {
        marey__buf_puts(buf, marey__collective_name(t->call->what.what));
        return;
    }
    const struct marey_site_info *site = site_of(t, t->call->site);
    marey__buf_put(buf, site->name, strcspn(site->name, "("));
}

/* The number of a text that is copied when new; MAREY__NO_NAME without memory. */
static uint32_t number_of(struct marey__collectives *all, struct marey__names *names,
                          struct marey__buf *text)
{
    if (text->failed)
        return MAREY__NO_NAME;
    const size_t n = names->n;
    const uint32_t number =
        marey__names_number(names, text->data != NULL ? text->data : "", text->len);
    if (number != n)
        return number;
    const char *kept =
        marey__arena_text(&all->texts, text->data != NULL ? text->data : "", text->len);
    if (kept == NULL) {
        names->n--; /* it is never looked up again: the caller gives up */
        return MAREY__NO_NAME;
    }
    names->names[number].text = kept;
    return number;
}

/* The group: its name and who is in it. */
static uint32_t find_group(const struct taking *t)
{
    struct marey__buf text = {0};
    const struct marey_site_info *site = site_of(t, t->call->what.group);
    if (t->call->what.group != 0) {
        marey__buf_put(&text, site->name, site->name_len);
        if (site->domain[0] != '\0')
            marey__buf_printf(&text, " %s", site->domain);
    }
    const uint32_t number = number_of(t->all, &t->all->groups, &text);
    marey__buf_fini(&text);
    return number;
}

/* The kind of the call, made when new; MAREY__NO_NAME without memory. */
static uint32_t find_kind(const struct taking *t)
{
    struct marey__collectives *all = t->all;
    const uint32_t group = find_group(t);
    if (group == MAREY__NO_NAME)
        return MAREY__NO_NAME;
    struct marey__buf key = {0};
    marey__buf_printf(&key, "%u %c ", group, t->call->is_on_host ? 'h' : 'd');
    const size_t what = key.len;
    put_what(t, &key);
    const size_t n = all->keys.n;
    const uint32_t number = number_of(all, &all->keys, &key);
    marey__buf_fini(&key);
    if (number == MAREY__NO_NAME)
        return MAREY__NO_NAME;
    if (number == n) {
        if (!marey__grow(&all->kinds, &all->kinds_cap, n + 1, sizeof *all->kinds)) {
            all->keys.n--;
            return MAREY__NO_NAME;
        }
        all->kinds[number] = (struct marey__collective_kind){
            .what = all->keys.names[number].text + what,
            .group = group,
            .collective = t->call->what.what,
            .is_between_two = is_between_two(t->call->what.what),
            .slowest = MAREY__NO_INDEX,
        };
    }
    struct marey__collective_kind *kind = &all->kinds[number];
    kind->group_size = MAREY__MAX(kind->group_size, t->call->what.group_size);
    kind->is_by_order |= t->call->what.sequence == UINT64_MAX;
    return number;
}

static bool take(const struct taking *t)
{
    struct marey__collectives *all = t->all;
    const uint32_t kind = find_kind(t);
    if (kind == MAREY__NO_NAME ||
        !marey__grow(&all->calls, &all->calls_cap, all->n_calls + 1, sizeof *all->calls))
        return false;
    all->calls[all->n_calls++] = (struct marey__rank_call){
        .begin_ns = t->call->begin_ns,
        .end_ns = MAREY__MAX(t->call->begin_ns, t->call->end_ns),
        .bytes = MAREY__MAX(t->call->what.bytes_in, t->call->what.bytes_out),
        .sequence = t->call->what.sequence,
        .kind = kind,
        .member = (uint32_t)all->n_members - 1,
    };
    return true;
}

marey_status marey__collectives_add(struct marey__collectives *all, uint32_t job,
                                    const struct marey__work_set *set)
{
    MAREY__TRY_MEMORY(
        marey__grow(&all->members, &all->members_cap, all->n_members + 1, sizeof *all->members));
    all->members[all->n_members++] = (struct marey__member){set->process, job};
    for (size_t i = 0; i < set->n_collectives; i++) {
        const struct taking t = {.all = all, .set = set, .call = &set->collectives[i]};
        MAREY__TRY_MEMORY(take(&t));
    }
    return MAREY_OK;
}

void marey__collectives_fini(struct marey__collectives *all)
{
    marey__names_fini(&all->keys);
    marey__names_fini(&all->groups);
    marey__arena_fini(&all->texts);
    marey__free(all->kinds);
    marey__free(all->members);
    marey__free(all->calls);
    marey__free(all->sums);
    *all = (struct marey__collectives){0};
}
