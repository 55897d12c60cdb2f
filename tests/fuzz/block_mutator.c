/*
 * Shared by the targets: a mutator that understands blocks, a place for files, and a reader that
 * uses everything.
 *
 * Checksums of blocks would reject nearly every mutation. So the mutator fixes the checksums after
 * libFuzzer's mutation, except in some cases, to test the checksums.
 */
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/internal.h"
#include "fuzz.h"
#include "record/log_format.h"
#include <marey/marey.h>

/* libFuzzer's own; absent where the corpus is only replayed. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) __attribute__((weak));

void fuzz_mend_blocks(uint8_t *data, size_t size)
{
    for (size_t at = 0; size - at >= sizeof(struct marey__block);) {
        struct marey__block block;
        memcpy(&block, data + at, sizeof block);
        const size_t left = size - at - sizeof block;
        if (!marey__is_block_magic(block.magic) || block.packed_len > left)
            return;
        block.crc = 0;
        block.crc = marey__crc32c(marey__crc32c(0, &block, sizeof block), data + at + sizeof block,
                                  block.packed_len);
        memcpy(data + at, &block, sizeof block);
        const size_t padded = ((size_t)block.packed_len + 7) & ~(size_t)7;
        if (padded >= left)
            return;
        at += sizeof block + padded;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    if (LLVMFuzzerMutate == NULL)
        return size;
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 16 != 0)
        fuzz_mend_blocks(data, size);
    return size;
}

int fuzz_write_file(const char *path, const uint8_t *data, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return 0;
    const int ok = marey__write_all(fd, data, size);
    close(fd);
    return ok;
}

static char folder[64];

static void remove_folder(void)
{
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir != NULL)
        closedir(dir);
    rmdir(folder);
}

const char *fuzz_folder(void)
{
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s/marey-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (mkdtemp(folder) == NULL)
            abort();
        atexit(remove_folder);
    }
    return folder;
}

marey_recording *fuzz_open_log(const uint8_t *data, size_t size)
{
    char path[128];
    marey_recording *recording = NULL;
    snprintf(path, sizeof path, "%s/any.klog", fuzz_folder());
    if (!fuzz_write_file(path, data, size) || marey_recording_open(path, &recording) != MAREY_OK)
        return NULL;
    return recording;
}

static marey_status add_up(void *ctx, const struct marey_batch *batch)
{
    for (size_t i = 0; i < batch->n; i++)
        *(uint64_t *)ctx += batch->words[i] + marey_batch_ns(batch, batch->words[i]);
    return MAREY_OK;
}

void fuzz_visit(const char *path)
{
    static uint64_t sum; /* used, so that the compiler keeps the reads */
    marey_recording *recording;
    if (marey_recording_open(path, &recording) != MAREY_OK)
        return;
    for (size_t i = 0; i < marey_recording_n_processes(recording); i++)
        if (marey_recording_visit(recording, i, add_up, &sum) != MAREY_OK)
            break;
    marey_recording_close(recording);
}

static void use_summary(marey_recording *recording, bool as_json, FILE *nowhere)
{
    marey_report *summary;
    const struct marey_report_options options = {.n_jobs = 1};
    if (marey_report_create("ranges", &recording, 1, &options, &summary) != MAREY_OK)
        return;
    const struct marey_write_options report = {
        .table = "ranges,tree,threads,ranks,processes,async,counters,marks,open"};
    const marey_status status =
        marey_report_write(summary, as_json ? "json" : "text", &report, nowhere);
    (void)status;
    marey_report_destroy(summary);
}

void fuzz_read(const char *path, unsigned which)
{
    static const char *const formats[] = {"perfetto",  "chrome",     "csv",   "speedscope",
                                          "collapsed", "flamegraph", "kineto"};
    static FILE *nowhere;
    if (nowhere == NULL && (nowhere = fopen("/dev/null", "w")) == NULL)
        abort();
    marey_recording *recording;
    if (marey_recording_open(path, &recording) != MAREY_OK)
        return;
    use_summary(recording, which % 2 == 0, nowhere);
    const char *format = formats[which / 2 % MAREY__COUNT_OF(formats)];
    if (marey_export(&recording, 1, format, &(struct marey_export_options){0}, fileno(nowhere)) !=
        MAREY_OK) {
        /* A damaged log may be rejected; only a crash is an error. */
    }
    marey_recording_close(recording);
}

void fuzz_check_table(const marey_table *table)
{
    for (size_t row = 0; row < marey_table_n_rows(table); row++)
        for (size_t c = 0; c < marey_table_n_columns(table); c++) {
            const struct marey_cell cell = marey_table_cell(table, row, c);
            if (!cell.is_null && marey_table_column(table, c)->type == MAREY_TYPE_F64)
                MAREY_ASSERT(isfinite(cell.as.f64));
        }
}
