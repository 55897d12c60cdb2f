/*
 * Sums over the iterations of one process during the walk: distributions by name, the longest ones with their ranges,
 * epochs and phases. Warm-up and incomplete iterations are counted and excluded from everything else.
 */
#include "analyze/walk/internal.h"

/* Limits on durations kept to find the slowest rank of each iteration; a damaged number must not allocate gigabytes. */
enum { MAX_DURATIONS = 1 << 27, MAX_JUMP = 1 << 20 };
/* Limit on rows of epochs, for a loop that begins one per batch. */
enum { MAX_EPOCHS = 1 << 20 };

static inline bool add_value(struct marey__iteration_values *values, uint64_t ns, bool is_first)
{
    values->first_ns += is_first ? ns : 0;
    values->sum_of_squares += (marey__u128)ns * ns;
    return marey__sketch_add_known(&values->ns, ns) || marey__sketch_add(&values->ns, ns);
}

bool marey__iteration_values_merge(struct marey__iteration_values *into,
                                   const struct marey__iteration_values *from)
{
    into->sum_of_squares += from->sum_of_squares;
    into->first_ns += from->first_ns;
    return marey__sketch_merge(&into->ns, &from->ns);
}

void marey__iteration_stats_fini(struct marey__iteration_stats *stats, size_t n_names)
{
    for (size_t i = 0; stats->by_name != NULL && i < n_names; i++)
        marey__sketch_fini(&stats->by_name[i].ns);
    for (size_t i = 0; i < stats->n_longest; i++)
        marey__free(stats->longest[i].parts);
    marey__sketch_fini(&stats->whole.ns);
    marey__sketch_fini(&stats->no_range.ns);
    MAREY__FREE_ALL(stats->by_name, stats->durations, stats->epochs, stats->phases,
                    stats->phase_ends, stats->ended);
    *stats = (struct marey__iteration_stats){0};
}

/* ---- place among the iterations ---- */

/*
 * Store a duration at its iteration's number, which other ranks share. A lower number than before means that the count
 * was reset: later iterations are placed after all earlier ones. Numbers that jump too far are skipped.
 */
static bool keep_duration(struct marey__iteration_stats *stats, const struct marey__span *span,
                          float ns)
{
    if (stats->n_iterations != 0 && span->number <= stats->last_number)
        stats->first_place = stats->n_durations;
    else if (stats->n_iterations == 0 && span->number > MAX_JUMP)
        stats->first_place = 0 - span->number; /* recording started in the middle */
    stats->last_number = span->number;
    const uint64_t place = stats->first_place + span->number;
    stats->place = UINT64_MAX;
    if (place < stats->n_durations || place >= MAX_DURATIONS || place - stats->n_durations > MAX_JUMP)
        return true;
    if (!marey__grow(&stats->durations, &stats->durations_cap, (size_t)place + 1,
                     sizeof *stats->durations))
        return false;
    while (stats->n_durations < place)
        stats->durations[stats->n_durations++] = 0;
    stats->durations[stats->n_durations++] = ns;
    stats->place = place;
    return true;
}

/* The slot for a long iteration: a new one, or the shortest if this one is longer; NULL: none. */
static struct marey__long_iteration *find_place(struct marey__iteration_stats *stats, uint64_t ns)
{
    if (stats->n_longest < MAREY__N_LONGEST)
        return &stats->longest[stats->n_longest];
    struct marey__long_iteration *shortest = &stats->longest[0];
    for (size_t i = 1; i < MAREY__N_LONGEST; i++)
        if (stats->longest[i].ns < shortest->ns)
            shortest = &stats->longest[i];
    return shortest->ns < ns ? shortest : NULL;
}

static bool keep_if_long(struct marey__iteration_stats *stats,
                         const struct marey__iteration *iteration, uint64_t ns)
{
    struct marey__long_iteration *place = find_place(stats, ns);
    if (place == NULL)
        return true;
    if (place->parts == NULL) {
        place->parts = marey__calloc(MAREY__N_LONGEST_NAMES, sizeof *place->parts);
        if (place->parts == NULL)
            return false;
        stats->n_longest++;
    }
    place->span = iteration->span;
    place->ns = ns;
    place->n_parts = 0;
    for (size_t i = 0; i < iteration->n_ran && place->n_parts < MAREY__N_LONGEST_NAMES; i++) {
        const uint32_t name = iteration->ran[i];
        if (iteration->times[name].ns > ns / 100)
            place->parts[place->n_parts++] =
                (struct marey__long_part){name, iteration->times[name].ns};
    }
    return true;
}

/* ---- spans ---- */

/* Whether the iteration that just ended is before the steady part: warm-up, or the first one that counts. */
static bool is_before_steady(const struct marey__iteration_stats *stats,
                             const struct marey__span *span)
{
    const bool is_warmup = (span->flags & MAREY__ITERATION_WARMUP) != 0;
    return stats->n_steady == 0 &&
           (is_warmup || (stats->whole.ns.count == 0 && stats->n_warmup == 0));
}

/* The steady part began at the end of the previous iteration: save the self times up to there. */
static bool keep_self_times(struct marey__process_walk *walk)
{
    for (size_t i = 0; i < walk->info->n_lanes; i++) {
        struct marey__lane_walk *lane = walk->lanes[i];
        if (lane == NULL)
            continue;
        lane->steady_from = marey__calloc(lane->tree.n, sizeof *lane->steady_from);
        if (lane->steady_from == NULL)
            return false;
        lane->n_steady_from = lane->tree.n;
        for (size_t n = 0; n < lane->tree.n; n++)
            lane->steady_from[n] =
                marey__node_self_before(&lane->tree.nodes[n], walk->iterations.n_ended);
    }
    return true;
}

