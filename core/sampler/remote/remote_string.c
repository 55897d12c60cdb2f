/*
 * Python str objects as UTF-8: one, two or four bytes per character, inline or separate. Lone surrogates become U+FFFD.
 */
#include "sampler/remote/internal.h"

enum { HEADER_MAX = 320, AT_ONCE = 200 };
/* Bits of the state word. */
enum { KIND_SHIFT = 2, COMPACT_SHIFT = 5, ASCII_SHIFT = 6 };

static void put_characters(struct marey__buf *out, const uint8_t *bytes, size_t n, unsigned kind)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t c = bytes[i * kind];
        if (kind >= 2)
            c |= (uint32_t)bytes[i * kind + 1] << 8;
        if (kind == 4)
            c |= (uint32_t)bytes[i * kind + 2] << 16 | (uint32_t)bytes[i * kind + 3] << 24;
        if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000))
            c = 0xfffd;
        marey__utf8_put_char(out, c);
    }
}

/* The address of the characters; 0 for an invalid header. */
static uint64_t data_of(const struct marey__remote_layout *layout, uint64_t address,
                        const uint8_t *header, unsigned *kind)
{
    uint32_t state = marey__remote_u32(header, layout->unicode.state);
    /* In free-threaded builds a patch release widened the field before these, without a change in the table. */
    if (layout->is_free_threaded && (state >> KIND_SHIFT & 7) == 0)
        state >>= 6;
    *kind = state >> KIND_SHIFT & 7;
    if (*kind != 1 && *kind != 2 && *kind != 4)
        return 0;
    if ((state >> COMPACT_SHIFT & 1) == 0)
        return marey__remote_u64(header, layout->unicode.compact_size);
    return address + ((state >> ASCII_SHIFT & 1) != 0 ? layout->unicode.ascii_size
                                                      : layout->unicode.compact_size);
}

bool marey__remote_put_string(struct marey__remote *remote, uint64_t address, size_t max_chars,
                              struct marey__buf *out)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    const size_t header_size = layout->unicode.compact_size + 8;
    uint8_t header[HEADER_MAX + AT_ONCE];
    /* The header and most names fit into one read; retry with less near the end of a mapping. */
    const size_t sizes[] = {header_size + AT_ONCE, header_size, layout->unicode.ascii_size};
    size_t n_read = 0;
    unsigned kind;
    MAREY_ASSERT(header_size <= HEADER_MAX);
    memset(header, 0, header_size);
    for (size_t i = 0; i < MAREY__COUNT_OF(sizes) && n_read == 0; i++)
        if (marey__remote_read(remote, address, header, sizes[i]))
            n_read = sizes[i];
    if (n_read == 0)
        return false;
    uint64_t length = marey__remote_u64(header, layout->unicode.length);
    const uint64_t data = data_of(layout, address, header, &kind);
    if (data == 0 || length > INT64_MAX)
        return false;
    const bool is_cut = length > max_chars;
    length = MAREY__MIN(length, max_chars);
    if (data >= address && data - address <= n_read && length * kind <= n_read - (data - address)) {
        put_characters(out, header + (data - address), length, kind);
    } else {
        uint8_t *const bytes = marey__alloc(length * kind + 1);
        const bool is_read = bytes != NULL && marey__remote_read(remote, data, bytes, length * kind);
        if (is_read)
            put_characters(out, bytes, length, kind);
        marey__free(bytes);
        if (!is_read)
            return false;
    }
    if (is_cut)
        marey__buf_puts(out, "...");
    return !out->failed;
}

size_t marey__remote_string(struct marey__remote *remote, uint64_t address, char *to, size_t cap)
{
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    const bool is_read = marey__remote_put_string(remote, address, cap, &text);
    return marey__utf8_copy(text.data, is_read ? text.len : 0, to, cap);
}
