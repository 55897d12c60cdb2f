/*
 * A TAR archive (POSIX ustar) written in one pass. An entry's size comes before its bytes and
 * is known only after them:
 *
 *   a regular file        the header is rewritten in place when the entry is closed
 *   a pipe, or appending  the entry is first written to an unnamed temporary file
 *
 * Equal contents give equal archives: no users, and all times are the given one.
 */
#include "present/export/perfetto/tar_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct marey__tar_header {
    char name[100];
    char mode[8], uid[8], gid[8];
    char size[12], mtime[12];
    char checksum[8];
    char type;
    char link_name[100];
    char magic[6], version[2];
    char user[32], group[32];
    char major[8], minor[8];
    char prefix[155];
    char padding[12];
};
static_assert(sizeof(struct marey__tar_header) == MAREY__TAR_BLOCK, "a header is one block");

/* Eleven octal digits; larger numbers are 11 bytes after 0x80, as in GNU tar. */
static void put_number(char field[12], uint64_t value)
{
    if (value < UINT64_C(1) << 33) {
        snprintf(field, 12, "%011llo", (unsigned long long)value);
        return;
    }
    memset(field, 0, 12);
    field[0] = (char)0x80;
    for (int i = 11; i > 3; i--, value >>= 8)
        field[i] = (char)(value & 0xff);
}

static void make_header(struct marey__tar_header *header, const char *name, uint64_t size,
                        uint64_t mtime_s)
{
    *header = (struct marey__tar_header){.type = '0'};
    memcpy(header->name, name, strnlen(name, sizeof header->name - 1));
    memcpy(header->mode, "0000644", 7);
    memcpy(header->uid, "0000000", 7);
    memcpy(header->gid, "0000000", 7);
    put_number(header->size, size);
    put_number(header->mtime, mtime_s);
    memcpy(header->magic, "ustar", 5);
    memcpy(header->version, "00", 2);

    /* The sum counts its own field as blanks. */
    memset(header->checksum, ' ', sizeof header->checksum);
    uint32_t sum = 0;
    for (size_t i = 0; i < sizeof *header; i++)
        sum += ((const uint8_t *)header)[i];
    snprintf(header->checksum, sizeof header->checksum, "%06o", sum);
}

static void put_padding(struct marey__tar *tar, uint64_t size)
{
    static const char zeros[MAREY__TAR_BLOCK];
    marey__out_put(tar->out, zeros, (size_t)(-size % MAREY__TAR_BLOCK));
}

/* ---- entries of unknown size ---- */

/* Whether a header can be rewritten: not in a pipe, and not in a file opened for appending. */
static bool is_patchable(int fd)
{
    struct stat st;
    const int flags = fcntl(fd, F_GETFL);
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && flags >= 0 && (flags & O_APPEND) == 0;
}

marey_status marey__tar_init(struct marey__tar *tar, struct marey__out *out)
{
    *tar = (struct marey__tar){.out = out, .fd = out->fd, .spool = -1};
    if (!is_patchable(out->fd))
        return marey__temporary_open(NULL, &tar->spool);
    const off_t at = lseek(out->fd, 0, SEEK_CUR);
    if (at < 0)
        return marey__fail_errno("find the place in the export's file");
    tar->base = (uint64_t)at;
    return MAREY_OK;
}

void marey__tar_fini(struct marey__tar *tar)
{
    if (tar->spool < 0)
        return;
    marey__out_redirect(tar->out, tar->fd); /* a failed entry may still be in the buffer */
    close(tar->spool);
    tar->spool = -1;
}

/* ---- entries ---- */

void marey__tar_put(struct marey__tar *tar, const char *name, uint64_t mtime_s, const void *bytes,
                    size_t len)
{
    struct marey__tar_header header;
    make_header(&header, name, len, mtime_s);
    marey__out_put(tar->out, &header, sizeof header);
    marey__out_put(tar->out, bytes, len);
    put_padding(tar, len);
}

marey_status marey__tar_open(struct marey__tar *tar, const char *name, uint64_t mtime_s)
{
    snprintf(tar->name, sizeof tar->name, "%s", name);
    tar->mtime_s = mtime_s;
    if (tar->spool >= 0) {
        marey__out_redirect(tar->out, tar->spool);
        if (ftruncate(tar->spool, 0) != 0 || lseek(tar->spool, 0, SEEK_SET) != 0)
            return marey__fail_errno("empty the temporary file of an archive");
        tar->entry_at = marey__out_tell(tar->out);
    } else {
        const struct marey__tar_header later = {{0}};
        tar->entry_at = marey__out_tell(tar->out) + sizeof later;
        marey__out_put(tar->out, &later, sizeof later);
    }
    return tar->out->status;
}

/* Write the header over the zeros reserved for it: in the buffer if they are still there. */
static marey_status patch_header(struct marey__tar *tar, const struct marey__tar_header *header)
{
    const uint64_t at = tar->entry_at - sizeof *header;
    char *unwritten = marey__out_at(tar->out, at);
    if (unwritten != NULL) {
        memcpy(unwritten, header, sizeof *header);
        return MAREY_OK;
    }
    marey__out_drain(tar->out);
    if (tar->out->status != MAREY_OK)
        return tar->out->status;
    const ssize_t n = pwrite(tar->fd, header, sizeof *header, (off_t)(tar->base + at));
    if (n == (ssize_t)sizeof *header)
        return MAREY_OK;
    if (n >= 0)
        errno = EIO;
    return marey__fail_errno("write the export");
}

marey_status marey__tar_close(struct marey__tar *tar)
{
    const uint64_t size = marey__out_tell(tar->out) - tar->entry_at;
    struct marey__tar_header header;
    make_header(&header, tar->name, size, tar->mtime_s);
    if (tar->spool >= 0) {
        marey__out_redirect(tar->out, tar->fd);
        marey__out_put(tar->out, &header, sizeof header);
        MAREY_TRY(marey__temporary_copy(tar->spool, tar->out));
    } else {
        MAREY_TRY(patch_header(tar, &header));
    }
    put_padding(tar, size);
    return tar->out->status;
}

void marey__tar_finish(struct marey__tar *tar)
{
    static const char end[2 * MAREY__TAR_BLOCK];
    marey__out_put(tar->out, end, sizeof end);
}
