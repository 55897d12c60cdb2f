/* One pass over each process: readings of its meters, and the times of its epochs, iterations, phases and ranges. */
#include "analyze/energy/internal.h"

/* Limit on stored times of ranges, for programs with millions of ranges a second. */
enum { MAX_PARTS = 1 << 24 };

/* A process while it is read. */
struct reading {
    struct marey__energy_report *report;
    marey_recording *recording;
    const struct marey_process *process;
    uint32_t member; /* MAREY__NO_MEMBER: it only measures */
    struct marey__progress progress;
    struct site_use {
        uint32_t meter;  /* plus one; 0: another counter, or unchecked */
        uint32_t window; /* of the range, plus one; 0: unknown so far */
        uint8_t quantity;
        bool is_left_out; /* a range excluded by the filter */
    } * sites;            /* by site */
};

static const struct marey_site_info *site_of(const struct reading *r, uint32_t site)
{
    return marey_recording_site(r->recording, r->process->index, site);
}

/* ---- meters ---- */

static uint32_t meter_of(const struct reading *r, const char *device, size_t len)
{
    const struct marey__energy_report *report = r->report;
    for (size_t i = report->n_meters; i > 0; i--) {
        const struct marey__meter *meter = &report->meters[i - 1];
        if (meter->process == r->process && meter->device_len == len &&
            memcmp(meter->device, device, len) == 0)
            return (uint32_t)i;
    }
    return 0;
}

/* "GPU 0 power (W)": the text before the quantity is the device's name. */
static size_t name_length(const struct marey_site_info *site, const char *quantity)
{
    const char *at = strstr(site->name, quantity);
    size_t len = at != NULL ? (size_t)(at - site->name) : 0;
    while (len > 0 && site->name[len - 1] == ' ')
        len--;
    return len;
}

/* Handle a site that is a reading of a device. Returns false on out of memory. */
static bool take_site(struct reading *r, uint32_t number)
{
    struct marey__energy_report *report = r->report;
    const struct marey_site_info *site = site_of(r, number);
    const char *bar = strcmp(site->category, "energy") == 0 ? strchr(site->domain, '|') : NULL;
    const unsigned quantity = bar != NULL ? marey__quantity_find(bar + 1) : MAREY__N_QUANTITIES;
    if (quantity == MAREY__N_QUANTITIES || bar == site->domain)
        return true;
    const size_t len = (size_t)(bar - site->domain);
    uint32_t meter = meter_of(r, site->domain, len);
    if (meter == 0) {
        if (!MAREY__PUSH(report->meters, report->n_meters, report->meters_cap,
                         (struct marey__meter){.recording = r->recording,
                                               .process = r->process,
                                               .device = site->domain,
                                               .device_len = len,
                                               .name = ""}))
            return false;
        meter = (uint32_t)report->n_meters;
    }
    if (quantity == MAREY__POWER || quantity == MAREY__ENERGY) {
        report->meters[meter - 1].name = site->name;
        report->meters[meter - 1].name_len =
            name_length(site, quantity == MAREY__POWER ? "power" : "energy");
    }
    r->sites[number].meter = meter;
    r->sites[number].quantity = (uint8_t)quantity;
    return true;
}

static bool is_left_out(const struct reading *r, const struct marey_site_info *site)
{
    return marey__is_runtime_call(site) ||
           !marey__name_matches(r->report->filter, site->name, site->name_len);
}

static bool look_at_sites(struct reading *r)
{
    r->sites = marey__calloc((size_t)r->process->n_sites + 1, sizeof *r->sites);
    if (r->sites == NULL)
        return false;
    for (uint32_t site = 1; site <= r->process->n_sites; site++) {
        r->sites[site].is_left_out = is_left_out(r, site_of(r, site));
        if (!take_site(r, site))
            return false;
    }
    return true;
}

static bool take_counter(struct reading *r, const uint64_t *words, uint64_t ns)
{
    const uint32_t site = marey_record_site(words[1]);
    struct marey__reading reading = {.ns = ns};
    if (site > r->process->n_sites || r->sites[site].meter == 0)
        return true;
    struct marey__readings *readings =
        &r->report->meters[r->sites[site].meter - 1].of[r->sites[site].quantity];
    memcpy(&reading.value, &words[2], sizeof reading.value);
    return MAREY__PUSH(readings->at, readings->n, readings->cap, reading);
}

/* ---- windows ---- */

