/* Digests: XXH3-128 of each block of row-major bytes, and of the blocks' digests. */
#include "tensor/kernels/internal.h"

uint64_t marey_digest_blocks(uint64_t n_bytes)
{
    return n_bytes == 0 ? 1 : (n_bytes - 1) / MAREY_DIGEST_BLOCK + 1;
}

/* One block, which may have to be gathered in pieces. */
static void digest_block(const struct marey__kernels *kernels, const struct marey__tensor_view *view,
                         uint64_t first_byte, size_t n_bytes, struct marey_digest *out)
{
    if (view->is_row_major) {
        /* An empty tensor may have no data to point to. */
        kernels->hash(n_bytes > 0 ? view->data + first_byte : NULL, n_bytes, out);
        return;
    }
    const size_t size = view->type->size;
    unsigned char room[32768];
    struct marey__hash_state state;
    kernels->hash_begin(&state);
    for (size_t done = 0; done < n_bytes;) {
        const size_t now = MAREY__MIN(n_bytes - done, sizeof room);
        (void)marey__tensor_view_block(view, (first_byte + done) / size, now / size, room);
        kernels->hash_add(&state, room, now);
        done += now;
    }
    kernels->hash_end(&state, out);
}

marey_status marey_tensor_digest(const struct marey_tensor *tensor, struct marey_digest *out,
                                 struct marey_digest *blocks)
{
    const struct marey__kernels *kernels = marey__kernels_get();
    if (kernels->hash == NULL)
        return marey__fail(MAREY_EUNAVAILABLE, "this build has no digests of tensors: install "
                                               "libxxhash-dev and build again");
    MAREY_TRY(marey__tensor_check_host(tensor));
    struct marey__tensor_view view;
    marey__tensor_view_of(tensor, &view);
    const uint64_t n_bytes = marey_tensor_bytes(tensor), n_blocks = marey_digest_blocks(n_bytes);
    struct marey__hash_state state;
    struct marey_digest digest = {{0}}; /* of the last block; no bytes are one block too */
    kernels->hash_begin(&state);
    for (uint64_t i = 0; i < n_blocks; i++) {
        const uint64_t first = i * MAREY_DIGEST_BLOCK;
        digest_block(kernels, &view, first, (size_t)MAREY__MIN(n_bytes - first, MAREY_DIGEST_BLOCK),
                     &digest);
        if (blocks != NULL)
            blocks[i] = digest;
        kernels->hash_add(&state, digest.bytes, sizeof digest.bytes);
    }
    if (n_blocks > 1)
        kernels->hash_end(&state, &digest);
    *out = digest;
    return MAREY_OK;
}
