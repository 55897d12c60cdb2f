/* Reading dumps: both layouts, single files, dumps of killed programs, damaged dumps. */
#include <float.h>
#include <math.h>
#include <sys/stat.h>

#include "base/internal.h"
#include "scratch.h"
#include "tensor/dumpfile/internal.h"

/* ---- files ---- */

static void write_file(const struct scratch *s, const char *name, const void *bytes, size_t len)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static void write_text(const struct scratch *s, const char *name, const char *text)
{
    write_file(s, name, text, strlen(text));
}

static void make_folder(const struct scratch *s, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static marey_dumps *open_dumps(const struct scratch *s, const char *name)
{
    char path[512];
    marey_dumps *dumps;
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    if (marey_dumps_open(path, &dumps) != MAREY_OK)
        fail_msg("%s", marey_last_error());
    return dumps;
}

/* That the values of step 0 of the file cannot be read, with these words in the sentence. */
static void assert_refused(const struct scratch *s, const char *name, const char *words)
{
    marey_dumps *dumps = NULL;
    const struct marey_dumped_value *values;
    size_t n;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    marey_status status = marey_dumps_open(path, &dumps);
    if (status == MAREY_OK)
        status = marey_dumps_values(dumps, 0, &values, &n);
    assert_int_equal(status, MAREY_EFORMAT);
    if (strstr(marey_last_error(), words) == NULL)
        fail_msg("'%s' does not say '%s'", marey_last_error(), words);
    marey_dumps_close(dumps);
}

static const struct marey_dumped_value *value_of(marey_dumps *dumps, size_t step, const char *name)
{
    const struct marey_dumped_value *values;
    size_t n;
    assert_int_equal(marey_dumps_values(dumps, step, &values, &n), MAREY_OK);
    const size_t v = marey_dumps_find(dumps, step, MAREY_DUMP_TENSORS, name);
    if (v == SIZE_MAX)
        fail_msg("there is no '%s'", name);
    return &values[v];
}

static struct marey_tensor tensor_of(marey_dumps *dumps, size_t step, const char *name)
{
    struct marey_tensor tensor;
    const size_t v = marey_dumps_find(dumps, step, MAREY_DUMP_TENSORS, name);
    if (marey_dumps_get(dumps, step, v, &tensor) != MAREY_OK)
        fail_msg("'%s': %s", name, marey_last_error());
    return tensor;
}

/* ---- a step in marey's layout ---- */

static const float weights[] = {1, 2, 3, -0.0f, NAN, 6};
static const uint16_t halves[] = {0x3f80, 0xbf80};

struct made {
    struct marey__buf manifest, head;
    size_t first_line, before_end;
    char data[128];
};

static void make_step(struct made *made)
{
    static const int64_t sizes[] = {2, 3}, two = 2;
    const struct marey_tensor w = {.data = weights, .dtype = MAREY_F32, .rank = 2, .sizes = sizes};
    const struct marey_tensor h = {.data = halves, .dtype = MAREY_BF16, .rank = 1, .sizes = &two};
    struct marey__safetensors file = {0};
    const uint64_t at_w = marey__safetensors_add(&file, "w", 1, &w);
    const uint64_t at_h = marey__safetensors_add(&file, "%grad.w", 7, &h);
    assert_int_equal(marey__safetensors_head_put(&made->head, &file, 12, 3, 0), MAREY_OK);
    memcpy(made->data + at_w, weights, sizeof weights);
    memcpy(made->data + at_h, halves, sizeof halves);
    marey__buf_put(&made->head, made->data, (size_t)file.n_bytes);
    const struct marey_dump_part path = {.key = "w", .key_len = 1},
                                 text = {.key = "note", .key_len = 4};
    struct marey_tensor_stats stats;
    assert_int_equal(marey_tensor_stats_get(&w, &stats), MAREY_OK);
    const struct marey_digest digest = {{1, 2, 3}}, blocks[] = {{{4}}, {{5}}};
    marey__manifest_step_put(
        &made->manifest,
        &(struct marey_dumped_step){
            .step = 12, .rank = 3, .world = 8, .pid = 7, .host = "node7", .mode = "full"},
        4096);
    made->first_line = made->manifest.len;
    marey__manifest_value_put(&made->manifest,
                              &(struct marey_dumped_value){.seq = 4,
                                                           .parts = &path,
                                                           .n_parts = 1,
                                                           .dtype = w.dtype,
                                                           .rank = w.rank,
                                                           .sizes = w.sizes,
                                                           .n_bytes = sizeof weights,
                                                           .phase = "forward",
                                                           .source = "train.py:41",
                                                           .digest = &digest,
                                                           .blocks = blocks,
                                                           .n_blocks = 2,
                                                           .stats = &stats},
                              at_w);
    marey__manifest_value_put(&made->manifest,
                              &(struct marey_dumped_value){.seq = 5,
                                                           .tree = MAREY_DUMP_GRADIENTS,
                                                           .parts = &path,
                                                           .n_parts = 1,
                                                           .dtype = h.dtype,
                                                           .rank = h.rank,
                                                           .sizes = h.sizes,
                                                           .n_bytes = sizeof halves},
                              at_h);
    marey__manifest_value_put(&made->manifest,
                              &(struct marey_dumped_value){.seq = 6,
                                                           .parts = &text,
                                                           .n_parts = 1,
                                                           .kind = MAREY_DUMP_TEXT,
                                                           .text = "a\nb",
                                                           .text_len = 3},
                              MAREY__NO_OFFSET);
    made->before_end = made->manifest.len;
    marey__manifest_end_put(&made->manifest, 2, 3, 28);
    marey__safetensors_fini(&file);
}

static void made_fini(struct made *made)
{
    marey__buf_fini(&made->manifest);
    marey__buf_fini(&made->head);
}

static void step_of_marey_comes_back_whole(void **state)
{
    const struct scratch *const s = *state;
    struct made made = {0};
    make_step(&made);
    write_file(s, "step-00000012.rank-3.jsonl", made.manifest.data, made.manifest.len);
    write_file(s, "step-00000012.rank-3.safetensors", made.head.data, made.head.len);
    marey_dumps *const dumps = open_dumps(s, "");
    struct marey_dumped_step step;
    assert_int_equal(marey_dumps_count(dumps), 1);
    assert_int_equal(marey_dumps_step(dumps, 0, &step), MAREY_OK);
    assert_int_equal(step.step, 12);
    assert_int_equal(step.rank, 3);
    assert_int_equal(step.world, 8);
    assert_string_equal(step.host, "node7");
    assert_null(step.reason);
    assert_true(step.is_complete);
    const struct marey_dumped_value *const w = value_of(dumps, 0, "w");
    assert_int_equal(w->seq, 4);
    assert_int_equal(w->dtype, MAREY_F32);
    assert_int_equal(w->sizes[1], 3);
    assert_string_equal(w->phase, "forward");
    assert_string_equal(w->source, "train.py:41");
    assert_int_equal(w->digest->bytes[2], 3);
    assert_int_equal(w->n_blocks, 2);
    assert_int_equal(w->blocks[1].bytes[0], 5);
    assert_int_equal(w->stats->n_nan, 1);
    assert_true(w->stats->max == 6 && w->stats->histogram[40] == 1);
    assert_memory_equal(tensor_of(dumps, 0, "w").data, weights, sizeof weights);
    const size_t v = marey_dumps_find(dumps, 0, MAREY_DUMP_GRADIENTS, "w");
    struct marey_tensor gradient;
    assert_int_equal(marey_dumps_get(dumps, 0, v, &gradient), MAREY_OK);
    assert_int_equal(gradient.dtype, MAREY_BF16);
    assert_memory_equal(gradient.data, halves, sizeof halves);
    const struct marey_dumped_value *const note = value_of(dumps, 0, "note");
    assert_int_equal(note->kind, MAREY_DUMP_TEXT);
    assert_string_equal(note->text, "a\nb");
    assert_int_equal(
        marey_dumps_get(dumps, 0, marey_dumps_find(dumps, 0, MAREY_DUMP_TENSORS, "note"), &gradient),
        MAREY_ESTATE);
    assert_int_equal(marey_dumps_n_notes(dumps), 0);
    marey_dumps_release(dumps, 0);
    assert_memory_equal(tensor_of(dumps, 0, "w").data, weights, sizeof weights);
    marey_dumps_close(dumps);
    made_fini(&made);
}

static void part_of_a_dead_program_is_read_by_its_manifest(void **state)
{
    const struct scratch *const s = *state;
    struct made made = {0};
    make_step(&made);
    memset(made.head.data, 0, 4096); /* no header yet; the gradient did not make it to the file */
    write_file(s, "step-00000012.rank-3.part", made.head.data, 4096 + sizeof weights);
    write_file(s, "step-00000012.rank-3.jsonl", made.manifest.data, made.before_end - 3);
    marey_dumps *const dumps = open_dumps(s, "");
    struct marey_dumped_step step;
    struct marey_tensor gradient;
    assert_int_equal(marey_dumps_step(dumps, 0, &step), MAREY_OK);
    assert_false(step.is_complete);
    assert_memory_equal(tensor_of(dumps, 0, "w").data, weights, sizeof weights);
    const size_t v = marey_dumps_find(dumps, 0, MAREY_DUMP_GRADIENTS, "w");
    assert_int_not_equal(v, SIZE_MAX);
    assert_int_equal(marey_dumps_get(dumps, 0, v, &gradient), MAREY_ESTATE);
    assert_int_equal(marey_dumps_find(dumps, 0, MAREY_DUMP_TENSORS, "note"), SIZE_MAX);
    assert_int_equal(marey_dumps_n_notes(dumps), 2);
    assert_non_null(strstr(marey_dumps_note(dumps, 1), "does not end"));
    marey_dumps_close(dumps);
    made_fini(&made);
}

static void container_without_its_manifest_is_read_by_its_header(void **state)
{
    const struct scratch *const s = *state;
    struct made made = {0};
    make_step(&made);
    write_file(s, "step-00000012.rank-3.safetensors", made.head.data, made.head.len);
    marey_dumps *const dumps = open_dumps(s, "");
    struct marey_dumped_step step;
    const struct marey_dumped_value *values;
    size_t n;
    assert_int_equal(marey_dumps_step(dumps, 0, &step), MAREY_OK);
    assert_int_equal(step.step, 12);
    assert_int_equal(marey_dumps_values(dumps, 0, &values, &n), MAREY_OK);
    assert_int_equal(n, 2); /* no padding */
    assert_int_equal(values[1].tree, MAREY_DUMP_GRADIENTS);
    assert_string_equal(values[1].name, "w");
    assert_memory_equal(tensor_of(dumps, 0, "w").data, weights, sizeof weights);
    marey_dumps_close(dumps);
    made_fini(&made);
}

static void steps_come_in_order_of_number_rank_and_process(void **state)
{
    const struct scratch *const s = *state;
    static const char *const names[] = {"step-00000010.jsonl",
                                        "step-00000002.rank-1.jsonl",
                                        "step-00000002.rank-0.pid-9.jsonl",
                                        "step-00000002.rank-0.jsonl",
                                        "step-x.jsonl",
                                        "step-1.rank-.jsonl",
                                        "other.jsonl"};
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++)
        write_text(s, names[i], "{\"marey_dump\":1}\n");
    marey_dumps *const dumps = open_dumps(s, "");
    assert_int_equal(marey_dumps_count(dumps), 4);
    static const size_t expected[] = {3, 2, 1, 0};
    for (size_t i = 0; i < 4; i++)
        assert_non_null(strstr(dumps->steps[i].path, names[expected[i]]));
    marey_dumps_close(dumps);
}

