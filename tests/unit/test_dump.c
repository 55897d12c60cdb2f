/* The dumper: paths, snapshots, what is in the files, policies, forks. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "instrument/dump/internal.h"
#include "scratch.h"

/* ---- help ---- */

static char dir[160];

static void enable_with(struct scratch *s, struct marey_dump_options o)
{
    snprintf(dir, sizeof dir, "%s/dumps", s->folder);
    o.dir = dir;
    assert_int_equal(marey_dump_enable(&o), MAREY_OK);
}

static void enable(void **state)
{
    enable_with(*state, (struct marey_dump_options){0});
}

/* A file of the dump as text; "" when it is not there. Lent until the next call. */
static const char *text_of(const char *name)
{
    static char text[1 << 16];
    char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    const size_t n = f != NULL ? fread(text, 1, sizeof text - 1, f) : 0;
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] != '\0' ? text[i] : '0';
    text[n] = '\0';
    if (f != NULL)
        fclose(f);
    return text;
}

static bool is_there(const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

static void assert_has(const char *name, const char *part)
{
    if (strstr(text_of(name), part) == NULL)
        fail_msg("%s has no %s: %s", name, part, text_of(name));
}

static marey_status put(enum marey_dump_tree tree, const char *path, struct marey_dump_value value)
{
    struct marey_dump_part parts[8];
    size_t n = 0;
    for (;; path++) {
        const size_t len = strcspn(path, "/");
        const bool is_index = path[0] == '#';
        parts[n++] = is_index ? (struct marey_dump_part){.index = strtoull(path + 1, NULL, 10)}
                              : (struct marey_dump_part){.key = path, .key_len = len};
        path += len;
        if (*path == '\0')
            return marey_dump_put(tree, parts, n, &value);
    }
}

static const int64_t two_by_three[] = {2, 3};
static float numbers[] = {0, 1, 2, 3, 4, 5};

static struct marey_dump_value tensor(void)
{
    return (struct marey_dump_value){
        .tensor = {.data = numbers, .dtype = MAREY_F32, .rank = 2, .sizes = two_by_three}};
}

static struct marey_dump_value literal(const char *text)
{
    return (struct marey_dump_value){
        .kind = MAREY_DUMP_LITERAL, .text = text, .text_len = strlen(text)};
}

static void flush_and_wait(void)
{
    assert_int_equal(marey_dump_flush(NULL), MAREY_OK);
    assert_int_equal(marey_dump_wait(), MAREY_OK);
}

static void count_release(void *owner)
{
    __atomic_fetch_add((int *)owner, 1, __ATOMIC_RELAXED);
}

/* ---- on and off ---- */

static void off_nothing_happens(void **state)
{
    (void)state;
    int n_released = 0;
    struct marey_dump_value value = tensor();
    value.release = count_release;
    value.owner = &n_released;
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a", value), MAREY_OK);
    assert_int_equal(n_released, 1);
    assert_int_equal(marey_dump_put_on(MAREY_DUMP_TENSORS, NULL, 0, &value), MAREY_OK);
    assert_int_equal(n_released, 2);
    assert_int_equal(marey_dump_add("a", &value.tensor), MAREY_OK);
    uint64_t count = 7;
    assert_int_equal(marey_dump_flush(&count), MAREY_OK);
    assert_int_equal(count, 7);
    assert_int_equal(marey_dump_pending(MAREY_DUMP_TENSORS), 0);
    assert_int_equal(marey_dump_disable(), MAREY_OK);
    assert_false(marey_dump_is_wanted());
}

static void options_that_are_none_are_refused(void **state)
{
    assert_int_equal(marey_dump_enable(&(struct marey_dump_options){0}), MAREY_EINVAL);
    assert_non_null(strstr(marey_last_error(), "directory"));
    assert_int_equal(marey_dump_enable(&(struct marey_dump_options){.dir = ""}), MAREY_EINVAL);
    assert_int_equal(
        marey_dump_enable(&(struct marey_dump_options){.dir = "x", .mode = (enum marey_dump_mode)7}),
        MAREY_EINVAL);
    assert_int_equal(marey_dump_enable(&(struct marey_dump_options){
                         .dir = "x", .layout = MAREY_DUMP_LAYOUT_ACCVLAB, .mode = MAREY_DUMP_STATS}),
                     MAREY_EINVAL);
    assert_int_equal(
        marey_dump_enable(&(struct marey_dump_options){.dir = "x", .first = 3, .last = 2}),
        MAREY_EINVAL);
    enable(state);
    assert_int_equal(marey_dump_enable(&(struct marey_dump_options){.dir = "x"}), MAREY_ESTATE);
    assert_non_null(strstr(marey_last_error(), "already enabled"));
}

static void a_recording_lends_its_directory(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(marey_start(&(struct marey_options){.path = s->path}), MAREY_OK);
    assert_int_equal(marey_dump_enable(&(struct marey_dump_options){0}), MAREY_OK);
    snprintf(dir, sizeof dir, "%s/dumps", s->path);
    assert_string_equal(marey_dump_dir(), dir);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a", tensor()), MAREY_OK);
    flush_and_wait();
    assert_true(is_there("step-00000000.safetensors"));
}

/* ---- paths ---- */

static void a_path_is_used_once_in_a_step(void **state)
{
    enable(state);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a/b", tensor()), MAREY_OK);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a/b", tensor()), MAREY_ESTATE);
    assert_non_null(strstr(marey_last_error(), "'a.b'"));
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a", tensor()), MAREY_ESTATE); /* values are in it */
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a/b/c", tensor()), MAREY_ESTATE); /* through a tensor */
    assert_int_equal(put(MAREY_DUMP_GRADIENTS, "a/b", tensor()), MAREY_OK);     /* another tree */
    assert_int_equal(marey_dump_pending(MAREY_DUMP_TENSORS), 1);
    flush_and_wait();
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a/b", tensor()), MAREY_OK);
}

