/*
 * Rules: the first match classifies work or a range. A process classifies each site once: the memo of a site caches the
 * result for the kind and collective of its last use, which almost never change.
 *
 * A file of rules has one rule per line with four words, the last of which extends to the end of the line:
 * docs/formats/rules.md.
 */
#include "analyze/device/internal.h"

/* ---- patterns ---- */

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* Match a pattern with * and ? against the whole text. After a mismatch, the last * takes one more character. */
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

/* ---- properties ---- */

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

/* The number of a rule has 16 bits. */
enum { MAX_FILE = 4 << 20, MAX_RULES = 60000 };

extern const char marey__breakdown_rules[];

const char *marey_breakdown_rules(void)
{
    return marey__breakdown_rules;
}

/* ---- a file of rules ---- */

static const char *const look_names[] = {
    [MAREY__LOOK_KIND] = "kind",
    [MAREY__LOOK_NAME] = "name",
    [MAREY__LOOK_RANGE] = "range",
    [MAREY__LOOK_CATEGORY] = "category",
    [MAREY__LOOK_COLLECTIVE] = "collective",
};

static const struct {
    const char *name;
    uint8_t class;
} classes[] = {
    {"compute", MAREY__COMPUTES},
    {"communication", MAREY__COMMUNICATES},
    {"copy", MAREY__COPIES},
    {"ignore", MAREY__IGNORED},
};

const char *marey__rule_look_name(enum marey__rule_look look)
{
    return look_names[look];
}

const char *marey__class_name(uint8_t class)
{
    size_t i = 0;
    while (i + 1 < MAREY__COUNT_OF(classes) && classes[i].class != class)
        i++;
    return classes[i].name;
}

struct word {
    const char *text;
    size_t len;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_word(const struct word *word, const char *text)
{
    return word->len == strlen(text) && memcmp(word->text, text, word->len) == 0;
}

/* The next word of a line, or with `is_last` the rest of it, trimmed. */
static struct word next_word(struct word *line, bool is_last)
{
    while (line->len > 0 && is_blank(line->text[0])) {
        line->text++;
        line->len--;
    }
    struct word word = {line->text, 0};
    while (word.len < line->len && (is_last || !is_blank(word.text[word.len])))
        word.len++;
    line->text += word.len;
    line->len -= word.len;
    while (word.len > 0 && is_blank(word.text[word.len - 1]))
        word.len--;
    return word;
}

/* ---- a line ---- */

struct place {
    const char *source;
    size_t line;
};

static marey_status bad_line(const struct place *place, const char *what, const struct word *word)
{
    return marey__fail(MAREY_EFORMAT, "%s, line %zu: %s '%.*s'", place->source, place->line, what,
                       (int)MAREY__MIN(word->len, (size_t)80), word->text);
}

static marey_status find_class(const struct place *place, const struct word *word, uint8_t *out)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(classes); i++)
        if (is_word(word, classes[i].name)) {
            *out = classes[i].class;
            return MAREY_OK;
        }
    return bad_line(
        place, "a rule's class is compute, communication, copy, ignore or idle:REASON, not", word);
}

/* Whether a class is a reason for idle time, and which one. */
static marey_status find_reason(const struct place *place, const struct word *class, bool *is_idle,
                                uint8_t *out)
{
    static const char prefix[] = "idle:";
    const size_t skip = sizeof prefix - 1;
    *is_idle = class->len >= skip && memcmp(class->text, prefix, skip) == 0;
    if (!*is_idle)
        return MAREY_OK;
    const struct word reason = {class->text + skip, class->len - skip};
    for (size_t i = 0; i < MAREY__N_HOST_REASONS; i++)
        if (is_word(&reason, marey__idle_words[i].id)) {
            *out = (uint8_t)i;
            return MAREY_OK;
        }
    return bad_line(place, "idle time of a thread does not have the reason", &reason);
}

static marey_status find_look(const struct place *place, const struct word *word,
                              enum marey__rule_look *out)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(look_names); i++)
        if (is_word(word, look_names[i])) {
            *out = (enum marey__rule_look)i;
            return MAREY_OK;
        }
    return bad_line(place, "a rule looks at kind, name, range, category or collective, not", word);
}

