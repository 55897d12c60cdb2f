/* The bytes of written dumps: names, headers, lists of numbers, manifests. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/internal.h"
#include "tensor/container/internal.h"

/* What was put, with a NUL behind it. */
static const char *text_of(struct marey__buf *buf)
{
    marey__buf_put(buf, "", 1);
    assert_false(buf->failed);
    buf->len--;
    return buf->data;
}

static struct marey_dump_part key(const char *text)
{
    return (struct marey_dump_part){.key = text, .key_len = strlen(text)};
}

static struct marey_dump_part position(uint64_t index)
{
    return (struct marey_dump_part){.index = index};
}

/* ---- names ---- */

static void name_of_a_path_is_readable(void **state)
{
    (void)state;
    struct marey__buf name = {0};
    const struct marey_dump_part parts[] = {key("layers"), position(3), key("out"), key("a.b/c%")};
    marey__name_put(&name, MAREY_DUMP_TENSORS, parts, 4);
    assert_string_equal(text_of(&name), "layers[3].out.a%2Eb%2Fc%25");
    name.len = 0;
    marey__name_put(&name, MAREY_DUMP_GRADIENTS, parts, 3);
    assert_string_equal(text_of(&name), "%grad.layers[3].out");
    name.len = 0;
    marey__name_put_dotted(&name, parts, 3);
    assert_string_equal(text_of(&name), "layers.3.out");
    marey__buf_fini(&name);
}

static void assert_same_parts(const struct marey_dump_part *a, const struct marey__path *b, size_t n)
{
    assert_int_equal(b->n_parts, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(a[i].key == NULL, b->parts[i].key == NULL);
        if (a[i].key == NULL) {
            assert_int_equal(a[i].index, b->parts[i].index);
            continue;
        }
        assert_int_equal(a[i].key_len, b->parts[i].key_len);
        assert_memory_equal(a[i].key, b->parts[i].key, a[i].key_len);
        assert_int_equal(b->parts[i].key[a[i].key_len], 0);
    }
}

static const char *const hostile[] = {"../../x",
                                      "/etc/passwd",
                                      "",
                                      ".",
                                      "..",
                                      "a.b.c",
                                      "[3]",
                                      "a]b[c",
                                      "%2E",
                                      "%-",
                                      "%grad.",
                                      "a\nb",
                                      "a\\b",
                                      "\x01\x7f",
                                      "\xff\xfe",
                                      "caf\xc3\xa9",
                                      "\xf0\x9f\x98\x80",
                                      "\xed\xa0\x80",
                                      "~",
                                      "-rf",
                                      "__metadata__",
                                      "__pad__0",
                                      "\xc3",
                                      "COM1:",
                                      " ",
                                      "a b",
                                      "\"",
                                      "nul\xe2\x80\xa8"};

static void every_name_tells_its_path(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++)
        for (size_t j = 0; j < sizeof hostile / sizeof *hostile; j++)
            for (int tree = 0; tree < 2; tree++) {
                struct marey__buf name = {0};
                struct marey__path path;
                const struct marey_dump_part parts[] = {key(hostile[i]), position(i * 1000),
                                                        position(0), key(hostile[j])};
                marey__name_put(&name, (enum marey_dump_tree)tree, parts, 4);
                assert_int_equal(marey__name_parse(name.data, name.len, &path), MAREY_OK);
                assert_same_parts(parts, &path, 4);
                assert_int_equal(path.tree, tree);
                marey__path_fini(&path);
                marey__buf_fini(&name);
            }
}

static void key_with_a_zero_byte_comes_back(void **state)
{
    (void)state;
    struct marey__buf name = {0};
    struct marey__path path;
    const struct marey_dump_part parts[] = {{.key = "a\0b", .key_len = 3}};
    marey__name_put(&name, MAREY_DUMP_TENSORS, parts, 1);
    assert_string_equal(text_of(&name), "a%00b");
    assert_int_equal(marey__name_parse(name.data, name.len, &path), MAREY_OK);
    assert_same_parts(parts, &path, 1);
    marey__path_fini(&path);
    marey__buf_fini(&name);
}

