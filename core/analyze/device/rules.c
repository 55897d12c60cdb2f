/*
 * Rules: the first that fits decides what something is. A process classifies each site once; the memo of a site holds
 * the answer for the kind and collective it was last asked about, which nearly never change.
 */
#include <string.h>

#include "analyze/device/internal.h"

/* ---- patterns ---- */

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* A pattern with * and ?, of the whole text. After a mismatch, the last * takes one more. */
static bool glob_fits(const char *pattern, const char *text, size_t len)
{
    const char *star = NULL;
    size_t at = 0, star_at = 0;
    while (at < len) {
        if (*pattern == '*') {
            star = pattern++;
            star_at = at;
        } else if (*pattern == '?' || (*pattern != '\0' && lower(*pattern) == lower(text[at]))) {
            pattern++;
            at++;
        } else if (star != NULL) {
            pattern = star + 1;
            at = ++star_at;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

bool marey__pattern_fits(const char *pattern, const char *text, size_t len)
{
    if (strpbrk(pattern, "*?") != NULL)
        return glob_fits(pattern, text, len);
    const size_t wanted = strlen(pattern);
    for (size_t i = 0; i + wanted <= len; i++) {
        size_t n = 0;
        while (n < wanted && lower(text[i + n]) == lower(pattern[n]))
            n++;
        if (n == wanted)
            return true;
    }
    return false;
}

/* ---- what a rule looks at ---- */

const char *marey__collective_name(enum marey_collective what)
{
    static const char *const names[] = {"unknown",    "all_reduce", "all_gather", "reduce_scatter",
                                        "all_to_all", "broadcast",  "reduce",     "gather",
                                        "scatter",    "barrier",    "send",       "recv",
                                        "other"};
    return (size_t)what < MAREY__COUNT_OF(names) ? names[what] : names[0];
}

static const char *kind_name(uint8_t kind)
{
    static const char *const names[] = {"range", "kernel", "copy", "set"};
    MAREY_ASSERT(kind < MAREY__COUNT_OF(names));
    return names[kind];
}

static bool fits(const struct marey__rule *rule, const struct marey__rule_subject *subject)
{
    const struct marey_site_info *site = subject->site;
    const char *text = NULL;
    switch (rule->look) {
    case MAREY__LOOK_KIND:
        text = kind_name(subject->kind);
        break;
    case MAREY__LOOK_NAME:
        return subject->kind != MAREY__KIND_RANGE &&
               marey__pattern_fits(rule->pattern, site->name, site->name_len);
    case MAREY__LOOK_RANGE:
        return subject->kind == MAREY__KIND_RANGE &&
               marey__pattern_fits(rule->pattern, site->name, site->name_len);
    case MAREY__LOOK_CATEGORY:
        text = site->category;
        break;
    case MAREY__LOOK_COLLECTIVE:
        if (!subject->has_collective)
            return false;
        text = marey__collective_name(subject->what);
        break;
    }
    return marey__pattern_fits(rule->pattern, text, strlen(text));
}

uint16_t marey__rules_find(const struct marey__rules *rules, const struct marey__rule_subject *subject)
{
    size_t i = 0;
    while (i + 1 < rules->n && !fits(&rules->rules[i], subject))
        i++;
    return (uint16_t)i;
}

/* ---- one process ---- */

struct marey__rule_memo {
    uint16_t rule;
    uint8_t kind, what;
    bool is_known;
};

bool marey__classifier_init(struct marey__classifier *classifier, const struct marey__rules *rules,
                            marey_recording *recording, const struct marey_process *process)
{
    *classifier = (struct marey__classifier){rules, recording, process, NULL};
    classifier->memos = marey__calloc(2 * ((size_t)process->n_sites + 1), sizeof *classifier->memos);
    return classifier->memos != NULL;
}

void marey__classifier_fini(struct marey__classifier *classifier)
{
    marey__free(classifier->memos);
    classifier->memos = NULL;
}

uint16_t marey__classify(struct marey__classifier *classifier, uint32_t site, uint8_t kind,
                         const struct marey_communication *communication)
{
    const bool has_collective = communication != NULL;
    const uint8_t what = has_collective ? (uint8_t)communication->what : 0;
    site = site <= classifier->process->n_sites ? site : 0;
    struct marey__rule_memo *memo = &classifier->memos[2 * (size_t)site + has_collective];
    if (MAREY_LIKELY(memo->is_known && memo->kind == kind && memo->what == what))
        return memo->rule;
    const struct marey__rule_subject subject = {
        .site = marey_recording_site(classifier->recording, classifier->process->index, site),
        .kind = kind,
        .has_collective = has_collective,
        .what = (enum marey_collective)what};
    *memo =
        (struct marey__rule_memo){marey__rules_find(classifier->rules, &subject), kind, what, true};
    return memo->rule;
}
