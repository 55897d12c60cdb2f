/* What stands beside a .bin: its shape and its type. */
#include <string.h>

#include "tensor/dumpfile/dumpfile_internal.h"

static bool read_meta(struct marey__cursor *cursor, struct marey__shape *out)
{
    bool is_first = true, has_shape = false;
    if (!marey__cursor_take(cursor, '{'))
        return marey__cursor_fail(cursor, "an object is missing");
    while (marey__cursor_next_key(cursor, &is_first)) {
        if (strcmp(cursor->text.data, "file_data_shape") == 0) {
            has_shape = marey__shape_read(cursor, out);
            if (!has_shape)
                return false;
        } else if (strcmp(cursor->text.data, "file_data_dtype") == 0) {
            if (!marey__cursor_string(cursor))
                return false;
            out->dtype = marey_dtype_find(cursor->text.data);
            if (out->dtype == MAREY_DTYPE_NONE)
                return marey__cursor_fail(cursor, "a type that is not known");
        } else if (!marey__cursor_skip(cursor)) {
            return false;
        }
    }
    if (cursor->mistake != NULL || !marey__cursor_done(cursor))
        return false;
    return (has_shape && out->dtype != MAREY_DTYPE_NONE) ||
           marey__cursor_fail(cursor, "file_data_shape or file_data_dtype is missing");
}

marey_status marey__bin_meta_parse(const char *path, const char *text, size_t len,
                                   struct marey__shape *out)
{
    struct marey__cursor cursor;
    struct marey__shape shape = {0};
    marey__cursor_init(&cursor, text, len);
    marey_status status = MAREY_OK;
    uint64_t n_bytes;
    if (!read_meta(&cursor, &shape))
        status = marey__cursor_status(&cursor, path, "description of a .bin");
    else if (!marey__shape_bytes(&shape, &n_bytes))
        status = marey__fail(MAREY_EFORMAT, "%s tells a shape of too many bytes", path);
    else
        *out = shape;
    marey__cursor_fini(&cursor);
    return status;
}
