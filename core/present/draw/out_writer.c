/*
 * A thread that writes one buffer while the next is filled, so that encoding and the disk take their time together
 * rather than in turn. One buffer at most is on its way: whoever hands over a second waits for the first.
 */
#include <errno.h>

#include "present/draw/internal.h"

static void *writer_main(void *arg)
{
    struct marey__writer *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->len == 0 && !w->is_ending)
            pthread_cond_wait(&w->changed, &w->lock);
        if (w->len == 0)
            break;
        const char *const bytes = w->bytes;
        const size_t len = w->len;
        const int fd = w->fd;
        pthread_mutex_unlock(&w->lock);
        const int error = marey__write_all(fd, bytes, len) ? 0 : errno;
        pthread_mutex_lock(&w->lock);
        w->error = w->error != 0 ? w->error : error;
        w->len = 0;
        pthread_cond_signal(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

bool marey__writer_start(struct marey__writer *w, int fd)
{
    *w = (struct marey__writer){
        .fd = fd, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    w->is_running = marey__thread_create(&w->thread, 0, writer_main, w) == 0;
    return w->is_running;
}

/* The lock is held: wait until nothing is on its way. */
static int wait_until_idle(struct marey__writer *w)
{
    while (w->len != 0)
        pthread_cond_wait(&w->changed, &w->lock);
    return w->error;
}

int marey__writer_put(struct marey__writer *w, const char *bytes, size_t len)
{
    pthread_mutex_lock(&w->lock);
    const int error = wait_until_idle(w);
    if (error == 0) {
        w->bytes = bytes;
        w->len = len;
        pthread_cond_signal(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return error;
}

int marey__writer_drain(struct marey__writer *w, int fd)
{
    pthread_mutex_lock(&w->lock);
    const int error = wait_until_idle(w);
    w->fd = fd;
    pthread_mutex_unlock(&w->lock);
    return error;
}

int marey__writer_stop(struct marey__writer *w)
{
    if (!w->is_running)
        return 0;
    pthread_mutex_lock(&w->lock);
    const int error = wait_until_idle(w);
    w->is_ending = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    w->is_running = false;
    return error;
}
