/*
 * torch_abi.h: what the extension knows of PyTorch, which runs a callback at the begin and at the end of each operator.
 *
 *     torch_layout.c     where an operator's inputs and the sizes of a tensor lie, learned from operators of known shapes
 *     torch_observer.c   the callbacks: operators as ranges of the recording
 *     native_torch.c     PyTorch's functions, found by their names in the library that the process has; all of it for
 *                        Python; marey/_operators.py makes it comfortable
 *
 * These are C++ interfaces, which PyTorch has kept since 1.13. Nothing is taken for granted but the few declarations
 * below; fields of objects are looked for, through reads that cannot fault, and are used only where known values were
 * found in them.
 */
#ifndef MAREY_PYTHON_TORCH_ABI_H
#define MAREY_PYTHON_TORCH_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of what PyTorch tells of. An operator is everything but what a user marks. */
enum { TORCH_SCOPE_USER = 7, TORCH_N_SCOPES = 10 };

/*
 * Called at the begin of an operator, `record` being at::RecordFunction. It returns a std::unique_ptr, so the place for it
 * comes first and goes back: that is how x86-64 has it.
 */
typedef void **torch_start(void **context, const void *record);
typedef void torch_end(const void *record, void *context);

/* at::RecordFunctionCallback. */
struct torch_callback {
    torch_start *start;
    torch_end *end;
    double probability;
    bool scopes[TORCH_N_SCOPES];
    bool needs_inputs, needs_outputs, needs_ids;
};

struct torch_api {
    uint64_t (*add)(struct torch_callback);      /* for all threads; a number to take it away by */
    uint64_t (*add_here)(struct torch_callback); /* for this thread, and those that work for it */
    void (*remove)(uint64_t);
    const char *(*name)(const void *record);
    size_t (*n_inputs)(const void *record);
    bool (*is_async)(const void *record); /* it may end on another thread */
    const void *undefined;                /* the one tensor that is none */
};
extern struct torch_api torch_api; /* filled once, under the GIL */

/* Put the address of a symbol of a library into `place`. False: it has none of that name. */
bool torch_find(void *library, const char *name, void *place);

/* Where things lie, in words of 8 bytes; 0: not known. */
struct torch_layout {
    uint32_t inputs;   /* of a record: a pointer to its inputs, and how many they are */
    uint32_t sequence; /* of a record: its number in the autograd graph */
    uint32_t sizes; /* of a tensor: how many dimensions, then up to 5 sizes or a pointer to more */
    uint32_t elements; /* of a list: pointers to its first element, behind its last, to where there is room; its type */
    uint32_t tensor_tag; /* kinds of values */
    uint32_t list_tag;
    uint64_t element_type; /* that word of a list of tensors; one of tensors that may be missing has another */
};
extern struct torch_layout torch_layout; /* written under the GIL while nothing is observed */

/* An input: a value and its kind. */
struct torch_value {
    const void *payload;
    uint32_t tag;
};

enum { TORCH_INLINE_DIMENSIONS = 5, TORCH_MAX_DIMENSIONS = 64 };

/*
 * Learn by operators that the caller runs: after 1 those that tell where inputs are, after 2 those that tell what is in
 * them, 0 ends it. With 0 the number in the graph of the one operator that has one comes back, or -1.
 */
int64_t torch_layout_learn(int phase);

/* Observe operators of all threads, with the shapes of their inputs where the layout is known; or no longer. */
void torch_observer_start(bool with_shapes);
void torch_observer_stop(void);

#endif