static void an_empty_dictionary_gives_way(void **state)
{
    enable(state);
    const struct marey_dump_value dict = {.kind = MAREY_DUMP_DICT};
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a", dict), MAREY_OK);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a", dict), MAREY_OK);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a", tensor()), MAREY_OK);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a", dict), MAREY_ESTATE);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "b", dict), MAREY_OK);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "b/#0", tensor()), MAREY_OK); /* becomes a list */
    assert_int_equal(put(MAREY_DUMP_TENSORS, "c", dict), MAREY_OK);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "d/e", literal("1")), MAREY_OK);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "d", dict), MAREY_OK); /* merged with what is there */
    flush_and_wait();
    assert_has("step-00000000.jsonl", "\"path\":[\"c\"],\"name\":\"c\",\"value\":{}");
    assert_null(strstr(text_of("step-00000000.jsonl"), "\"path\":[\"d\"]"));
}

static void positions_are_taken_in_order(void **state)
{
    enable(state);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "l/#0", tensor()), MAREY_OK);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "l/#2", tensor()), MAREY_ESTATE);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "l/#1/x", literal("2.5")), MAREY_OK);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "l/1/y", tensor()), MAREY_OK); /* digits lead into a list */
    assert_int_equal(put(MAREY_DUMP_TENSORS, "l/2/y", tensor()), MAREY_ESTATE);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "l/x", tensor()), MAREY_ESTATE);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "l/0", tensor()), MAREY_ESTATE);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "m/#1", tensor()), MAREY_ESTATE);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "m/n/#1", tensor()), MAREY_ESTATE);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "#0", tensor()), MAREY_ESTATE);
    flush_and_wait();
    assert_has("step-00000000.jsonl", "\"path\":[\"l\",1,\"y\"],\"name\":\"l[1].y\"");
    assert_null(strstr(text_of("step-00000000.jsonl"), "\"m\""));
}

