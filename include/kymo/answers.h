/*
 * kymo/answers.h: many questions, one line for each, and one page with all that is behind them (libkymo-tools).
 *
 *     kymo_answers *answers;
 *     kymo_answers_create(&answers);
 *     kymo_answers_ask(answers, NULL, &recording, 1, "train.kymo");    all that the recording can answer
 *     kymo_answers_compare(answers, "before.kymo", "after.kymo");
 *     kymo_answers_text(answers, NULL, stdout);
 *     kymo_answers_html(answers, "A training", fd);
 *
 * An answer is a question, a sentence with its figure, the command that tells more, and what that command prints. `kymo
 * answers` is made of it. One thread at a time; memory grows with what the commands print.
 */
#ifndef KYMO_ANSWERS_H
#define KYMO_ANSWERS_H

#include <stdio.h>

#include <kymo/report.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kymo_answers kymo_answers;

/* An empty list. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_answers_create(kymo_answers **out);
KYMO_API void kymo_answers_destroy(kymo_answers *answers);

/*
 * Append an answer of your own; texts are copied. The first line of `text` is the answer, the rest are its details.
 * `command` NULL: there is none.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_answers_add(kymo_answers *answers, const char *question,
                                                       const char *text, const char *command);

/*
 * Ask recordings, read as one, a question: "time", "iterations", "epochs", "breakdown", "energy", "samples", "calls",
 * "memory", "gpu". What they have nothing for is answered by why. NULL: all questions that they have something for;
 * KYMO_EFORMAT when that is none. `path` is what commands call them. KYMO_EINVAL for a question that is none.
 */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_answers_ask(kymo_answers *answers, const char *question,
                                                       kymo_recording *const *recordings, size_t n,
                                                       const char *path);

/* Is `b` faster than `a`? As <kymo/compare.h>. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_answers_compare(kymo_answers *answers, const char *a,
                                                           const char *b);
/* Did the numbers change from the dump `b`, the reference, to the dump `a`? As <kymo/diff.h>. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_answers_diff(kymo_answers *answers, const char *a,
                                                        const char *b);
/* Do these runs scale? As <kymo/scaling.h>; recordings, folders of them, files of measurements. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_answers_scale(kymo_answers *answers,
                                                         const char *const *paths, size_t n);

/* Let the page have a link, below its title: to the timeline of a recording, say. Texts are copied. */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_answers_link(kymo_answers *answers, const char *text,
                                                        const char *file);

/* One row for each: question answer command details. Lent until the list changes or goes. */
KYMO_API const kymo_table *kymo_answers_table(const kymo_answers *answers);
/* A line for each question. Of `options`, width and color are used; NULL: none. KYMO_EIO when the stream refuses. */
KYMO_API kymo_status kymo_answers_text(const kymo_answers *answers,
                                       const struct kymo_text_options *options, FILE *out);
/* One file that needs nothing besides itself: the lines, each with a link to its details below. `title` NULL: "Answers". */
KYMO_API KYMO_WARN_UNUSED kymo_status kymo_answers_html(const kymo_answers *answers,
                                                        const char *title, int fd);

#ifdef __cplusplus
}
#endif
#endif
