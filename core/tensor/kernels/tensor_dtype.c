/* The types of elements: one table, and the names by which others know them. */
#include <string.h>
#include <strings.h>

#include "tensor/kernels/internal.h"

#define INTEGER(NAME, BITS, KIND, SELF)                                                            \
    {                                                                                              \
        .name = (NAME), .size = (BITS) / 8, .n_parts = 1, .part_bits = (BITS), .kind = (KIND),     \
        .part = (SELF)                                                                             \
    }
#define FLOAT(NAME, BITS, SELF, DIGITS, MIN, REL, ABS)                                             \
    {                                                                                              \
        .name = (NAME), .size = (BITS) / 8, .n_parts = 1, .part_bits = (BITS),                     \
        .kind = MAREY__IS_FLOAT, .part = (SELF), .digits = (DIGITS), .min_exponent = (MIN),        \
        .rel = (REL), .abs = (ABS)                                                                 \
    }
#define COMPLEX(NAME, BITS, PART, DIGITS, MIN, REL, ABS)                                           \
    {                                                                                              \
        .name = (NAME), .size = (BITS) / 4, .n_parts = 2, .part_bits = (BITS),                     \
        .kind = MAREY__IS_FLOAT, .part = (PART), .digits = (DIGITS), .min_exponent = (MIN),        \
        .rel = (REL), .abs = (ABS)                                                                 \
    }
#define HALVES(NAME, KIND, SELF, DIGITS)                                                           \
    {                                                                                              \
        .name = (NAME), .size = 1, .n_parts = 2, .part_bits = 4, .kind = (KIND), .part = (SELF),   \
        .digits = (DIGITS)                                                                         \
    }

static const struct marey__dtype types[MAREY_N_DTYPES] = {
    [MAREY_BOOL] = INTEGER("bool", 8, MAREY__IS_BOOL, MAREY_BOOL),
    [MAREY_U8] = INTEGER("uint8", 8, MAREY__IS_UNSIGNED, MAREY_U8),
    [MAREY_I8] = INTEGER("int8", 8, MAREY__IS_SIGNED, MAREY_I8),
    [MAREY_U16] = INTEGER("uint16", 16, MAREY__IS_UNSIGNED, MAREY_U16),
    [MAREY_I16] = INTEGER("int16", 16, MAREY__IS_SIGNED, MAREY_I16),
    [MAREY_U32] = INTEGER("uint32", 32, MAREY__IS_UNSIGNED, MAREY_U32),
    [MAREY_I32] = INTEGER("int32", 32, MAREY__IS_SIGNED, MAREY_I32),
    [MAREY_U64] = INTEGER("uint64", 64, MAREY__IS_UNSIGNED, MAREY_U64),
    [MAREY_I64] = INTEGER("int64", 64, MAREY__IS_SIGNED, MAREY_I64),
    [MAREY_F16] = FLOAT("float16", 16, MAREY_F16, 11, -14, 1e-3, 1e-5),
    [MAREY_BF16] = FLOAT("bfloat16", 16, MAREY_BF16, 8, -126, 1.6e-2, 1e-5),
    [MAREY_F32] = FLOAT("float32", 32, MAREY_F32, 24, -126, 1.3e-6, 1e-5),
    [MAREY_F64] = FLOAT("float64", 64, MAREY_F64, 53, -1022, 1e-7, 1e-7),
    [MAREY_C32] = COMPLEX("complex32", 16, MAREY_F16, 11, -14, 1e-3, 1e-5),
    [MAREY_C64] = COMPLEX("complex64", 32, MAREY_F32, 24, -126, 1.3e-6, 1e-5),
    [MAREY_C128] = COMPLEX("complex128", 64, MAREY_F64, 53, -1022, 1e-7, 1e-7),
    [MAREY_F8_E4M3FN] = FLOAT("float8_e4m3fn", 8, MAREY_F8_E4M3FN, 4, -6, 0, 0),
    [MAREY_F8_E5M2] = FLOAT("float8_e5m2", 8, MAREY_F8_E5M2, 3, -14, 0, 0),
    [MAREY_F8_E4M3FNUZ] = FLOAT("float8_e4m3fnuz", 8, MAREY_F8_E4M3FNUZ, 4, -7, 0, 0),
    [MAREY_F8_E5M2FNUZ] = FLOAT("float8_e5m2fnuz", 8, MAREY_F8_E5M2FNUZ, 3, -15, 0, 0),
    [MAREY_F8_E8M0FNU] = FLOAT("float8_e8m0fnu", 8, MAREY_F8_E8M0FNU, 1, -127, 0, 0),
    [MAREY_F4_E2M1X2] = HALVES("float4_e2m1fn_x2", MAREY__IS_FLOAT, MAREY_F4_E2M1X2, 2),
    [MAREY_I4X2] = HALVES("int4x2", MAREY__IS_SIGNED, MAREY_I4X2, 0),
    [MAREY_U4X2] = HALVES("uint4x2", MAREY__IS_UNSIGNED, MAREY_U4X2, 0),
};