static void many_keys_are_found_again(void **state)
{
    enable(state);
    char path[32];
    for (int i = 0; i < 3000; i++) {
        snprintf(path, sizeof path, "some/key%d", i);
        assert_int_equal(put(MAREY_DUMP_TENSORS, path, literal("1")), MAREY_OK);
    }
    for (int i = 0; i < 3000; i++) {
        snprintf(path, sizeof path, "some/key%d", i);
        assert_int_equal(put(MAREY_DUMP_TENSORS, path, literal("1")), MAREY_ESTATE);
    }
    assert_int_equal(marey_dump_pending(MAREY_DUMP_TENSORS), 3000);
}

static void values_that_are_none_are_refused(void **state)
{
    enable(state);
    struct marey_dump_value value = tensor();
    int n_released = 0;
    value.release = count_release;
    value.owner = &n_released;
    value.permutation = (const uint32_t[]){1, 1};
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a", value), MAREY_EINVAL);
    assert_int_equal(n_released, 1);
    value.permutation = (const uint32_t[]){0, 2};
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a", value), MAREY_EINVAL);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a", literal("1,\"x\":2")), MAREY_EINVAL);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a", literal("")), MAREY_EINVAL);
    value = tensor();
    value.tensor.dtype = MAREY_N_DTYPES;
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a", value), MAREY_EINVAL);
    assert_int_equal(put((enum marey_dump_tree)2, "a", tensor()), MAREY_EINVAL);
    assert_int_equal(marey_dump_pending(MAREY_DUMP_TENSORS), 0);
}

/* ---- output ---- */

static void a_tensor_is_written_as_it_was_when_it_was_added(void **state)
{
    enable(state);
    float changing[] = {1, 2, 3, 4, 5, 6};
    struct marey_dump_value value = tensor();
    value.tensor.data = changing;
    value.file = "train.py";
    value.line = 41;
    value.phase = "forward";
    assert_int_equal(put(MAREY_DUMP_TENSORS, "x", value), MAREY_OK);
    memset(changing, 0, sizeof changing);
    assert_int_equal(marey_dump_add("y.z", &value.tensor), MAREY_OK);
    flush_and_wait();
    assert_has("step-00000000.jsonl", "\"max\":6.0,");
    assert_has("step-00000000.jsonl", "\"source\":\"train.py:41\"");
    assert_has("step-00000000.jsonl", "\"phase\":\"forward\"");
    assert_has("step-00000000.jsonl", "\"zero\":6,");
    assert_has("step-00000000.jsonl", "{\"end\":true,\"tensors\":2,\"values\":2,");
    assert_has("step-00000000.safetensors", "\"y.z\":{\"dtype\":\"F32\",\"shape\":[2,3]");
    assert_false(is_there("step-00000000.part"));
    struct marey_dump_counts counts;
    marey_dump_counts_get(&counts);
    assert_int_equal(counts.n_steps, 1);
    assert_int_equal(counts.n_tensors, 2);
    assert_int_equal(counts.n_bytes, 48);
    assert_int_equal(counts.n_failed, 0);
}

static void a_permutation_is_applied(void **state)
{
    enable_with(*state, (struct marey_dump_options){.layout = MAREY_DUMP_LAYOUT_ACCVLAB});
    struct marey_dump_value value = tensor();
    value.permutation = (const uint32_t[]){1, 0};
    assert_int_equal(put(MAREY_DUMP_TENSORS, "x", value), MAREY_OK);
    value.type = MAREY_DUMP_BINARY;
    assert_int_equal(put(MAREY_DUMP_TENSORS, "y", value), MAREY_OK);
    assert_int_equal(put(MAREY_DUMP_GRADIENTS, "g", literal("null")), MAREY_OK);
    flush_and_wait();
    assert_has("0/tensors.json", "0");
    assert_has("0/tensors.json", "\"y\": \"y.bin\"");
    assert_has("0/[tensors.json]y.bin.meta.json", "torch.float32");
    assert_has("0/grads.json", "{\n  \"g\": null\n}");
    char path[256];
    float back[7];
    snprintf(path, sizeof path, "%s/0/[tensors.json]y.bin", dir);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(back, 4, 7, f), 6);
    fclose(f);
    const float expected[] = {0, 3, 1, 4, 2, 5};
    assert_memory_equal(back, expected, sizeof expected);
}

