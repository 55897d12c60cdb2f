/* GPU work, and communication recorded by the device or by the host. */
#include "import/kineto/internal.h"

/* ---- communication ---- */

/* Names of collectives in torch, NCCL and MPI, reduced to lower-case letters; the first match counts. */
static const struct {
    const char *part;
    enum marey_collective what;
} collectives[] = {
    {"allreduce", MAREY_COLLECTIVE_ALL_REDUCE},
    {"reducescatter", MAREY_COLLECTIVE_REDUCE_SCATTER},
    {"allgather", MAREY_COLLECTIVE_ALL_GATHER},
    {"alltoall", MAREY_COLLECTIVE_ALL_TO_ALL},
    {"broadcast", MAREY_COLLECTIVE_BROADCAST},
    {"gather", MAREY_COLLECTIVE_GATHER},
    {"scatter", MAREY_COLLECTIVE_SCATTER},
    {"reduce", MAREY_COLLECTIVE_REDUCE},
    {"barrier", MAREY_COLLECTIVE_BARRIER},
    {"send", MAREY_COLLECTIVE_SEND},
    {"recv", MAREY_COLLECTIVE_RECV},
};

static enum marey_collective collective_of(const struct marey__chrome_value *name)
{
    char letters[64];
    size_t n = 0;
    for (size_t i = 0; i < name->len && n < sizeof letters - 1; i++) {
        const char c = (char)(name->at[i] | 0x20);
        if (c >= 'a' && c <= 'z')
            letters[n++] = c;
    }
    letters[n] = '\0';
    for (size_t i = 0; i < MAREY__COUNT_OF(collectives); i++)
        if (strstr(letters, collectives[i].part) != NULL)
            return collectives[i].what;
    return MAREY_COLLECTIVE_OTHER;
}

/* Element size in bytes of a torch type; 0: unknown. */
static uint64_t type_size(const struct marey__chrome_value *type)
{
    static const struct {
        const char *name;
        uint64_t size;
    } types[] = {
        {"Float", 4},       {"float", 4},        {"BFloat16", 2},       {"c10::BFloat16", 2},
        {"Half", 2},        {"c10::Half", 2},    {"Double", 8},         {"double", 8},
        {"Long", 8},        {"long", 8},         {"long int", 8},       {"Int", 4},
        {"int", 4},         {"Short", 2},        {"short", 2},          {"Char", 1},
        {"signed char", 1}, {"Byte", 1},         {"unsigned char", 1},  {"Bool", 1},
        {"bool", 1},        {"ComplexFloat", 8}, {"ComplexDouble", 16}, {"UInt16", 2},
        {"UInt32", 4},      {"UInt64", 8},
    };
    for (size_t i = 0; i < MAREY__COUNT_OF(types); i++)
        if (marey__chrome_is(type, types[i].name))
            return types[i].size;
    const bool is_float8 = type->len >= 6 && memcmp(type->at, "Float8", 6) == 0;
    return is_float8 ? 1 : 0;
}

static uint64_t bytes_of(const struct marey__chrome_value *elements,
                         const struct marey__chrome_value *type)
{
    int64_t n;
    uint64_t bytes;
    if (!marey__chrome_integer(elements, &n) || n < 0 ||
        __builtin_mul_overflow((uint64_t)n, type_size(type), &bytes))
        return 0;
    return bytes;
}

static int32_t rank_of(const struct marey__chrome_value *value)
{
    int64_t rank;
    return marey__chrome_integer(value, &rank) && rank >= 0 && rank <= INT32_MAX ? (int32_t)rank : -1;
}

/* The process group as a site: its name, its ranks as the domain, its purpose as the category. */
static uint32_t group_of(marey__sink_process *process, const struct marey__chrome_args *args)
{
    if (args->group_name.kind == MAREY__CHROME_NONE)
        return 0;
    const struct marey__sink_site site = {.name = args->group_name.at,
                                          .name_len = args->group_name.len,
                                          .category = args->group_description.at,
                                          .category_len = args->group_description.len,
                                          .domain = args->group_ranks.at,
                                          .domain_len = args->group_ranks.len};
    return marey__sink_site(process, &site);
}

