/*
 * The calls of each process that are compared with other ranks: device activity, including kernels identified only by
 * name, and collectives of the host.
 *
 * An asynchronous operation and its wait are two host ranges with the same number in their group; the first has the
 * bytes (docs/formats/recording.md). They count as one call, from the begin of the first to the end of the second.
 */
#include "analyze/device/internal.h"

/* ---- an operation and the wait for it ---- */

static bool is_numbered(const struct marey__collective_call *call)
{
    return call->is_on_host && call->what.sequence != UINT64_MAX && call->what.group != 0;
}

MAREY__ORDER(by_operation, struct marey__collective_call *const,
             MAREY__UP_BY((*x)->what.group, (*y)->what.group)
                 MAREY__UP_BY((*x)->what.what, (*y)->what.what)
                     MAREY__UP_BY((*x)->what.sequence, (*y)->what.sequence)
                         MAREY__UP_BY((*x)->begin_ns, (*y)->begin_ns))

static bool is_wait_for(const struct marey__collective_call *call,
                        const struct marey__collective_call *start)
{
    return call->what.group == start->what.group && call->what.what == start->what.what &&
           call->what.sequence == start->what.sequence && call->site != start->site &&
           call->what.bytes_in == 0 && call->what.bytes_out == 0;
}

/* Remove the joined calls. */
static void drop_joined(struct marey__work_set *set)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n_collectives; i++)
        if (!set->collectives[i].is_joined)
            set->collectives[n++] = set->collectives[i];
    set->n_collectives = n;
}

static bool join(struct marey__work_set *set)
{
    struct marey__collective_call **const calls MAREY__FREED =
        marey__calloc(set->n_collectives + 1, sizeof *calls);
    size_t n = 0;
    if (calls == NULL)
        return false;
    for (size_t i = 0; i < set->n_collectives; i++)
        if (is_numbered(&set->collectives[i]))
            calls[n++] = &set->collectives[i];
    qsort(calls, n, sizeof *calls, by_operation);
    struct marey__collective_call *start = n > 0 ? calls[0] : NULL;
    for (size_t i = 1; i < n; i++) {
        if (is_wait_for(calls[i], start)) {
            start->end_ns = MAREY__MAX(start->end_ns, calls[i]->end_ns);
            calls[i]->is_joined = true;
        } else {
            start = calls[i];
        }
    }
    drop_joined(set);
    return true;
}

/* ---- which calls are compared ---- */

/* Names of kernels in NCCL and its derivatives. Their send kernel is also used for all-to-all. */
static enum marey_collective guess(const struct marey_site_info *site)
{
    static const struct {
        const char *part;
        enum marey_collective what;
    } parts[] = {
        {"AllReduce", MAREY_COLLECTIVE_ALL_REDUCE},
        {"AllGather", MAREY_COLLECTIVE_ALL_GATHER},
        {"ReduceScatter", MAREY_COLLECTIVE_REDUCE_SCATTER},
        {"AllToAll", MAREY_COLLECTIVE_ALL_TO_ALL},
        {"Broadcast", MAREY_COLLECTIVE_BROADCAST},
        {"Reduce_", MAREY_COLLECTIVE_REDUCE},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(parts); i++)
        if (strstr(site->name, parts[i].part) != NULL)
            return parts[i].what;
    return MAREY_COLLECTIVE_OTHER;
}

/*
 * Drop host records of collectives executed on a device: those with launched work, which has a copy of the record, and
 * those of NCCL, whose calls return at once.
 */
static bool drop_superseded(struct marey__work_set *set)
{
    uint8_t *const is_launched MAREY__FREED = marey__calloc(set->n_collectives + 1, 1);
    if (is_launched == NULL)
        return false;
    for (size_t i = 0; i < set->n_launches; i++)
        if (set->launches[i].collective != MAREY__NO_INDEX)
            is_launched[set->launches[i].collective] = 1;
    size_t n = 0;
    for (size_t i = 0; i < set->n_collectives; i++) {
        const struct marey__collective_call *call = &set->collectives[i];
        const char *const name = marey__work_site(set, call->site)->name;
        if (!call->is_on_host || (!is_launched[i] && strcasestr(name, "nccl") == NULL))
            set->collectives[n++] = *call;
    }
    set->n_collectives = n;
    return true;
}

