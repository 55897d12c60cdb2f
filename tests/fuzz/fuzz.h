/* Shared by the fuzz targets. */
#ifndef MAREY_FUZZ_H
#define MAREY_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The two entry points that libFuzzer, or replay.c, calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* Recompute the checksums of all blocks from the start of `data`, so that mutations pass them. */
void fuzz_mend_blocks(uint8_t *data, size_t size);

/* Replace the content of the file at `path`; false when it cannot be written. */
int fuzz_write_file(const char *path, const uint8_t *data, size_t size);

/* Read the bytes as a file of that format, at once and in small pieces, and summarize the result.
 * */
struct marey__import_format;
void fuzz_import(const struct marey__import_format *format, const uint8_t *data, size_t size);

/* A folder of this process's own, made once, emptied at exit. */
const char *fuzz_folder(void);

/* Open the bytes as a log; NULL if they are not a log. The caller closes it. */
struct marey_recording *fuzz_open_log(const uint8_t *data, size_t size);

/* Every number of the table is finite. */
struct marey_table;
void fuzz_check_table(const struct marey_table *table);

/* Open the recording or log at `path` and read every word. */
void fuzz_visit(const char *path);

/*
 * Open the recording or log at `path`, summarize it, and run one report and one export. `which`
 * selects them, of twelve in all, for speed. Only a crash is an error.
 */
void fuzz_read(const char *path, unsigned which);

#endif
