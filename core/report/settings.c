/* Settings of an analysis, "name" or "name=value": checked against its entry, then read by it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/internal.h"

static bool has_name(const char *setting, const char *name)
{
    const size_t len = strlen(name);
    return strncmp(setting, name, len) == 0 && (setting[len] == '\0' || setting[len] == '=');
}

static const struct marey_setting *find(const struct marey_analysis *about, const char *setting)
{
    for (size_t i = 0; i < about->n_settings; i++)
        if (has_name(setting, about->settings[i].name) ||
            (about->settings[i].alias != NULL && has_name(setting, about->settings[i].alias)))
            return &about->settings[i];
    return NULL;
}

/* ---- checking ---- */

static marey_status check_count(const struct marey_setting *known, const char *value)
{
    char *end;
    const unsigned long count = value != NULL ? strtoul(value, &end, 10) : 0;
    if (value == NULL || value[0] < '0' || value[0] > '9' || *end != '\0' || count > UINT32_MAX)
        return marey__fail(MAREY_EINVAL, "%s takes a whole number, not '%s'", known->name,
                           value != NULL ? value : "");
    return MAREY_OK;
}

static marey_status check_number(const struct marey_setting *known, const char *value)
{
    char *end;
    const double number = value != NULL ? strtod(value, &end) : 0;
    const bool is_percent = strcmp(known->value, "PERCENT") == 0;
    if (is_percent && value != NULL && end != value) {
        end += strspn(end, " ");
        end += *end == '%';
    }
    if (value == NULL || end == value || *end != '\0' || !isfinite(number) || number < 0)
        return marey__fail(MAREY_EINVAL, "%s takes a %s, not '%s'", known->name,
                           is_percent ? "percentage such as 2 or 2%" : "number of 0 or more",
                           value != NULL ? value : "");
    return MAREY_OK;
}

static marey_status check_choice(const struct marey_setting *known, const char *value)
{
    for (const char *word = known->value; value != NULL && word != NULL; word = strchr(word, '|')) {
        word += *word == '|';
        if (strcspn(word, "|") == strlen(value) && strncmp(word, value, strlen(value)) == 0)
            return MAREY_OK;
    }
    return marey__fail(MAREY_EINVAL, "%s may be one of %s, not '%s'", known->name, known->value,
                       value != NULL ? value : "");
}

/* Without a setting "by" in the entry, the `by` names of its tables are the values. */
static marey_status check_by(const struct marey_analysis *about, const char *value)
{
    struct marey__buf words MAREY__FINALLY(marey__buf_fini) = {0};
    for (size_t i = 0; i < about->n_tables; i++) {
        if (about->tables[i].by == NULL)
            continue;
        if (value != NULL && strcmp(about->tables[i].by, value) == 0)
            return MAREY_OK;
        marey__buf_printf(&words, "%s%s", words.len == 0 ? "" : ", ", about->tables[i].by);
    }
    marey__buf_put(&words, "", 1);
    return words.failed || words.len == 1
               ? marey__fail(MAREY_EINVAL, "%s does not take the setting by", about->name)
               : marey__fail(MAREY_EINVAL, "%s takes by=%s, not '%s'", about->name, words.data,
                             value != NULL ? value : "");
}

static marey_status check(const struct marey_analysis *about, const char *setting)
{
    const char *const equals = strchr(setting, '='), *const value =
                                                         equals != NULL ? equals + 1 : NULL;
    const struct marey_setting *const known = find(about, setting);
    if (known == NULL && has_name(setting, "by"))
        return check_by(about, value);
    if (known == NULL)
        return marey__fail(MAREY_EINVAL, "%s does not take the setting %.*s", about->name,
                           (int)strcspn(setting, "="), setting);
    if (known->python != NULL)
        return marey__fail(MAREY_EINVAL, "%s is an option of `marey report` only", known->name);
    switch (known->kind) {
    case MAREY_SETTING_FLAG:
        return value == NULL ? MAREY_OK
                             : marey__fail(MAREY_EINVAL, "%s does not take a value", known->name);
    case MAREY_SETTING_COUNT:
        return check_count(known, value);
    case MAREY_SETTING_NUMBER:
        return check_number(known, value);
    case MAREY_SETTING_CHOICE:
        return check_choice(known, value);
    case MAREY_SETTING_TEXT:
    case MAREY_SETTING_TEXTS:
        break;
    }
    return value != NULL
               ? MAREY_OK
               : marey__fail(MAREY_EINVAL, "%s takes a value: %s", known->name, known->value);
}

static marey_status unknown_analysis(const char *name)
{
    struct marey__buf names MAREY__FINALLY(marey__buf_fini) = {0};
    const struct marey_analysis *about;
    for (size_t i = 0; (about = marey_analysis_at(i)) != NULL; i++)
        marey__buf_printf(&names, "%s%s", i == 0 ? "" : ", ", about->name);
    marey__buf_put(&names, "", 1);
    return marey__fail(MAREY_EINVAL, "there is no report '%s'; there are %s", name,
                       names.failed ? "others" : names.data);
}

marey_status marey_report_check(const char *analysis, const char *const *settings)
{
    const struct marey__analysis *const found = marey__analysis_find(analysis);
    if (found == NULL)
        return unknown_analysis(analysis);
    for (size_t i = 0; settings != NULL && settings[i] != NULL; i++)
        MAREY_TRY(check(&found->about, settings[i]));
    const struct marey_report_options options = {.settings = settings};
    const struct marey__request request = {.options = &options};
    return found->check != NULL ? found->check(&request) : MAREY_OK;
}

/* ---- reading ---- */

const char *marey__setting_nth(const struct marey__request *request, const char *name, size_t nth)
{
    const char *const *const settings = request->options->settings;
    for (size_t i = 0; settings != NULL && settings[i] != NULL; i++)
        if (has_name(settings[i], name) && nth-- == 0)
            return settings[i] + strlen(name) + (settings[i][strlen(name)] == '=');
    return NULL;
}

const char *marey__setting(const struct marey__request *request, const char *name)
{
    return marey__setting_nth(request, name, 0);
}

bool marey__setting_is_on(const struct marey__request *request, const char *name)
{
    return marey__setting(request, name) != NULL;
}

uint32_t marey__setting_count(const struct marey__request *request, const char *name)
{
    const char *const value = marey__setting(request, name);
    return value != NULL ? (uint32_t)strtoul(value, NULL, 10) : 0;
}