static void bytes_are_a_file_of_their_own(void **state)
{
    enable(state);
    const struct marey_dump_value bytes = {
        .kind = MAREY_DUMP_BYTES, .type = MAREY_DUMP_PICKLE, .text = "abc", .text_len = 3};
    assert_int_equal(put(MAREY_DUMP_TENSORS, "p/q", bytes), MAREY_OK);
    flush_and_wait();
    assert_has("step-00000000.jsonl", "\"type\":\"pickle\",\"bytes\":3,\"files\":[\"p.q.pkl\"]");
    assert_string_equal(text_of("step-00000000/p.q.pkl"), "abc");
}

static void an_empty_step_is_written_too(void **state)
{
    enable(state);
    uint64_t count;
    assert_int_equal(marey_dump_flush(&count), MAREY_OK);
    assert_int_equal(count, 1);
    assert_int_equal(marey_dump_wait(), MAREY_OK);
    assert_true(is_there("step-00000000.safetensors"));
    assert_has("step-00000000.jsonl", "{\"end\":true,\"tensors\":0,\"values\":0,");
}

static void data_that_are_handed_over_are_given_back_once(void **state)
{
    enable(state);
    int n_released = 0;
    struct marey_dump_value value = tensor();
    value.release = count_release;
    value.owner = &n_released;
    assert_int_equal(put(MAREY_DUMP_TENSORS, "kept", value), MAREY_OK);
    assert_int_equal(__atomic_load_n(&n_released, __ATOMIC_RELAXED), 0);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "kept", value), MAREY_ESTATE);
    assert_int_equal(n_released, 1);
    value.permutation = (const uint32_t[]){1, 0};
    assert_int_equal(put(MAREY_DUMP_TENSORS, "copied", value), MAREY_OK);
    assert_int_equal(n_released, 2);
    flush_and_wait();
    assert_int_equal(__atomic_load_n(&n_released, __ATOMIC_RELAXED), 3);
    value.permutation = NULL;
    assert_int_equal(put(MAREY_DUMP_TENSORS, "cleared", value), MAREY_OK);
    marey_dump_clear(MAREY_DUMP_TENSORS);
    assert_int_equal(n_released, 4);
}

/* Descriptors of folders that the dumper has open, or had: they are `folder`, the program's, from then on. */
struct takeover {
    int folder, taken[8];
    size_t n;
};

/* Like a program that closes all descriptors it does not know and then opens another folder under the same number. */
static void take_folders(void *owner)
{
    struct takeover *t = owner;
    struct stat st, mine;
    fstat(t->folder, &mine);
    for (int fd = 3; fd < 1024 && t->n < 8; fd++)
        if (fd != t->folder && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) &&
            st.st_ino != mine.st_ino && dup2(t->folder, fd) == fd)
            t->taken[t->n++] = fd;
}

