/*
 * gil-contention: the training thread waits for the interpreter lock, which another thread holds.
 *
 * Exposed time is that of samples in which the main thread waits for the lock in a step, outside of
 * phases with their own finding. The place is the code that the holder runs meanwhile. Kernels of
 * torch release the lock and must reacquire it; each time, a thread of pure Python may keep it for
 * 5 ms. In a process that uses a GPU a wait may be hidden, and does not count.
 * Wrong when: the other thread does work that the step needs at once.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/diagnosis/internal.h"

static const double least_share = 0.05; /* of the steps */
enum { FEWEST_SAMPLES = 10 };

/* The thread that holds the lock most often; NULL: unknown. */
static const struct marey_samples_thread *find_holder(const struct marey__facts *facts)
{
    const struct marey__sample_bucket *most = NULL;
    for (size_t i = 0; i < facts->n_buckets; i++) {
        const struct marey__sample_bucket *const bucket = &facts->buckets[i];
        if (marey__sample_bucket_has_kind(bucket, MAREY__FACT_ONLY(MAREY__FACT_HOLDER_THREAD)) &&
            (most == NULL || bucket->sum.ns > most->sum.ns))
            most = bucket;
    }
    return most != NULL
               ? marey_samples_get_thread(facts->set.samples, marey__sample_bucket_stack(most))
               : NULL;
}

bool marey__find_gil_contention(const struct marey__diagnosis *d, struct marey__finding *out)
{
    const struct marey__facts *const facts = &d->facts;
    const struct marey__fact_sum all = marey__facts_sum(facts, MAREY__FACT_STEPS),
                                 rest =
                                     marey__facts_sum(facts, MAREY__FACT_STEPS & ~MAREY__FACT_KNOWN),
                                 held = marey__facts_sum(facts, MAREY__FACT_ONLY(MAREY__FACT_HOLDER));
    if (facts->n_steps == 0 || facts->has_device || all.n == 0 || held.n < FEWEST_SAMPLES)
        return false;
    const double share = (double)rest.wants_ns / (double)all.ns;
    if (share < least_share || !marey__facts_find_place(facts, MAREY__FACT_ONLY(MAREY__FACT_HOLDER),
                                                        MAREY__FACT_ALL, &out->statement.place))
        return false;
    const struct marey_samples_thread *const holder = find_holder(facts);
    out->statement.id = "gil-contention";
    out->statement.phase = MAREY__FACT_OTHER;
    out->confidence = 0.8;
    marey__finding_set_share(out, share, sqrt(share * (1 - share) / (double)all.n));
    /* An unnamed thread has the program's name. */
    const bool has_name = holder != NULL && holder->name[0] != '\0' &&
                          strncmp(holder->name, "python", strlen("python")) != 0;
    snprintf(out->statement.claim, sizeof out->statement.claim,
             "GIL contention: training waits %.0f %% of each step for the interpreter lock, which "
             "%s%s holds.",
             share * 100, has_name ? "thread " : "another thread", has_name ? holder->name : "");
    snprintf(out->detail, sizeof out->detail, "of the time that the lock is held.");
    snprintf(out->statement.action, sizeof out->statement.action,
             "Run this in another process, run it less often, or use code that releases the lock "
             "(torch, "
             "numpy).");
    return true;
}