/* ---- ACCV-Lab's layout ---- */

static void make_accvlab(const struct scratch *s)
{
    static const int32_t numbers[] = {1, -2, 3};
    make_folder(s, "rank-1");
    make_folder(s, "rank-1/7");
    write_text(s, "rank-1/7/tensors.json",
               "{\n  \"a\": {\n    \"x\": [[1.5, NaN], [-Infinity, 2]],\n    \"i\": [1, 2],\n    "
               "\"s\": \"text.bin\"\n  },\n"
               "  \"list\": [{\"k\": [1]}, \"list.1.k.bin\"],\n  \"n\": 3,\n  \"none\": null,\n  "
               "\"p\": \"p.pkl\",\n"
               "  \"evil\": \"../7/tensors.json.bin\"\n}");
    write_text(s, "rank-1/7/grads.json", "{\"a\": {\"x\": \"a.x.bin\"}}");
    write_file(s, "rank-1/7/[tensors.json]list.1.k.bin", numbers, sizeof numbers);
    write_text(s, "rank-1/7/[tensors.json]list.1.k.bin.meta.json",
               "{\"file_data_shape\": [3], \"file_data_dtype\": \"torch.int32\"}");
    write_file(s, "rank-1/7/[grads.json]a.x.bin", numbers, 4);
    write_text(s, "rank-1/7/[grads.json]a.x.bin.meta.json",
               "{\n  \"file_data_shape\": [],\n  \"file_data_dtype\": \"torch.float32\"\n}");
    write_text(s, "rank-1/7/[tensors.json]p.pkl", "cos\nsystem\n");
}

