/* Interpreters, thread states and frames by following pointers, one read each: for rare use. */
#include "sampler/remote/internal.h"

enum { FRAME_MAX = 1024 };

/* Detects cycles in foreign lists (Brent): a mark set at increasing intervals is met again. */
struct cycle_check {
    uint64_t mark;
    size_t n, next;
};

static bool is_cycle(struct cycle_check *check, uint64_t at)
{
    if (at == check->mark)
        return true;
    if (check->n++ >= check->next) {
        check->mark = at;
        check->next = 2 * check->next + 1;
    }
    return false;
}

/* Reads a linked list: `from` holds the address of the first element, each element the next one at offset `next`. */
static size_t read_list(struct marey__remote *remote, uint64_t from, uint32_t next, uint64_t *out,
                        size_t cap)
{
    struct cycle_check check = {0};
    uint64_t at;
    size_t n = 0;
    if (!marey__remote_read_u64(remote, from, &at))
        return 0;
    while (at != 0 && n < cap && !is_cycle(&check, at)) {
        out[n++] = at;
        if (!marey__remote_read_u64(remote, at + next, &at))
            break;
    }
    return n;
}

size_t marey__remote_interpreters(struct marey__remote *remote, uint64_t *out, size_t cap)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    return read_list(remote, remote->found.runtime + layout->runtime.interpreters_head,
                     layout->interpreter.next, out, cap);
}

size_t marey__remote_thread_states(struct marey__remote *remote, uint64_t interpreter,
                                   uint64_t *out, size_t cap)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    return read_list(remote, interpreter + layout->interpreter.threads_head, layout->thread.next,
                     out, cap);
}

uint64_t marey__remote_gil(struct marey__remote *remote, uint64_t interpreter)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    uint64_t at;
    if (layout->runtime.gil != MAREY__REMOTE_ABSENT)
        return remote->found.runtime + layout->runtime.gil;
    if (layout->interpreter.gil == MAREY__REMOTE_ABSENT ||
        !marey__remote_read_u64(remote, interpreter + layout->interpreter.gil, &at))
        return 0;
    return at;
}

static uint64_t innermost(struct marey__remote *remote, uint64_t thread_state)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    uint64_t at;
    if (!marey__remote_read_u64(remote, thread_state + layout->thread.frame, &at))
        return UINT64_MAX;
    if (at != 0 && layout->cframe.current_frame != MAREY__REMOTE_ABSENT &&
        !marey__remote_read_u64(remote, at + layout->cframe.current_frame, &at))
        return UINT64_MAX;
    return at;
}

size_t marey__remote_stack(struct marey__remote *remote, uint64_t thread_state,
                           struct marey__remote_frame *out, size_t cap, bool *is_whole)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    uint8_t bytes[FRAME_MAX];
    struct cycle_check check = {0};
    size_t n = 0;
    uint64_t at = innermost(remote, thread_state);
    MAREY_ASSERT(layout->frame.size <= sizeof bytes);
    while (at != 0 && n < cap && !is_cycle(&check, at) &&
           marey__remote_read(remote, at, bytes, layout->frame.size)) {
        const uint8_t owner = marey__remote_u8(bytes, layout->frame.owner);
        const uint64_t previous = marey__remote_u64(bytes, layout->frame.previous);
        if (owner >= MAREY__REMOTE_OWNER_SHIM) {
            if (n > 0)
                out[n - 1].is_entry = true;
        } else {
            out[n++] = (struct marey__remote_frame){
                .address = at,
                .code = marey__remote_u64(bytes, layout->frame.code) & layout->frame.code_mask,
                .instruction = layout->instruction_kind == MAREY__REMOTE_INSTRUCTION_POINTER
                                   ? marey__remote_u64(bytes, layout->frame.instruction)
                                   : marey__remote_u32(bytes, layout->frame.instruction),
                .tlbc_index = marey__remote_u32(bytes, layout->frame.tlbc_index),
                .owner = owner,
                .is_entry = layout->frame.owner == MAREY__REMOTE_ABSENT ||
                            marey__remote_u8(bytes, layout->frame.is_entry) != 0,
            };
        }
        at = previous;
    }
    *is_whole = at == 0;
    return n;
}

/* Whether an item of the exception chain holds one; None means no exception and is recognized by its type. */
static bool holds_exception(struct marey__remote *remote, uint64_t value)
{
    if (value == 0 || value == remote->found.none)
        return false;
    if (remote->found.none == 0 && marey__remote_is_type(remote, value, "NoneType")) {
        remote->found.none = value;
        return false;
    }
    return true;
}

bool marey__remote_in_exception(struct marey__remote *remote, uint64_t thread_state, const void *bytes)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    const uint32_t value = layout->exception.value, previous = layout->exception.previous;
    if (marey__remote_u64(bytes, layout->thread.current_exception) != 0)
        return true;
    if (layout->thread.exc_info == MAREY__REMOTE_ABSENT)
        return false;
    uint64_t at = marey__remote_u64(bytes, layout->thread.exc_info);
    /* Generators have separate items; the chain ends in the thread state. */
    for (int i = 0; i < 64 && at != 0; i++) {
        uint8_t item[64];
        const bool is_own = at == thread_state + layout->thread.exc_state;
        if (is_own)
            memcpy(item, (const char *)bytes + layout->thread.exc_state, previous + 8);
        else if (!marey__remote_read(remote, at, item, previous + 8))
            return false;
        if (holds_exception(remote, marey__remote_u64(item, value)))
            return true;
        if (is_own)
            return false;
        at = marey__remote_u64(item, previous);
    }
    return false;
}

bool marey__remote_is_type(struct marey__remote *remote, uint64_t at, const char *name)
{
    const struct marey__remote_layout *const layout = &remote->layout;
    uint64_t type, text;
    char found[32];
    return marey__remote_read_u64(remote, at + layout->object.type, &type) &&
           marey__remote_read_u64(remote, type + layout->object.type_name, &text) &&
           marey__remote_read_text(remote, text, found, MAREY__MIN(strlen(name) + 1, sizeof found)) &&
           strcmp(found, name) == 0;
}
