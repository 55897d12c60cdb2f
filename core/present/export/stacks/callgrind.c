/*
 * callgrind: the profile format of valgrind's callgrind, for kcachegrind, qcachegrind and callgrind_annotate. Costs are
 * nanoseconds; lines are those of the functions, because a call profiler has no others.
 *
 *   fl=(1) /src/dot.py          the file, with its name once, then by number
 *   fn=(1) dot                  the function, likewise
 *   7 690                       line and self cost
 *   cfi=(2) ~                   for each callee
 *   cfn=(2) len
 *   calls=5 0                   number of calls, and the callee's line
 *   7 14                        the calling line, and the total cost of the calls
 *
 * Samples have no call counts: these are 0, noted in a comment.
 */
#include "present/export/stacks/internal.h"

struct dump {
    struct marey__function_rows files;
    struct marey__export *x;
    struct marey__buf line;
    struct marey__names names; /* of files; numbers of functions are those of rows */
    size_t n_files_named;
    uint8_t *is_named; /* by row: its name was written */
};

/* A text of one line. */
static void put_text(struct marey__buf *line, const char *text)
{
    struct marey__buf clean = {0};
    marey__utf8_put(&clean, text, strlen(text));
    for (size_t i = 0; i < clean.len; i++)
        if ((unsigned char)clean.data[i] < ' ')
            clean.data[i] = ' ';
    marey__buf_put(line, clean.data, clean.len);
    marey__buf_end(&clean, line);
}

/* "fl=(3) name" the first time, "fl=(3)" from then on. */
static void put_file(struct dump *dump, const char *key, uint32_t row)
{
    const char *const file = dump->files.rows[row].file[0] != '\0' ? dump->files.rows[row].file : "~";
    const uint32_t number = marey__names_number(&dump->names, file, strlen(file));
    dump->line.failed |= number == MAREY__NO_NAME;
    marey__buf_printf(&dump->line, "%s=(%u)", key, number + 1);
    if (dump->names.n > dump->n_files_named) {
        dump->n_files_named = dump->names.n;
        marey__buf_puts(&dump->line, " ");
        put_text(&dump->line, file);
    }
    marey__buf_puts(&dump->line, "\n");
}

static void put_function(struct dump *dump, const char *key, uint32_t row)
{
    marey__buf_printf(&dump->line, "%s=(%u)", key, row + 1);
    if (!dump->is_named[row]) {
        dump->is_named[row] = 1;
        marey__buf_puts(&dump->line, " ");
        put_text(&dump->line, dump->files.rows[row].label);
    }
    marey__buf_puts(&dump->line, "\n");
}

static void put_row(struct dump *dump, uint32_t number, size_t *edge)
{
    const struct marey__function_rows *const files = &dump->files;
    const uint32_t at = files->rows[number].line;
    marey__buf_puts(&dump->line, "\n");
    put_file(dump, "fl", number);
    put_function(dump, "fn", number);
    marey__buf_printf(&dump->line, "%u %" PRIu64 "\n", at, files->rows[number].sum.self_ns);
    for (; *edge < files->n_edges && files->edges[*edge].caller == number; ++*edge) {
        const struct marey__call_edge *const to = &files->edges[*edge];
        put_file(dump, "cfi", to->callee);
        put_function(dump, "cfn", to->callee);
        marey__buf_printf(&dump->line, "calls=%" PRIu64 " %u\n%u %" PRIu64 "\n",
                          files->calls.from_samples ? 0 : to->sum.calls,
                          files->rows[to->callee].line, at, to->sum.total_ns);
    }
}

static marey_status flush(struct dump *dump)
{
    MAREY__TRY_MEMORY(!dump->line.failed);
    marey__out_put(&dump->x->out, dump->line.data, dump->line.len);
    dump->line.len = 0;
    return MAREY_OK;
}

static void put_head(struct dump *dump, marey_recording *const *recordings, size_t n)
{
    uint64_t whole_ns = 0;
    for (size_t i = 0; i < dump->files.n_rows; i++)
        whole_ns += dump->files.rows[i].sum.self_ns;
    marey__buf_printf(&dump->line, "# callgrind format\nversion: 1\ncreator: marey %s\n",
                      marey_version());
    if (dump->files.calls.from_samples)
        marey__buf_puts(&dump->line, "# samples: call counts are unknown, and 0 below\n");
    if (n != 0 && marey_recording_n_processes(recordings[0]) != 0) {
        marey__buf_puts(&dump->line, "cmd: ");
        put_text(&dump->line, marey_recording_process(recordings[0], 0)->command);
        marey__buf_puts(&dump->line, "\n");
    }
    marey__buf_printf(&dump->line,
                      "positions: line\nevent: ns : Nanoseconds\nevents: ns\nsummary: %" PRIu64 "\n",
                      whole_ns);
}

static marey_status put_all(struct dump *dump, marey_recording *const *recordings, size_t n)
{
    size_t edge = 0;
    dump->is_named = marey__calloc(dump->files.n_rows + 1, 1);
    MAREY__TRY_MEMORY(dump->is_named != NULL);
    put_head(dump, recordings, n);
    for (uint32_t i = 0; i < dump->files.n_rows; i++) {
        put_row(dump, i, &edge);
        MAREY_TRY(flush(dump));
    }
    return flush(dump);
}

static marey_status export_whole(struct marey__export *x, marey_recording *const *recordings, size_t n)
{
    struct dump dump = {.x = x};
    MAREY_TRY(
        marey__function_rows_init(&dump.files, recordings, n, x->options, MAREY__ROWS_BY_CALLER));
    const marey_status status = put_all(&dump, recordings, n);
    marey__buf_fini(&dump.line);
    marey__names_fini(&dump.names);
    marey__free(dump.is_named);
    marey__function_rows_fini(&dump.files);
    return status;
}

const struct marey__export_format marey__export_callgrind = {
    .info =
        {
            .name = "callgrind",
            .extensions = ".callgrind",
            .brief = "functions and callers, for kcachegrind and callgrind_annotate",
            .details = "Calls of a call profiler; of samples, else of ranges, where there are "
                       "none. Async ranges are left out.",
            .next = "open it with kcachegrind, or callgrind_annotate",
            .content = MAREY_EXPORT_FUNCTIONS,
        },
    .whole = export_whole,
    .reads_profiles = true,
};
