/* The registry's description of the format sqlite, for builds with and without libsqlite3. */
#ifndef MAREY_SQLITE_FORMAT_H
#define MAREY_SQLITE_FORMAT_H

#define MAREY__SQLITE_INFO                                                                         \
    .name = "sqlite", .extensions = ".db .sqlite",                                                 \
    .brief = "database with views for common queries",                                             \
    .details = "docs/formats/sqlite.md has its tables. Written in place into an empty regular "    \
               "file; for anything else, such as a pipe, it is made in a temporary file (in "      \
               "TMPDIR, else /var/tmp) and copied.",                                               \
    .next = "query it with sqlite3: SELECT * FROM summary_by_name", .leftovers = "-journal -wal",  \
    .takes = MAREY_EXPORT_FILTER, .is_binary = true

#endif