static void step_of_accvlab_comes_back(void **state)
{
    const struct scratch *const s = *state;
    make_accvlab(s);
    marey_dumps *const dumps = open_dumps(s, "");
    struct marey_dumped_step step;
    assert_int_equal(marey_dumps_step(dumps, 0, &step), MAREY_OK);
    assert_int_equal(step.step, 7);
    assert_int_equal(step.rank, 1);
    assert_int_equal(step.layout, MAREY_DUMP_LAYOUT_ACCVLAB);
    const double *const x = tensor_of(dumps, 0, "a.x").data;
    assert_true(x[0] == 1.5 && isnan(x[1]) && x[2] == -INFINITY && x[3] == 2);
    assert_int_equal(tensor_of(dumps, 0, "a.i").dtype, MAREY_I64);
    assert_int_equal(value_of(dumps, 0, "a.s")->kind, MAREY_DUMP_TEXT); /* no such file */
    assert_int_equal(value_of(dumps, 0, "evil")->kind, MAREY_DUMP_TEXT);
    assert_int_equal(tensor_of(dumps, 0, "list[0].k").dtype, MAREY_I64);
    const struct marey_tensor k = tensor_of(dumps, 0, "list[1]");
    assert_int_equal(k.dtype, MAREY_I32);
    assert_int_equal(((const int32_t *)k.data)[1], -2);
    assert_string_equal(value_of(dumps, 0, "n")->text, "3");
    assert_int_equal(((const int64_t *)tensor_of(dumps, 0, "n").data)[0], 3);
    assert_string_equal(value_of(dumps, 0, "none")->text, "null");
    const size_t pickle = marey_dumps_find(dumps, 0, MAREY_DUMP_TENSORS, "p");
    struct marey_tensor tensor;
    assert_int_equal(marey_dumps_get(dumps, 0, pickle, &tensor), MAREY_ESTATE);
    assert_non_null(strstr(marey_last_error(), "pickle"));
    const size_t gradient = marey_dumps_find(dumps, 0, MAREY_DUMP_GRADIENTS, "a.x");
    assert_int_equal(marey_dumps_get(dumps, 0, gradient, &tensor), MAREY_OK);
    assert_int_equal(tensor.rank, 0);
    marey_dumps_close(dumps);
}

