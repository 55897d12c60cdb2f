/* Rules: patterns, results of the built-in rules, custom rules, invalid files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/device/internal.h"

static int setup(void **state)
{
    struct marey__rules *rules = *state = calloc(1, sizeof *rules);
    return rules == NULL || marey__rules_load(rules, NULL) != MAREY_OK;
}

static int teardown(void **state)
{
    marey__rules_fini(*state);
    free(*state);
    return 0;
}

/* ---- patterns ---- */

static bool fits(const char *pattern, const char *text)
{
    return marey__pattern_fits(pattern, text, strlen(text));
}

static void a_plain_pattern_is_found_anywhere(void **state)
{
    (void)state;
    assert_true(fits("nccl", "ncclDevKernel_AllReduce"));
    assert_true(fits("NCCL", "void my_nccl_kernel"));
    assert_true(fits("nccl", "nccl"));
    assert_true(fits("gather", "all-gather"));
    assert_false(fits("nccl", "ncc"));
    assert_false(fits("nccl", ""));
    assert_false(fits("nccl", "n c c l"));
}

static void a_pattern_with_stars_is_the_whole(void **state)
{
    (void)state;
    assert_true(fits("*nccl*", "void ncclKernel"));
    assert_true(fits("MEMORY_COPY_*", "memory_copy_HOST_TO_DEVICE"));
    assert_true(fits("cudaMemcp?", "cudaMemcpy"));
    assert_false(fits("cudaMemcp?", "cudaMemcpyAsync"));
    assert_false(fits("MEMORY_COPY_*", "x MEMORY_COPY_"));
    assert_true(fits("*", ""));
    assert_true(fits("a*b*c", "a-b-b-c"));
    assert_false(fits("a*b*c", "a-b-b-"));
    assert_true(fits("**", "x"));
    assert_false(fits("?", ""));
}

