/*
 * The page file: the template up to the data, sections of events as they are packed, names and index, the rest of the
 * template.
 */
#include <unistd.h>

#include "present/page/internal.h"
#include "read/internal.h"

/* ---- the time axis ---- */

struct place {
    marey_recording *recording;
    size_t process;
};

/* The page's processes: those of the program in all recordings, followed by those that measured them. */
static struct place place_of(const struct marey__page *page, size_t i)
{
    for (size_t r = 0; r < page->n_recordings; r++) {
        const size_t n = marey_recording_n_processes(page->recordings[r]);
        if (i < n)
            return (struct place){page->recordings[r], i};
        i -= n;
    }
    size_t r = 0;
    for (;; r++) {
        const size_t n = marey_recording_n_processes(page->recordings[r]);
        const size_t n_measuring = marey_recording_n_logs(page->recordings[r]) - n;
        if (i < n_measuring)
            return (struct place){page->recordings[r], n + i};
        i -= n_measuring;
    }
}

const struct marey_process *marey__page_nth_process(const struct marey__page *page, size_t i)
{
    const struct place at = place_of(page, i);
    return marey_recording_process(at.recording, at.process);
}

/* Machines have separate clocks; several machines share only the wall clock. */
static void survey(struct marey__page *page)
{
    uint64_t last_ns = 0;
    bool has_origin = false; /* a trace may begin at 0 */
    for (size_t i = 1; i < page->n_processes; i++)
        page->is_wall_clock |= strcmp(marey__page_nth_process(page, 0)->host,
                                      marey__page_nth_process(page, i)->host) != 0;
    for (size_t i = 0; i < page->n_processes; i++) {
        const struct marey_process *process = marey__page_nth_process(page, i);
        const uint64_t shift = page->is_wall_clock ? (uint64_t)process->mono_to_unix_ns : 0;
        if (process->last_ns == 0)
            continue;
        if (!has_origin || process->first_ns + shift < page->origin_ns) {
            page->origin_ns = process->first_ns + shift;
            page->origin_unix_ns = (int64_t)process->first_ns + process->mono_to_unix_ns;
            has_origin = true;
        }
        last_ns = MAREY__MAX(last_ns, process->last_ns + shift);
    }
    page->duration_ns = last_ns - page->origin_ns;
}

/* ---- pieces of the template ---- */

static marey_status put(int fd, const char *bytes, size_t n)
{
    return marey__write_all(fd, bytes, n) ? MAREY_OK : marey__fail_errno("write the page");
}

/* The template from its start, with the title inserted, up to the data. */
marey_status marey__page_head(int fd, const char *template, const char *title)
{
    if (template[0] == '\0')
        return marey__fail(
            MAREY_EUNAVAILABLE,
            "this build of marey cannot write HTML pages: Node.js was missing when it "
            "was built. Install a wheel of marey, or install nodejs and npm and "
            "build again");
    const char *at = strstr(template, MAREY__PAGE_TITLE);
    MAREY_ASSERT(at != NULL);
    const char *behind = at + strlen(MAREY__PAGE_TITLE), *data = strstr(behind, MAREY__PAGE_DATA);
    MAREY_ASSERT(data != NULL);
    struct marey__buf head MAREY__FINALLY(marey__buf_fini) = {0};
    marey__buf_put(&head, template, (size_t)(at - template));
    marey__xml_put(&head, title, strlen(title));
    marey__buf_put(&head, behind, (size_t)(data - behind));
    return head.failed ? marey__no_memory() : put(fd, head.data, head.len);
}

static marey_status put_tail(int fd, const char *template)
{
    const char *tail = strstr(template, MAREY__PAGE_DATA) + strlen(MAREY__PAGE_DATA);
    return put(fd, tail, strlen(tail));
}

static marey_status put_made(int fd, const char *title, marey__page_make *make, void *ctx)
{
    struct marey__page_packer *packer = NULL;
    struct marey__buf json MAREY__FINALLY(marey__buf_fini) = {0};
    marey_status status = marey__page_packer_start(fd, 0, &packer);
    if (status == MAREY_OK)
        status = make(ctx, packer, title, &json);
    if (status == MAREY_OK)
        status = json.failed ? marey__no_memory()
                             : marey__page_packer_put(packer, "index", json.data, json.len);
    marey__page_packer_free(packer);
    return status;
}

marey_status marey__page_put_all(int fd, const char *template, const char *title,
                                 marey__page_make *make, void *ctx)
{
    MAREY_TRY(marey__page_head(fd, template, title));
    MAREY_TRY(put_made(fd, title, make, ctx));
    return put_tail(fd, template);
}

/* ---- the data ---- */

static marey_status put_json(struct marey__page *page, const char *name,
                             marey_status (*make)(const struct marey__page *, struct marey__buf *))
{
    struct marey__buf json MAREY__FINALLY(marey__buf_fini) = {0};
    MAREY_TRY(make(page, &json));
    return marey__page_packer_put(page->packer, name, json.data, json.len);
}