static void steps_of_ranks_and_processes_are_found(void **state)
{
    const struct scratch *const s = *state;
    static const char *const folders[] = {"rank-1",   "rank-1/pid-9",   "pid-8",
                                          "rank-1/7", "rank-1/pid-9/7", "pid-8/7"};
    for (size_t i = 0; i < MAREY__COUNT_OF(folders); i++)
        make_folder(s, folders[i]);
    for (size_t i = 3; i < MAREY__COUNT_OF(folders); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/tensors.json", folders[i]);
        write_text(s, name, "{}");
    }
    marey_dumps *const dumps = open_dumps(s, "");
    static const struct {
        int64_t rank;
        uint64_t pid;
    } expected[] = {{-1, 8}, {1, 0}, {1, 9}};
    assert_int_equal(marey_dumps_count(dumps), 3);
    for (size_t i = 0; i < 3; i++) {
        struct marey_dumped_step step;
        assert_int_equal(marey_dumps_step(dumps, i, &step), MAREY_OK);
        assert_int_equal(step.rank, expected[i].rank);
        assert_int_equal(step.pid, expected[i].pid);
        assert_int_equal(step.step, 7);
    }
    marey_dumps_close(dumps);
}

static void damaged_side_file_is_reported_and_the_rest_is_read(void **state)
{
    const struct scratch *const s = *state;
    make_accvlab(s);
    write_text(s, "rank-1/7/[grads.json]a.x.bin.meta.json", "{\"file_data_shape\": [-1]}");
    write_text(s, "rank-1/7/[tensors.json]list.1.k.bin", "short");
    marey_dumps *const dumps = open_dumps(s, "rank-1/7");
    struct marey_tensor tensor;
    assert_int_equal(tensor_of(dumps, 0, "a.i").dtype, MAREY_I64);
    assert_int_equal(marey_dumps_n_notes(dumps), 1);
    assert_non_null(strstr(marey_dumps_note(dumps, 0), "meta.json"));
    const size_t gradient = marey_dumps_find(dumps, 0, MAREY_DUMP_GRADIENTS, "a.x");
    assert_int_equal(marey_dumps_get(dumps, 0, gradient, &tensor), MAREY_ESTATE);
    const size_t cut = marey_dumps_find(dumps, 0, MAREY_DUMP_TENSORS, "list[1]");
    assert_int_equal(marey_dumps_get(dumps, 0, cut, &tensor), MAREY_EFORMAT);
    marey_dumps_close(dumps);
}

