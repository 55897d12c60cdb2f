/*
 * The offsets of fields in CPython's structs, 3.10 to 3.12: what offsetof() gave with the headers of each version.
 * tests/unit/test_remote.c checks them with running Pythons. From 3.13 on Python publishes them (remote_offsets.c).
 */
#include "sampler/remote/internal.h"

#define NO MAREY__REMOTE_ABSENT

/*
 * The GIL of 3.10 and 3.11 is part of the runtime and contains two mutexes, of 40 bytes on x86-64 and 48 on aarch64. Of
 * the fields read here, one follows it.
 */
#ifdef __aarch64__
enum { MORE = 16 };
#else
enum { MORE = 0 };
#endif

/* Fields at the same offsets in several versions. */
#define CHUNK .chunk = {.previous = 0, .size = 8, .top = 16, .data = 24}
#define GIL .gil = {.size = 32, .last_holder = 8, .locked = 16, .switch_number = 24, .enabled = NO}
#define UNICODE(ascii, compact)                                                                    \
    .unicode = {.ascii_size = (ascii),                                                             \
                .compact_size = (compact),                                                         \
                .length = 16,                                                                      \
                .state = 32,                                                                       \
                .kind_shift = 2,                                                                   \
                .compact_shift = 5,                                                                \
                .ascii_shift = 6}
#define BYTES .bytes = {.size = 16, .data = 32}
#define OBJECT(cached_keys)                                                                        \
    .object = {.type = 8,                                                                          \
               .type_name = 24,                                                                    \
               .type_basicsize = 32,                                                               \
               .type_flags = 168,                                                                  \
               .type_dictoffset = 288,                                                             \
               .type_cached_keys = (cached_keys)}
static const struct marey__remote_layout layouts[] = {
    {.version = 0x030a0000,
     .instruction_kind = MAREY__REMOTE_LASTI_UNITS,
     .line_format = MAREY__REMOTE_LINES_LINETABLE,
     .runtime = {.interpreters_head = 32, .tstate_current = 568 + MORE, .gil = 352},
     .interpreter = {.next = 0,
                     .id = 24,
                     .threads_head = 8,
                     .modules = 856,
                     .gil = NO,
                     .gc_collecting = 816,
                     .code_generation = NO,
                     .tlbc_generation = NO},
     .thread = {.size = 280,
                .prev = 0,
                .next = 8,
                .interpreter = 16,
                .thread_id = 176,
                .native_thread_id = NO,
                .frame = 24,
                .datastack_chunk = NO,
                .datastack_top = NO,
                .status = NO,
                .exc_info = 144,
                .exc_state = 112,
                .current_exception = 88,
                .holds_gil = NO,
                .gil_requested = NO},
     .cframe = {.size = NO, .current_frame = NO, .previous = NO},
     .frame = {.size = 104,
               .previous = 24,
               .code = 32,
               .instruction = 96,
               .owner = NO,
               .is_entry = NO,
               .stack_top = NO,
               .tlbc_index = NO,
               .code_mask = UINT64_MAX},
     .exception = {.value = 8, .previous = 24},
     .code = {.size = 128,
              .type = 8,
              .filename = 104,
              .name = 112,
              .qualname = NO,
              .linetable = 120,
              .first_line = 40,
              .bytecode = 48,
              .tlbc = NO},
     .chunk = {.previous = NO, .size = NO, .top = NO, .data = NO},
     GIL,
     UNICODE(48, 72),
     BYTES,
     OBJECT(NO)},
    {.version = 0x030b0000,
     .instruction_kind = MAREY__REMOTE_INSTRUCTION_POINTER,
     .line_format = MAREY__REMOTE_LINES_LOCATIONS,
     .runtime = {.interpreters_head = 40, .tstate_current = 576 + MORE, .gil = 360},
     .interpreter = {.next = 0,
                     .id = 48,
                     .threads_head = 16,
                     .modules = 888,
                     .gil = NO,
                     .gc_collecting = 848,
                     .code_generation = NO,
                     .tlbc_generation = NO},
     .thread = {.size = 360,
                .prev = 0,
                .next = 8,
                .interpreter = 16,
                .thread_id = 152,
                .native_thread_id = 160,
                .frame = 56,
                .datastack_chunk = 296,
                .datastack_top = 304,
                .status = NO,
                .exc_info = 120,
                .exc_state = 320,
                .current_exception = 96,
                .holds_gil = NO,
                .gil_requested = NO},
     .cframe = {.size = 24, .current_frame = 8, .previous = 16},
     .frame = {.size = 72,
               .previous = 48,
               .code = 32,
               .instruction = 56,
               .owner = 69,
               .is_entry = 68,
               .stack_top = 64,
               .tlbc_index = NO,
               .code_mask = UINT64_MAX},
     .exception = {.value = 0, .previous = 8},
     .code = {.size = 184,
              .type = 8,
              .filename = 112,
              .name = 120,
              .qualname = 128,
              .linetable = 136,
              .first_line = 72,
              .bytecode = 184,
              .tlbc = NO},
     CHUNK,
     GIL,
     UNICODE(48, 72),
     BYTES,
     OBJECT(872)},
    {.version = 0x030c0000,
     .instruction_kind = MAREY__REMOTE_INSTRUCTION_POINTER,
     .line_format = MAREY__REMOTE_LINES_LOCATIONS,
     .runtime = {.interpreters_head = 40, .tstate_current = NO, .gil = NO},
     .interpreter = {.next = 0,
                     .id = 8,
                     .threads_head = 72,
                     .modules = 944,
                     .gil = 384,
                     .gc_collecting = 312,
                     .code_generation = NO,
                     .tlbc_generation = NO},
     .thread = {.size = 288,
                .prev = 0,
                .next = 8,
                .interpreter = 16,
                .thread_id = 136,
                .native_thread_id = 144,
                .frame = 56,
                .datastack_chunk = 232,
                .datastack_top = 240,
                .status = 24,
                .exc_info = 104,
                .exc_state = 256,
                .current_exception = 96,
                .holds_gil = NO,
                .gil_requested = NO},
     .cframe = {.size = 16, .current_frame = 0, .previous = 8},
     .frame = {.size = 72,
               .previous = 8,
               .code = 0,
               .instruction = 56,
               .owner = 70,
               .is_entry = NO,
               .stack_top = 64,
               .tlbc_index = NO,
               .code_mask = UINT64_MAX},
     .exception = {.value = 0, .previous = 8},
     .code = {.size = 192,
              .type = 8,
              .filename = 112,
              .name = 120,
              .qualname = 128,
              .linetable = 136,
              .first_line = 68,
              .bytecode = 192,
              .tlbc = NO},
     CHUNK,
     GIL,
     UNICODE(40, 56),
     BYTES,
     OBJECT(880)},
};

const struct marey__remote_layout *marey__remote_layout_fixed(uint32_t version)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(layouts); i++)
        if (layouts[i].version >> 16 == version >> 16)
            return &layouts[i];
    return NULL;
}