/* Patterns with exponential time in other matchers. */
static void a_hostile_pattern_costs_little(void **state)
{
    (void)state;
    char text[2001];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_false(fits("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

/* ---- built-in rules ---- */

static uint8_t class_of(const struct marey__rules *rules, const char *name, uint8_t kind,
                        const char *rule)
{
    const struct marey_site_info site = {
        .name = name, .name_len = (uint32_t)strlen(name), .category = "", .domain = "", .file = ""};
    const struct marey__rule_subject subject = {.site = &site, .kind = kind};
    const struct marey__rule *found = &rules->rules[marey__rules_find(rules, &subject)];
    if (rule != NULL)
        assert_string_equal(found->name, rule);
    return found->class;
}

static void kernels_are_what_they_are(void **state)
{
    static const struct {
        const char *name, *rule;
        uint8_t class;
    } kernels[] = {
        {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "nccl", MAREY__COMMUNICATES},
        {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "nccl",
         MAREY__COMMUNICATES},
        {"ncclSymkDevKernel_AllReduce_AGxLL_R_sum_f32", "nccl", MAREY__COMMUNICATES},
        {"void ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)", "nccl",
         MAREY__COMMUNICATES},
        {"rcclGenericKernel<1, false>(ncclDevComm*, unsigned long)", "rccl", MAREY__COMMUNICATES},
        {"hcclAllReduce_", "hccl", MAREY__COMMUNICATES},
        {"oneccl_allreduce_kernel", "oneccl", MAREY__COMMUNICATES},
        {"nvshmemi_transfer_rma_p", "nvshmem", MAREY__COMMUNICATES},
        {"mscclpp::allreduce", "msccl", MAREY__COMMUNICATES},
        {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", "cross-device",
         MAREY__COMMUNICATES},
        {"one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>", "one-shot", MAREY__COMMUNICATES},
        {"void tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8>", "one-shot-trt",
         MAREY__COMMUNICATES},
        {"void tensorrt_llm::kernels::twoShotAllReduceKernel<half, 8>", "two-shot-trt",
         MAREY__COMMUNICATES},
        {"multimem_all_reduce_kernel<c10::BFloat16, 16>", "multimem", MAREY__COMMUNICATES},
        {"void deep_ep::intranode::dispatch<8, 768>", "deep-ep", MAREY__COMMUNICATES},
        {"__amd_rocclr_copyBuffer.kd", "rocm-copy", MAREY__COPIES},
        {"__amd_rocclr_fillBufferAligned", "rocm-fill", MAREY__COPIES},
        {"MEMORY_COPY_DEVICE_TO_DEVICE", "rocm-memory", MAREY__COPIES},
        {"triton_poi_fused_add_cos_sin_0", "triton", MAREY__COMPUTES},
        {"void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm>", "cutlass", MAREY__COMPUTES},
        {"cudnn_infer_ampere_scudnn_winograd_128x128", "cudnn", MAREY__COMPUTES},
        {"void flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", "flash-attention", MAREY__COMPUTES},
        {"ampere_sgemm_128x64_nn", "cublas-gemm", MAREY__COMPUTES},
        {"Cijk_Alik_Bljk_SB_MT64x64x16", "rocblas", MAREY__COMPUTES},
        {"void at::native::vectorized_elementwise_kernel<4>", "pytorch", MAREY__COMPUTES},
        {"void (anonymous namespace)::softmax_warp_forward<float>", "kernel", MAREY__COMPUTES},
        {"", "kernel", MAREY__COMPUTES},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(kernels); i++)
        assert_int_equal(class_of(*state, kernels[i].name, MAREY_WORK_KERNEL, kernels[i].rule),
                         kernels[i].class);
    assert_int_equal(class_of(*state, "Memcpy HtoD (Pinned -> Device)", MAREY_WORK_COPY, NULL),
                     MAREY__COPIES);
    assert_int_equal(class_of(*state, "Memset (Device)", MAREY_WORK_SET, NULL), MAREY__COPIES);
    /* A name that begins with hip is no communication by that. */
    assert_int_equal(class_of(*state, "hipMemcpyAsync", MAREY_WORK_COPY, NULL), MAREY__COPIES);
}

static void ranges_are_what_their_name_or_category_says(void **state)
{
    static const struct {
        const char *name, *category;
        uint8_t class;
    } ranges[] = {
        {"MPI_Allreduce", "", MAREY__COMMUNICATES},
        {"gloo:all_reduce", "user_annotation", MAREY__COMMUNICATES},
        {"exchange", "communication", MAREY__COMMUNICATES},
        {"to host", "copy", MAREY__COPIES},
        {"next batch", "data", MAREY__IGNORED},
        {"sleep", "idle", MAREY__IGNORED},
        {"lock", "wait", MAREY__IGNORED},
        {"aten::mm", "cpu_op", MAREY__COMPUTES},
        {"nccl:all_reduce", "user_annotation", MAREY__COMPUTES}, /* only launches it */
    };
    const struct marey__rules *rules = *state;
    for (size_t i = 0; i < MAREY__COUNT_OF(ranges); i++) {
        const struct marey_site_info site = {.name = ranges[i].name,
                                             .name_len = (uint32_t)strlen(ranges[i].name),
                                             .category = ranges[i].category};
        const struct marey__rule_subject subject = {.site = &site, .kind = MAREY__KIND_RANGE};
        assert_int_equal(rules->rules[marey__rules_find(rules, &subject)].class, ranges[i].class);
    }
}

/* On AMD all collectives may share one generic name. */
static void what_an_event_says_of_itself_counts(void **state)
{
    const struct marey__rules *rules = *state;
    const struct marey_site_info site = {.name = "generic", .name_len = 7, .category = "kernel"};
    const struct marey__rule_subject subject = {.site = &site,
                                                .kind = MAREY_WORK_KERNEL,
                                                .has_collective = true,
                                                .what = MAREY_COLLECTIVE_ALL_REDUCE};
    const struct marey__rule *rule = &rules->rules[marey__rules_find(rules, &subject)];
    assert_string_equal(rule->name, "collective");
    assert_int_equal(rule->class, MAREY__COMMUNICATES);
}

/* ---- rules of one's own ---- */

static void write_rules(const char *text, size_t len, char path[64])
{
    strcpy(path, "/tmp/marey-rules-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && marey__write_all(fd, text, len));
    close(fd);
}

static void ones_own_rules_come_first(void **state)
{
    static const char text[] = "# mine\n\n"
                               "  ours\tcommunication name  our kernel that sends  \r\n"
                               "quiet ignore name nccl";
    char path[64];
    struct marey__rules rules;
    (void)state;
    write_rules(text, sizeof text - 1, path);
    assert_int_equal(marey__rules_load(&rules, path), MAREY_OK);
    assert_string_equal(rules.rules[0].pattern, "our kernel that sends");
    assert_int_equal(class_of(&rules, "OUR KERNEL THAT SENDS much", MAREY_WORK_KERNEL, "ours"),
                     MAREY__COMMUNICATES);
    assert_int_equal(class_of(&rules, "ncclDevKernel", MAREY_WORK_KERNEL, "quiet"), MAREY__IGNORED);
    assert_int_equal(class_of(&rules, "triton_x", MAREY_WORK_KERNEL, "triton"), MAREY__COMPUTES);
    marey__rules_fini(&rules);
    unlink(path);
}

static void mareys_rules_are_a_file_of_rules(void **state)
{
    const struct marey__rules *own = *state;
    struct marey__rules again = {0};
    const char *text = marey_breakdown_rules();
    assert_int_equal(marey__rules_parse(&again, "own", text, strlen(text)), MAREY_OK);
    assert_int_equal(again.n, own->n);
    marey__rules_fini(&again);
}

static void a_bad_line_is_named(void **state)
{
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"a copy name", "line 1: expected four words"},
        {"\n\na copied name x\n", "line 3: a rule's class is"},
        {"a copy look x\n", "line 1: a rule looks at"},
        {"# fine\na copy name x\nb", "line 3"},
    };
    (void)state;
    for (size_t i = 0; i < MAREY__COUNT_OF(bad); i++) {
        char path[64];
        struct marey__rules rules;
        write_rules(bad[i].text, strlen(bad[i].text), path);
        assert_int_equal(marey__rules_load(&rules, path), MAREY_EFORMAT);
        assert_non_null(strstr(marey_last_error(), path));
        assert_non_null(strstr(marey_last_error(), bad[i].part));
        marey__rules_fini(&rules);
        unlink(path);
    }
}

static void bytes_that_are_not_text_are_refused(void **state)
{
    static const char text[] = "a copy name x\0y";
    struct marey__rules rules = {0};
    (void)state;
    assert_int_equal(marey__rules_parse(&rules, "here", text, sizeof text - 1), MAREY_EFORMAT);
    assert_non_null(strstr(marey_last_error(), "not a text line"));
    marey__rules_fini(&rules);
    assert_int_equal(marey__rules_load(&rules, "/"), MAREY_EIO);
    marey__rules_fini(&rules);
}

static void every_failed_allocation_is_reported(void **state)
{
    char path[64];
    (void)state;
    write_rules("a copy name x\n", 14, path);
    for (uint64_t nth = 1;; nth++) {
        struct marey__rules rules;
        marey__alloc_fail_nth(nth);
        const marey_status status = marey__rules_load(&rules, path);
        marey__alloc_fail_nth(0);
        marey__rules_fini(&rules);
        if (status == MAREY_OK)
            break;
        assert_int_equal(status, MAREY_ENOMEM);
    }
    unlink(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_pattern_is_found_anywhere),
        cmocka_unit_test(a_pattern_with_stars_is_the_whole),
        cmocka_unit_test(a_hostile_pattern_costs_little),
        TEST(kernels_are_what_they_are),
        TEST(ranges_are_what_their_name_or_category_says),
        TEST(what_an_event_says_of_itself_counts),
        cmocka_unit_test(ones_own_rules_come_first),
        TEST(mareys_rules_are_a_file_of_rules),
        cmocka_unit_test(a_bad_line_is_named),
        cmocka_unit_test(bytes_that_are_not_text_are_refused),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
