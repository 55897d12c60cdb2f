#include "calls_view.h"

#include <glob.h>

struct cursor {
    const uint8_t *at, *end;
};

static uint64_t number(struct cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(c->at < c->end && shift < 64);
        value |= (uint64_t)(*c->at & 0x7f) << shift;
        if (*c->at++ < 0x80)
            return value;
    }
}

static void text(struct cursor *c, char *into, size_t size)
{
    const uint64_t len = number(c);
    assert_true(len <= (uint64_t)(c->end - c->at));
    if (into != NULL)
        snprintf(into, size, "%.*s", (int)len, (const char *)c->at);
    c->at += len;
}

static void read_function(struct calls_view *view, struct cursor *c)
{
    const uint64_t n = number(c);
    assert_int_equal(n, view->n_functions + 1);
    view->n_functions = n;
    number(c);
    number(c);
    text(c, n < 64 ? view->names[n] : NULL, 64);
    for (int i = 0; i < 3; i++)
        text(c, NULL, 0);
}

static void read_signature(struct calls_view *view, struct cursor *c)
{
    const uint64_t n = number(c);
    assert_int_equal(n, ++view->n_signatures);
    assert_true(number(c) <= view->n_functions);
    number(c);
    text(c, n < 64 ? view->texts[n] : NULL, 128);
}

static void read_node(struct calls_view *view, struct cursor *c)
{
    const uint64_t n = number(c);
    assert_true(n > 0 && n < VIEW_MOST && view->nodes[n].thread == 0);
    struct view_node *const node = &view->nodes[n];
    *node = (struct view_node){
        .thread = number(c), .parent = number(c), .function = number(c), .signature = number(c)};
    assert_true(node->thread > 0 && node->thread <= view->n_threads);
    assert_true(node->parent == 0 || view->nodes[node->parent].thread == node->thread);
    assert_true(node->function <= view->n_functions && node->signature <= view->n_signatures);
    view->n_nodes++;
}

static void read_sums(struct calls_view *view, struct cursor *c)
{
    const uint64_t n = number(c);
    assert_true(n > 0 && n < VIEW_MOST && view->nodes[n].thread != 0);
    struct view_node *const node = &view->nodes[n];
    node->calls += number(c);
    node->resumes += number(c);
    node->self += number(c);
    node->total += number(c);
    node->max = number(c);
}

static void read_block(struct calls_view *view, struct cursor c)
{
    assert_int_equal(*c.at, 'P');
    view->n_blocks++;
    while (c.at < c.end)
        switch (*c.at++) {
        case 'P':
            assert_int_equal(number(&c), 0);
            c.at += 8;
            number(&c);
            number(&c);
            break;
        case 'F':
            read_function(view, &c);
            break;
        case 'S':
            read_signature(view, &c);
            break;
        case 'T':
            assert_int_equal(number(&c), ++view->n_threads);
            number(&c);
            text(&c, NULL, 0);
            break;
        case 'N':
            read_node(view, &c);
            break;
        case 'C':
            read_sums(view, &c);
            break;
        case 'O':
            view->other = number(&c);
            view->widened = number(&c);
            number(&c);
            break;
        default:
            fail_msg("a tag that is none: %d", c.at[-1]);
        }
}

void calls_view_read(struct calls_view *view, const char *path)
{
    FILE *const file = fopen(path, "rb");
    struct marey__block block;
    assert_non_null(file);
    while (fread(&block, sizeof block, 1, file) == 1) {
        const size_t padded = (block.packed_len + 7u) & ~7u;
        uint8_t *const bytes = malloc(padded + 1);
        assert_non_null(bytes);
        assert_int_equal(fread(bytes, 1, padded, file), padded);
        if (block.type == MAREY__BLOCK_CALLS)
            read_block(view, (struct cursor){bytes, bytes + block.packed_len});
        view->n_ends += block.type == MAREY__BLOCK_END;
        free(bytes);
    }
    fclose(file);
}

void calls_view_recording(struct calls_view *view, const char *recording)
{
    char pattern[256];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.klog", recording);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    calls_view_read(view, found.gl_pathv[0]);
    globfree(&found);
}

uint64_t calls_view_find(const struct calls_view *view, const char *path)
{
    char wanted[256];
    uint64_t at = 0;
    snprintf(wanted, sizeof wanted, "%s", path);
    for (const char *name = strtok(wanted, "/"); name != NULL; name = strtok(NULL, "/")) {
        uint64_t child = 0;
        for (uint64_t n = 1; n < VIEW_MOST; n++)
            if (view->nodes[n].thread != 0 && view->nodes[n].parent == at &&
                strcmp(view->names[view->nodes[n].function], name) == 0)
                child = n;
        if (child == 0)
            return 0;
        at = child;
    }
    return at;
}
