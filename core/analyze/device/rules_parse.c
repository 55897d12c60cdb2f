/* A file of rules: one in a line, four words, the last of which goes to the end of the line. docs/formats/rules.md. */
#include <stdio.h>
#include <string.h>

#include "analyze/device/internal.h"

/* The number of a rule has 16 bits. */
enum { MAX_FILE = 4 << 20, MAX_RULES = 60000 };

extern const char marey__breakdown_rules[];

const char *marey_breakdown_rules(void)
{
    return marey__breakdown_rules;
}

/* ---- the words ---- */

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

/* The next word of a line, or with `is_last` the rest of it without the blanks around. */
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

/* Whether a class says why a device is idle, and which reason that is. */
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
        return bad_line(
            place, "a rule has four words, a name, a class, what it looks at and a pattern, not",
            &name);
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
    struct marey__buf text = {0};
    FILE *const file = fopen(path, "re");
    if (file == NULL)
        return marey__fail_errno("open the rules in %s", path);
    for (size_t n;
         !text.failed && text.len <= MAX_FILE && (n = fread(part, 1, sizeof part, file)) > 0;)
        marey__buf_put(&text, part, n);
    marey_status status = ferror(file)  ? marey__fail_errno("read the rules in %s", path)
                          : text.failed ? marey__no_memory()
                                        : MAREY_OK;
    fclose(file);
    if (status == MAREY_OK && text.len > MAX_FILE)
        status = marey__fail(MAREY_EFORMAT, "%s is not a file of rules: it has more than %d bytes",
                             path, MAX_FILE);
    if (status == MAREY_OK)
        status = marey__rules_parse(rules, path, text.data, text.len);
    if (status == MAREY_OK && rules->n + rules->n_idle > MAX_RULES)
        status = marey__fail(MAREY_EFORMAT, "%s has more than %d rules", path, MAX_RULES);
    marey__buf_fini(&text);
    return status;
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
    marey__free(rules->rules);
    marey__free(rules->idle);
    marey__arena_fini(&rules->texts);
    *rules = (struct marey__rules){0};
}
