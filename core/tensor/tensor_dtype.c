/* The types of elements: one table, and the names by which others know them. */
#include <string.h>
#include <strings.h>

#include "tensor/tensor_internal.h"

#define INTEGER(NAME, BITS, KIND, SELF)                                                            \
    {                                                                                              \
        .name = (NAME), .size = (BITS) / 8, .n_parts = 1, .part_bits = (BITS), .kind = (KIND),     \
        .part = (SELF)                                                                             \
    }
#define FLOAT(NAME, BITS, SELF, DIGITS, MIN, REL, ABS)                                             \
    {                                                                                              \
        .name = (NAME), .size = (BITS) / 8, .n_parts = 1, .part_bits = (BITS),                     \
        .kind = KYMO__IS_FLOAT, .part = (SELF), .digits = (DIGITS), .min_exponent = (MIN),         \
        .rel = (REL), .abs = (ABS)                                                                 \
    }
#define COMPLEX(NAME, BITS, PART, DIGITS, MIN, REL, ABS)                                           \
    {                                                                                              \
        .name = (NAME), .size = (BITS) / 4, .n_parts = 2, .part_bits = (BITS),                     \
        .kind = KYMO__IS_FLOAT, .part = (PART), .digits = (DIGITS), .min_exponent = (MIN),         \
        .rel = (REL), .abs = (ABS)                                                                 \
    }
#define HALVES(NAME, KIND, SELF, DIGITS)                                                           \
    {                                                                                              \
        .name = (NAME), .size = 1, .n_parts = 2, .part_bits = 4, .kind = (KIND), .part = (SELF),   \
        .digits = (DIGITS)                                                                         \
    }

static const struct kymo__dtype types[KYMO_N_DTYPES] = {
    [KYMO_BOOL] = INTEGER("bool", 8, KYMO__IS_BOOL, KYMO_BOOL),
    [KYMO_U8] = INTEGER("uint8", 8, KYMO__IS_UNSIGNED, KYMO_U8),
    [KYMO_I8] = INTEGER("int8", 8, KYMO__IS_SIGNED, KYMO_I8),
    [KYMO_U16] = INTEGER("uint16", 16, KYMO__IS_UNSIGNED, KYMO_U16),
    [KYMO_I16] = INTEGER("int16", 16, KYMO__IS_SIGNED, KYMO_I16),
    [KYMO_U32] = INTEGER("uint32", 32, KYMO__IS_UNSIGNED, KYMO_U32),
    [KYMO_I32] = INTEGER("int32", 32, KYMO__IS_SIGNED, KYMO_I32),
    [KYMO_U64] = INTEGER("uint64", 64, KYMO__IS_UNSIGNED, KYMO_U64),
    [KYMO_I64] = INTEGER("int64", 64, KYMO__IS_SIGNED, KYMO_I64),
    [KYMO_F16] = FLOAT("float16", 16, KYMO_F16, 11, -14, 1e-3, 1e-5),
    [KYMO_BF16] = FLOAT("bfloat16", 16, KYMO_BF16, 8, -126, 1.6e-2, 1e-5),
    [KYMO_F32] = FLOAT("float32", 32, KYMO_F32, 24, -126, 1.3e-6, 1e-5),
    [KYMO_F64] = FLOAT("float64", 64, KYMO_F64, 53, -1022, 1e-7, 1e-7),
    [KYMO_C32] = COMPLEX("complex32", 16, KYMO_F16, 11, -14, 1e-3, 1e-5),
    [KYMO_C64] = COMPLEX("complex64", 32, KYMO_F32, 24, -126, 1.3e-6, 1e-5),
    [KYMO_C128] = COMPLEX("complex128", 64, KYMO_F64, 53, -1022, 1e-7, 1e-7),
    [KYMO_F8_E4M3FN] = FLOAT("float8_e4m3fn", 8, KYMO_F8_E4M3FN, 4, -6, 0, 0),
    [KYMO_F8_E5M2] = FLOAT("float8_e5m2", 8, KYMO_F8_E5M2, 3, -14, 0, 0),
    [KYMO_F8_E4M3FNUZ] = FLOAT("float8_e4m3fnuz", 8, KYMO_F8_E4M3FNUZ, 4, -7, 0, 0),
    [KYMO_F8_E5M2FNUZ] = FLOAT("float8_e5m2fnuz", 8, KYMO_F8_E5M2FNUZ, 3, -15, 0, 0),
    [KYMO_F8_E8M0FNU] = FLOAT("float8_e8m0fnu", 8, KYMO_F8_E8M0FNU, 1, -127, 0, 0),
    [KYMO_F4_E2M1X2] = HALVES("float4_e2m1fn_x2", KYMO__IS_FLOAT, KYMO_F4_E2M1X2, 2),
    [KYMO_I4X2] = HALVES("int4x2", KYMO__IS_SIGNED, KYMO_I4X2, 0),
    [KYMO_U4X2] = HALVES("uint4x2", KYMO__IS_UNSIGNED, KYMO_U4X2, 0),
};

