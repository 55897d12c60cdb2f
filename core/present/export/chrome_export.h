/*
 * The Chrome export: chrome.c writes events of threads; chrome_export_gpu.c writes their arguments, GPU streams
 * and flows, with Kineto's names. kineto.c is the only other user.
 */
#ifndef MAREY_CHROME_EXPORT_H
#define MAREY_CHROME_EXPORT_H

#include "present/export/export_walk.h"

/* State of the export. */
struct marey__chrome_export {
    bool is_kineto; /* GPU work or an imported trace: the head has the keys that Kineto tools expect */
    bool pids_are_devices;    /* each device belongs to one process, and no pid equals its number */
    struct marey__buf text;   /* of the current event */
    struct marey__pairs gpus; /* named devices, by process */
    uint64_t n_ranges;        /* for kineto.c: number of numbered ranges */
    uint64_t around; /* for kineto.c: the number of the operator around the current range; 0: none */
};

static inline struct marey__chrome_export *marey__chrome_of(const struct marey__export *x)
{
    return x->own;
}

static inline struct marey__buf *text_of(const struct marey__export *x)
{
    return &marey__chrome_of(x)->text;
}

/* The start of an object up to its time. */
#define HEAD_ROOM 96
struct lane_head {
    uint32_t len;
    char text[HEAD_ROOM];
};
#define HEAD_START ",\n{\"ph\":\"X\",\"pid\":"
#define HEAD_PHASE_AT 9

/* An object up to and including its time; at most HEAD_ROOM + 25 bytes. */
static inline char *marey__chrome_head(struct marey__export *x,
                                       const struct marey__export_lane *lane, uint64_t ns, char phase)
{
    const struct lane_head *head = lane->own;
    char *p = marey__out_room(&x->out);
    memcpy(p, head->text, HEAD_ROOM);
    p[HEAD_PHASE_AT] = phase;
    return marey__put_us(p + head->len, ns - x->origin_ns);
}

/* ,"dur":1.234 */
static inline char *marey__chrome_duration(char *p, uint64_t ns)
{
    memcpy(p, ",\"dur\":", 7);
    return marey__put_us(p + 7, ns);
}

/* Prepare the head of a lane's objects; false on out of memory. */
bool marey__chrome_lane(struct marey__export *x, struct marey__export_lane *lane, int64_t pid,
                        int64_t tid);
/* The site's tail without its closing brace, of any length. */
void marey__chrome_open_tail(struct marey__export *x, uint32_t site);
/*
 * Append `{"ph":"M",...,"name":WHAT,"args":{KEY:TEXT}}`; WHAT is process_KEY or thread_KEY. Preceded by a comma, except
 * for the first object.
 */
void marey__chrome_meta(struct marey__buf *buf, int64_t pid, int64_t tid, const char *what,
                        const char *text, size_t len);
/* The same for `what`_sort_index. */
void marey__chrome_meta_index(struct marey__buf *buf, int64_t pid, int64_t tid, const char *what,
                              int64_t index);

/* ---- chrome_export_gpu.c ---- */

/* ,"args":{...} of a range; nothing if unknown. */
void marey__chrome_args(struct marey__export *x, const struct marey__payload *payload, bool is_cut);
/* The value of a counter or payload: a text if it is not finite. */
char *marey__chrome_double(char *p, double value);

/* Check all processes. Sets x->status on out of memory. */
void marey__chrome_survey(struct marey__export *x);
/* Kineto's keys at the head of a file, each followed by a comma. */
void marey__chrome_kineto_head(const struct marey__export *x, struct marey__buf *buf);
void marey__chrome_work(struct marey__export *x, struct marey__export_lane *lane,
                        const struct marey__stream_work *work);
void marey__chrome_flow(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                        const uint64_t *words);
/* Arrows from a range that began at `ns` to the work it launched. */
void marey__chrome_launches(struct marey__export *x, const struct marey__export_lane *lane,
                            uint64_t ns, const struct marey__payload *payload);

/* ---- chrome.c ---- */

void marey__chrome_finish(struct marey__export *x);
/* Free the format's data in x->own. */
void marey__chrome_close(struct marey__export *x);

#endif
