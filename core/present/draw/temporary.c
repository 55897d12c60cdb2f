/* What cannot go into a pipe before it is whole (a database, a trace of an archive) comes from a file without a name. */
#include <unistd.h>

#include "present/draw/internal.h"

marey_status marey__temporary_copy(int fd, struct marey__out *out)
{
    ssize_t n;
    marey__out_flush(out); /* what comes next uses the whole buffer */
    for (off_t at = 0; (n = pread(fd, out->data, MAREY__OUT_BYTES, at)) != 0; at += n) {
        if (n < 0)
            return marey__fail_errno("read the temporary file of the export");
        out->p = out->data + n;
        marey__out_flush(out);
    }
    return out->status;
}