static marey_status put_texts(struct marey__page *page)
{
    for (size_t i = 0; i < page->n_processes; i++) {
        const struct marey__buf *texts = &page->processes[i].texts;
        char name[32];
        snprintf(name, sizeof name, "texts-%zu", i);
        if (texts->len != 0)
            MAREY_TRY(marey__page_packer_put(page->packer, name, texts->data, texts->len));
    }
    return MAREY_OK;
}

/*
 * Walk a process again, for the timeline only: measuring processes are in no table, and chosen ranks were already
 * counted.
 */
static marey_status walk_again(struct marey__page *page, size_t number)
{
    const struct place at = place_of(page, number);
    struct marey__process_walk walk;
    marey_status status = marey__process_walk_init(&walk, at.recording, at.process);
    if (status == MAREY_OK)
        status = marey__page_begin_process(page, &walk, number);
    if (status == MAREY_OK)
        status = marey__process_walk_run(&walk);
    if (status == MAREY_OK)
        status = marey__page_end_process(page, &walk, number);
    marey__process_walk_fini(&walk);
    return status;
}

static marey_status walk_others(struct marey__page *page)
{
    for (size_t i = page->n_of_program; i < page->n_processes; i++)
        MAREY_TRY(walk_again(page, i));
    if (page->has_many)
        marey__page_choose_ranks(page);
    for (size_t i = 0; i < page->n_chosen; i++)
        MAREY_TRY(walk_again(page, page->chosen[i]));
    return MAREY_OK;
}

static marey_status put_data(struct marey__page *page)
{
    const struct marey__summary_tap tap = {
        .begin = page->has_many ? marey__page_begin_rank : marey__page_begin_process,
        .end = page->has_many ? marey__page_end_rank : marey__page_end_process,
        .ctx = page,
    };
    const long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t n_jobs = page->wants.n_jobs;
    /* Besides the walking threads; none if a single thread shall do everything. */
    const size_t n_threads = n_jobs != 0 ? n_jobs - 1 : (size_t)MAREY__MAX(n_cores, 1L);
    MAREY_TRY(marey__page_packer_start(page->fd, n_threads, &page->packer));
    const struct marey__request request = {.recordings = page->recordings,
                                           .n = page->n_recordings,
                                           .input = &(struct marey__summary_input){.tap = &tap},
                                           .options = &page->options->report};
    MAREY_TRY(marey__report_make("ranges", &request, &page->summary));
    MAREY_TRY(walk_others(page));
    MAREY_TRY(marey__page_packer_stop(page->packer));
    MAREY_TRY(marey__page_make_reports(page));
    MAREY_TRY(marey__page_read_trees(page));
    MAREY_TRY(put_texts(page));
    MAREY_TRY(marey__page_put_heat_block(page));
    MAREY_TRY(put_json(page, "names", marey__page_names));
    return put_json(page, "index", marey__page_index);
}

static marey_status write_page(struct marey__page *page, const char *title)
{
    survey(page);
    MAREY__TRY_MEMORY(marey__heat_create(page, &page->heat));
    MAREY_TRY(marey__page_head(page->fd, marey__page_template, title));
    MAREY_TRY(put_data(page));
    return put_tail(page->fd, marey__page_template);
}

static marey_status write_titled(struct marey__page *page)
{
    char *const own = marey__recordings_title(page->recordings, page->n_recordings);
    MAREY__TRY_MEMORY(own != NULL);
    const char *title = page->options->title != NULL ? page->options->title : own;
    const marey_status status = write_page(page, title);
    marey__free(own);
    return status;
}

marey_status marey_page_write(marey_recording *const *recordings, size_t n,
                              const struct marey_page_options *options, int fd)
{
    static const struct marey_page_options defaults;
    struct marey__page page = {
        .options = options != NULL ? options : &defaults,
        .recordings = recordings,
        .n_recordings = n,
        .fd = fd,
    };
    MAREY_TRY(marey_report_check("ranges", page.options->report.settings));
    page.wants =
        marey__summary_options_of(&(struct marey__request){.options = &page.options->report});
    for (size_t r = 0; r < n; r++) {
        page.n_processes += marey_recording_n_logs(recordings[r]);
        page.n_of_program += marey_recording_n_processes(recordings[r]);
    }
    page.has_many = page.n_of_program > MAREY__PAGE_MANY;
    page.processes = marey__calloc(page.n_processes + 1, sizeof *page.processes);
    marey_recordings_keep_events(recordings, n); /* all analyses of the page visit them */
    const marey_status status = page.processes != NULL ? write_titled(&page) : marey__no_memory();
    marey_recordings_drop_events(recordings, n);
    marey__page_packer_free(page.packer); /* before freeing the data its threads use */
    for (size_t i = 0; page.processes != NULL && i < page.n_processes; i++)
        marey__page_process_fini(&page.processes[i]);
    marey__free(page.processes);
    marey_report_destroy(page.summary);
    for (size_t i = 0; i < MAREY__MAX_ANALYSES; i++)
        marey_report_destroy(page.reports[i]);
    marey__page_free_trees(&page);
    marey__heat_destroy(page.heat);
    marey__buf_fini(&page.heat_index);
    return status;
}
