/* Paths as names and back, and file names that stay inside their directory. */
#include <inttypes.h>
#include <string.h>

#include "tensor/container/internal.h"

static const char gradients[] = "%grad.";
/* Reserved by safetensors, and used to fill gaps there; a name with such a prefix gets its first byte escaped. */
static const char *const taken[] = {"__metadata__", "__pad__"};

static void escape(struct marey__buf *out, unsigned char byte)
{
    static const char digits[] = "0123456789ABCDEF";
    const char text[] = {'%', digits[byte >> 4], digits[byte & 15]};
    marey__buf_put(out, text, sizeof text);
}

static bool is_special(unsigned char byte)
{
    return byte < 0x20 || byte == 0x7f || strchr("%.[]/\\", byte) != NULL;
}

static void put_key(struct marey__buf *out, const char *key, size_t len, bool is_taken)
{
    if (len == 0)
        marey__buf_puts(out, "%-");
    for (size_t i = 0; i < len;) {
        const unsigned char byte = (unsigned char)key[i];
        const size_t n = marey__utf8_length(key + i, len - i);
        if (n == 0 || is_special(byte) || (i == 0 && is_taken))
            escape(out, byte);
        else
            marey__buf_put(out, key + i, n);
        i += n > 1 && i + n <= len ? n : 1;
    }
}

static bool begins_taken(const struct marey_dump_part *part)
{
    return marey__starts_with(part->key, part->key_len, taken[0]) ||
           marey__starts_with(part->key, part->key_len, taken[1]);
}

static void put_parts(struct marey__buf *out, const struct marey_dump_part *parts, size_t n_parts,
                      bool is_dotted)
{
    for (size_t i = 0; i < n_parts; i++) {
        if (i > 0 && (is_dotted || parts[i].key != NULL))
            marey__buf_put(out, ".", 1);
        if (parts[i].key == NULL)
            marey__buf_printf(out, is_dotted ? "%" PRIu64 : "[%" PRIu64 "]", parts[i].index);
        else
            put_key(out, parts[i].key, parts[i].key_len,
                    !is_dotted && i == 0 && begins_taken(&parts[i]));
    }
}

void marey__name_put(struct marey__buf *out, enum marey_dump_tree tree,
                     const struct marey_dump_part *parts, size_t n_parts)
{
    if (tree == MAREY_DUMP_GRADIENTS)
        marey__buf_put(out, gradients, sizeof gradients - 1);
    put_parts(out, parts, n_parts, false);
}

void marey__name_put_dotted(struct marey__buf *out, const struct marey_dump_part *parts,
                            size_t n_parts)
{
    put_parts(out, parts, n_parts, true);
}

/* ---- names to paths ---- */

int marey__hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes one byte of a key, escaped or not; NULL if it is not valid in a key. */
static const char *take_byte(const char *p, const char *end, char *out)
{
    if (*p != '%') {
        *out = *p;
        return is_special((unsigned char)*p) ? NULL : p + 1;
    }
    if (end - p < 3 || marey__hex_digit(p[1]) < 0 || marey__hex_digit(p[2]) < 0)
        return NULL;
    *out = (char)(marey__hex_digit(p[1]) * 16 + marey__hex_digit(p[2]));
    return p + 3;
}

static const char *take_key(const char *p, const char *end, struct marey_dump_part *part, char **keys)
{
    char *const key = *keys;
    if (end - p >= 2 && p[0] == '%' && p[1] == '-') {
        p += 2;
    } else {
        if (p == end || *p == '.' || *p == '[')
            return NULL; /* an empty key is written as %- */
        while (p < end && *p != '.' && *p != '[') {
            p = take_byte(p, end, *keys);
            if (p == NULL)
                return NULL;
            ++*keys;
        }
    }
    *part = (struct marey_dump_part){.key = key, .key_len = (size_t)(*keys - key)};
    *(*keys)++ = '\0';
    return p == end || *p == '.' || *p == '[' ? p : NULL;
}