/* ---- values with files of their own ---- */

static void every_type_comes_back_from_its_json(void **state)
{
    const struct scratch *const s = *state;
    static const unsigned char bytes[16] = {0x12, 0x34, 0x56, 0x3a, 0x9a, 0xbc, 0xde, 0x3f,
                                            0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x40};
    make_folder(s, "step-00000000");
    for (int dtype = MAREY_U8; dtype < MAREY_N_DTYPES; dtype++) {
        const int64_t n = (int64_t)(sizeof bytes / marey_dtype_size((enum marey_dtype)dtype));
        const struct marey_tensor tensor = {
            .data = bytes, .dtype = (enum marey_dtype)dtype, .rank = 1, .sizes = &n};
        const struct marey_dump_part path = {.key = "t", .key_len = 1};
        static const char *const files[] = {"t.json"};
        struct marey__buf text = {0}, manifest = {0};
        assert_int_equal(marey__json_tensor_put(&text, &tensor, &(struct marey__json_style){0}),
                         MAREY_OK);
        marey__manifest_step_put(&manifest, &(struct marey_dumped_step){.rank = -1, .world = -1}, 0);
        marey__manifest_value_put(&manifest,
                                  &(struct marey_dumped_value){.parts = &path,
                                                               .n_parts = 1,
                                                               .type = MAREY_DUMP_JSON,
                                                               .dtype = tensor.dtype,
                                                               .rank = tensor.rank,
                                                               .sizes = tensor.sizes,
                                                               .files = files,
                                                               .n_files = 1,
                                                               .n_bytes = sizeof bytes},
                                  MAREY__NO_OFFSET);
        marey__manifest_end_put(&manifest, 1, 1, sizeof bytes);
        write_file(s, "step-00000000/t.json", text.data, text.len);
        write_file(s, "step-00000000.jsonl", manifest.data, manifest.len);
        marey_dumps *const dumps = open_dumps(s, "");
        assert_int_equal(value_of(dumps, 0, "t")->dtype, dtype);
        const struct marey_tensor read = tensor_of(dumps, 0, "t");
        assert_int_equal(read.dtype, dtype);
        assert_memory_equal(read.data, bytes, sizeof bytes);
        marey_dumps_close(dumps);
        marey__buf_fini(&text);
        marey__buf_fini(&manifest);
    }
}