/* Kernels recognized as communication only by their name. */
static bool add_unrecorded(struct marey__work_set *set, const struct marey__device_work *device)
{
    for (size_t i = 0; i < device->n_work; i++) {
        const struct marey__work *work = &device->work[i];
        if (work->class != MAREY__COMMUNICATES || work->collective != MAREY__NO_INDEX)
            continue;
        const struct marey__collective_call call = {
            .what = {.what = guess(marey__work_site(set, work->site)),
                     .sequence = UINT64_MAX,
                     .peer = -1},
            .begin_ns = work->begin_ns,
            .end_ns = work->end_ns,
            .site = work->site,
        };
        if (marey__work_set_add_collective(set, &call) == MAREY__NO_INDEX)
            return false;
    }
    return true;
}

bool marey__collectives_keep(struct marey__work_set *set)
{
    if (!drop_superseded(set) || !join(set))
        return false;
    for (size_t i = 0; i < set->n_devices; i++)
        if (set->devices[i].device >= 0 && !add_unrecorded(set, &set->devices[i]))
            return false;
    return true;
}

/* ---- collecting calls ---- */

/* State while a process's calls are added. */
struct taking {
    struct marey__collectives *all;
    const struct marey__work_set *set;
    const struct marey__collective_call *call;
};

static const struct marey_site_info *site_of(const struct taking *t, uint32_t site)
{
    return marey__work_site(t->set, site);
}

static bool is_between_two(enum marey_collective what)
{
    return what == MAREY_COLLECTIVE_SEND || what == MAREY_COLLECTIVE_RECV;
}

/* The kind of operation, or if that is unspecific the name without its arguments. */
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

/* The number of a string, which is copied if new; MAREY__NO_NAME on out of memory. */
static uint32_t number_of(struct marey__collectives *all, struct marey__names *names,
                          const struct marey__buf *text)
{
    return text->failed ? MAREY__NO_NAME
                        : marey__names_keep(names, &all->texts,
                                            text->data != NULL ? text->data : "", text->len);
}

/* The group: its name and its ranks. */
static uint32_t find_group(const struct taking *t)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    const struct marey_site_info *site = site_of(t, t->call->what.group);
    if (t->call->what.group != 0) {
        marey__buf_put(&text, site->name, site->name_len);
        if (site->domain[0] != '\0')
            marey__buf_printf(&text, " %s", site->domain);
    }
    return number_of(t->all, &t->all->groups, &text);
}

/* The kind of the call, created if needed; MAREY__NO_NAME on out of memory. */
static uint32_t find_kind(const struct taking *t)
{
    struct marey__collectives *all = t->all;
    const uint32_t group = find_group(t);
    if (group == MAREY__NO_NAME)
        return MAREY__NO_NAME;
    struct marey__buf key MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_printf(&key, "%u %c ", group, t->call->is_on_host ? 'h' : 'd');
    const size_t what = key.len;
    put_what(t, &key);
    const size_t n = all->keys.n;
    const uint32_t number = number_of(all, &all->keys, &key);
    if (number == MAREY__NO_NAME ||
        !marey__grow(&all->kinds, &all->kinds_cap, all->keys.n, sizeof *all->kinds))
        return MAREY__NO_NAME;
    if (number == n)
        all->kinds[number] = (struct marey__collective_kind){
            .what = all->keys.names[number].text + what,
            .group = group,
            .collective = t->call->what.what,
            .is_between_two = is_between_two(t->call->what.what),
            .slowest = MAREY__NO_INDEX,
        };
    struct marey__collective_kind *kind = &all->kinds[number];
    kind->group_size = MAREY__MAX(kind->group_size, t->call->what.group_size);
    kind->is_by_order |= t->call->what.sequence == UINT64_MAX;
    return number;
}

static bool take(const struct taking *t)
{
    struct marey__collectives *all = t->all;
    const uint32_t kind = find_kind(t);
    const struct marey__rank_call call = {
        .begin_ns = t->call->begin_ns,
        .end_ns = MAREY__MAX(t->call->begin_ns, t->call->end_ns),
        .bytes = MAREY__MAX(t->call->what.bytes_in, t->call->what.bytes_out),
        .sequence = t->call->what.sequence,
        .kind = kind,
        .member = (uint32_t)all->n_members - 1,
    };
    return kind != MAREY__NO_NAME && MAREY__PUSH(all->calls, all->n_calls, all->calls_cap, call);
}

marey_status marey__collectives_add(struct marey__collectives *all, uint32_t job,
                                    const struct marey__work_set *set)
{
    MAREY__TRY_MEMORY(MAREY__PUSH(all->members, all->n_members, all->members_cap,
                                  (struct marey__member){set->process, job}));
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
    MAREY__FREE_ALL(all->kinds, all->members, all->calls, all->sums);
    *all = (struct marey__collectives){0};
}