/* From arguments with a "Collective name", of kernels and of record_param_comms. */
static void describe(marey__sink_process *process, const struct marey__chrome_args *args,
                     struct marey_communication *out)
{
    int64_t number;
    *out = (struct marey_communication){.group = group_of(process, args),
                                        .what = collective_of(&args->collective),
                                        .bytes_in = bytes_of(&args->in_elements, &args->type),
                                        .bytes_out = bytes_of(&args->out_elements, &args->type),
                                        .sequence = UINT64_MAX,
                                        .peer = -1};
    if (marey__chrome_integer(&args->sequence, &number) && number >= 0)
        out->sequence = (uint64_t)number;
    if (marey__chrome_integer(&args->group_size, &number) && number > 0 && number <= UINT32_MAX)
        out->group_size = (uint32_t)number;
    if (out->what == MAREY_COLLECTIVE_SEND)
        out->peer = rank_of(&args->destination);
    else if (out->what == MAREY_COLLECTIVE_RECV)
        out->peer = rank_of(&args->source);
}

/* The single type in a list of types; of length 0 if there are several or none. */
static struct marey__chrome_value only_type(const struct marey__chrome_value *list)
{
    struct marey__chrome_value type = {0};
    if (list->kind != MAREY__CHROME_NESTED || list->at[0] != '[')
        return type;
    const char *end = list->at + list->len, *open = memchr(list->at, '"', list->len);
    const char *close = open != NULL ? memchr(open + 1, '"', (size_t)(end - open - 1)) : NULL;
    if (close != NULL && memchr(close, ',', (size_t)(end - close)) == NULL)
        type = (struct marey__chrome_value){
            .at = open + 1, .len = (uint32_t)(close - open - 1), .kind = MAREY__CHROME_STRING};
    return type;
}

/* From "Input Dims" [[3, 4]] and "Input type" ["float"]: known only for a single tensor. */
static uint64_t input_bytes(const struct marey__chrome_args *args)
{
    const struct marey__chrome_value *dims = &args->input_dims, type = only_type(&args->input_types);
    uint64_t bytes = type_size(&type), n = 0;
    if (bytes == 0 || dims->kind != MAREY__CHROME_NESTED || dims->len < 5 ||
        memcmp(dims->at, "[[", 2) != 0 || memcmp(dims->at + dims->len - 2, "]]", 2) != 0)
        return 0;
    const char *p = dims->at, *end = p + dims->len;
    for (p += 2; p < end - 2; n++) {
        uint64_t size;
        while (*p == ' ' || *p == ',')
            p++;
        if (!marey__parse_number(p, (size_t)(end - p), &size) ||
            __builtin_mul_overflow(bytes, size, &bytes))
            return 0;
        while (*p >= '0' && *p <= '9')
            p++;
    }
    return n > 0 ? bytes : 0;
}

bool marey__chrome_communication(marey__sink_process *process, const struct marey__chrome_value *name,
                                 const struct marey__chrome_args *args,
                                 struct marey_communication *out)
{
    if (args->collective.kind == MAREY__CHROME_STRING) {
        describe(process, args, out);
        return true;
    }
    /* Without a GPU, the annotation is the collective itself: "gloo:all_reduce". */
    static const char *const backends[] = {"gloo:", "mpi:", "ucc:"};
    for (size_t i = 0; name != NULL && i < MAREY__COUNT_OF(backends); i++)
        if (marey__chrome_begins(name, backends[i])) {
            *out = (struct marey_communication){.what = collective_of(name),
                                                .bytes_in = input_bytes(args),
                                                .sequence = UINT64_MAX,
                                                .peer = -1};
            return true;
        }
    return false;
}

/* ---- GPU work ---- */

void marey__chrome_put_work(struct marey__chrome *chrome, struct marey__sink_event *out,
                            enum marey_work_kind kind)
{
    const struct marey__chrome_event *event = &chrome->file.event;
    struct marey__chrome_args args;
    int64_t device, stream, number;
    marey__chrome_parse_args(&args, &event->args);
    if (!marey__chrome_integer(args.device.kind != MAREY__CHROME_NONE ? &args.device : &event->pid,
                               &device))
        device = 0;
    if (!marey__chrome_integer(args.stream.kind != MAREY__CHROME_NONE ? &args.stream : &event->tid,
                               &stream))
        stream = 0;
    struct marey__chrome_thread *thread = marey__chrome_thread_of(chrome, device, stream);
    if (thread == NULL || !marey__chrome_as_stream(chrome, thread))
        return;
    out->kind = MAREY__SINK_GPU;
    out->work_kind = kind;
    out->lane = thread->stream_lane;
    out->site = marey__chrome_site(chrome, chrome->main);
    if (marey__chrome_integer(&args.correlation, &number) && number > 0)
        out->correlation = (uint64_t)number;
    if (marey__chrome_integer(&args.bytes, &number) && number > 0)
        out->bytes = (uint64_t)number;
    if (marey__chrome_communication(chrome->main, NULL, &args, &chrome->communication))
        out->communication = &chrome->communication;
    marey__sink_put(chrome->main, out);
}