static void json_that_is_not_as_the_manifest_says_is_refused(void **state)
{
    const struct scratch *const s = *state;
    static const struct {
        const char *text, *words;
    } cases[] = {{"[1, 2]", "list lengths differ"},   {"[1, 2, 300]", "not a valid uint8"},
                 {"[1, 2, -3]", "not a valid uint8"}, {"[1, 2, 3.5]", "not a valid uint8"},
                 {"[1, 2, true]", "lists differ"},    {"[1, 2, 3] 4", "follows the end"}};
    make_folder(s, "step-00000000");
    write_text(
        s, "step-00000000.jsonl",
        "{\"marey_dump\":1}\n{\"seq\":0,\"name\":\"t\",\"type\":\"json\",\"dtype\":\"uint8\","
        "\"shape\":[3],\"files\":[\"t.json\"]}\n{\"end\":true}\n");
    for (size_t i = 0; i < MAREY__COUNT_OF(cases); i++) {
        struct marey_tensor tensor;
        write_text(s, "step-00000000/t.json", cases[i].text);
        marey_dumps *const dumps = open_dumps(s, "");
        assert_int_equal(marey_dumps_get(dumps, 0, 0, &tensor), MAREY_EFORMAT);
        if (strstr(marey_last_error(), cases[i].words) == NULL)
            fail_msg("'%s' does not say '%s'", marey_last_error(), cases[i].words);
        marey_dumps_close(dumps);
    }
}

/* ---- rejected input ---- */

static void put_npy(const struct scratch *s, const char *name, const char *header, size_t n_data)
{
    struct marey__buf out = {0};
    const size_t len = strlen(header);
    const char head[] = {'\x93',          'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(len & 255),
                         (char)(len >> 8)};
    marey__buf_put(&out, head, sizeof head);
    marey__buf_puts(&out, header);
    memset(marey__buf_extend(&out, n_data + 1), 0, n_data + 1);
    write_file(s, name, out.data, out.len - 1);
    marey__buf_fini(&out);
}

static void hostile_npy_is_refused(void **state)
{
    const struct scratch *const s = *state;
    static const struct {
        const char *header, *words;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }\n", "more bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 4), }\n",
         "more bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }\n", "not a number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }\n",
         "not a number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [2], }\n", "not a tuple"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }\n", "not True or False"},
        {"{'descr': '<f4', 'shape': (2,), }\n", "missing"},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (2,), }\n", "twice"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", "pickle"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }\n", "records"},
        {"{'descr': '|V2', 'fortran_order': False, 'shape': (1,), }\n", "bf16"},
        {"{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }\n", "'<U4'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x", "after the dictionary"},
        {"__import__('os').system('x')", "no dictionary"},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(cases); i++) {
        put_npy(s, "x.npy", cases[i].header, 8);
        assert_refused(s, "x.npy", cases[i].words);
    }
    write_file(s, "x.npy", "\x93NUMPY\2\0\xff\xff\xff\xff....", 16);
    assert_refused(s, "x.npy", "header has 4294967295 bytes");
    write_text(s, "x.npy", "PK\3\4 a zip, no npy");
    assert_refused(s, "x.npy", "begin like one");
    write_text(s, "x.npy", "");
    assert_refused(s, "x.npy", "begin like one");
    put_npy(s, "x.bf16.npy", "{'descr': '|V2', 'fortran_order': False, 'shape': (1,), }\n", 2);
    marey_dumps *const dumps = open_dumps(s, "x.bf16.npy");
    assert_int_equal(tensor_of(dumps, 0, "data").dtype, MAREY_BF16);
    marey_dumps_close(dumps);
}

static void put_safetensors(const struct scratch *s, uint64_t n, const char *header, size_t n_data)
{
    struct marey__buf out = {0};
    marey__buf_put(&out, &n, sizeof n);
    marey__buf_puts(&out, header);
    memset(marey__buf_extend(&out, n_data + 1), 0, n_data + 1);
    write_file(s, "x.safetensors", out.data, out.len - 1);
    marey__buf_fini(&out);
}

