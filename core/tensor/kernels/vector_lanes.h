/*
 * The vectors of one type of number. vector.h includes it with
 *
 *   V(name)         a type or function made here: s_name of float32, d_name of float64
 *   REAL, BITS      the type of a number, and an unsigned integer of its width
 *   WIDTH, FLOAT    bits of a number, and the letter of its type in names of instructions
 */

/* Values, bit patterns, and a mask: one bit per lane with AVX-512, else the sign of each lane. */
typedef REAL V(v) __attribute__((vector_size(VECTOR_BYTES)));
typedef BITS V(i) __attribute__((vector_size(VECTOR_BYTES)));
#if VECTOR_BYTES == 64
typedef __typeof__(FLOATS_MASK(cmp)((V(v)){0}, (V(v)){0}, _CMP_GT_OQ)) V(mask);
#else
typedef __typeof__((V(v)){0} > (V(v)){0}) V(mask);
#endif

/* `x` in each lane. */
VALUE(V(v), V(set), (REAL x), x - (V(v)){0})
VALUE(V(i), V(set_bits), (BITS x), x - (V(i)){0})
INLINE V(v) V(load)(const void *p)
{
    V(v) x;
    memcpy(&x, p, sizeof x);
    return x;
}
VALUE(V(i), V(magnitude), (V(i) x), V(set_bits)((BITS)-1 >> 1) & x)

#if VECTOR_BYTES == 64
VALUE(V(mask), V(greater), (V(v) a, V(v) b), FLOATS_MASK(cmp)(a, b, _CMP_GT_OQ))
VALUE(V(mask), V(above), (V(i) a, V(i) b), UNSIGNED_MASK(cmpgt)(REGISTER(a), REGISTER(b)))
VALUE(V(mask), V(is_zero), (V(i) x), INTEGERS_MASK(testn)(REGISTER(x), REGISTER(x)))
VALUE(V(mask), V(is_negative), (V(i) x), INTEGERS_MASK(cmplt)(REGISTER(x), _mm512_setzero_si512()))
/* `a` where the mask is set, else `b`. */
VALUE(V(i), V(choose), (V(mask) mask, V(i) a, V(i) b),
      (V(i))INTEGERS(mask_blend)(mask, REGISTER(b), REGISTER(a)))
/* One bit per lane. */
VALUE(uint32_t, V(lanes), (V(mask) mask), mask)
#else
VALUE(V(mask), V(greater), (V(v) a, V(v) b), a > b)
VALUE(V(mask), V(above), (V(i) a, V(i) b), a > b)
VALUE(V(mask), V(is_zero), (V(i) x), x == V(set_bits)(0))
#if VECTOR_BYTES == 32
VALUE(V(mask), V(is_negative), (V(i) x), (V(mask))x)
VALUE(V(i), V(choose), (V(mask) mask, V(i) a, V(i) b),
      (V(i))FLOATS(blendv)((V(v))b, (V(v))a, (V(v))mask))
VALUE(uint32_t, V(lanes), (V(mask) mask), (uint32_t)FLOATS(movemask)((V(v))mask))
#else
VALUE(V(mask), V(is_negative), (V(i) x), (V(mask))x < (V(mask))V(set_bits)(0))
VALUE(V(i), V(choose), (V(mask) mask, V(i) a, V(i) b), b ^ ((a ^ b) & (V(i))mask))
INLINE uint32_t V(lanes)(V(mask) mask)
{
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < VECTOR_BYTES * 8 / WIDTH; i++)
        lanes |= (uint32_t)(mask[i] & 1) << i;
    return lanes;
}
#endif
#endif

#if VECTOR_BYTES > 16
/* a * b + c, rounded once. */
VALUE(V(v), V(sum_product), (V(v) a, V(v) b, V(v) c), FLOATS(fmadd)(a, b, c))
/* a - b * c, with the correct sign: rounded once, or slightly too large. */
VALUE(V(v), V(excess), (V(v) a, V(v) b, V(v) c), FLOATS(fnmadd)(b, c, a))
VALUE(V(v), V(lesser_of), (V(v) a, V(v) b), FLOATS(min)(a, b))
VALUE(V(v), V(greater_of), (V(v) a, V(v) b), FLOATS(max)(a, b))
#else
VALUE(V(v), V(sum_product), (V(v) a, V(v) b, V(v) c), c + a * b)
INLINE V(v) V(excess)(V(v) a, V(v) b, V(v) c)
{
    /* Rounded twice: the product is reduced by more than the possible rounding error. */
    return a - b * c * V(set)(1 - (sizeof(REAL) == 4 ? (REAL)0x1p-21 : (REAL)0x1p-50));
}
VALUE(V(v), V(lesser_of), (V(v) a, V(v) b), (V(v))V(choose)(a < b, (V(i))a, (V(i))b))
VALUE(V(v), V(greater_of), (V(v) a, V(v) b), (V(v))V(choose)(V(greater)(a, b), (V(i))a, (V(i))b))
#endif

/* The larger of two patterns, and the distance of two magnitudes. */
#if VECTOR_BYTES == 64 || (VECTOR_BYTES == 32 && WIDTH == 32)
VALUE(V(i), V(max), (V(i) a, V(i) b), (V(i))UNSIGNED(max)(REGISTER(a), REGISTER(b)))
VALUE(V(i), V(distance), (V(i) a, V(i) b), (V(i))INTEGERS(abs)(REGISTER(a - b)))
#else
VALUE(V(i), V(max), (V(i) a, V(i) b), V(choose)(V(above)(a, b), a, b))
INLINE V(i) V(distance)(V(i) a, V(i) b)
{
    const V(mask) is_less = VECTOR_BYTES == 32 ? V(is_negative)(a - b) : V(above)(b, a);
    return V(choose)(is_less, b - a, a - b);
}
#endif

/* The number of steps between two patterns; their magnitudes are known already. */
VALUE(V(i), V(apart), (V(i) a, V(i) b, V(i) magnitude_a, V(i) magnitude_b),
      V(choose)(V(is_negative)(a ^ b), magnitude_a + magnitude_b,
                V(distance)(magnitude_a, magnitude_b)))