static void names_that_safetensors_or_padding_need_are_escaped(void **state)
{
    (void)state;
    struct marey__buf name = {0};
    const struct marey_dump_part metadata = key("__metadata__"), pad = key("__pad__7"),
                                 inner[] = {key("a"), key("__pad__7")};
    marey__name_put(&name, MAREY_DUMP_TENSORS, &metadata, 1);
    assert_string_equal(text_of(&name), "%5F_metadata__");
    name.len = 0;
    marey__name_put(&name, MAREY_DUMP_TENSORS, &pad, 1);
    assert_string_equal(text_of(&name), "%5F_pad__7");
    name.len = 0;
    marey__name_put(&name, MAREY_DUMP_TENSORS, inner, 2);
    assert_string_equal(text_of(&name), "a.__pad__7");
    marey__buf_fini(&name);
}

static void text_that_is_no_name_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        ".",
                                        "a.",
                                        ".a",
                                        "a..b",
                                        "a[",
                                        "a[]",
                                        "a[x]",
                                        "a[01]",
                                        "a[1]b",
                                        "a[99999999999999999999]",
                                        "%",
                                        "%2",
                                        "%zz",
                                        "a/b",
                                        "a\\b",
                                        "%grad.",
                                        "a%-",
                                        "%-b",
                                        "]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct marey__path path;
        assert_int_equal(marey__name_parse(wrong[i], strlen(wrong[i]), &path), MAREY_EFORMAT);
    }
}

static void assert_file_name_is_safe(const struct marey__buf *name)
{
    assert_in_range(name->len, 1, MAREY__FILE_NAME_MAX + 4);
    assert_null(memchr(name->data, '/', name->len));
    assert_null(memchr(name->data, '\0', name->len));
    assert_int_not_equal(name->data[0], '.');
    assert_int_not_equal(name->data[0], '~');
}

static void file_names_stay_in_their_directory(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        struct marey__buf plain = {0}, name = {0};
        const struct marey_dump_part part = key(hostile[i]);
        marey__name_put(&name, MAREY_DUMP_TENSORS, &part, 1);
        marey__file_name_put(&plain, name.data, name.len, ".png");
        assert_file_name_is_safe(&plain);
        plain.len = 0;
        marey__file_name_put(&plain, hostile[i], strlen(hostile[i]), ".png"); /* as it stands, too */
        assert_file_name_is_safe(&plain);
        marey__buf_fini(&plain);
        marey__buf_fini(&name);
    }
}

static void long_file_names_are_cut_and_stay_apart(void **state)
{
    (void)state;
    static char text[10240];
    struct marey__buf a = {0}, b = {0}, most = {0};
    memset(text, 'x', sizeof text);
    marey__file_name_put(&a, text, sizeof text, ".bin");
    text[sizeof text - 1] = 'y';
    marey__file_name_put(&b, text, sizeof text, ".bin");
    assert_file_name_is_safe(&a);
    assert_int_equal(a.len, MAREY__FILE_NAME_MAX + 4);
    assert_string_not_equal(text_of(&a), text_of(&b));
    marey__file_name_put(&most, text, MAREY__FILE_NAME_MAX, "");
    assert_int_equal(most.len, MAREY__FILE_NAME_MAX);
    assert_null(memchr(most.data, '~', most.len));
    /* Escapes are not cut in two. */
    for (size_t n = 40; n < 120; n++) {
        memset(text, '/', sizeof text);
        memset(text, 'x', n);
        a.len = 0;
        marey__file_name_put(&a, text, 200, "");
        const char *const cut = memchr(a.data, '~', a.len);
        assert_non_null(cut);
        assert_memory_equal(cut - 3, "%2F", 3);
        assert_int_equal(a.data + a.len - cut, 17);
    }
    marey__buf_fini(&a);
    marey__buf_fini(&b);
    marey__buf_fini(&most);
}

static void step_names_have_rank_and_process_when_there_are_such(void **state)
{
    (void)state;
    struct marey__buf name = {0};
    marey__step_name_put(&name, 12, 3, 0);
    marey__buf_put(&name, " ", 1);
    marey__step_name_put(&name, 1234567890, -1, 77);
    assert_string_equal(text_of(&name), "step-00000012.rank-3 step-1234567890.pid-77");
    marey__buf_fini(&name);
}

/* ---- headers ---- */