struct marey__energy_window *marey__energy_window(struct marey__energy_report *report,
                                                  uint32_t member, enum marey__energy_by by,
                                                  uint64_t key)
{
    const struct {
        uint32_t member;
        enum marey__energy_by by;
        uint64_t key;
    } id = {member, by, key}; /* the first members of a window */
    const uint32_t number = MAREY__MAP_NUMBER(&report->by_id, report->windows, report->n_windows,
                                              report->windows_cap, id);
    return number != 0 ? &report->windows[number - 1] : NULL;
}

static uint64_t name_key(struct reading *r, uint32_t site)
{
    const struct marey_site_info *info = site_of(r, site);
    return marey__names_number(&r->report->names, info->name, info->name_len);
}

static bool take_named(struct reading *r, enum marey__energy_by by, uint32_t site,
                       const struct marey__interval *part)
{
    struct site_use *use = by == MAREY__ENERGY_RANGE ? &r->sites[site] : NULL;
    struct marey__energy_window *window;
    if (use != NULL && use->window != 0) {
        window = &r->report->windows[use->window - 1];
    } else {
        const uint64_t key = name_key(r, site);
        window = key != MAREY__NO_NAME ? marey__energy_window(r->report, r->member, by, key) : NULL;
        if (window == NULL)
            return false;
        if (use != NULL)
            use->window = (uint32_t)(window - r->report->windows) + 1;
    }
    window->count++;
    if (r->report->n_parts >= MAX_PARTS) {
        window->is_too_many = true;
        return true;
    }
    const size_t before = window->set.n;
    if (!marey__time_set_add(&window->set, part->begin_ns, part->end_ns))
        return false;
    r->report->n_parts += window->set.n - before; /* the number may also have decreased */
    return true;
}

static bool take_iteration(struct reading *r, const struct marey__span *span)
{
    struct marey__energy_report *report = r->report;
    return MAREY__PUSH(report->iterations, report->n_iterations, report->iterations_cap,
                       (struct marey__energy_iteration){.begin_ns = span->begin_ns,
                                                        .end_ns = span->end_ns,
                                                        .number = span->number,
                                                        .samples = span->samples,
                                                        .member = r->member});
}

static bool take_epoch(struct reading *r, const struct marey__span *span)
{
    struct marey__energy_window *window =
        marey__energy_window(r->report, r->member, MAREY__ENERGY_EPOCH, span->number);
    if (window == NULL)
        return false;
    window->count++;
    window->samples += span->samples;
    return marey__time_set_add(&window->set, span->begin_ns, span->end_ns);
}

static bool take_span(struct reading *r, const struct marey__span *span)
{
    const struct marey__interval part = {span->begin_ns, span->end_ns};
    switch (span->kind) {
    case MAREY__SPAN_ITERATION:
        return take_iteration(r, span);
    case MAREY__SPAN_EPOCH:
        return take_epoch(r, span);
    case MAREY__SPAN_PHASE:
        return span->site > r->process->n_sites ||
               take_named(r, MAREY__ENERGY_PHASE, span->site, &part);
    }
    return true;
}

/* ---- replay ---- */

static bool take_range(void *ctx, struct marey__lane_stack *lane, const struct marey__frame *range,
                       uint64_t end_ns, enum marey__ending how)
{
    struct reading *r = ctx;
    const struct marey__interval part = {range->start_ns, end_ns};
    (void)lane, (void)how;
    if (r->member == MAREY__NO_MEMBER || range->site > r->process->n_sites ||
        r->sites[range->site].is_left_out)
        return true;
    return take_named(r, MAREY__ENERGY_RANGE, range->site, &part);
}

static bool take_record(void *ctx, struct marey__lane_stack *lane, const struct marey_batch *batch,
                        const uint64_t *words, uint64_t ns)
{
    struct reading *r = ctx;
    struct marey__span span;
    (void)lane, (void)batch;
    const uint32_t type = marey_record_type_of(words[0]);
    if (type == MAREY_RECORD_COUNTER)
        return take_counter(r, words, ns);
    if (r->member != MAREY__NO_MEMBER && marey__is_progress(type) &&
        marey__progress_take(&r->progress, words, ns, &span))
        return take_span(r, &span);
    return true;
}

