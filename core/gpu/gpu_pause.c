/* Pauses: CUPTI serves one tool in a process, and this one lets others go first. */
#include <stdio.h>
#include <string.h>

#include "gpu/gpu_internal.h"

static struct kymo__gpu *const gpu = &kymo__gpu;

void kymo__gpu_pause_tell(void)
{
    static char told[sizeof gpu->pause_reason];
    if (gpu->pause_reason[0] == '\0' || strcmp(told, gpu->pause_reason) == 0)
        return;
    memcpy(told, gpu->pause_reason, sizeof told);
    kymo__say("%s", told);
    kymo__record_note(told);
}

void kymo_gpu_pause(const char *why)
{
    kymo_gpu_settle();
    pthread_mutex_lock(&gpu->turn);
    if (gpu->n_pauses++ == 0) {
        snprintf(gpu->pause_reason, sizeof gpu->pause_reason, "%s", why != NULL ? why : "");
        if (gpu->is_tracing)
            kymo__gpu_pause_tell();
        kymo__gpu_session_stop((struct kymo__gpu_ending){0});
    }
    pthread_mutex_unlock(&gpu->turn);
}

/* The turn is held, and no pause is left. */
static kymo_status go_on(void)
{
    bool is_kept = true;
    pthread_mutex_lock(&gpu->lock);
    const bool is_due = gpu->is_on && !gpu->is_armed && !gpu->is_tracing &&
                        (gpu->schedule.active == 0 || kymo__gpu_schedule_is_due(&is_kept));
    pthread_mutex_unlock(&gpu->lock);
    return is_due ? kymo__gpu_session_start(is_kept) : KYMO_OK;
}

kymo_status kymo_gpu_resume(void)
{
    kymo_status st = KYMO_OK;
    kymo_gpu_settle();
    pthread_mutex_lock(&gpu->turn);
    if (gpu->n_pauses > 0 && --gpu->n_pauses == 0) {
        st = go_on();
        gpu->n_pauses = st != KYMO_OK;
    }
    pthread_mutex_unlock(&gpu->turn);
    return st;
}