static void hostile_safetensors_are_refused(void **state)
{
    const struct scratch *const s = *state;
    static const struct {
        const char *header;
        size_t n_data;
        const char *words;
    } cases[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\","
         "\"shape\":[1],\"data_offsets\":[4,8]}}",
         8, "begins at byte 4"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "begins at byte 4"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8, "not a complete"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 2, "not a complete"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, "differ in bytes"},
        {"{\"a\":{\"dtype\":\"F64\",\"shape\":[4611686018427387904,4611686018427387904],\"data_"
         "offsets\":[0,0]}}",
         0, "differ in bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "not a count"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "ends before"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,9]}}", 8, "two numbers"},
        {"{\"a\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "unknown type"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "without dtype"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\","
         "\"shape\":[1],\"data_offsets\":[1,2]}}",
         2, "twice"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "string is missing"},
        {" {}", 0, "begin with {"},
        {"{} x", 0, "follows the end"},
        {"{\"a\":", 0, "not a safetensors file"},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(cases); i++) {
        put_safetensors(s, strlen(cases[i].header), cases[i].header, cases[i].n_data);
        assert_refused(s, "x.safetensors", cases[i].words);
    }
    put_safetensors(s, 100000001, "{}", 8);
    assert_refused(s, "x.safetensors", "100000001 bytes");
    put_safetensors(s, UINT64_MAX, "{}", 8);
    assert_refused(s, "x.safetensors", "not a complete");
    write_text(s, "x.safetensors", "{}");
    assert_refused(s, "x.safetensors", "too short");
    put_safetensors(s, 2, "{}", 0);
    marey_dumps_close(open_dumps(s, "x.safetensors"));
}

static void hostile_json_is_refused(void **state)
{
    const struct scratch *const s = *state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "a value is missing at byte 0"},       {"{\"a\": [1, 2", "ends in the middle"},
        {"{\"a\": 01}", "unknown value"},           {"{\"a\": +1}", "unknown value"},
        {"{\"a\": 1.}", "unknown value"},           {"{\"a\" 1}", "colon"},
        {"{\"a\": 1,}", "comma without a value"},   {"{'a': 1}", "not in quotes"},
        {"{\"a\": \"x\ny\"}", "control character"}, {"{\"a\": \"\\x\"}", "unknown escape"},
        {"{\"a\": \"x}", "ends in the middle"},     {"{\"a\": 1} {}", "follows the end"},
        {"{\"a\": 1, \"a\": 2}", "has 'a' twice"}};
    for (size_t i = 0; i < MAREY__COUNT_OF(cases); i++) {
        write_text(s, "x.json", cases[i].text);
        assert_refused(s, "x.json", cases[i].words);
    }
    static char deep[200000];
    memset(deep, '[', sizeof deep);
    write_file(s, "x.json", deep, sizeof deep);
    assert_refused(s, "x.json", "nested too deeply");
    for (size_t i = 0; i + 5 <= sizeof deep; i += 5)
        memcpy(deep + i, "{\"a\":", 5);
    write_file(s, "x.json", deep, sizeof deep);
    assert_refused(s, "x.json", "nested too deeply");
}

static void hostile_manifest_lines_are_left_out(void **state)
{
    const struct scratch *const s = *state;
    write_text(
        s, "step-00000001.jsonl",
        "{\"marey_dump\":1,\"data_start\":0}\n"
        "{\"seq\":0,\"name\":\"ok\",\"value\":1}\n"
        "{\"seq\":1,\"name\":\"a..b\",\"value\":1}\n"
        "{\"seq\":2,\"name\":\"b\",\"dtype\":\"float32\",\"shape\":[-1],\"offset\":0,\"bytes\":4}\n"
        "{\"seq\":3,\"name\":\"c\",\"dtype\":\"float32\",\"shape\":[4611686018427387904],"
        "\"offset\":0,\"bytes\":4}\n"
        "{\"seq\":4,\"name\":\"d\",\"dtype\":\"float32\",\"shape\":[1],\"offset\":"
        "9223372036854775807,\"bytes\":4}\n"
        "{\"seq\":5,\"name\":\"e\",\"type\":\"binary\",\"files\":[\"../../etc/passwd\"]}\n"
        "{\"seq\":6,\"name\":\"f\",\"digest\":\"zz\"}\n"
        "{\"seq\":6,\"name\":\"h\",\"dtype\":\"float32\",\"offset\":0,\"bytes\":4}\n"
        "nonsense\n"
        "{\"seq\":7,\"name\":\"g\",\"value\":2}\n"
        "{\"end\":true}\n");
    marey_dumps *const dumps = open_dumps(s, "");
    const struct marey_dumped_value *values;
    size_t n;
    assert_int_equal(marey_dumps_values(dumps, 0, &values, &n), MAREY_OK);
    assert_int_equal(n, 3);
    assert_string_equal(values[0].name, "ok");
    assert_string_equal(values[1].name, "d");
    assert_string_equal(values[1].missing, "unfinished");
    assert_string_equal(values[2].name, "g");
    assert_int_equal(marey_dumps_n_notes(dumps), 8);
    marey_dumps_close(dumps);
    write_text(s, "step-00000001.jsonl", "{\"marey_dump\":2}\n");
    assert_refused(s, "", "its marey_dump is 2");
    write_text(s, "step-00000001.jsonl", "{\"marey_dump\":1");
    assert_refused(s, "", "first line does not end");
}

