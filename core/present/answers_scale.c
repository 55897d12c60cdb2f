/* Does it scale? Runs of different numbers of workers. */
#include "present/answers_internal.h"
#include <kymo/scaling.h>

static kymo_status print_scaling(void *answer, FILE *out)
{
    return kymo_scaling_text(answer, NULL, out);
}

static kymo_status put_scaling(kymo_answers *answers, kymo_scaling_runs *runs,
                               const struct kymo__buf *command)
{
    kymo_scaling *scaling = NULL;
    KYMO_TRY(kymo_scaling_create(runs, NULL, &scaling));
    const kymo_status status =
        kymo__answers_print(answers, "Does it scale?", print_scaling, scaling, command);
    kymo_scaling_destroy(scaling);
    return status;
}

kymo_status kymo_answers_scale(kymo_answers *answers, const char *const *paths, size_t n)
{
    struct kymo__buf command = {0};
    kymo_scaling_runs *runs = NULL;
    KYMO_TRY(kymo_scaling_runs_create(&runs));
    kymo_status status = KYMO_OK;
    for (size_t i = 0; i < n && status == KYMO_OK; i++)
        status = kymo_scaling_runs_read(runs, paths[i], NULL);
    kymo__answers_command(&command, "scale", paths, n);
    if (status == KYMO_OK)
        status = put_scaling(answers, runs, &command);
    kymo__buf_fini(&command);
    kymo_scaling_runs_destroy(runs);
    return status;
}
