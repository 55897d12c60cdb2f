/* The format's place in a build without libsqlite3. */
#include "present/export_internal.h"

const struct kymo__export_format kymo__export_sqlite = {
    .name = "sqlite",
    .missing = "this build of kymo has no SQLite; install libsqlite3-dev and build it again",
};