static void other_files_are_refused(void **state)
{
    const struct scratch *const s = *state;
    assert_refused(s, "", "holds no dump");
    make_folder(s, ".flight-12");
    assert_refused(s, "", "of a program that died are in");
    write_text(s, "x.pkl", "cos\n");
    assert_refused(s, "x.pkl", "pickle");
    write_text(s, "x.txt", "x");
    assert_refused(s, "x.txt", "is not a dump");
    write_text(s, "step-00000001.part", "x");
    assert_refused(s, "step-00000001.part", "manifest is not there");
    marey_dumps *dumps;
    assert_int_equal(marey_dumps_open("/nonexistent/x.npy", &dumps), MAREY_EIO);
}

/* ---- memory ---- */

/* Read everything; MAREY_ENOMEM where that could not be had. */
static marey_status read_all(const char *path)
{
    marey_dumps *dumps;
    MAREY_TRY(marey_dumps_open(path, &dumps));
    marey_status status = MAREY_OK;
    for (size_t i = 0; i < marey_dumps_count(dumps) && status == MAREY_OK; i++) {
        struct marey_dumped_step step;
        const struct marey_dumped_value *values;
        size_t n = 0;
        status = marey_dumps_step(dumps, i, &step);
        if (status == MAREY_OK)
            status = marey_dumps_values(dumps, i, &values, &n);
        for (size_t v = 0; v < n && status == MAREY_OK; v++) {
            struct marey_tensor tensor;
            status = values[v].has_data ? marey_dumps_get(dumps, i, v, &tensor) : MAREY_OK;
        }
    }
    marey_dumps_close(dumps);
    return status;
}

static void out_of_memory_is_reported(void **state)
{
    const struct scratch *const s = *state;
    struct made made = {0};
    make_step(&made);
    make_accvlab(s);
    write_file(s, "step-00000012.rank-3.jsonl", made.manifest.data, made.manifest.len);
    write_file(s, "step-00000012.rank-3.safetensors", made.head.data, made.head.len);
    write_file(s, "step-00000013.safetensors", made.head.data, made.head.len);
    made_fini(&made);
    marey_status status = MAREY_ENOMEM;
    for (uint64_t nth = 1; status != MAREY_OK; nth++) {
        marey__alloc_fail_nth(nth);
        status = read_all(s->folder);
        marey__alloc_fail_nth(0);
        assert_true(status == MAREY_OK || status == MAREY_ENOMEM);
        assert_true(nth < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(step_of_marey_comes_back_whole),
        SCRATCH_TEST(part_of_a_dead_program_is_read_by_its_manifest),
        SCRATCH_TEST(container_without_its_manifest_is_read_by_its_header),
        SCRATCH_TEST(steps_come_in_order_of_number_rank_and_process),
        SCRATCH_TEST(step_of_accvlab_comes_back),
        SCRATCH_TEST(steps_of_ranks_and_processes_are_found),
        SCRATCH_TEST(damaged_side_file_is_reported_and_the_rest_is_read),
        SCRATCH_TEST(every_type_comes_back_from_its_json),
        SCRATCH_TEST(json_that_is_not_as_the_manifest_says_is_refused),
        SCRATCH_TEST(hostile_npy_is_refused),
        SCRATCH_TEST(hostile_safetensors_are_refused),
        SCRATCH_TEST(hostile_json_is_refused),
        SCRATCH_TEST(hostile_manifest_lines_are_left_out),
        SCRATCH_TEST(other_files_are_refused),
        SCRATCH_TEST(out_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
