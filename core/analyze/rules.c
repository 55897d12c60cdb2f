/*
 * Rules: the first that fits decides what something is. A process classifies each site once; the memo of a site holds
 * the answer for the kind and collective it was last asked about, which nearly never change.
 */
#include <string.h>

#include "analyze/breakdown_internal.h"

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

bool kymo__pattern_fits(const char *pattern, const char *text, size_t len)
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

const char *kymo__collective_name(enum kymo_collective what)
{
    static const char *const names[] = {"unknown",    "all_reduce", "all_gather", "reduce_scatter",
                                        "all_to_all", "broadcast",  "reduce",     "gather",
                                        "scatter",    "barrier",    "send",       "recv",
                                        "other"};
    return (size_t)what < KYMO__COUNT_OF(names) ? names[what] : names[0];
}

static const char *kind_name(uint8_t kind)
{
    static const char *const names[] = {"range", "kernel", "copy", "set"};
    KYMO_ASSERT(kind < KYMO__COUNT_OF(names));
    return names[kind];
}

static bool fits(const struct kymo__rule *rule, const struct kymo__rule_subject *subject)
{
    const struct kymo_site_info *site = subject->site;
    const char *text = NULL;
    switch (rule->look) {
    case KYMO__LOOK_KIND:
        text = kind_name(subject->kind);
        break;
    case KYMO__LOOK_NAME:
        return subject->kind != KYMO__KIND_RANGE &&
               kymo__pattern_fits(rule->pattern, site->name, site->name_len);
    case KYMO__LOOK_RANGE:
        return subject->kind == KYMO__KIND_RANGE &&
               kymo__pattern_fits(rule->pattern, site->name, site->name_len);
    case KYMO__LOOK_CATEGORY:
        text = site->category;
        break;
    case KYMO__LOOK_COLLECTIVE:
        if (!subject->has_collective)
            return false;
        text = kymo__collective_name(subject->what);
        break;
    }
    return kymo__pattern_fits(rule->pattern, text, strlen(text));
}

uint16_t kymo__rules_find(const struct kymo__rules *rules, const struct kymo__rule_subject *subject)
{
    size_t i = 0;
    while (i + 1 < rules->n && !fits(&rules->rules[i], subject))
        i++;
    return (uint16_t)i;
}

/* ---- one process ---- */

struct kymo__rule_memo {
    uint16_t rule;
    uint8_t kind, what;
    bool is_known;
};

bool kymo__classifier_init(struct kymo__classifier *classifier, const struct kymo__rules *rules,
                           kymo_recording *recording, const struct kymo_process *process)
{
    *classifier = (struct kymo__classifier){rules, recording, process, NULL};
    classifier->memos = kymo__calloc(2 * ((size_t)process->n_sites + 1), sizeof *classifier->memos);
    return classifier->memos != NULL;
}

void kymo__classifier_fini(struct kymo__classifier *classifier)
{
    kymo__free(classifier->memos);
    classifier->memos = NULL;
}

uint16_t kymo__classify(struct kymo__classifier *classifier, uint32_t site, uint8_t kind,
                        const struct kymo_communication *communication)
{
    const bool has_collective = communication != NULL;
    const uint8_t what = has_collective ? (uint8_t)communication->what : 0;
    site = site <= classifier->process->n_sites ? site : 0;
    struct kymo__rule_memo *memo = &classifier->memos[2 * (size_t)site + has_collective];
    if (KYMO_LIKELY(memo->is_known && memo->kind == kind && memo->what == what))
        return memo->rule;
    const struct kymo__rule_subject subject = {
        .site = kymo_recording_site(classifier->recording, classifier->process->index, site),
        .kind = kind,
        .has_collective = has_collective,
        .what = (enum kymo_collective)what};
    *memo = (struct kymo__rule_memo){kymo__rules_find(classifier->rules, &subject), kind, what, true};
    return memo->rule;
}