static void folders_of_the_program_are_not_written(void **state)
{
    struct scratch *s = *state;
    char path[200];
    snprintf(path, sizeof path, "%s/of the program", s->folder);
    assert_int_equal(mkdir(path, 0755), 0);
    struct takeover t = {.folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    enable_with(s, (struct marey_dump_options){.layout = MAREY_DUMP_LAYOUT_ACCVLAB});
    struct marey_dump_value value = tensor();
    value.release = take_folders;
    value.owner = &t;
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a", value), MAREY_OK);
    assert_int_equal(marey_dump_flush(NULL), MAREY_OK);
    (void)marey_dump_wait(); /* the step is lost, or was whole before */
    marey_dump_disable();
    struct stat st, mine;
    assert_int_equal(fstat(t.folder, &mine), 0);
    for (size_t i = 0; i < t.n; i++) {
        assert_int_equal(fstat(t.taken[i], &st), 0);
        assert_int_equal(st.st_ino, mine.st_ino);
        close(t.taken[i]);
    }
    assert_true(t.n != 0);
    close(t.folder);
    assert_int_equal(rmdir(path), 0); /* it is empty */
}

static int see(void *ctx, const struct marey_dump_entry *entry)
{
    char *text = ctx;
    const size_t len = strlen(text);
    const float *x = entry->value.tensor.data;
    snprintf(text + len, 256 - len, "%d:%.*s/%d=%g ", (int)entry->tree, (int)entry->parts[0].key_len,
             entry->parts[0].key, (int)entry->value.type, x != NULL ? x[1] : -1);
    return 1;
}

static void what_waits_can_be_seen_and_forgotten(void **state)
{
    enable(state);
    struct marey_dump_value value = tensor();
    value.permutation = (const uint32_t[]){1, 0};
    put(MAREY_DUMP_TENSORS, "a", tensor());
    put(MAREY_DUMP_GRADIENTS, "b", value);
    put(MAREY_DUMP_TENSORS, "c", literal("3"));
    marey_dump_retype(MAREY_DUMP_GRADIENTS, MAREY_DUMP_JSON);
    char seen[256] = "";
    assert_int_equal(marey_dump_visit_pending(see, seen), MAREY_OK);
    assert_string_equal(seen, "0:a/0=1 1:b/1=3 0:c/0=-1 ");
    marey_dump_clear(MAREY_DUMP_TENSORS);
    assert_int_equal(marey_dump_pending(MAREY_DUMP_TENSORS), 0);
    assert_int_equal(marey_dump_pending(MAREY_DUMP_GRADIENTS), 1);
    assert_int_equal(put(MAREY_DUMP_TENSORS, "a", tensor()), MAREY_OK);
    flush_and_wait();
    assert_true(is_there("step-00000000/%grad.b.json") || is_there("step-00000000/%25grad.b.json"));
}

static void only_chosen_steps_are_kept(void **state)
{
    enable_with(*state, (struct marey_dump_options){.first = 2, .last = 6, .every = 2});
    for (int i = 0; i < 10; i++) {
        assert_int_equal(marey_dump_is_wanted(), i == 2 || i == 4 || i == 6);
        assert_int_equal(put(MAREY_DUMP_TENSORS, "a", tensor()), MAREY_OK);
        assert_int_equal(put(MAREY_DUMP_TENSORS, "a", tensor()),
                         marey_dump_is_wanted() ? MAREY_ESTATE : MAREY_OK);
        assert_int_equal(marey_dump_flush(NULL), MAREY_OK);
    }
    assert_int_equal(marey_dump_wait(), MAREY_OK);
    assert_int_equal(marey_dump_count(), 10);
    char name[32];
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "step-%08d.jsonl", i);
        assert_int_equal(is_there(name), i == 2 || i == 4 || i == 6);
    }
}

static void fill_a_step(void)
{
    struct marey_dump_value value = tensor();
    int n_released = 0;
    put(MAREY_DUMP_TENSORS, "a/b", value);
    value.permutation = (const uint32_t[]){1, 0};
    value.type = MAREY_DUMP_BINARY;
    put(MAREY_DUMP_TENSORS, "a/c", value);
    value.type = MAREY_DUMP_NPY;
    put(MAREY_DUMP_GRADIENTS, "d/#0", value);
    value.type = MAREY_DUMP_SAFETENSORS;
    put(MAREY_DUMP_GRADIENTS, "d/#1", value);
    value.type = MAREY_DUMP_JSON;
    value.permutation = NULL;
    value.release = count_release;
    value.owner = &n_released;
    put(MAREY_DUMP_TENSORS, "e", value);
    put(MAREY_DUMP_TENSORS, "f", literal("1"));
    put(MAREY_DUMP_TENSORS, "g",
        (struct marey_dump_value){
            .kind = MAREY_DUMP_BYTES, .type = MAREY_DUMP_PICKLE, .text = "x", .text_len = 1});
    marey_dump_flush(NULL);
    marey_dump_wait();
    assert_int_equal(n_released, 1);
}

