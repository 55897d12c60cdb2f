/*
 * Assigns events to processes and threads. Pids and tids are numbers or words; their names may come before or after
 * their first event, or not at all. Only those with events become a process or a lane.
 *
 * Kineto writes one process. Its GPU work has device numbers as pids, and its own metadata has words; all of these
 * belong to that process.
 */
#include "import/kineto/internal.h"

/* Words get numbers from here on, above Linux's pids. */
enum { FIRST_WORD_NUMBER = 1 << 30 };

static void fail_memory(struct marey__chrome *chrome)
{
    chrome->has_failed = true;
    marey__no_memory();
}

/* ---- numbers ---- */

static int64_t number_of_word(struct marey__chrome *chrome, const struct marey__chrome_value *word)
{
    const uint32_t number = marey__names_keep(&chrome->words, &chrome->texts, word->at, word->len);
    if (number == MAREY__NO_NAME)
        fail_memory(chrome);
    return number != MAREY__NO_NAME ? FIRST_WORD_NUMBER + (int64_t)number : 0;
}

/* The number of a pid or tid; `*is_there` is false if it has none. */
static int64_t number_of(struct marey__chrome *chrome, const struct marey__chrome_value *value,
                         bool *is_there)
{
    int64_t number;
    *is_there = true;
    if (marey__chrome_integer(value, &number))
        return number;
    if (value->kind == MAREY__CHROME_STRING)
        return number_of_word(chrome, value);
    *is_there = false;
    return 0;
}

static const struct marey__name *word_of_number(const struct marey__chrome *chrome, int64_t number)
{
    const int64_t i = number - FIRST_WORD_NUMBER;
    return i >= 0 && (uint64_t)i < chrome->words.n ? &chrome->words.names[i] : NULL;
}

/* ---- processes ---- */

static struct marey__chrome_process *find_process(struct marey__chrome *chrome, int64_t pid)
{
    const uint32_t number =
        MAREY__INDEX_NUMBER(&chrome->processes_index, chrome->seed, chrome->processes,
                            chrome->n_processes, chrome->processes_cap, pid);
    if (number == 0)
        fail_memory(chrome);
    return number != 0 ? &chrome->processes[number - 1] : NULL;
}

/* The process for everything that has none. */
static marey__sink_process *main_process(struct marey__chrome *chrome)
{
    if (chrome->main == NULL) {
        chrome->main =
            marey__sink_process_get(chrome->import->sink, (uint64_t)chrome->import->number << 32);
        chrome->has_failed |= chrome->main == NULL;
    }
    return chrome->main;
}

static marey__sink_process *process_of(struct marey__chrome *chrome, int64_t pid)
{
    struct marey__chrome_process *process = find_process(chrome, pid);
    if (process == NULL)
        return NULL;
    const bool is_word = word_of_number(chrome, pid) != NULL;
    if (process->process == NULL && (chrome->header.is_kineto || !chrome->has_main_pid)) {
        process->process = main_process(chrome);
        if (!chrome->has_main_pid && !(chrome->header.is_kineto && is_word)) {
            chrome->has_main_pid = true;
            chrome->main_pid = pid;
        }
    } else if (process->process == NULL) {
        const uint64_t key =
            (uint64_t)chrome->import->number << 32 | (uint64_t)(process - chrome->processes + 1);
        process->process = marey__sink_process_get(chrome->import->sink, key);
    }
    chrome->has_failed |= process->process == NULL;
    return process->process;
}

/* ---- threads ---- */

struct marey__chrome_thread *marey__chrome_thread_of(struct marey__chrome *chrome, int64_t pid,
                                                     int64_t tid)
{
    if (MAREY_LIKELY(chrome->last_thread < chrome->n_threads)) {
        struct marey__chrome_thread *last = &chrome->threads[chrome->last_thread];
        if (last->pid == pid && last->tid == tid)
            return last;
    }
    const int64_t both[2] = {pid, tid};
    const size_t n_before = chrome->n_threads;
    const uint32_t number = MAREY__INDEX_NUMBER(&chrome->threads_index, chrome->seed, chrome->threads,
                                                chrome->n_threads, chrome->threads_cap, both);
    if (number == 0) {
        fail_memory(chrome);
        return NULL;
    }
    struct marey__chrome_thread *thread = &chrome->threads[chrome->last_thread = number - 1];
    if (chrome->n_threads > n_before)
        thread->lane = thread->stream_lane = UINT32_MAX;
    return thread;
}

struct marey__chrome_thread *marey__chrome_thread(struct marey__chrome *chrome,
                                                  const struct marey__chrome_value *pid,
                                                  const struct marey__chrome_value *tid)
{
    bool has_pid, has_tid;
    const int64_t pid_number = number_of(chrome, pid, &has_pid);
    const int64_t tid_number = number_of(chrome, tid, &has_tid);
    return marey__chrome_thread_of(chrome, pid_number, has_tid ? tid_number : pid_number);
}

