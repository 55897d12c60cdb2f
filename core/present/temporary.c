/* What cannot go into a pipe before it is whole (a database, a trace of an archive) comes from a file without a name. */
#include <unistd.h>

#include "present/export_internal.h"

kymo_status kymo__temporary_copy(int fd, struct kymo__out *out)
{
    ssize_t n;
    kymo__out_flush(out); /* what comes next uses the whole buffer */
    for (off_t at = 0; (n = pread(fd, out->data, KYMO__OUT_BYTES, at)) != 0; at += n) {
        if (n < 0)
            return kymo__fail_errno("read the temporary file of the export");
        out->p = out->data + n;
        kymo__out_flush(out);
    }
    return out->status;
}
