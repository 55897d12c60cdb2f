/*
 * The page as a file: the template up to where the data goes, sections of events as they come, names and index, the rest
 * of the template. See page_internal.h.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "present/page_heat.h"
#include "present/present_internal.h"
#include <kymo/gpu_report.h>
#include <kymo/memory_report.h>

int kymo_page_is_plain(void)
{
    return kymo__page_template[0] == '\0';
}

/* ---- the time axis ---- */

static int64_t shift_of(const struct kymo__page *page, const struct kymo_process *process)
{
    return page->is_wall_clock ? process->mono_to_unix_ns : 0;
}

struct place {
    kymo_recording *recording;
    size_t process;
};

/* The page's processes: those of the program in all recordings, then those that measured them. */
static struct place place_of(const struct kymo__page *page, size_t i)
{
    for (size_t r = 0; r < page->n_recordings; r++) {
        const size_t n = kymo_recording_n_processes(page->recordings[r]);
        if (i < n)
            return (struct place){page->recordings[r], i};
        i -= n;
    }
    size_t r = 0;
    for (;; r++) {
        const size_t n = kymo_recording_n_processes(page->recordings[r]);
        const size_t n_measuring = kymo_recording_n_logs(page->recordings[r]) - n;
        if (i < n_measuring)
            return (struct place){page->recordings[r], n + i};
        i -= n_measuring;
    }
}

static const struct kymo_process *nth_process(const struct kymo__page *page, size_t i)
{
    const struct place at = place_of(page, i);
    return kymo_recording_process(at.recording, at.process);
}

/* Machines have clocks of their own; of several, the wall clock is what they share. */
static void survey(struct kymo__page *page)
{
    uint64_t last_ns = 0;
    bool has_origin = false; /* a trace may begin at 0 */
    for (size_t i = 1; i < page->n_processes; i++)
        page->is_wall_clock |= strcmp(nth_process(page, 0)->host, nth_process(page, i)->host) != 0;
    for (size_t i = 0; i < page->n_processes; i++) {
        const struct kymo_process *process = nth_process(page, i);
        const uint64_t shift = (uint64_t)shift_of(page, process);
        if (process->last_ns == 0)
            continue;
        if (!has_origin || process->first_ns + shift < page->origin_ns) {
            page->origin_ns = process->first_ns + shift;
            page->origin_unix_ns = (int64_t)process->first_ns + process->mono_to_unix_ns;
            has_origin = true;
        }
        last_ns = KYMO__MAX(last_ns, process->last_ns + shift);
    }
    page->duration_ns = last_ns - page->origin_ns;
}

/* ---- pieces of the template ---- */

static kymo_status put(int fd, const char *bytes, size_t n)
{
    return kymo__write_all(fd, bytes, n) ? KYMO_OK : kymo__fail_errno("write the page");
}

/* From the begin of the template, with the title in its place, to where the data goes. */
kymo_status kymo__page_head(int fd, const char *template, const char *title)
{
    const char *at = strstr(template, KYMO__PAGE_TITLE);
    KYMO_ASSERT(at != NULL);
    const char *behind = at + strlen(KYMO__PAGE_TITLE), *data = strstr(behind, KYMO__PAGE_DATA);
    KYMO_ASSERT(data != NULL);
    struct kymo__buf head = {0};
    kymo__buf_put(&head, template, (size_t)(at - template));
    kymo__xml_put(&head, title, strlen(title));
    kymo__buf_put(&head, behind, (size_t)(data - behind));
    const kymo_status status = head.failed ? kymo__fail(KYMO_ENOMEM, "no memory for the page")
                                           : put(fd, head.data, head.len);
    kymo__buf_fini(&head);
    return status;
}

kymo_status kymo__page_tail(int fd, const char *template)
{
    const char *tail = strstr(template, KYMO__PAGE_DATA) + strlen(KYMO__PAGE_DATA);
    return put(fd, tail, strlen(tail));
}

/* ---- the data ---- */

static kymo_status put_json(struct kymo__page *page, const char *name,
                            kymo_status (*make)(const struct kymo__page *, struct kymo__buf *))
{
    struct kymo__buf json = {0};
    kymo_status status = make(page, &json);
    if (status == KYMO_OK)
        status = kymo__page_packer_put(page->packer, name, json.data, json.len);
    kymo__buf_fini(&json);
    return status;
}

static kymo_status put_texts(struct kymo__page *page)
{
    for (size_t i = 0; i < page->n_processes; i++) {
        const struct kymo__buf *texts = &page->processes[i].texts;
        char name[32];
        snprintf(name, sizeof name, "texts-%zu", i);
        if (texts->len != 0)
            KYMO_TRY(kymo__page_packer_put(page->packer, name, texts->data, texts->len));
    }
    return KYMO_OK;
}

/* For the timeline alone: what measured the program is in no table, and of many ranks those chosen were in them before. */
static kymo_status walk_again(struct kymo__page *page, size_t number)
{
    const struct place at = place_of(page, number);
    struct kymo__process_walk walk;
    kymo_status status = kymo__process_walk_init(&walk, at.recording, at.process);
    if (status == KYMO_OK)
        status = kymo__page_begin_process(page, &walk, number);
    if (status == KYMO_OK)
        status = kymo__process_walk_run(&walk);
    if (status == KYMO_OK)
        status = kymo__page_end_process(page, &walk, number);
    kymo__process_walk_fini(&walk);
    return status;
}