bool marey__chrome_as_thread(struct marey__chrome *chrome, struct marey__chrome_thread *thread)
{
    if (MAREY_LIKELY(thread->lane != UINT32_MAX))
        return true;
    thread->process = process_of(chrome, thread->pid);
    if (thread->process == NULL)
        return false;
    thread->lane = marey__sink_thread(thread->process, thread->tid);
    const struct marey__name *word = word_of_number(chrome, thread->tid);
    if (word != NULL)
        marey__sink_name_lane(thread->process, thread->lane, word->text, word->len);
    return true;
}

bool marey__chrome_as_stream(struct marey__chrome *chrome, struct marey__chrome_thread *thread)
{
    if (MAREY_LIKELY(thread->stream_lane != UINT32_MAX))
        return true;
    marey__sink_process *process = main_process(chrome);
    if (process == NULL)
        return false;
    chrome->header.is_kineto = true;
    thread->stream_lane = marey__sink_stream(process, (int32_t)thread->pid, (uint32_t)thread->tid);
    if (thread->tid < 0)
        marey__sink_name_lane(process, thread->stream_lane, "the whole device", 16);
    return true;
}

/* ---- names ---- */

void marey__chrome_name_thread(struct marey__chrome *chrome, const char *name, size_t len)
{
    struct marey__chrome_thread *thread =
        marey__chrome_thread(chrome, &chrome->file.event.pid, &chrome->file.event.tid);
    if (thread == NULL)
        return;
    thread->name = marey__arena_text(&chrome->texts, name, len);
    thread->name_len = len;
    if (thread->name == NULL)
        fail_memory(chrome);
}

void marey__chrome_name_process(struct marey__chrome *chrome, const char *name, size_t len,
                                bool is_label)
{
    bool is_there;
    const int64_t pid = number_of(chrome, &chrome->file.event.pid, &is_there);
    struct marey__chrome_process *process = is_there ? find_process(chrome, pid) : NULL;
    if (process == NULL)
        return;
    const char **const field = is_label ? &process->labels : &process->name;
    if ((*field = marey__arena_text(&chrome->texts, name, len)) == NULL)
        fail_memory(chrome);
}

static void name_lanes(struct marey__chrome *chrome)
{
    for (size_t i = 0; i < chrome->n_threads; i++) {
        const struct marey__chrome_thread *thread = &chrome->threads[i];
        if (thread->name == NULL)
            continue;
        if (thread->lane != UINT32_MAX)
            marey__sink_name_lane(thread->process, thread->lane, thread->name, thread->name_len);
        else if (thread->stream_lane != UINT32_MAX)
            marey__sink_name_lane(chrome->main, thread->stream_lane, thread->name, thread->name_len);
    }
}

/* Whether a stream has events of device `i`, which has a name. */
static bool has_work(const struct marey__chrome *chrome, size_t i)
{
    for (size_t j = 0; chrome->header.devices[i].name != NULL && j < chrome->n_threads; j++)
        if (chrome->threads[j].stream_lane != UINT32_MAX &&
            chrome->threads[j].pid == chrome->header.devices[i].id)
            return true;
    return false;
}

/* The names of the devices with work, each once; NULL: none is known. */
static const char *name_devices(struct marey__chrome *chrome)
{
    const struct marey__kineto_device *devices = chrome->header.devices;
    chrome->text.len = 0;
    for (size_t i = 0; i < chrome->header.n_devices; i++) {
        bool is_new = has_work(chrome, i);
        for (size_t j = 0; is_new && j < i; j++)
            is_new = !has_work(chrome, j) || strcmp(devices[j].name, devices[i].name) != 0;
        if (is_new) {
            marey__buf_puts(&chrome->text, chrome->text.len > 0 ? ", " : "");
            marey__buf_puts(&chrome->text, devices[i].name);
        }
    }
    marey__buf_put(&chrome->text, "", 1);
    return chrome->text.failed || chrome->text.len == 1 ? NULL : chrome->text.data;
}

static int32_t rank_of(int64_t number)
{
    return number >= 0 && number <= INT32_MAX ? (int32_t)number : -1;
}

static const char *name_of(const struct marey__chrome *chrome,
                           const struct marey__chrome_process *process)
{
    const struct marey__name *word = word_of_number(chrome, process->pid);
    if (process->name != NULL || process->labels != NULL)
        return process->name != NULL ? process->name : process->labels;
    return word != NULL ? word->text : NULL;
}

static void identify_process(struct marey__chrome *chrome, const struct marey__chrome_process *process)
{
    const bool is_main = process->process == chrome->main;
    if (process->process == NULL || (is_main && process->pid != chrome->main_pid))
        return;
    const struct marey__sink_identity identity = {.pid = process->pid,
                                                  .rank = -1,
                                                  .world_size = -1,
                                                  .host = chrome->header.host,
                                                  .command = name_of(chrome, process)};
    marey__sink_identify(process->process, &identity);
    process->process->shift_ns = (uint64_t)chrome->header.base_ns;
}