static void npy_header_is_numpys(void **state)
{
    (void)state;
    struct marey__buf head = {0};
    const int64_t sizes[] = {2, 3};
    struct marey_tensor tensor = {.dtype = MAREY_F32, .rank = 2, .sizes = sizes};
    marey__npy_header_put(&head, &tensor);
    assert_int_equal(head.len, 128);
    assert_memory_equal(
        head.data, "\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        68);
    assert_int_equal(head.data[127], '\n');
    head.len = 0;
    tensor.rank = 1;
    marey__npy_header_put(&head, &tensor);
    assert_non_null(memmem(head.data, head.len, "(2,)", 4));
    head.len = 0;
    tensor.rank = 0;
    tensor.dtype = MAREY_BF16;
    marey__npy_header_put(&head, &tensor);
    assert_non_null(memmem(head.data, head.len, "'<u2', 'fortran_order': False, 'shape': ()", 41));
    assert_string_equal(marey__npy_suffix(MAREY_BF16), ".bf16.npy");
    assert_string_equal(marey__npy_suffix(MAREY_F32), ".npy");
    marey__buf_fini(&head);
}

static void safetensors_header_tiles_and_aligns(void **state)
{
    (void)state;
    struct marey__safetensors file = {0};
    struct marey__buf head = {0};
    const int64_t three = 3;
    const struct marey_tensor bytes = {.dtype = MAREY_U8, .rank = 1, .sizes = &three};
    const struct marey_tensor complex = {.dtype = MAREY_C128, .rank = 1, .sizes = &three};
    assert_int_equal(marey__safetensors_add(&file, "a", 1, &bytes), 0);
    assert_int_equal(marey__safetensors_add(&file, "b\"", 2, &complex), 64);
    assert_int_equal(marey__safetensors_head_put(&head, &file, 12, 3, 0), MAREY_OK);
    static const char expected[] =
        "{\"__metadata__\":{\"marey_dump\":\"1\",\"step\":\"12\",\"rank\":\"3\"},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
        "\"__pad__0\":{\"dtype\":\"U8\",\"shape\":[61],\"data_offsets\":[3,64]},"
        "\"b\\\"\":{\"dtype\":\"F64\",\"shape\":[3,2],\"data_offsets\":[64,112]}}   ";
    assert_int_equal(head.len, 4096);
    assert_memory_equal(head.data, "\xf8\x0f\0\0\0\0\0\0", 8);
    assert_memory_equal(head.data + 8, expected, sizeof expected - 1);
    assert_int_equal(head.data[4095], ' ');
    assert_int_equal(marey__safetensors_head_put(&head, &file, 12, 3, 64), MAREY_EINVAL);
    marey__safetensors_fini(&file);
    marey__buf_fini(&head);
}

/* ---- numbers as JSON ---- */

static const char *json_of(struct marey__buf *out, const struct marey_tensor *tensor,
                           const struct marey__json_style *style)
{
    out->len = 0;
    assert_int_equal(marey__json_tensor_put(out, tensor, style), MAREY_OK);
    return text_of(out);
}

static void lists_have_a_line_for_each_innermost_row(void **state)
{
    (void)state;
    static const float x[] = {1, -0.0f, 0.1f, 16777216, 1e-5f, FLT_MAX, 1e16f, 123456.789f};
    const int64_t sizes[] = {2, 2, 2};
    struct marey__buf out = {0};
    struct marey_tensor tensor = {.data = x, .dtype = MAREY_F32, .rank = 3, .sizes = sizes};
    const struct marey__json_style style = {.level = 1};
    assert_string_equal(
        json_of(&out, &tensor, &style),
        "[\n    [\n      [1.0, -0.0],\n      [0.1, 16777216.0]\n    ],\n    [\n      "
        "[1e-05, 3.4028235e+38],\n      [1e+16, 123456.79]\n    ]\n  ]");
    tensor.rank = 0;
    assert_string_equal(json_of(&out, &tensor, &style), "1.0");
    const int64_t empty[] = {2, 0};
    tensor.rank = 2;
    tensor.sizes = empty;
    assert_string_equal(json_of(&out, &tensor, &(struct marey__json_style){0}),
                        "[\n  [],\n  []\n]");
    marey__buf_fini(&out);
}

static void python_has_a_line_and_all_digits_for_each_number(void **state)
{
    (void)state;
    static const float x[] = {0.1f, 16777216, 1e-5f, NAN};
    const int64_t sizes[] = {2, 2}, empty[] = {2, 0};
    const struct marey__json_style style = {.level = 1, .is_python = true};
    struct marey__buf out = {0};
    struct marey_tensor tensor = {.data = x, .dtype = MAREY_F32, .rank = 2, .sizes = sizes};
    assert_string_equal(
        json_of(&out, &tensor, &style),
        "[\n    [\n      0.10000000149011612,\n      16777216.0\n    ],\n    [\n      "
        "9.999999747378752e-06,\n      NaN\n    ]\n  ]");
    tensor.sizes = empty;
    assert_string_equal(json_of(&out, &tensor, &style), "[\n    [],\n    []\n  ]");
    const uint16_t bf16 = 0x3dcd;
    tensor = (struct marey_tensor){.data = &bf16, .dtype = MAREY_BF16};
    assert_string_equal(json_of(&out, &tensor, &style), "0.10009765625");
    marey__buf_fini(&out);
}

static void python_writes_strings_in_ascii(void **state)
{
    (void)state;
    static const char text[] =
        "a\"\\\b\f\n\r\t\x01\x7f \xc3\xa9 \xe2\x86\x92 \xf0\x9f\x9a\x80 \xed\xb2\x80 \xff\0";
    struct marey__buf out = {0};
    marey__json_python_string_put(&out, text, sizeof text - 1);
    assert_string_equal(text_of(&out), "\"a\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u007f \\u00e9 \\u2192 "
                                       "\\ud83d\\ude80 \\udc80 \\ufffd\\u0000\"");
    marey__buf_fini(&out);
}

static void what_json_lacks_has_two_spellings(void **state)
{
    (void)state;
    const double x[] = {NAN, INFINITY, -INFINITY};
    const uint16_t half[] = {0x7e00, 0x7c00, 0xfc00};
    const int64_t three = 3;
    struct marey__buf out = {0};
    struct marey_tensor tensor = {.data = x, .dtype = MAREY_F64, .rank = 1, .sizes = &three};
    static const char *const expected[] = {"[\"NaN\", \"Infinity\", \"-Infinity\"]",
                                           "[\n  NaN,\n  Infinity,\n  -Infinity\n]"};
    for (int is_python = 0; is_python < 2; is_python++) {
        const struct marey__json_style style = {.is_python = is_python != 0};
        tensor.data = x;
        tensor.dtype = MAREY_F64;
        assert_string_equal(json_of(&out, &tensor, &style), expected[is_python]);
        tensor.data = half;
        tensor.dtype = MAREY_F16;
        assert_string_equal(json_of(&out, &tensor, &style), expected[is_python]);
    }
    marey__buf_fini(&out);
}

static void every_type_has_its_text(void **state)
{
    (void)state;
    static const struct {
        enum marey_dtype dtype;
        unsigned char bytes[16];
        const char *text;
    } cases[] = {
        {MAREY_BOOL, {1}, "true"},
        {MAREY_U8, {255}, "255"},
        {MAREY_I8, {0x80}, "-128"},
        {MAREY_U16, {0xff, 0xff}, "65535"},
        {MAREY_I16, {0, 0x80}, "-32768"},
        {MAREY_U32, {0xff, 0xff, 0xff, 0xff}, "4294967295"},
        {MAREY_I32, {0, 0, 0, 0x80}, "-2147483648"},
        {MAREY_U64, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "18446744073709551615"},
        {MAREY_I64, {0, 0, 0, 0, 0, 0, 0, 0x80}, "-9223372036854775808"},
        {MAREY_F16, {0x00, 0x3c}, "1.0"},
        {MAREY_F16, {0x01, 0x00}, "6e-08"},
        {MAREY_BF16, {0x49, 0x40}, "3.14"},
        {MAREY_F8_E4M3FN, {0x7e}, "450.0"},
        {MAREY_F8_E5M2, {0x7b}, "60000.0"},
        {MAREY_F8_E4M3FNUZ, {0x7f}, "240.0"},
        {MAREY_F8_E5M2FNUZ, {0x01}, "8e-06"},
        {MAREY_F8_E8M0FNU, {137}, "1024.0"},
        {MAREY_C64, {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, "[1.0, -2.0]"},
        {MAREY_C32, {0x00, 0x3c, 0x00, 0xc0}, "[1.0, -2.0]"},
        {MAREY_F4_E2M1X2, {0xf1}, "[0.5, -6.0]"},
        {MAREY_I4X2, {0x8f}, "[-1, -8]"},
        {MAREY_U4X2, {0x8f}, "[15, 8]"},
    };
    struct marey__buf out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct marey_tensor tensor = {.data = cases[i].bytes, .dtype = cases[i].dtype};
        assert_string_equal(json_of(&out, &tensor, &(struct marey__json_style){0}), cases[i].text);
    }
    marey__buf_fini(&out);
}

struct refusing_sink {
    int n_left;
};

static bool refuse_later(void *ctx, const char *text, size_t len)
{
    (void)text;
    assert_true(len > 0);
    return ((struct refusing_sink *)ctx)->n_left-- > 0;
}

static void sink_that_refuses_ends_the_writing(void **state)
{
    (void)state;
    static const float x[1 << 16];
    const int64_t n = 1 << 16;
    const struct marey_tensor tensor = {.data = x, .dtype = MAREY_F32, .rank = 1, .sizes = &n};
    struct refusing_sink sink = {.n_left = 2};
    assert_int_equal(
        marey__json_tensor_write(&tensor, &(struct marey__json_style){0}, refuse_later, &sink),
        MAREY_EIO);
    assert_int_equal(sink.n_left, -1);
}

/* ---- manifests ---- */

static void manifest_lines_are_as_the_page_says(void **state)
{
    (void)state;
    struct marey__buf out = {0};
    marey__manifest_step_put(&out,
                             &(struct marey_dumped_step){.step = 12,
                                                         .rank = -1,
                                                         .world = 8,
                                                         .pid = 4711,
                                                         .host = "node\"7",
                                                         .unix_ns = 5,
                                                         .mode = "full"},
                             4096);
    const struct marey_dump_part parts[] = {key("a\xff"), position(2)};
    const int64_t sizes[] = {2, 3}, strides[] = {3, -1};
    const struct marey_digest digest = {{0xab, 1}};
    const struct marey_tensor_stats stats = {
        .n = 6, .min = -1, .max = INFINITY, .mean = NAN, .std = 0.1, .histogram[40] = 2};
    marey__manifest_value_put(&out,
                              &(struct marey_dumped_value){.seq = 1,
                                                           .tree = MAREY_DUMP_GRADIENTS,
                                                           .parts = parts,
                                                           .n_parts = 2,
                                                           .dtype = MAREY_BF16,
                                                           .rank = 2,
                                                           .sizes = sizes,
                                                           .strides = strides,
                                                           .n_bytes = 12,
                                                           .phase = "backward",
                                                           .source = "train.py:41",
                                                           .digest = &digest,
                                                           .stats = &stats},
                              64);
    marey__manifest_value_put(&out,
                              &(struct marey_dumped_value){.seq = 2,
                                                           .parts = parts + 1,
                                                           .n_parts = 1,
                                                           .kind = MAREY_DUMP_LITERAL,
                                                           .text = "3",
                                                           .text_len = 1},
                              MAREY__NO_OFFSET);
    marey__manifest_end_put(&out, 1, 2, 12);
    assert_string_equal(
        text_of(&out),
        "{\"marey_dump\":1,\"step\":12,\"rank\":null,\"world\":8,\"pid\":4711,\"host\":"
        "\"node\\\"7\",\"run\":null,"
        "\"unix_ns\":5,\"mode\":\"full\",\"data_start\":4096,\"reason\":null}\n"
        "{\"seq\":1,\"tree\":\"gradients\",\"path\":[\"a\\ufffd\",2],\"name\":\"%grad.a%FF[2]\","
        "\"type\":\"container\","
        "\"dtype\":\"bfloat16\",\"shape\":[2,3],\"strides\":[3,-1],\"offset\":64,\"bytes\":12,"
        "\"digest\":\"ab010000000000000000000000000000\",\"stats\":{\"n\":6,\"nan\":0,\"pos_inf\":"
        "0,\"neg_inf\":0,"
        "\"zero\":0,\"denormal\":0,\"negative\":0,\"min\":-1.0,\"max\":\"Infinity\",\"mean\":"
        "\"NaN\",\"std\":0.1,"
        "\"l2\":0.0,\"histogram\":{\"40\":2}},\"phase\":\"backward\",\"source\":\"train.py:41\"}\n"
        "{\"seq\":2,\"tree\":\"tensors\",\"path\":[2],\"name\":\"[2]\",\"value\":3}\n"
        "{\"end\":true,\"tensors\":1,\"values\":2,\"bytes\":12}\n");
    marey__buf_fini(&out);
}

static void meta_files_are_accvlabs(void **state)
{
    (void)state;
    struct marey__buf out = {0};
    const int64_t sizes[] = {2, 3};
    const struct marey_tensor tensor = {.dtype = MAREY_F8_E5M2, .rank = 2, .sizes = sizes};
    marey__bin_meta_put(&out, &tensor);
    assert_string_equal(text_of(&out), "{\n  \"file_data_shape\": [\n    2,\n    3\n  ],\n  "
                                       "\"file_data_dtype\": \"torch.float8_e5m2\"\n}");
    out.len = 0;
    marey__image_meta_put(&out, MAREY_F32, -0.5, 255, "RGB");
    assert_string_equal(text_of(&out), "{\n  \"original_range\": [\n    -0.5,\n    255.0\n  ],\n  "
                                       "\"image_format\": \"RGB\"\n}");
    out.len = 0;
    marey__image_meta_put(&out, MAREY_U8, 0, 255, "Intensity");
    assert_string_equal(text_of(&out), "{\n  \"original_range\": [\n    0,\n    255\n  ],\n  "
                                       "\"image_format\": \"Intensity\"\n}");
    marey__buf_fini(&out);
}

/* ---- memory ---- */

static void memory_that_runs_out_is_reported(void **state)
{
    (void)state;
    static const char name[] = "a[1].b";
    bool is_done = false;
    for (uint64_t n = 1; !is_done; n++) {
        struct marey__path path = {0};
        marey__alloc_fail_nth(n);
        const marey_status status = marey__name_parse(name, sizeof name - 1, &path);
        marey__alloc_fail_nth(0);
        is_done = status == MAREY_OK;
        assert_true(is_done || status == MAREY_ENOMEM);
        marey__path_fini(&path);
        assert_in_range(n, 1, 10);
    }
    const uint16_t bits = 0x3f80;
    const struct marey_tensor tensor = {.data = &bits, .dtype = MAREY_F8_E5M2};
    struct marey__buf out = {0};
    marey__alloc_fail_nth(1);
    const marey_status status = marey__json_tensor_put(&out, &tensor, &(struct marey__json_style){0});
    marey__alloc_fail_nth(0);
    assert_int_equal(status, MAREY_ENOMEM);
    marey__buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_runs_out_is_reported), /* first: a table of texts is made once */
        cmocka_unit_test(name_of_a_path_is_readable),
        cmocka_unit_test(every_name_tells_its_path),
        cmocka_unit_test(key_with_a_zero_byte_comes_back),
        cmocka_unit_test(names_that_safetensors_or_padding_need_are_escaped),
        cmocka_unit_test(text_that_is_no_name_is_refused),
        cmocka_unit_test(file_names_stay_in_their_directory),
        cmocka_unit_test(long_file_names_are_cut_and_stay_apart),
        cmocka_unit_test(step_names_have_rank_and_process_when_there_are_such),
        cmocka_unit_test(npy_header_is_numpys),
        cmocka_unit_test(safetensors_header_tiles_and_aligns),
        cmocka_unit_test(lists_have_a_line_for_each_innermost_row),
        cmocka_unit_test(python_has_a_line_and_all_digits_for_each_number),
        cmocka_unit_test(python_writes_strings_in_ascii),
        cmocka_unit_test(what_json_lacks_has_two_spellings),
        cmocka_unit_test(every_type_has_its_text),
        cmocka_unit_test(sink_that_refuses_ends_the_writing),
        cmocka_unit_test(manifest_lines_are_as_the_page_says),
        cmocka_unit_test(meta_files_are_accvlabs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
