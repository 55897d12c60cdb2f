/*
 * Thread names set by the program; unlike the kernel's they are not limited to 15 bytes. They are stored by thread id,
 * because most threads are named before their first event gives them a lane. The table has a fixed size, so that in a
 * forked child, whose parent may have been changing it, only the lock needs to be reset.
 */
#include <stdio.h>
#include <string.h>

#include "record/internal.h"
#include <marey/range.h>

enum { N_NAMES = 256 };

static struct {
    pthread_mutex_t lock; /* guards the fields below; a leaf lock */
    struct {
        int64_t tid; /* 0: none */
        char name[MAREY__THREAD_NAME_MAX];
    } all[N_NAMES];
    size_t next; /* the oldest is replaced first */
} names = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct marey__record *const record = &marey__record;

size_t marey__thread_name(int64_t tid, char into[MAREY__THREAD_NAME_MAX])
{
    size_t len = 0;
    MAREY__HOLD(&names.lock);
    for (size_t i = 0; i < N_NAMES && len == 0; i++)
        if (names.all[i].tid == tid) {
            memcpy(into, names.all[i].name, MAREY__THREAD_NAME_MAX);
            len = strnlen(into, MAREY__THREAD_NAME_MAX - 1);
        }
    return len;
}

static void keep(int64_t tid, const char *name)
{
    MAREY__HOLD(&names.lock);
    size_t i = 0;
    while (i < N_NAMES && names.all[i].tid != tid)
        i++;
    if (i == N_NAMES)
        i = names.next++ % N_NAMES;
    names.all[i].tid = tid;
    snprintf(names.all[i].name, sizeof names.all[i].name, "%s", name);
}

void marey_name_thread(int64_t tid, const char *name)
{
    uint32_t number;
    if (tid <= 0 || name == NULL || name[0] == '\0')
        return;
    struct marey__lane *const lane = marey__lane_set_aside();
    keep(tid, name);
    pthread_mutex_lock(&record->lock);
    /* If the log has the thread already, write its name again. */
    if (record->state == MAREY__RECORD_OPEN && marey__lanes_find(tid, &number) &&
        marey__log_append_thread(&record->log, number, tid) != MAREY_OK)
        marey__record_failed(marey_last_error());
    pthread_mutex_unlock(&record->lock);
    marey__lane_resume(lane);
}

void marey__thread_names_after_fork(void)
{
    pthread_mutex_init(&names.lock, NULL);
}