/* Whatever fails, the program goes on, lent data are given back, and nothing stays behind (the leak check of ASan looks). */
static void any_failed_allocation_is_borne(void **state)
{
    for (int layout = 0; layout < 2; layout++)
        for (uint64_t nth = 1; nth < 220; nth++) {
            enable_with(*state,
                        (struct marey_dump_options){.layout = (enum marey_dump_layout)layout});
            marey__alloc_fail_nth(nth);
            fill_a_step();
            marey__alloc_fail_nth(0);
            struct marey_dump_counts counts;
            const marey_status st = marey_dump_disable();
            marey_dump_counts_get(&counts);
            assert_true(st == MAREY_OK || st == MAREY_EIO);
        }
    struct marey_dump_counts counts;
    enable_with(*state, (struct marey_dump_options){0});
    fill_a_step();
    marey_dump_counts_get(&counts);
    assert_int_equal(counts.n_tensors, 5);
    assert_int_equal(counts.n_failed, 0);
}

/* ---- threads ---- */

struct crew {
    int number, n_failed;
    uint32_t *stop;
};

static void *add_for_a_while(void *ctx)
{
    struct crew *crew = ctx;
    static float data[100000];
    char path[32];
    const int64_t few = 300, many = 100000;
    for (int i = 0; __atomic_load_n(crew->stop, __ATOMIC_RELAXED) == 0; i++) {
        struct marey_tensor t = {.data = data, .dtype = MAREY_F32, .rank = 1};
        t.sizes = i % 7 == 0 ? &many : &few;
        snprintf(path, sizeof path, "thread%d.t%d", crew->number, i);
        crew->n_failed += marey_dump_add(path, &t) != MAREY_OK;
    }
    return NULL;
}

static int see_nothing(void *ctx, const struct marey_dump_entry *entry)
{
    *(uint64_t *)ctx += entry->n_parts;
    return 1;
}

static void threads_add_while_others_flush_and_look(void **state)
{
    enum { N = 3, STEPS = 40 };
    struct crew crew[N];
    pthread_t threads[N];
    uint32_t stop = 0;
    uint64_t n_parts = 0;
    enable_with(*state, (struct marey_dump_options){.memory_bytes = 1 << 20, .n_writers = 2});
    for (int i = 0; i < N; i++) {
        crew[i] = (struct crew){.number = i, .stop = &stop};
        assert_int_equal(pthread_create(&threads[i], NULL, add_for_a_while, &crew[i]), 0);
    }
    for (int i = 0; i < STEPS; i++) {
        usleep(500);
        assert_int_equal(marey_dump_visit_pending(see_nothing, &n_parts), MAREY_OK);
        if (i % 10 == 9)
            marey_dump_clear(MAREY_DUMP_TENSORS);
        assert_int_equal(marey_dump_flush(NULL), MAREY_OK);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(crew[i].n_failed, 0);
    }
    struct marey_dump_counts counts;
    assert_int_equal(marey_dump_disable(), MAREY_OK);
    marey_dump_counts_get(&counts);
    assert_int_equal(counts.n_steps, STEPS);
    assert_int_equal(counts.n_failed + counts.n_dropped, 0);
    assert_int_equal(marey__dump.n_used_bytes, 0);
}