static kymo_status walk_others(struct kymo__page *page)
{
    for (size_t i = page->n_of_program; i < page->n_processes; i++)
        KYMO_TRY(walk_again(page, i));
    if (page->has_many)
        kymo__page_choose_ranks(page);
    for (size_t i = 0; i < page->n_chosen; i++)
        KYMO_TRY(walk_again(page, page->chosen[i]));
    return KYMO_OK;
}

static kymo_status put_data(struct kymo__page *page)
{
    const struct kymo__summary_tap tap = {
        .begin = page->has_many ? kymo__page_begin_rank : kymo__page_begin_process,
        .end = page->has_many ? kymo__page_end_rank : kymo__page_end_process,
        .ctx = page,
    };
    const long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t n_jobs = page->options->summary.n_jobs;
    /* Beside the threads that walk; none where one thread is to do it all. */
    const size_t n_threads = n_jobs != 0 ? n_jobs - 1 : (size_t)KYMO__MAX(n_cores, 1L);
    KYMO_TRY(kymo__page_packer_start(page->fd, n_threads, &page->packer));
    KYMO_TRY(kymo__summary_create(page->recordings, page->n_recordings, &page->options->summary,
                                  &tap, &page->summary));
    KYMO_TRY(walk_others(page));
    KYMO_TRY(kymo__page_packer_stop(page->packer));
    KYMO_TRY(kymo__page_break_down(page));
    KYMO_TRY(kymo__page_look_at_gpus(page));
    KYMO_TRY(kymo__page_look_at_memory(page));
    KYMO_TRY(kymo__page_measure(page));
    KYMO_TRY(kymo__page_time_epochs(page));
    KYMO_TRY(kymo__page_profile(page));
    KYMO_TRY(kymo__page_sample(page));
    KYMO_TRY(put_texts(page));
    KYMO_TRY(kymo__page_put_heat_block(page));
    KYMO_TRY(put_json(page, "names", kymo__page_names));
    return put_json(page, "index", kymo__page_index);
}

static kymo_status write_page(struct kymo__page *page, const char *title)
{
    survey(page);
    if (!kymo__heat_create(page, &page->heat))
        return kymo__fail(KYMO_ENOMEM, "no memory for the page's heat map");
    KYMO_TRY(kymo__page_head(page->fd, kymo__page_template, title));
    KYMO_TRY(put_data(page));
    return kymo__page_tail(page->fd, kymo__page_template);
}

static kymo_status write_plain(struct kymo__page *page, const char *title)
{
    KYMO_TRY(kymo_summary_create(page->recordings, page->n_recordings, &page->options->summary,
                                 &page->summary));
    return kymo__page_plain(page->summary->tables, KYMO__N_TABLES, title, page->fd);
}

static kymo_status write_titled(struct kymo__page *page)
{
    char *const own = kymo__recordings_title(page->recordings, page->n_recordings);
    if (own == NULL)
        return kymo__fail(KYMO_ENOMEM, "no memory for the page");
    const char *title = page->options->title != NULL ? page->options->title : own;
    const kymo_status status =
        kymo_page_is_plain() ? write_plain(page, title) : write_page(page, title);
    kymo__free(own);
    return status;
}

kymo_status kymo_page_write(kymo_recording *const *recordings, size_t n,
                            const struct kymo_page_options *options, int fd)
{
    static const struct kymo_page_options defaults;
    struct kymo__page page = {
        .options = options != NULL ? options : &defaults,
        .recordings = recordings,
        .n_recordings = n,
        .fd = fd,
    };
    for (size_t r = 0; r < n; r++) {
        page.n_processes += kymo_recording_n_logs(recordings[r]);
        page.n_of_program += kymo_recording_n_processes(recordings[r]);
    }
    page.has_many = page.n_of_program > KYMO__PAGE_MANY;
    page.processes = kymo__calloc(page.n_processes + 1, sizeof *page.processes);
    const kymo_status status = page.processes != NULL
                                   ? write_titled(&page)
                                   : kymo__fail(KYMO_ENOMEM, "no memory for the page");
    kymo__page_packer_free(page.packer); /* its threads end before what they pack goes */
    for (size_t i = 0; page.processes != NULL && i < page.n_processes; i++)
        kymo__page_process_fini(&page.processes[i]);
    kymo__free(page.processes);
    kymo_summary_destroy(page.summary);
    kymo_breakdown_destroy(page.breakdown);
    kymo_gpu_report_destroy(page.gpu);
    kymo_memory_report_destroy(page.memory);
    kymo_energy_report_destroy(page.energy);
    kymo_epoch_report_destroy(page.epochs);
    kymo__page_free_calls(&page);
    kymo__page_free_samples(&page);
    kymo__heat_destroy(page.heat);
    kymo__buf_fini(&page.heat_index);
    return status;
}
