/* Sites and lanes of a process: names to numbers, found by hash. */
#include "import/sink/internal.h"

/* ---- sites ---- */

/* The four strings of a site, in the order of its entry. */
struct texts {
    struct text {
        const char *at;
        uint32_t len;
    } of[4];
};

static inline struct text text_of(const char *at, size_t len)
{
    return at != NULL ? (struct text){at, (uint32_t)MAREY__MIN(len, (size_t)MAREY__NAME_MAX)}
                      : (struct text){"", 0};
}

static inline struct texts texts_of(const struct marey__sink_site *site)
{
    return (struct texts){
        .of = {text_of(site->name, site->name_len), text_of(site->category, site->category_len),
               text_of(site->domain, site->domain_len), text_of(site->file, site->file_len)}};
}

static bool is_site(const marey__sink_process *process, uint32_t id, const struct texts *texts,
                    const struct marey__sink_site *site)
{
    struct marey__site_entry entry;
    const char *at = process->sites.data + process->site_offsets[id];
    memcpy(&entry, at, sizeof entry);
    if (entry.name_len != texts->of[0].len || entry.category_len != texts->of[1].len ||
        entry.domain_len != texts->of[2].len || entry.file_len != texts->of[3].len ||
        entry.line != site->line || entry.color != site->color)
        return false;
    at += sizeof entry;
    for (size_t i = 0; i < 4; at += texts->of[i++].len)
        if (memcmp(at, texts->of[i].at, texts->of[i].len) != 0)
            return false;
    return true;
}

static void put_site(marey__sink_process *process, uint32_t id, const struct texts *texts,
                     const struct marey__sink_site *site)
{
    static const char zeros[4];
    const struct marey__site_entry entry = {.id = id,
                                            .line = site->line,
                                            .color = site->color,
                                            .name_len = texts->of[0].len,
                                            .category_len = texts->of[1].len,
                                            .domain_len = texts->of[2].len,
                                            .file_len = texts->of[3].len};
    process->site_offsets[id] = process->sites.len;
    marey__buf_put(&process->sites, &entry, sizeof entry);
    for (size_t i = 0; i < 4; i++)
        marey__buf_put(&process->sites, texts->of[i].at, texts->of[i].len);
    marey__buf_put(&process->sites, zeros, -process->sites.len & 3);
    process->n_sites = id;
}

/* Make space for the next id. The first one is for all names beyond the limit. */
static bool prepare_site(marey__sink_process *process)
{
    static const struct marey__sink_site other = {.name = "(other names)", .name_len = 13};
    if (!marey__grow(&process->site_offsets, &process->sites_cap, process->n_sites + 3,
                     sizeof *process->site_offsets))
        return false;
    if (process->n_sites != 0)
        return true;
    const struct texts texts = texts_of(&other);
    put_site(process, MAREY__SITE_OTHER, &texts, &other);
    return !process->sites.failed;
}

static uint32_t add_site(marey__sink_process *process, const struct texts *texts,
                         const struct marey__sink_site *site, uint32_t hash)
{
    if (process->n_sites + 1 >= MAREY__SITE_LIMIT) {
        process->n_other_names++;
        return MAREY__SITE_OTHER;
    }
    if (!prepare_site(process)) {
        marey__sink_fail_memory(process);
        return MAREY__SITE_OTHER;
    }
    const uint32_t id = (uint32_t)process->n_sites + 1;
    put_site(process, id, texts, site);
    if (process->sites.failed || !marey__index_put(&process->sites_index, hash, id))
        marey__sink_fail_memory(process);
    return id;
}

uint32_t marey__sink_site(marey__sink_process *process, const struct marey__sink_site *site)
{
    const struct texts texts = texts_of(site);
    uint64_t long_hash = process->sink->seed + ((uint64_t)site->color << 32 | site->line);
    for (size_t i = 0; i < 4; i++)
        if (texts.of[i].len != 0)
            long_hash = marey__hash_bytes(long_hash + i, texts.of[i].at, texts.of[i].len);
    const uint32_t hash = (uint32_t)long_hash;
    uint32_t id;
    if (process->sink->status != MAREY_OK)
        return MAREY__SITE_OTHER;
    for (size_t at = hash; (id = marey__index_next(&process->sites_index, hash, &at)) != 0;)
        if (is_site(process, id, &texts, site))
            return id;
    return add_site(process, &texts, site, hash);
}

/* ---- lanes ---- */

/* Half of a reader's limit, because overlapping ranges need further lanes. */
enum { MOST_LANES = MAREY__MAX_LANES / 2 };

static uint32_t add_lane(marey__sink_process *process, enum marey_lane_kind kind, int64_t tid,
                         uint32_t hash)
{
    if (process->n_lanes >= MOST_LANES) {
        process->n_other_lanes++;
        return MOST_LANES - 1;
    }
    if (!marey__grow(&process->lanes, &process->lanes_cap, process->n_lanes + 1,
                     sizeof *process->lanes) ||
        !marey__index_put(&process->lanes_index, hash, (uint32_t)process->n_lanes + 1)) {
        marey__sink_fail_memory(process);
        return 0;
    }
    process->lanes[process->n_lanes] = (struct marey__sink_lane){.tid = tid, .kind = kind};
    return (uint32_t)process->n_lanes++;
}

static uint32_t lane_of(marey__sink_process *process, enum marey_lane_kind kind, int64_t tid)
{
    if (MAREY_LIKELY(process->n_lanes != 0)) {
        const struct marey__sink_lane *last = &process->lanes[process->last_lane];
        if (MAREY_LIKELY(last->tid == tid && last->kind == kind))
            return process->last_lane;
    }
    const uint64_t words[2] = {(uint64_t)tid, kind};
    const uint32_t hash = (uint32_t)marey__hash_bytes(process->sink->seed, words, sizeof words);
    uint32_t number;
    for (size_t at = hash; (number = marey__index_next(&process->lanes_index, hash, &at)) != 0;) {
        const struct marey__sink_lane *lane = &process->lanes[number - 1];
        if (lane->tid == tid && lane->kind == kind)
            return process->last_lane = number - 1;
    }
    return process->last_lane = add_lane(process, kind, tid, hash);
}

uint32_t marey__sink_thread(marey__sink_process *process, int64_t tid)
{
    return lane_of(process, MAREY_LANE_THREAD, tid);
}

uint32_t marey__sink_stream(marey__sink_process *process, int32_t device, uint32_t stream)
{
    return lane_of(process, MAREY_LANE_GPU, (int64_t)((uint64_t)(uint32_t)device << 32 | stream));
}

void marey__sink_name_lane(marey__sink_process *process, uint32_t lane, const char *name, size_t len)
{
    enum { NAME_MAX_BYTES = 4096 };
    if (lane >= process->n_lanes)
        return;
    struct marey__sink_lane *named = &process->lanes[lane];
    len = MAREY__MIN(len, (size_t)NAME_MAX_BYTES);
    const char *const copy = marey__arena_text(&process->texts, name, len);
    named->name_len = copy != NULL ? len : 0;
    named->name = copy;
    if (copy == NULL)
        marey__sink_fail_memory(process);
}