static void a_step_that_comes_again_replaces_the_one_before(void **state)
{
    enum { N = 1000000, TURNS = 30 };
    float *data = calloc(N, sizeof *data);
    const int64_t n = N;
    enable_with(*state, (struct marey_dump_options){.n_writers = 4});
    for (int i = 0; i < TURNS; i++) {
        data[0] = data[N - 1] = (float)i;
        marey_dump_set_count(0);
        assert_int_equal(
            marey_dump_add(
                "x", &(struct marey_tensor){.data = data, .dtype = MAREY_F32, .rank = 1, .sizes = &n}),
            MAREY_OK);
        assert_int_equal(marey_dump_flush(NULL), MAREY_OK);
    }
    assert_int_equal(marey_dump_wait(), MAREY_OK);
    free(data);
    struct marey_dump_counts counts;
    marey_dump_counts_get(&counts);
    assert_int_equal(counts.n_steps, TURNS);
    char path[256];
    float ends[1] = {0};
    snprintf(path, sizeof path, "%s/step-00000000.safetensors", dir);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, -(long)sizeof ends, SEEK_END);
    assert_int_equal(fread(ends, sizeof ends, 1, f), 1);
    fclose(f);
    assert_true(ends[0] == TURNS - 1);
    assert_has("step-00000000.jsonl", "{\"end\":true,\"tensors\":1,\"values\":1,");
}

/* ---- images ---- */

static void pictures_are_files_with_what_accvlab_says_of_them(void **state)
{
    static const struct marey__dump_images images = {
        .create = marey_images_create,
        .destroy = marey_images_destroy,
        .count = marey_images_count,
        .get = marey_images_get,
        .axes = marey_images_axes,
        .pack = marey_png_pack,
        .free_png = marey_png_free,
    };
    marey__dump_images_set(&images);
    enable_with(*state, (struct marey_dump_options){.layout = MAREY_DUMP_LAYOUT_ACCVLAB});
    static float pixels[2 * 3 * 4 * 5 * 3];
    for (size_t i = 0; i < sizeof pixels / sizeof *pixels; i++)
        pixels[i] = (float)i;
    const int64_t batch[] = {2, 3, 4, 5, 3}, grey[] = {4, 5}, none[] = {7};
    struct marey_dump_value value = {
        .tensor = {.data = pixels, .dtype = MAREY_F32, .rank = 5, .sizes = batch},
        .type = MAREY_DUMP_IMAGE_RGB};
    assert_int_equal(put(MAREY_DUMP_TENSORS, "img", value), MAREY_OK);
    value.tensor.rank = 2;
    value.tensor.sizes = grey;
    value.type = MAREY_DUMP_IMAGE_I;
    const struct marey_box box = {.x0 = 1, .y0 = 1, .x1 = 3, .y1 = 2, .color = 0xffffff};
    value.image =
        &(const struct marey_image_options){.boxes = &box, .n_boxes = 1, .mask = value.tensor};
    assert_int_equal(put(MAREY_DUMP_GRADIENTS, "g/#0", value), MAREY_OK);
    value.tensor.rank = 1;
    value.tensor.sizes = none;
    value.image = NULL;
    assert_int_equal(put(MAREY_DUMP_TENSORS, "no", value), MAREY_OK);
    assert_int_equal(marey_dump_flush(NULL), MAREY_OK);
    assert_int_equal(marey_dump_wait(), MAREY_EIO); /* one was none */
    assert_non_null(strstr(marey_last_error(), "'no'"));
    assert_has("0/tensors.json", "\"img.0.0.png\"");
    assert_has("0/tensors.json", "\"img.1.2.png\"");
    assert_has("0/tensors.json", "\"no\": null");
    assert_has("0/[tensors.json]img.1.2.png", "PNG");
    assert_has("0/[tensors.json]img.0.0.png.meta.json", "\"image_format\": \"RGB\"");
    assert_has("0/[grads.json]g.0.png.meta.json", "Intensity");
    marey__dump_images_set(NULL);
}

