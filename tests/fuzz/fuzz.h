/* What the fuzz targets share. */
#ifndef MAREY_FUZZ_H
#define MAREY_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The two entry points that libFuzzer, or replay.c, calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* Give each block from the start of `data` the checksum of what it now holds, so that changes get past it. */
void fuzz_mend_blocks(uint8_t *data, size_t size);

/* Replace the content of the file at `path`; false when it cannot be written. */
int fuzz_write_file(const char *path, const uint8_t *data, size_t size);

/* Read the bytes as a file of that format, whole and in small pieces, and summarise what comes of it. */
struct marey__import_format;
void fuzz_import(const struct marey__import_format *format, const uint8_t *data, size_t size);

/* A folder of this process's own, made once, emptied at exit. */
const char *fuzz_folder(void);

/* Open the bytes as a log; NULL when they are none. Close what comes back. */
struct marey_recording *fuzz_open_log(const uint8_t *data, size_t size);

/* Every number of the table is finite. */
struct marey_table;
void fuzz_check_table(const struct marey_table *table);

/* Open the recording or log at `path` and look at every word. */
void fuzz_visit(const char *path);

/*
 * Open the recording or log at `path` and do with it what a user can: summarise it, report it one way and export it one
 * way. `which` chooses the ways, twelve in all, for the sake of speed. Nothing that happens is wrong but a crash.
 */
void fuzz_read(const char *path, unsigned which);

#endif