static marey_status add_rule(struct marey__rules *rules, bool is_idle, const struct marey__rule *rule,
                             const struct word *name, const struct word *pattern)
{
    struct marey__rule new = *rule;
    MAREY__TRY_MEMORY(
        (is_idle ? marey__grow(&rules->idle, &rules->idle_cap, rules->n_idle + 1, sizeof new)
                 : marey__grow(&rules->rules, &rules->cap, rules->n + 1, sizeof new)) &&
        (new.name = marey__arena_text(&rules->texts, name->text, name->len)) != NULL &&
        (new.pattern = marey__arena_text(&rules->texts, pattern->text, pattern->len)) != NULL);
    if (is_idle)
        rules->idle[rules->n_idle++] = new;
    else
        rules->rules[rules->n++] = new;
    return MAREY_OK;
}

static marey_status take_line(struct marey__rules *rules, const struct place *place, struct word line)
{
    const struct word name = next_word(&line, false), class = next_word(&line, false),
                      look = next_word(&line, false), pattern = next_word(&line, true);
    struct marey__rule rule = {0};
    if (name.len == 0 || name.text[0] == '#')
        return MAREY_OK;
    if (memchr(name.text, '\0', (size_t)(pattern.text + pattern.len - name.text)) != NULL)
        return marey__fail(MAREY_EFORMAT, "%s, line %zu: not a text line", place->source,
                           place->line);
    if (pattern.len == 0)
        return bad_line(place, "expected four words (name, class, field, pattern), got",
                        &(struct word){name.text, (size_t)(pattern.text + pattern.len - name.text)});
    bool is_idle;
    MAREY_TRY(find_reason(place, &class, &is_idle, &rule.class));
    if (!is_idle)
        MAREY_TRY(find_class(place, &class, &rule.class));
    MAREY_TRY(find_look(place, &look, &rule.look));
    if (is_idle && rule.look != MAREY__LOOK_RANGE && rule.look != MAREY__LOOK_CATEGORY)
        return bad_line(place, "a rule about idle time looks at range or category, not", &look);
    return add_rule(rules, is_idle, &rule, &name, &pattern);
}

marey_status marey__rules_parse(struct marey__rules *rules, const char *source, const char *text,
                                size_t len)
{
    struct place place = {source, 0};
    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        const size_t line_len = end != NULL ? (size_t)(end - text) : len;
        place.line++;
        MAREY_TRY(take_line(rules, &place, (struct word){text, line_len}));
        const size_t step = MAREY__MIN(line_len + 1, len);
        text += step;
        len -= step;
    }
    return MAREY_OK;
}

/* ---- a file ---- */

static marey_status load_file(struct marey__rules *rules, const char *path)
{
    char part[16384];
    struct marey__buf text MAREY__FINALLY(marey__buf_fini) = {0};
    FILE *const file = fopen(path, "re");
    if (file == NULL)
        return marey__fail_errno("open the rules in %s", path);
    for (size_t n;
         !text.failed && text.len <= MAX_FILE && (n = fread(part, 1, sizeof part, file)) > 0;)
        marey__buf_put(&text, part, n);
    const marey_status status =
        ferror(file) ? marey__fail_errno("read the rules in %s", path) : MAREY_OK;
    fclose(file);
    MAREY_TRY(status);
    MAREY__TRY_MEMORY(!text.failed);
    if (text.len > MAX_FILE)
        return marey__fail(MAREY_EFORMAT, "%s is not a file of rules: it has more than %d bytes",
                           path, MAX_FILE);
    MAREY_TRY(marey__rules_parse(rules, path, text.data, text.len));
    if (rules->n + rules->n_idle > MAX_RULES)
        return marey__fail(MAREY_EFORMAT, "%s has more than %d rules", path, MAX_RULES);
    return MAREY_OK;
}

marey_status marey__rules_load(struct marey__rules *rules, const char *path)
{
    *rules = (struct marey__rules){0};
    if (path != NULL)
        MAREY_TRY(load_file(rules, path));
    return marey__rules_parse(rules, "marey's own rules", marey__breakdown_rules,
                              strlen(marey__breakdown_rules));
}

void marey__rules_fini(struct marey__rules *rules)
{
    MAREY__FREE_ALL(rules->rules, rules->idle);
    marey__arena_fini(&rules->texts);
    *rules = (struct marey__rules){0};
}