/* Names besides those of the table; letters of either case. safetensors writes them in capitals. */
static const struct {
    const char *name;
    enum marey_dtype dtype;
} aliases[] = {
    {"bool_", MAREY_BOOL},
    {"byte", MAREY_U8},
    {"char", MAREY_I8},
    {"short", MAREY_I16},
    {"int", MAREY_I32},
    {"long", MAREY_I64},
    {"half", MAREY_F16},
    {"float", MAREY_F32},
    {"double", MAREY_F64},
    {"chalf", MAREY_C32},
    {"cfloat", MAREY_C64},
    {"cdouble", MAREY_C128},
    {"u8", MAREY_U8},
    {"i8", MAREY_I8},
    {"u16", MAREY_U16},
    {"i16", MAREY_I16},
    {"u32", MAREY_U32},
    {"i32", MAREY_I32},
    {"u64", MAREY_U64},
    {"i64", MAREY_I64},
    {"f16", MAREY_F16},
    {"bf16", MAREY_BF16},
    {"f32", MAREY_F32},
    {"f64", MAREY_F64},
    {"c32", MAREY_C32},
    {"c64", MAREY_C64},
    {"c128", MAREY_C128},
    {"f8_e4m3", MAREY_F8_E4M3FN},
    {"f8_e4m3fn", MAREY_F8_E4M3FN},
    {"f8_e5m2", MAREY_F8_E5M2},
    {"f8_e4m3fnuz", MAREY_F8_E4M3FNUZ},
    {"f8_e5m2fnuz", MAREY_F8_E5M2FNUZ},
    {"f8_e8m0", MAREY_F8_E8M0FNU},
    {"f8_e8m0fnu", MAREY_F8_E8M0FNU},
    {"f4", MAREY_F4_E2M1X2},
    {"f4_e2m1x2", MAREY_F4_E2M1X2},
    {"i4x2", MAREY_I4X2},
    {"u4x2", MAREY_U4X2},
};

/* numpy's letters, by bytes. */
static const struct {
    char code[4];
    enum marey_dtype dtype;
} numpy_codes[] = {
    {"b1", MAREY_BOOL}, {"u1", MAREY_U8},  {"i1", MAREY_I8},    {"u2", MAREY_U16},
    {"i2", MAREY_I16},  {"u4", MAREY_U32}, {"i4", MAREY_I32},   {"u8", MAREY_U64},
    {"i8", MAREY_I64},  {"f2", MAREY_F16}, {"f4", MAREY_F32},   {"f8", MAREY_F64},
    {"c4", MAREY_C32},  {"c8", MAREY_C64}, {"c16", MAREY_C128},
};

const struct marey__dtype *marey__dtype_get(enum marey_dtype dtype)
{
    const unsigned number = (unsigned)dtype;
    return number > 0 && number < MAREY_N_DTYPES ? &types[number] : NULL;
}

const char *marey_dtype_name(enum marey_dtype dtype)
{
    const struct marey__dtype *type = marey__dtype_get(dtype);
    return type != NULL ? type->name : "?";
}

size_t marey_dtype_size(enum marey_dtype dtype)
{
    const struct marey__dtype *type = marey__dtype_get(dtype);
    return type != NULL ? type->size : 0;
}

/* Of what numpy writes with the order of bytes in front. Big-endian numbers are none of ours. */
static enum marey_dtype find_numpy(const char *name)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(numpy_codes); i++)
        if (strcmp(numpy_codes[i].code, name + 1) == 0 &&
            (name[0] != '>' || types[numpy_codes[i].dtype].size == 1))
            return numpy_codes[i].dtype;
    return MAREY_DTYPE_NONE;
}

enum marey_dtype marey_dtype_find(const char *name)
{
    if (name == NULL)
        return MAREY_DTYPE_NONE;
    if (name[0] != '\0' && strchr("<>|=", name[0]) != NULL)
        return find_numpy(name);
    if (strncmp(name, "torch.", 6) == 0)
        name += 6;
    for (int i = 1; i < MAREY_N_DTYPES; i++)
        if (strcasecmp(types[i].name, name) == 0)
            return (enum marey_dtype)i;
    for (size_t i = 0; i < MAREY__COUNT_OF(aliases); i++)
        if (strcasecmp(aliases[i].name, name) == 0)
            return aliases[i].dtype;
    return MAREY_DTYPE_NONE;
}
