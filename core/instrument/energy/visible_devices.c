/*
 * Which GPUs a process may use by CUDA_VISIBLE_DEVICES, parsed as CUDA does. The text is another process's: untrusted.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "instrument/energy/internal.h"

/* ---- one entry of the list ---- */

struct entry {
    const char *text;
    size_t len;
};

/* The next entry without surrounding blanks; false after the last, when `*at` is NULL. */
static bool next_entry(const char **at, struct entry *out)
{
    if (*at == NULL)
        return false;
    const char *begin = *at, *comma = strchr(begin, ',');
    const char *end = comma != NULL ? comma : begin + strlen(begin);
    *at = comma != NULL ? comma + 1 : NULL;
    while (begin < end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *out = (struct entry){begin, (size_t)(end - begin)};
    return true;
}

static bool starts_with(const struct entry *entry, const char *prefix)
{
    return entry->len >= strlen(prefix) && strncmp(entry->text, prefix, strlen(prefix)) == 0;
}

/* CUDA shows the first slice of a partitioned GPU. */
static struct marey__visible_device whole_gpu(const struct marey__node_gpu *gpus, size_t gpu)
{
    return (struct marey__visible_device){(uint32_t)gpu, gpus[gpu].n_slices > 0 ? 0 : -1};
}

static bool find_number(const struct entry *entry, const struct marey__node_gpu *gpus,
                        size_t n_gpus, struct marey__visible_device *out)
{
    uint64_t number;
    for (size_t i = 0; i < entry->len; i++)
        if (entry->text[i] < '0' || entry->text[i] > '9')
            return false;
    if (!marey__parse_number(entry->text, entry->len, &number) || number >= n_gpus)
        return false;
    *out = whole_gpu(gpus, (size_t)number);
    return true;
}

/* A UUID or a unique prefix of one, with hexadecimal digits of either case. */
static bool find_uuid(const struct entry *entry, const struct marey__node_gpu *gpus, size_t n_gpus,
                      struct marey__visible_device *out)
{
    size_t n_found = 0;
    for (size_t g = 0; g < n_gpus; g++) {
        if (starts_with(entry, "GPU-") && entry->len > 4 &&
            strncasecmp(gpus[g].uuid, entry->text, entry->len) == 0) {
            *out = whole_gpu(gpus, g);
            n_found++;
        }
        for (size_t s = 0; s < gpus[g].n_slices && starts_with(entry, "MIG-") && entry->len > 4; s++)
            if (strncasecmp(gpus[g].slices[s], entry->text, entry->len) == 0) {
                *out = (struct marey__visible_device){(uint32_t)g, (int32_t)s};
                n_found++;
            }
    }
    return n_found == 1;
}

/* ---- the list ---- */

size_t marey__visible_choose(const char *text, const struct marey__node_gpu *gpus, size_t n_gpus,
                             struct marey__visible_device *out)
{
    size_t n = 0;
    struct entry entry;
    struct marey__visible_device found;
    n_gpus = MAREY__MIN(n_gpus, (size_t)MAREY__MAX_GPUS);
    if (text == NULL) {
        for (; n < n_gpus; n++)
            out[n] = whole_gpu(gpus, n);
        return n;
    }
    const bool has_numbers = text[strspn(text, " \t")] >= '0' && text[strspn(text, " \t")] <= '9';
    while (n < MAREY__MAX_GPUS && next_entry(&text, &entry) &&
           (has_numbers ? find_number(&entry, gpus, n_gpus, &found)
                        : find_uuid(&entry, gpus, n_gpus, &found))) {
        for (size_t i = 0; i < n; i++)
            if (out[i].gpu == found.gpu && out[i].slice == found.slice)
                return 0;
        out[n++] = found;
    }
    return n;
}

bool marey__visible_is_ambiguous(const char *text, const char *order,
                                 const struct marey__node_gpu *gpus, size_t n_gpus)
{
    if (order != NULL && strcmp(order, "PCI_BUS_ID") == 0)
        return false;
    if (text != NULL && (text[strspn(text, " \t")] < '0' || text[strspn(text, " \t")] > '9'))
        return false;
    for (size_t i = 1; i < n_gpus; i++)
        if (strcmp(gpus[i].model, gpus[0].model) != 0)
            return true;
    return false;
}

/* ---- as texts ---- */

void marey__visible_put(struct marey__buf *out, const struct marey__node_gpu *gpus,
                        const struct marey__visible_device *devices, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct marey__node_gpu *gpu = &gpus[devices[i].gpu];
        marey__buf_puts(out, i > 0 ? "," : "");
        marey__buf_puts(out, devices[i].slice >= 0 ? gpu->slices[devices[i].slice] : gpu->uuid);
    }
}

void marey__node_gpus_put(struct marey__buf *out, const struct marey__node_gpu *gpus, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        marey__buf_printf(out, "%s\t%s", gpus[i].uuid, gpus[i].model);
        for (size_t s = 0; s < gpus[i].n_slices; s++)
            marey__buf_printf(out, "\t%s", gpus[i].slices[s]);
        marey__buf_puts(out, "\n");
    }
}

/* Copies the field up to the next tab or newline, truncated to `size`. Returns its end. */
static const char *take_field(const char *at, char *out, size_t size)
{
    const size_t len = strcspn(at, "\t\n"), kept = MAREY__MIN(len, size - 1);
    memcpy(out, at, kept);
    out[kept] = '\0';
    return at + len;
}

size_t marey__node_gpus_parse(const char *text, struct marey__node_gpu *out, size_t cap)
{
    size_t n = 0;
    while (text[0] != '\0' && n < cap) {
        struct marey__node_gpu *const gpu = &out[n++];
        *gpu = (struct marey__node_gpu){0};
        text = take_field(text, gpu->uuid, sizeof gpu->uuid);
        if (*text == '\t')
            text = take_field(text + 1, gpu->model, sizeof gpu->model);
        while (*text == '\t' && gpu->n_slices < MAREY__MAX_SLICES)
            text = take_field(text + 1, gpu->slices[gpu->n_slices++], MAREY__UUID_MAX);
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return n;
}
