/* XXH3-128 with the vectors of the file that includes this: xxHash looks at the flags it is compiled with. */
#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(struct marey__hash_state),
               "room for a running digest");

static void put_digest(XXH128_hash_t from, struct marey_digest *out)
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, from);
    memcpy(out->bytes, canonical.digest, sizeof out->bytes);
}

static void hash(const void *bytes, size_t n, struct marey_digest *out)
{
    put_digest(XXH3_128bits(bytes, n), out);
}

static void hash_begin(struct marey__hash_state *state)
{
    XXH3_INITSTATE((XXH3_state_t *)state);
    (void)XXH3_128bits_reset((XXH3_state_t *)state);
}

static void hash_add(struct marey__hash_state *state, const void *bytes, size_t n)
{
    (void)XXH3_128bits_update((XXH3_state_t *)state, bytes, n);
}

static void hash_end(const struct marey__hash_state *state, struct marey_digest *out)
{
    put_digest(XXH3_128bits_digest((const XXH3_state_t *)state), out);
}
