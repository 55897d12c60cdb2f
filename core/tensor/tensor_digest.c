/* Digests: XXH3-128 of each block of row-major bytes, and of the blocks' digests. */
#include <string.h>

#include "tensor/tensor_internal.h"

uint64_t kymo_digest_blocks(uint64_t n_bytes)
{
    return n_bytes == 0 ? 1 : (n_bytes - 1) / KYMO_DIGEST_BLOCK + 1;
}

#ifdef KYMO_HAVE_XXHASH

#define XXH_INLINE_ALL
#include <xxhash.h>

static struct kymo_digest digest_of(XXH128_hash_t hash)
{
    XXH128_canonical_t canonical;
    struct kymo_digest digest;
    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(digest.bytes, canonical.digest, sizeof digest.bytes);
    return digest;
}

/* One block, which may have to be gathered piece by piece. */
static struct kymo_digest digest_block(const struct kymo__tensor_view *view, uint64_t first_byte,
                                       size_t n_bytes)
{
    const size_t size = view->type->size;
    if (view->is_row_major)
        return digest_of(XXH3_128bits(view->data + first_byte, n_bytes));
    unsigned char room[32768];
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    (void)XXH3_128bits_reset(&state);
    for (size_t done = 0; done < n_bytes;) {
        const size_t now = KYMO__MIN(n_bytes - done, sizeof room);
        (void)kymo__tensor_view_block(view, (first_byte + done) / size, now / size, room);
        (void)XXH3_128bits_update(&state, room, now);
        done += now;
    }
    return digest_of(XXH3_128bits_digest(&state));
}

kymo_status kymo_tensor_digest(const struct kymo_tensor *tensor, struct kymo_digest *out,
                               struct kymo_digest *blocks)
{
    KYMO_TRY(kymo__tensor_check_host(tensor));
    struct kymo__tensor_view view;
    kymo__tensor_view_of(tensor, &view);
    const uint64_t n_bytes = kymo_tensor_bytes(tensor), n_blocks = kymo_digest_blocks(n_bytes);
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    (void)XXH3_128bits_reset(&state);
    struct kymo_digest digest = {{0}};
    for (uint64_t i = 0; i < n_blocks; i++) {
        const uint64_t first = i * KYMO_DIGEST_BLOCK;
        digest = digest_block(&view, first, (size_t)KYMO__MIN(n_bytes - first, KYMO_DIGEST_BLOCK));
        if (blocks != NULL)
            blocks[i] = digest;
        (void)XXH3_128bits_update(&state, digest.bytes, sizeof digest.bytes);
    }
    *out = n_blocks > 1 ? digest_of(XXH3_128bits_digest(&state)) : digest;
    return KYMO_OK;
}

#else

kymo_status kymo_tensor_digest(const struct kymo_tensor *tensor, struct kymo_digest *out,
                               struct kymo_digest *blocks)
{
    (void)tensor;
    (void)out;
    (void)blocks;
    return kymo__fail(KYMO_EUNAVAILABLE, "this build has no digests of tensors: install "
                                         "libxxhash-dev and build again");
}

#endif
