/*
 * Parses lines of collapsed stacks, as written by py-spy, perf's and other collapsers. A frame ends at a semicolon, but
 * py-spy writes the command line of a process as a frame, in quotes that are not escaped, and a command line may
 * contain semicolons and quotes.
 */
#include "import/stacks/internal.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool begins_with(const struct marey__text *text, const char *word)
{
    return marey__starts_with(text->at, text->len, word);
}

/* ---- the line ---- */

/* Remove a number, possibly with a fraction, and the blanks before it from the end. */
static bool take_number(struct marey__text *text, uint64_t *number)
{
    size_t i = text->len;
    while (i > 0 && (marey__is_digit(text->at[i - 1]) || text->at[i - 1] == '.'))
        i--;
    const char *digits = text->at + i;
    const size_t len = text->len - i;
    const char *point = len != 0 ? memchr(digits, '.', len) : NULL;
    if (i == 0 || !is_blank(text->at[i - 1]) || !marey__parse_number(digits, len, number))
        return false;
    if (point != NULL && memchr(point + 1, '.', (size_t)(digits + len - point - 1)) != NULL)
        return false;
    *number += point != NULL && point + 1 < digits + len && point[1] >= '5' && *number < UINT64_MAX;
    while (i > 0 && is_blank(text->at[i - 1]))
        i--;
    text->len = i;
    return true;
}

static void trim_end(struct marey__text *text)
{
    while (text->len > 0 && (is_blank(text->at[text->len - 1]) || text->at[text->len - 1] == '\r'))
        text->len--;
}

bool marey__collapsed_line(const char *line, size_t len, bool is_difference,
                           struct marey__text *stack, uint64_t *count)
{
    uint64_t before;
    *stack = (struct marey__text){line, len};
    trim_end(stack);
    if (!take_number(stack, count))
        return false;
    if (is_difference)
        (void)take_number(stack, &before);
    return true;
}

bool marey__collapsed_is_difference(const char *bytes, size_t len)
{
    bool is_any = false;
    while (len > 0) {
        const char *end = memchr(bytes, '\n', len);
        if (end == NULL && is_any)
            break;
        const size_t line_len = end != NULL ? (size_t)(end - bytes) : len;
        struct marey__text text = {bytes, line_len};
        uint64_t number;
        trim_end(&text);
        if (text.len != 0 && !begins_with(&text, "#")) {
            /* NOLINTNEXTLINE(misc-redundant-expression): each call removes a number. */
            if (!take_number(&text, &number) || !take_number(&text, &number))
                return false;
            is_any = true;
        }
        bytes += line_len + (end != NULL);
        len -= line_len + (end != NULL);
    }
    return is_any;
}

/* ---- frames ---- */

/* The length of `process 12:"`; 0 if the text does not start with one. */
static size_t process_head(const struct marey__text *text)
{
    size_t i = strlen("process ");
    if (!begins_with(text, "process "))
        return 0;
    const size_t digits = i;
    while (i < text->len && marey__is_digit(text->at[i]))
        i++;
    return i > digits && i + 1 < text->len && text->at[i] == ':' && text->at[i + 1] == '"' ? i + 2
                                                                                           : 0;
}

/* Whether the text continues with a frame that py-spy could have written after a process. */
static bool looks_like_frame(struct marey__text text)
{
    const char *end = memchr(text.at, ';', text.len);
    if (process_head(&text) != 0 || begins_with(&text, "thread ("))
        return true;
    if (end != NULL)
        text.len = (size_t)(end - text.at);
    return text.len > 3 && text.at[text.len - 1] == ')' && memmem(text.at, text.len, " (", 2) != NULL;
}

/* The length of a process frame: up to a quote followed by a frame or by the end. */
static size_t process_len(const struct marey__text *stack, size_t head)
{
    size_t first = 0;
    for (size_t i = head; i < stack->len; i++) {
        if (stack->at[i] != '"' || (i + 1 < stack->len && stack->at[i + 1] != ';'))
            continue;
        first = first != 0 ? first : i + 1;
        if (i + 2 >= stack->len ||
            looks_like_frame((struct marey__text){stack->at + i + 2, stack->len - i - 2}))
            return i + 1;
    }
    return first;
}

bool marey__collapsed_frame(struct marey__text *stack, struct marey__text *frame)
{
    while (stack->len > 0 && stack->at[0] == ';') {
        stack->at++;
        stack->len--;
    }
    if (stack->len == 0)
        return false;
    const size_t head = process_head(stack);
    size_t len = head != 0 ? process_len(stack, head) : 0;
    if (len == 0) {
        const char *end = memchr(stack->at, ';', stack->len);
        len = end != NULL ? (size_t)(end - stack->at) : stack->len;
    }
    *frame = (struct marey__text){stack->at, len};
    stack->at += len;
    stack->len -= len;
    return true;
}

bool marey__collapsed_process(const struct marey__text *frame, int64_t *pid,
                              struct marey__text *command)
{
    const size_t head = process_head(frame), before = strlen("process ");
    uint64_t number;
    if (head == 0 || !marey__parse_number(frame->at + before, head - 2 - before, &number) ||
        number > INT32_MAX)
        return false;
    const bool is_closed = frame->len > head && frame->at[frame->len - 1] == '"';
    *pid = (int64_t)number;
    *command = (struct marey__text){frame->at + head, frame->len - head - is_closed};
    return true;
}

/* A hexadecimal number with 0x, or a decimal one. */
static bool parse_id(const char *text, size_t len, int64_t *id)
{
    uint64_t number = 0;
    const bool is_hex = len > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    if (len == 0 || len > 18)
        return false;
    for (size_t i = is_hex ? 2 : 0; i < len; i++) {
        const unsigned base = is_hex ? 16 : 10, digit = marey__hex_value(text[i]);
        if (digit >= base)
            return false;
        number = number * base + digit;
    }
    *id = (int64_t)number;
    return true;
}

bool marey__collapsed_thread(const struct marey__text *frame, int64_t *tid, struct marey__text *name)
{
    const size_t head = strlen("thread (");
    if (!begins_with(frame, "thread ("))
        return false;
    const char *end = memchr(frame->at + head, ')', frame->len - head);
    if (end == NULL || !parse_id(frame->at + head, (size_t)(end - frame->at) - head, tid))
        return false;
    *name = (struct marey__text){end + 1, frame->len - (size_t)(end + 1 - frame->at)};
    if (begins_with(name, ": ")) {
        name->at += 2;
        name->len -= 2;
    } else if (name->len != 0) {
        return false;
    }
    return true;
}
