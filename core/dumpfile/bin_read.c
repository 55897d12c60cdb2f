/* What stands beside a .bin: its shape and its type. */
#include <string.h>

#include "dumpfile/dumpfile_internal.h"

static bool read_meta(struct kymo__cursor *cursor, struct kymo__shape *out)
{
    bool is_first = true, has_shape = false;
    if (!kymo__cursor_take(cursor, '{'))
        return kymo__cursor_fail(cursor, "an object is missing");
    while (kymo__cursor_next_key(cursor, &is_first)) {
        if (strcmp(cursor->text.data, "file_data_shape") == 0) {
            has_shape = kymo__shape_read(cursor, out);
            if (!has_shape)
                return false;
        } else if (strcmp(cursor->text.data, "file_data_dtype") == 0) {
            if (!kymo__cursor_string(cursor))
                return false;
            out->dtype = kymo_dtype_find(cursor->text.data);
            if (out->dtype == KYMO_DTYPE_NONE)
                return kymo__cursor_fail(cursor, "a type that is not known");
        } else if (!kymo__cursor_skip(cursor)) {
            return false;
        }
    }
    if (cursor->mistake != NULL || !kymo__cursor_done(cursor))
        return false;
    return (has_shape && out->dtype != KYMO_DTYPE_NONE) ||
           kymo__cursor_fail(cursor, "file_data_shape or file_data_dtype is missing");
}

kymo_status kymo__bin_meta_parse(const char *path, const char *text, size_t len,
                                 struct kymo__shape *out)
{
    struct kymo__cursor cursor;
    struct kymo__shape shape = {0};
    kymo__cursor_init(&cursor, text, len);
    kymo_status status = KYMO_OK;
    uint64_t n_bytes;
    if (!read_meta(&cursor, &shape))
        status = kymo__cursor_status(&cursor, path, "description of a .bin");
    else if (!kymo__shape_bytes(&shape, &n_bytes))
        status = kymo__fail(KYMO_EFORMAT, "%s tells a shape of too many bytes", path);
    else
        *out = shape;
    kymo__cursor_fini(&cursor);
    return status;
}