static marey_status walk(struct reading *r)
{
    static const struct marey__lane_visitor visitor = {.end = take_range, .record = take_record};
    struct marey__range_walk walk = {
        .recording = r->recording, .process = r->process, .visitor = &visitor, .ctx = r};
    struct marey__span span;
    MAREY__TRY_MEMORY(look_at_sites(r));
    marey__progress_init(&r->progress, r->process, r->process->first_ns);
    MAREY_TRY(marey__range_walk(&walk));
    while (r->member != MAREY__NO_MEMBER &&
           marey__progress_finish(&r->progress, r->process->last_ns, &span))
        MAREY__TRY_MEMORY(take_span(r, &span));
    return MAREY_OK;
}

/* ---- members ---- */

/* Which devices of its list had work, from the device numbers of streams. */
static void take_streams(struct marey__energy_member *member, marey_recording *recording,
                         const struct marey_process *process)
{
    for (uint32_t i = 0; i < process->n_lanes; i++) {
        const struct marey_lane_info *lane = marey_recording_lane(recording, process->index, i);
        if (lane->kind != MAREY_LANE_GPU || lane->device < 0 || lane->device >= 64)
            continue;
        member->has_ordinals = true;
        member->ordinals |= UINT64_C(1) << lane->device;
    }
}

/* Find or create the member for a process; processes of one rank share it. Returns false on out of memory. */
static bool find_member(struct reading *r)
{
    struct marey__energy_report *report = r->report;
    const struct marey_process *process = r->process;
    uint32_t run;
    if (!marey__process_runs_find(&report->runs, process, &run))
        return false;
    size_t i = 0;
    while (i < report->n_members &&
           (report->members[i].run != run || report->members[i].rank != process->rank ||
            strcmp(report->members[i].host, process->host) != 0))
        i++;
    if (i == report->n_members) {
        if (!marey__grow(&report->members, &report->members_cap, i + 1, sizeof *report->members))
            return false;
        report->members[report->n_members++] = (struct marey__energy_member){
            .recording = r->recording,
            .run = run,
            .rank = process->rank,
            .local_rank = process->local_rank,
            .host = process->host,
            .first_ns = process->first_ns,
            .last_ns = process->last_ns,
            .devices = "",
        };
    }
    struct marey__energy_member *member = &report->members[i];
    member->first_ns = MAREY__MIN(member->first_ns, process->first_ns);
    member->last_ns = MAREY__MAX(member->last_ns, process->last_ns);
    if (member->devices[0] == '\0')
        member->devices = process->devices;
    take_streams(member, r->recording, process);
    r->member = (uint32_t)i;
    return true;
}

static bool add_to_run(struct reading *r, uint32_t member)
{
    struct marey__energy_window *window =
        marey__energy_window(r->report, member, MAREY__ENERGY_RUN, 0);
    return window != NULL &&
           marey__time_set_add(&window->set, r->process->first_ns, r->process->last_ns);
}

/*
 * A process that only measures covers the run from its start to its end, including the time before the program's first
 * event and after its last. If the program has no log, it stands in for it.
 */
static bool begin_measuring(struct reading *r)
{
    struct marey__energy_report *report = r->report;
    bool is_alone = true;
    for (uint32_t i = 0; i < report->n_members; i++) {
        struct marey__energy_member *member = &report->members[i];
        if (strcmp(report->runs.list[member->run].id, r->process->run_id) != 0 ||
            strcmp(member->host, r->process->host) != 0)
            continue;
        is_alone = false;
        member->first_ns = MAREY__MIN(member->first_ns, r->process->first_ns);
        member->last_ns = MAREY__MAX(member->last_ns, r->process->last_ns);
        if (!add_to_run(r, i))
            return false;
    }
    const bool is_done = !is_alone || (find_member(r) && add_to_run(r, r->member));
    r->member = MAREY__NO_MEMBER; /* its own ranges are ignored */
    return is_done;
}

static bool begin_member(struct reading *r)
{
    if (r->process->last_ns == 0)
        return true;
    if (r->process->role[0] != '\0')
        return begin_measuring(r);
    return find_member(r) && add_to_run(r, r->member);
}

marey_status marey__energy_read(struct marey__energy_report *report, marey_recording *recording)
{
    for (size_t i = 0; i < marey_recording_n_logs(recording); i++) {
        struct reading r = {.report = report,
                            .recording = recording,
                            .process = marey_recording_process(recording, i),
                            .member = MAREY__NO_MEMBER};
        const marey_status status = begin_member(&r) ? walk(&r) : marey__no_memory();
        marey__free(r.sites);
        MAREY_TRY(status);
    }
    return MAREY_OK;
}
