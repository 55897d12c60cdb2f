/* The format sqlite in a build without libsqlite3. */
#include "present/export/internal.h"
#include "present/export/sqlite/sqlite_format.h"

const struct marey__export_format marey__export_sqlite = {
    .info = {MAREY__SQLITE_INFO,
             .missing =
                 "this build of marey has no SQLite; install libsqlite3-dev and build it again"},
};
