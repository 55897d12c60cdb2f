/* The format's place in a build without libsqlite3. */
#include "present/export/export_internal.h"

const struct marey__export_format marey__export_sqlite = {
    .name = "sqlite",
    .missing = "this build of marey has no SQLite; install libsqlite3-dev and build it again",
};
