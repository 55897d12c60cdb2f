/* The element types: one table, and their names in other software. */
#include <string.h>
#include <strings.h>

#include "tensor/kernels/internal.h"

/* marey_dtype_find() accepts the name of the constant, too. */
#define TYPE(ID, NAME, SIZE, N_PARTS, PART_BITS, KIND, PART)                                       \
    .id = #ID, .name = NAME, .size = (SIZE), .n_parts = (N_PARTS), .part_bits = (PART_BITS),       \
    .kind = (KIND), .part = MAREY_##PART
#define FORMATS(NUMPY, SAFETENSORS, NPY_SUFFIX)                                                    \
    .numpy = (NUMPY), .safetensors = (SAFETENSORS), .npy_suffix = (NPY_SUFFIX)
#define INTEGER(ID, NAME, BITS, KIND, NUMPY, SAFETENSORS)                                          \
    [MAREY_##ID] = {TYPE(ID, NAME, (BITS) / 8, 1, BITS, MAREY__IS_##KIND, ID),                     \
                    FORMATS(NUMPY, SAFETENSORS, ".npy")}
#define FLOAT(ID, NAME, BITS, DIGITS, MIN, REL, ABS, NUMPY, SAFETENSORS, SUFFIX)                   \
    [MAREY_##ID] = {TYPE(ID, NAME, (BITS) / 8, 1, BITS, MAREY__IS_FLOAT, ID),                      \
                    .digits = (DIGITS),                                                            \
                    .min_exponent = (MIN),                                                         \
                    .rel = (REL),                                                                  \
                    .abs = (ABS),                                                                  \
                    FORMATS(NUMPY, SAFETENSORS, SUFFIX)}
#define COMPLEX(ID, NAME, PART, BITS, DIGITS, MIN, REL, ABS, NUMPY, SAFETENSORS, SUFFIX)           \
    [MAREY_##ID] = {TYPE(ID, NAME, (BITS) / 4, 2, BITS, MAREY__IS_FLOAT, PART),                    \
                    .digits = (DIGITS),                                                            \
                    .min_exponent = (MIN),                                                         \
                    .rel = (REL),                                                                  \
                    .abs = (ABS),                                                                  \
                    FORMATS(NUMPY, SAFETENSORS, SUFFIX)}
#define FLOAT8(ID, NAME, DIGITS, MIN, SAFETENSORS)                                                 \
    FLOAT(ID, NAME, 8, DIGITS, MIN, 0, 0, "|u1", SAFETENSORS, "." NAME ".npy")
#define HALVES(ID, NAME, KIND, DIGITS)                                                             \
    [MAREY_##ID] = {TYPE(ID, NAME, 1, 2, 4, MAREY__IS_##KIND, ID), .digits = (DIGITS),             \
                    FORMATS("|u1", "U8", "." NAME ".npy")}

static const struct marey__dtype types[MAREY_N_DTYPES] = {
    INTEGER(BOOL, "bool", 8, BOOL, "|b1", "BOOL"),
    INTEGER(U8, "uint8", 8, UNSIGNED, "|u1", "U8"),
    INTEGER(I8, "int8", 8, SIGNED, "|i1", "I8"),
    INTEGER(U16, "uint16", 16, UNSIGNED, "<u2", "U16"),
    INTEGER(I16, "int16", 16, SIGNED, "<i2", "I16"),
    INTEGER(U32, "uint32", 32, UNSIGNED, "<u4", "U32"),
    INTEGER(I32, "int32", 32, SIGNED, "<i4", "I32"),
    INTEGER(U64, "uint64", 64, UNSIGNED, "<u8", "U64"),
    INTEGER(I64, "int64", 64, SIGNED, "<i8", "I64"),
    FLOAT(F16, "float16", 16, 11, -14, 1e-3, 1e-5, "<f2", "F16", ".npy"),
    FLOAT(BF16, "bfloat16", 16, 8, -126, 1.6e-2, 1e-5, "<u2", "BF16", ".bf16.npy"),
    FLOAT(F32, "float32", 32, 24, -126, 1.3e-6, 1e-5, "<f4", "F32", ".npy"),
    FLOAT(F64, "float64", 64, 53, -1022, 1e-7, 1e-7, "<f8", "F64", ".npy"),
    COMPLEX(C32, "complex32", F16, 16, 11, -14, 1e-3, 1e-5, "<u4", "F16", ".complex32.npy"),
    COMPLEX(C64, "complex64", F32, 32, 24, -126, 1.3e-6, 1e-5, "<c8", "C64", ".npy"),
    COMPLEX(C128, "complex128", F64, 64, 53, -1022, 1e-7, 1e-7, "<c16", "F64", ".npy"),
    FLOAT8(F8_E4M3FN, "float8_e4m3fn", 4, -6, "F8_E4M3"),
    FLOAT8(F8_E5M2, "float8_e5m2", 3, -14, "F8_E5M2"),
    FLOAT8(F8_E4M3FNUZ, "float8_e4m3fnuz", 4, -7, "F8_E4M3FNUZ"),
    FLOAT8(F8_E5M2FNUZ, "float8_e5m2fnuz", 3, -15, "F8_E5M2FNUZ"),
    FLOAT8(F8_E8M0FNU, "float8_e8m0fnu", 1, -127, "F8_E8M0"),
    HALVES(F4_E2M1X2, "float4_e2m1fn_x2", FLOAT, 2),
    HALVES(I4X2, "int4x2", SIGNED, 0),
    HALVES(U4X2, "uint4x2", UNSIGNED, 0),
};

/* More names, in either case. safetensors uses capitals. */
static const struct {
    const char *name;
    enum marey_dtype dtype;
} aliases[] = {
    {"bool_", MAREY_BOOL},   {"byte", MAREY_U8},           {"char", MAREY_I8},
    {"short", MAREY_I16},    {"int", MAREY_I32},           {"long", MAREY_I64},
    {"half", MAREY_F16},     {"float", MAREY_F32},         {"double", MAREY_F64},
    {"chalf", MAREY_C32},    {"cfloat", MAREY_C64},        {"cdouble", MAREY_C128},
    {"f4", MAREY_F4_E2M1X2}, {"f8_e4m3", MAREY_F8_E4M3FN}, {"f8_e8m0", MAREY_F8_E8M0FNU},
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

/* The type for numpy's code after the byte order. Big-endian numbers are not supported. */
static enum marey_dtype find_numpy(const char *name)
{
    if (name[0] != '>' && strcmp(name + 1, "c4") == 0)
        return MAREY_C32;
    for (int i = 1; i < MAREY_N_DTYPES; i++)
        if (strcmp(types[i].npy_suffix, ".npy") == 0 && strcmp(types[i].numpy + 1, name + 1) == 0 &&
            (name[0] != '>' || types[i].size == 1))
            return (enum marey_dtype)i;
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
        if (strcasecmp(types[i].name, name) == 0 || strcasecmp(types[i].id, name) == 0)
            return (enum marey_dtype)i;
    for (size_t i = 0; i < MAREY__COUNT_OF(aliases); i++)
        if (strcasecmp(aliases[i].name, name) == 0)
            return aliases[i].dtype;
    return MAREY_DTYPE_NONE;
}
