/* Pauses: CUPTI serves one tool in a process, and this one lets others go first. */
#include <stdio.h>
#include <string.h>

#include "instrument/gpu/internal.h"

static struct marey__gpu *const gpu = &marey__gpu;

void marey__gpu_pause_note(void)
{
    static char told[sizeof gpu->pause_reason];
    if (gpu->pause_reason[0] == '\0' || strcmp(told, gpu->pause_reason) == 0)
        return;
    memcpy(told, gpu->pause_reason, sizeof told);
    marey__say("%s", told);
    marey__record_note(told);
}

void marey_gpu_pause(const char *why)
{
    marey_gpu_settle();
    pthread_mutex_lock(&gpu->turn);
    if (gpu->n_pauses++ == 0) {
        snprintf(gpu->pause_reason, sizeof gpu->pause_reason, "%s", why != NULL ? why : "");
        if (gpu->is_tracing)
            marey__gpu_pause_note();
        marey__gpu_session_stop((struct marey__gpu_ending){0});
    }
    pthread_mutex_unlock(&gpu->turn);
}

/* The turn is held, and no pause is left. */
static marey_status go_on(void)
{
    bool is_kept = true;
    pthread_mutex_lock(&gpu->lock);
    const bool is_due = gpu->is_on && !gpu->is_armed && !gpu->is_tracing &&
                        (gpu->schedule.active == 0 || marey__gpu_schedule_is_due(&is_kept));
    pthread_mutex_unlock(&gpu->lock);
    return is_due ? marey__gpu_session_start(is_kept) : MAREY_OK;
}

marey_status marey_gpu_resume(void)
{
    marey_status st = MAREY_OK;
    marey_gpu_settle();
    pthread_mutex_lock(&gpu->turn);
    if (gpu->n_pauses > 0 && --gpu->n_pauses == 0) {
        st = go_on();
        gpu->n_pauses = st != MAREY_OK;
    }
    pthread_mutex_unlock(&gpu->turn);
    return st;
}