/* A step is whole whatever its sizes: around a page, around a batch, past both. */
static void write_many_sizes(struct scratch *s, uint32_t durable)
{
    static const int64_t counts[] = {0,      1,      1000,   1024,    1025,          262143,
                                     262144, 262145, 700000, 1048576, (3 << 20) + 1, 7};
    enum { N = sizeof counts / sizeof counts[0] };
    float *data = malloc(sizeof(float) * ((3 << 20) + 1));
    enable_with(s, (struct marey_dump_options){.durable = durable});
    for (size_t i = 0; i < N; i++) {
        char name[8];
        for (int64_t k = 0; k < counts[i]; k++)
            data[k] = (float)(k % 65536) + (float)i;
        snprintf(name, sizeof name, "t%zu", i);
        struct marey_dump_value value = {
            .tensor = {.data = data, .dtype = MAREY_F32, .rank = 1, .sizes = &counts[i]}};
        assert_int_equal(put(MAREY_DUMP_TENSORS, name, value), MAREY_OK);
    }
    flush_and_wait();
    char path[256], line[8192];
    snprintf(path, sizeof path, "%s/step-00000000.jsonl", dir);
    FILE *manifest = fopen(path, "r");
    snprintf(path, sizeof path, "%s/step-00000000.safetensors", dir);
    FILE *file = fopen(path, "rb");
    assert_non_null(manifest);
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, manifest));
    const long start = strtol(strstr(line, "\"data_start\":") + 13, NULL, 10);
    for (size_t i = 0; i < N; i++) {
        assert_non_null(fgets(line, sizeof line, manifest));
        const long offset = strtol(strstr(line, "\"offset\":") + 9, NULL, 10);
        fseek(file, start + offset, SEEK_SET);
        assert_int_equal(offset % 64, 0);
        assert_int_equal(fread(data, sizeof *data, (size_t)counts[i], file), counts[i]);
        for (int64_t k = 0; k < counts[i]; k++)
            if (data[k] != (float)(k % 65536) + (float)i)
                fail_msg("tensor %zu, element %lld", i, (long long)k);
    }
    fclose(manifest);
    fclose(file);
    free(data);
}

static void tensors_of_any_size_are_whole(void **state)
{
    write_many_sizes(*state, 0);
}

static void past_the_cache_too(void **state)
{
    write_many_sizes(*state, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(off_nothing_happens),
        SCRATCH_TEST(options_that_are_none_are_refused),
        SCRATCH_TEST(a_recording_lends_its_directory),
        SCRATCH_TEST(a_path_is_used_once_in_a_step),
        SCRATCH_TEST(an_empty_dictionary_gives_way),
        SCRATCH_TEST(positions_are_taken_in_order),
        SCRATCH_TEST(many_keys_are_found_again),
        SCRATCH_TEST(values_that_are_none_are_refused),
        SCRATCH_TEST(a_tensor_is_written_as_it_was_when_it_was_added),
        SCRATCH_TEST(a_permutation_is_applied),
        SCRATCH_TEST(bytes_are_a_file_of_their_own),
        SCRATCH_TEST(an_empty_step_is_written_too),
        SCRATCH_TEST(data_that_are_handed_over_are_given_back_once),
        SCRATCH_TEST(folders_of_the_program_are_not_written),
        SCRATCH_TEST(what_waits_can_be_seen_and_forgotten),
        SCRATCH_TEST(only_chosen_steps_are_kept),
        SCRATCH_TEST(threads_add_while_others_flush_and_look),
        SCRATCH_TEST(a_step_that_comes_again_replaces_the_one_before),
        SCRATCH_TEST(pictures_are_files_with_what_accvlab_says_of_them),
        SCRATCH_TEST(tensors_of_any_size_are_whole),
        SCRATCH_TEST(past_the_cache_too),
        SCRATCH_TEST(any_failed_allocation_is_borne),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