void marey__chrome_identify(struct marey__chrome *chrome)
{
    if (chrome->main == NULL)
        return;
    const struct marey__sink_identity identity = {.pid = chrome->import->number,
                                                  .rank = rank_of(chrome->header.rank),
                                                  .world_size = rank_of(chrome->header.world_size),
                                                  .backend = chrome->header.backend,
                                                  .host = chrome->header.host,
                                                  .gpu = name_devices(chrome)};
    marey__sink_identify(chrome->main, &identity);
    chrome->main->shift_ns = (uint64_t)chrome->header.base_ns;
    for (size_t i = 0; i < chrome->n_processes; i++)
        identify_process(chrome, &chrome->processes[i]);
    name_lanes(chrome);
}

void marey__chrome_free_threads(struct marey__chrome *chrome)
{
    marey__arena_fini(&chrome->texts);
    MAREY__FREE_ALL(chrome->threads, chrome->processes);
    marey__index_fini(&chrome->threads_index);
    marey__index_fini(&chrome->processes_index);
    marey__names_fini(&chrome->words);
}

/* ---- texts and sites ---- */

struct marey__chrome_value marey__chrome_text(struct marey__chrome *chrome,
                                              const struct marey__chrome_value *value)
{
    if (MAREY_LIKELY(!value->has_escapes))
        return *value;
    chrome->text.len = 0;
    marey__json_decode(&chrome->text, value->at, value->len, 0);
    chrome->has_failed |= chrome->text.failed;
    return (struct marey__chrome_value){
        .at = chrome->text.data, .len = (uint32_t)chrome->text.len, .kind = MAREY__CHROME_STRING};
}

/* Split viztracer's "function (file:line)". A path may contain parentheses, a function's name does not. */
static void split_location(struct marey__sink_site *site)
{
    const char *open = memmem(site->name, site->name_len, " (", 2),
               *p = site->name + site->name_len - 1;
    uint32_t line = 0, scale = 1;
    if (open == NULL || open == site->name || *p != ')')
        return;
    for (p--; *p >= '0' && *p <= '9' && scale < 100000000; p--, scale *= 10)
        line += (uint32_t)(*p - '0') * scale;
    if (*p != ':' || scale == 1 || p <= open + 2)
        return;
    site->file = open + 2;
    site->file_len = (size_t)(p - site->file);
    site->line = line;
    site->name_len = (size_t)(open - site->name);
}

static bool is_of_viztracer(const struct marey__chrome_value *category)
{
    return category->len == 3 && strncasecmp(category->at, "fee", 3) == 0;
}

uint32_t marey__chrome_site_named(const struct marey__chrome *chrome, marey__sink_process *process,
                                  const char *name, size_t len)
{
    const struct marey__chrome_value *category = &chrome->file.event.category;
    struct marey__sink_site site = {.name = name,
                                    .name_len = len,
                                    .category =
                                        category->kind == MAREY__CHROME_STRING ? category->at : NULL,
                                    .category_len = category->len};
    if (len > 0 && is_of_viztracer(category))
        split_location(&site);
    return marey__sink_site(process, &site);
}

uint32_t marey__chrome_site(struct marey__chrome *chrome, marey__sink_process *process)
{
    const struct marey__chrome_value name = marey__chrome_text(chrome, &chrome->file.event.name);
    return marey__chrome_site_named(chrome, process, name.at, name.len);
}

/* ---- numbers from texts ---- */

static uint64_t hash_of(uint64_t seed, const struct marey__chrome_value *value)
{
    return value->len > 0 ? marey__hash_bytes(seed, value->at, value->len) : seed;
}

uint64_t marey__chrome_id(const struct marey__chrome_value *value)
{
    int64_t number;
    if (marey__chrome_integer(value, &number))
        return (uint64_t)number;
    uint64_t hex = 0;
    size_t i = 2;
    bool is_hex =
        value->len > 2 && value->len <= 18 && value->at[0] == '0' && (value->at[1] | 0x20) == 'x';
    for (; is_hex && i < value->len; i++) {
        const unsigned digit = marey__hex_value(value->at[i]);
        is_hex = digit < 16;
        hex = hex << 4 | (digit & 15);
    }
    return is_hex ? hex : hash_of(0, value);
}

uint64_t marey__chrome_async_id(const struct marey__chrome_event *event)
{
    struct marey__chrome_value key, value, id = event->id;
    const char *p = event->id2.at;
    if (event->id2.kind == MAREY__CHROME_NESTED && *p == '{' &&
        marey__chrome_next_key(p + 1, p + event->id2.len, &key, &value) != NULL)
        id = value;
    return hash_of(hash_of(marey__chrome_id(&id), &event->category), &event->name);
}