static const char *take_position(const char *p, const char *end, struct marey_dump_part *part)
{
    uint64_t index = 0;
    const char *const first = p;
    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        if (index > (UINT64_MAX - 9) / 10)
            return NULL;
        index = index * 10 + (uint64_t)(*p - '0');
    }
    if (p == first || p == end || *p != ']' || (*first == '0' && p - first > 1))
        return NULL;
    *part = (struct marey_dump_part){.index = index};
    return p + 1;
}

static bool parse(const char *p, const char *end, struct marey__path *path)
{
    char *keys = path->keys;
    while (p != NULL && p < end) {
        struct marey_dump_part *const part = &path->parts[path->n_parts];
        if (*p == '[')
            p = take_position(p + 1, end, part);
        else if (path->n_parts == 0)
            p = take_key(p, end, part, &keys);
        else
            p = *p == '.' ? take_key(p + 1, end, part, &keys) : NULL;
        path->n_parts++;
    }
    return p != NULL && path->n_parts > 0;
}

marey_status marey__name_parse(const char *name, size_t len, struct marey__path *out)
{
    struct marey__path path MAREY__FINALLY(marey__path_fini) = {0};
    const char *p = name;
    if (marey__starts_with(name, len, gradients)) {
        path.tree = MAREY_DUMP_GRADIENTS;
        p += sizeof gradients - 1;
    }
    size_t n = 1;
    for (size_t i = 0; i < len; i++)
        n += name[i] == '.' || name[i] == '[';
    path.parts = marey__calloc(n, sizeof *path.parts);
    path.keys = marey__alloc(len + n);
    MAREY__TRY_MEMORY(path.parts != NULL && path.keys != NULL);
    if (!parse(p, name + len, &path))
        return marey__fail(MAREY_EFORMAT, "'%.*s' is not the name of a dumped value",
                           (int)MAREY__MIN(len, (size_t)200), name);
    *out = path;
    path = (struct marey__path){0};
    return MAREY_OK;
}

void marey__path_fini(struct marey__path *path)
{
    MAREY__FREE_ALL(path->parts, path->keys);
    *path = (struct marey__path){0};
}

/* ---- files ---- */

static bool is_plain(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("_-+=,@[]", c) != NULL) || (c == '.' && !is_first);
}

/* FNV-1a: sufficient to distinguish long names of one step, and available in every build. */
static uint64_t digest_of(const char *text, size_t len)
{
    uint64_t sum = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < len; i++)
        sum = (sum ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    return sum;
}

void marey__file_name_put(struct marey__buf *out, const char *name, size_t len, const char *suffix)
{
    enum { CUT = MAREY__FILE_NAME_MAX - 17 }; /* room for ~ and 16 digits */
    const size_t start = out->len;
    size_t cut_at = 0; /* the last character boundary that leaves room */
    if (len == 0)
        marey__buf_puts(out, "%-");
    for (size_t i = 0; i < len && out->len - start <= MAREY__FILE_NAME_MAX && !out->failed; i++) {
        if (out->len - start <= CUT)
            cut_at = out->len;
        if (is_plain(name[i], i == 0))
            marey__buf_put(out, &name[i], 1);
        else
            escape(out, (unsigned char)name[i]);
    }
    if (out->len - start > MAREY__FILE_NAME_MAX && !out->failed) {
        out->len = cut_at;
        marey__buf_printf(out, "~%016" PRIx64, digest_of(name, len));
    }
    marey__buf_puts(out, suffix);
}

void marey__step_name_put(struct marey__buf *out, uint64_t step, int64_t rank, uint64_t pid)
{
    marey__buf_printf(out, "step-%08" PRIu64, step);
    if (rank >= 0)
        marey__buf_printf(out, ".rank-%" PRId64, rank);
    if (pid != 0)
        marey__buf_printf(out, ".pid-%" PRIu64, pid);
}
