/*
 * torch_abi.h: the parts of PyTorch's ABI that the extension uses. PyTorch runs a callback at the begin and end of each
 * operator.
 *
 *     torch_layout.c     offsets of an operator's inputs and a tensor's sizes, learned from operators of known shapes
 *     torch_observer.c   the callbacks: operators as ranges of the recording
 *     native_torch.c     PyTorch's functions, looked up by name in the loaded library, for Python;
 *                        marey/_operators.py is the public interface
 *
 * These C++ interfaces have been stable since PyTorch 1.13. Only the declarations below are assumed; offsets of fields
 * are searched, with reads that cannot fault, and used only if known values were found there.
 */
#ifndef MAREY_PYTHON_TORCH_ABI_H
#define MAREY_PYTHON_TORCH_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Scopes of PyTorch's events. All but user annotations are operators. */
enum { TORCH_SCOPE_USER = 7, TORCH_N_SCOPES = 10 };

/*
 * Called at the begin of an operator; `record` is at::RecordFunction. It returns a std::unique_ptr, so by the x86-64
 * ABI the address for it is the first argument and the result.
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
    uint64_t (*add)(struct torch_callback);      /* for all threads; returns a handle for removal */
    uint64_t (*add_here)(struct torch_callback); /* for this thread, and threads that work for it */
    void (*remove)(uint64_t);
    const char *(*name)(const void *record);
    size_t (*n_inputs)(const void *record);
    bool (*is_async)(const void *record); /* it may end on another thread */
    const void *undefined;                /* the undefined tensor */
};
extern struct torch_api torch_api; /* filled once, under the GIL */

/* Stores the address of a library's symbol in `place`. False if it is missing. */
bool torch_find(void *library, const char *name, void *place);

/* Offsets in words of 8 bytes; 0: unknown. */
struct torch_layout {
    uint32_t inputs;   /* in a record: a pointer to its inputs, and their number */
    uint32_t sequence; /* in a record: its sequence number in the autograd graph */
    uint32_t sizes; /* in a tensor: the number of dimensions, then up to 5 sizes or a pointer to more */
    uint32_t elements; /* in a list: pointers to its first element, end, and capacity; element type */
    uint32_t tensor_tag; /* tags of values */
    uint32_t list_tag;
    uint64_t element_type; /* that word for a list of tensors; a list of optional tensors has another one */
};
extern struct torch_layout torch_layout; /* written under the GIL while nothing is observed */

/* An input: a value and its tag. */
struct torch_value {
    const void *payload;
    uint32_t tag;
};

enum { TORCH_INLINE_DIMENSIONS = 5, TORCH_MAX_DIMENSIONS = 64 };

/*
 * Learns from operators run by the caller: after phase 1 those that reveal the inputs, after 2 those that reveal their
 * content; 0 ends it and returns the sequence number of the one operator that has one, or -1.
 */
int64_t torch_layout_learn(int phase);

/* Observes operators of all threads, with input shapes if the layout is known; or stops. */
void torch_observer_start(bool with_shapes);
void torch_observer_stop(void);

#endif