/* Names besides those of the table; letters of either case. safetensors writes them in capitals. */
static const struct {
    const char *name;
    enum kymo_dtype dtype;
} aliases[] = {
    {"bool_", KYMO_BOOL},
    {"byte", KYMO_U8},
    {"char", KYMO_I8},
    {"short", KYMO_I16},
    {"int", KYMO_I32},
    {"long", KYMO_I64},
    {"half", KYMO_F16},
    {"float", KYMO_F32},
    {"double", KYMO_F64},
    {"chalf", KYMO_C32},
    {"cfloat", KYMO_C64},
    {"cdouble", KYMO_C128},
    {"u8", KYMO_U8},
    {"i8", KYMO_I8},
    {"u16", KYMO_U16},
    {"i16", KYMO_I16},
    {"u32", KYMO_U32},
    {"i32", KYMO_I32},
    {"u64", KYMO_U64},
    {"i64", KYMO_I64},
    {"f16", KYMO_F16},
    {"bf16", KYMO_BF16},
    {"f32", KYMO_F32},
    {"f64", KYMO_F64},
    {"c32", KYMO_C32},
    {"c64", KYMO_C64},
    {"c128", KYMO_C128},
    {"f8_e4m3", KYMO_F8_E4M3FN},
    {"f8_e4m3fn", KYMO_F8_E4M3FN},
    {"f8_e5m2", KYMO_F8_E5M2},
    {"f8_e4m3fnuz", KYMO_F8_E4M3FNUZ},
    {"f8_e5m2fnuz", KYMO_F8_E5M2FNUZ},
    {"f8_e8m0", KYMO_F8_E8M0FNU},
    {"f8_e8m0fnu", KYMO_F8_E8M0FNU},
    {"f4", KYMO_F4_E2M1X2},
    {"f4_e2m1x2", KYMO_F4_E2M1X2},
    {"i4x2", KYMO_I4X2},
    {"u4x2", KYMO_U4X2},
};

/* numpy's letters, by bytes. */
static const struct {
    char code[4];
    enum kymo_dtype dtype;
} numpy_codes[] = {
    {"b1", KYMO_BOOL}, {"u1", KYMO_U8},  {"i1", KYMO_I8},  {"u2", KYMO_U16}, {"i2", KYMO_I16},
    {"u4", KYMO_U32},  {"i4", KYMO_I32}, {"u8", KYMO_U64}, {"i8", KYMO_I64}, {"f2", KYMO_F16},
    {"f4", KYMO_F32},  {"f8", KYMO_F64}, {"c4", KYMO_C32}, {"c8", KYMO_C64}, {"c16", KYMO_C128},
};

const struct kymo__dtype *kymo__dtype_get(enum kymo_dtype dtype)
{
    const unsigned number = (unsigned)dtype;
    return number > 0 && number < KYMO_N_DTYPES ? &types[number] : NULL;
}

const char *kymo_dtype_name(enum kymo_dtype dtype)
{
    const struct kymo__dtype *type = kymo__dtype_get(dtype);
    return type != NULL ? type->name : "?";
}

size_t kymo_dtype_size(enum kymo_dtype dtype)
{
    const struct kymo__dtype *type = kymo__dtype_get(dtype);
    return type != NULL ? type->size : 0;
}

/* Of what numpy writes with the order of bytes in front. Big-endian numbers are none of ours. */
static enum kymo_dtype find_numpy(const char *name)
{
    for (size_t i = 0; i < KYMO__COUNT_OF(numpy_codes); i++)
        if (strcmp(numpy_codes[i].code, name + 1) == 0 &&
            (name[0] != '>' || types[numpy_codes[i].dtype].size == 1))
            return numpy_codes[i].dtype;
    return KYMO_DTYPE_NONE;
}

enum kymo_dtype kymo_dtype_find(const char *name)
{
    if (name == NULL)
        return KYMO_DTYPE_NONE;
    if (name[0] != '\0' && strchr("<>|=", name[0]) != NULL)
        return find_numpy(name);
    if (strncmp(name, "torch.", 6) == 0)
        name += 6;
    for (int i = 1; i < KYMO_N_DTYPES; i++)
        if (strcasecmp(types[i].name, name) == 0)
            return (enum kymo_dtype)i;
    for (size_t i = 0; i < KYMO__COUNT_OF(aliases); i++)
        if (strcasecmp(aliases[i].name, name) == 0)
            return aliases[i].dtype;
    return KYMO_DTYPE_NONE;
}