uint64_t marey__lane_steady_ns(const struct marey__process_walk *walk,
                               const struct marey__lane_walk *lane, size_t node)
{
    const uint64_t until_ns =
        marey__node_self_before(&lane->tree.nodes[node], walk->iterations.n_ended);
    const uint64_t from_ns = node < lane->n_steady_from ? lane->steady_from[node] : 0;
    return walk->iteration_stats.n_steady != 0 && until_ns > from_ns ? until_ns - from_ns : 0;
}

/* Phases that ended since the previous iteration are in the steady part if this iteration is. */
static bool extend_steady(struct marey__process_walk *walk, const struct marey__span *span,
                          bool is_before)
{
    struct marey__iteration_stats *stats = &walk->iteration_stats;
    for (size_t i = 0; i < stats->n_ended; i++) {
        struct marey__phase_stats *phase = &stats->phases[stats->ended[i]];
        phase->steady_ns += is_before ? 0 : phase->late_ns;
        phase->late_ns = 0;
    }
    stats->steady_end_ns = span->end_ns;
    if (is_before)
        stats->steady_begin_ns = span->end_ns;
    return is_before || ++stats->n_steady != 1 || keep_self_times(walk);
}

static bool take_values(struct marey__iteration_stats *stats,
                        const struct marey__iteration *iteration, uint64_t ns, bool is_first)
{
    stats->n_first += is_first;
    for (size_t i = 0; i < iteration->n_ran; i++) {
        const uint32_t name = iteration->ran[i];
        if (!add_value(&stats->by_name[name], iteration->times[name].ns, is_first))
            return false;
    }
    if (iteration->span.samples > 0) {
        stats->samples += iteration->span.samples;
        stats->samples_ns += ns;
    }
    return add_value(&stats->whole, ns, is_first) &&
           add_value(&stats->no_range, iteration->no_range_ns, is_first) &&
           keep_if_long(stats, iteration, ns);
}

/*
 * At the end of an iteration, count it for the phases that ended in it, each once. An open phase counts it at its own
 * end.
 */
static void count_for_phases(struct marey__process_walk *walk, const struct marey__span *iteration)
{
    struct marey__iteration_stats *stats = &walk->iteration_stats;
    const struct marey__span *open = &walk->iterations.progress.phase;
    const uint32_t open_name = open->is_open ? marey__name_of_site(walk, open->site) : MAREY__NO_NAME;
    for (size_t i = 0; i < stats->n_ended; i++) {
        const uint32_t name = stats->ended[i];
        stats->phases[name].n_iterations +=
            name != open_name && stats->phase_ends[name] > iteration->begin_ns;
        stats->phase_ends[name] = 0;
    }
    stats->n_ended = 0;
}

static bool take_iteration(struct marey__process_walk *walk, const struct marey__iteration *iteration)
{
    struct marey__iteration_stats *stats = &walk->iteration_stats;
    const struct marey__span *span = &iteration->span;
    const uint64_t ns = span->end_ns - span->begin_ns;
    if (stats->by_name == NULL) {
        stats->by_name = marey__calloc(walk->names.n, sizeof *stats->by_name);
        if (stats->by_name == NULL)
            return false;
    }
    const bool is_before = is_before_steady(stats, span);
    const bool done = keep_duration(stats, span, span->flags == 0 ? (float)ns : 0) &&
                      extend_steady(walk, span, is_before);
    count_for_phases(walk, span);
    stats->n_iterations++;
    stats->n_warmup += (span->flags & MAREY__ITERATION_WARMUP) != 0;
    stats->n_cut += span->flags == MAREY__ITERATION_CUT;
    return done && (span->flags != 0 || take_values(stats, iteration, ns, is_before));
}

static bool take_phase(struct marey__process_walk *walk, const struct marey__span *span)
{
    struct marey__iteration_stats *stats = &walk->iteration_stats;
    if (stats->phases == NULL) {
        stats->phases = marey__calloc(walk->names.n, sizeof *stats->phases);
        stats->phase_ends = marey__calloc(walk->names.n, sizeof *stats->phase_ends);
        stats->ended = marey__calloc(walk->names.n, sizeof *stats->ended);
        if (stats->phases == NULL || stats->phase_ends == NULL || stats->ended == NULL)
            return false;
    }
    const uint32_t name = marey__name_of_site(walk, span->site);
    struct marey__phase_stats *phase = &stats->phases[name];
    phase->count++;
    phase->total_ns += span->end_ns - span->begin_ns;
    phase->n_iterations += span->n_iterations;
    const uint64_t from = MAREY__MAX(span->begin_ns, stats->steady_begin_ns),
                   until = MAREY__MIN(span->end_ns, stats->steady_end_ns),
                   late_from = MAREY__MAX(span->begin_ns, stats->steady_end_ns);
    phase->steady_ns += until > from ? until - from : 0;
    phase->late_ns += span->end_ns > late_from ? span->end_ns - late_from : 0;
    if (stats->phase_ends[name] == 0)
        stats->ended[stats->n_ended++] = name;
    stats->phase_ends[name] = MAREY__MAX(span->end_ns, 1);
    return true;
}

bool marey__iteration_stats_take(void *ctx, const struct marey__span *span,
                                 const struct marey__iteration *iteration)
{
    struct marey__process_walk *walk = ctx;
    struct marey__iteration_stats *stats = &walk->iteration_stats;
    if (iteration != NULL)
        return take_iteration(walk, iteration);
    if (span->kind == MAREY__SPAN_PHASE)
        return take_phase(walk, span);
    if (stats->n_epochs == MAX_EPOCHS)
        return true;
    return MAREY__PUSH(stats->epochs, stats->n_epochs, stats->epochs_cap, *span);
}
