/*
 * native.h: shared by the files of the extension `_native`.
 *
 * The extension converts arguments, calls libmarey and raises exceptions. Python objects that live longer than a call
 * are in the module's state, one per interpreter; libmarey's state is per process.
 *
 *     native_module.c    the module, its state, exceptions
 *     native_names.c     converts names, colors, payloads and places
 *     native_range.c     range(): the Range objects behind `with`
 *     native_async.c     `async with`
 *     native_wrapper.c   Range objects as decorators of plain functions
 *     native_events.c    push, pop, mark, counter; ranges while nesting is checked
 *     native_nvtx.c      NVTXRangeWrapper; ranges by handle, for compiled code
 *     native_cuda.c      torch's current stream; waiting for the GPU, through torch if it uses one
 *     native_stopwatch.c Stopwatch
 *     native_measured.c  `with sw("forward"):`, and measurements as decorators
 *     native_iteration.c iterations, epochs
 *     native_phases.c    the stack of phases
 *     native_communication.c  communication of a range
 *     native_dump.c      TensorDumper
 *     native_dump_image.c  options of images
 *     native_dump_put.c  functions of <marey/dump.h> for marey/_dumper.py
 *     native_dump_tensor.c  converts tensors of any library
 *     native_gpu.c       GPU tracing
 *     native_torch.c     operators of PyTorch; with torch_layout.c, torch_observer.c (torch_abi.h)
 *     native_memory.c    Python's allocators, while memory is measured
 *     native_signature.c formatters, and signatures without a profile; with calls_sign*.c (calls_sign.h)
 *     native_switch.c    start, stop and queries about the recording
 *
 * Everything holds the GIL; the module declares that to free-threaded interpreters. marey/_native.pyi has the
 * signatures; functions without a docstring are called only by the package.
 */
#ifndef MAREY_PYTHON_NATIVE_H
#define MAREY_PYTHON_NATIVE_H

#include "ext.h"

#include <marey/image.h>
#include <marey/range.h>
#include <marey/switchboard.h>
#include <marey/tensor.h>

/* Limits for the dictionaries of names, in number and length: beyond them, lookups cost time instead of memory. */
enum { NATIVE_MAX_NAMES = 1 << 16, NATIVE_MAX_LENGTH = 4096 };

/* Direct-mapped caches in front of the dictionaries of names: a literal is the same object each time. */
enum { NATIVE_SLOTS = 256 };
struct native_slot {
    PyObject *key;   /* owned; an exact str; NULL: free */
    PyObject *range; /* owned; NULL in the id cache */
    marey_id id;
};
enum { NATIVE_RANGE_SLOTS, NATIVE_ID_SLOTS, NATIVE_MEASURED_SLOTS, NATIVE_N_CACHES };

/* Attributes read from each tensor. */
enum native_tensor_name {
    NATIVE_LAYOUT,
    NATIVE_IS_CPU,
    NATIVE_IS_CUDA,
    NATIVE_IS_NESTED,
    NATIVE_IS_CONJ,
    NATIVE_IS_NEG,
    NATIVE_DTYPE,
    NATIVE_DATA_PTR,
    NATIVE_SHAPE,
    NATIVE_STRIDE,
    NATIVE_GET_DEVICE,
    NATIVE_N_TENSOR_NAMES
};

/* The dumper's part of the state. */
struct native_dump {
    PyObject *package; /* the module marey._dumper, imported on first use */
    int is_simple;     /* no options that require checks of plain tensors: native_dump_add() */
    PyObject *torch_tensor; /* torch.Tensor, torch.nn.Parameter and torch.strided, once torch is imported */
    PyObject *torch_parameter;
    PyObject *torch_strided;
    PyObject *names[NATIVE_N_TENSOR_NAMES];
    PyObject *dtypes; /* dict: torch.dtype, or the name of a type -> number of enum marey_dtype */
};

/* The phases' part of the state: native_phases.c. */
struct native_phases {
    PyObject *vocabulary; /* dict: name -> (Range, text of an annotation); NULL before marey/_phases.py */
    PyObject *make;       /* creates its entries */
    PyObject *now;        /* the current phase: str or bytes; NULL: none */
    PyObject *annotate; /* creates the annotation of a phase; NULL: none */
    struct native_entered *stack;
    size_t depth, room;
};

/* Types of the module. */
enum native_type {
    NATIVE_RANGE,
    NATIVE_WRAPPER,
    NATIVE_READY,
    NATIVE_MEASURED,
    NATIVE_LAZY,
    NATIVE_SIGNER,
    NATIVE_PROFILER,
    NATIVE_N_TYPES
};
extern PyType_Spec native_range_spec, native_wrapper_spec, native_ready_spec, native_measured_spec,
    native_lazy_spec, native_signer_spec, calls_profiler_spec;

/* Types with a single instance. */
enum native_single_type {
    NATIVE_NVTX, /* programs call it before each push */
    NATIVE_STOPWATCH,
    NATIVE_DUMPER,
    NATIVE_ACCVLAB, /* for marey.accvlab: the same dumper with another default layout */
    NATIVE_N_SINGLES
};

struct native_state {
    PyObject *error;       /* marey.MareyError */
    PyObject *range_error; /* marey.RangeError */
    PyObject *state_error; /* marey.StateError */
    PyTypeObject *types[NATIVE_N_TYPES], *single_types[NATIVE_N_SINGLES];
    PyObject *singles[NATIVE_N_SINGLES];
    PyObject *measured;    /* dict: name -> Measurement */
    int strict;            /* misuse of the stopwatch raises */
    int is_print_reported; /* a failure to print a report was reported */
    int warned_of_range;   /* about a range() used as a statement */
    PyObject *ready;       /* an awaitable that is already done */
    PyObject *handles;     /* a ContextVar: open async ranges of a task, see native_async.c */
    PyObject *ranges;      /* dict: key of a site -> Range */
    PyObject *ids;         /* dict: name -> id, for push, mark and counter */
    unsigned n_own_types;  /* Range objects with their own type so far */
    PyObject *formatters;  /* of marey.profiler.register, see native_signature.c */
    struct native_dump dump;
    struct native_phases phases;
    struct native_slot slots[NATIVE_N_CACHES][NATIVE_SLOTS];
};

/* The result of range(). Immutable, so threads and tasks share it freely. */
struct native_range {
    PyObject ob_base;
    marey_id id;
    unsigned color;
    struct marey_payload payload; /* type 0: none; text is owned by payload_owner */
    PyObject *payload_owner;
    PyObject *name;     /* as given: str or bytes */
    PyObject *category; /* str or None */
    PyObject *domain;   /* str or None */
};

/* The module's state, from the module or an instance of its types. */
static inline struct native_state *native_state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

/* A new instance; NULL and an exception on failure. */
static inline void *native_new(const struct native_state *state, enum native_type type)
{
    return state->types[type]->tp_alloc(state->types[type], 0);
}

/* A function with positional and keyword arguments: its declaration, and its entry in a method table. */
typedef PyObject *native_fastcall(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                  PyObject *kwnames);
#define NATIVE_METHOD(name)                                                                        \
    static PyObject *name(__attribute__((unused)) PyObject *self, PyObject *const *args,           \
                          Py_ssize_t nargs, PyObject *kwnames)
#define NATIVE_FASTCALL(function)                                                                  \
    (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS

/* The instance of such a type. */
struct native_single {
    PyObject ob_base;
    vectorcallfunc vectorcall;  /* NULL: not callable */
    struct native_state *state; /* the module's, kept alive by the type */
    native_fastcall *enable; /* Type() returns the instance, Type(arguments) also calls this with them */
};
static inline struct native_state *native_single_state(PyObject *self)
{
    return ((struct native_single *)self)->state;
}
/* tp_new; __reduce__: copying or unpickling gives the single instance. */
PyObject *native_single_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);
PyObject *native_single_reduce(PyObject *self, PyObject *unused);
int native_single_traverse(PyObject *self, visitproc visit, void *arg);
/* Creates the type, derived from `base` (may be NULL), and its instance. -1 and an exception on failure. */
int native_single_make(PyObject *module, enum native_single_type number, PyType_Spec *spec,
                       PyTypeObject *base, native_fastcall *enable, vectorcallfunc call);

/* Create NVTXRangeWrapper, Stopwatch, both TensorDumpers and their instances. -1 and an exception on failure. */
int native_nvtx_make(PyObject *module);
int native_stopwatch_make(PyObject *module);
int native_dump_make(PyObject *module);

/* An already imported module: a new reference, or NULL with or without an exception. In native_cuda.c. */
PyObject *native_imported(const char *module);
/* Registers hooks so that libmarey uses torch's streams, and waits for the GPU through torch. */
void native_cuda_make(void);
/*
 * Around a libmarey call that may wait for the GPU: meanwhile torch waits instead, if it uses the GPU. An exception
 * from torch stays set: check for it after native_wait_end(), which takes the result of begin.
 */
enum native_wait {
    NATIVE_WAIT_IS_NOT_OURS = 0,
    NATIVE_WAIT_IS_OURS,
    NATIVE_WAIT_IS_DONE,
    NATIVE_WAIT_GOES_ON, /* for a torch whose synchronize() contains ranges: those do not wait */
};
enum native_wait native_wait_begin(void);
void native_wait_end(enum native_wait before);
/* Between the two: waits now, so that the call itself does not. -1 and torch's exception on failure. */
int native_wait_first(void);

/* The result of sw(given): a new reference to the Measurement of a name. */
PyObject *native_measured(struct native_state *state, PyObject *given);

/* Calls a stopwatch function for one measurement, with the enable bits `on`. None, or NULL and an exception if strict. */
typedef marey_status native_stopwatch_call(marey_id id);
PyObject *native_stopwatch_call_on(const struct native_state *state, uint32_t on,
                                   native_stopwatch_call *call, marey_id id);
/* Converts its status: None, or NULL and an exception if strict. */
PyObject *native_stopwatch_end(const struct native_state *state, marey_status status);

/*
 * Ends an iteration and prints the stopwatch's report if it is due. Returns 1 if it counts, 0 if another driver counts,
 * -1 and an exception for a measurement that is still running if strict, or for an exception that ends the program.
 */
int native_stopwatch_finish(struct native_state *state, const char *driver, double samples);
/* The number of samples: 0 for NULL and None. -1 and an exception on failure. */
int native_samples(PyObject *value, double *samples);

/*
 * A measured function begins: 1 if it is now measured, 0 if not (off, or already running), -1 and an exception. Finish
 * takes the function's result, or NULL with an exception, and returns it or an exception.
 */
int native_measured_begin(const struct native_range *range, uint32_t on);
PyObject *native_measured_finish(const struct native_range *range, PyObject *result);

/* The program's line that called a method of the dumper on this thread; `file` is borrowed, NULL: unknown. */
extern _Thread_local struct native_place native_dump_place;

int native_dump_traverse(struct native_dump *dump, visitproc visit, void *arg);
void native_dump_clear(struct native_dump *dump);

/* Ends all phases. */
void native_phases_forget(struct native_phases *phases);
int native_phases_traverse(struct native_phases *phases, visitproc visit, void *arg);
void native_phases_clear(struct native_phases *phases);

/* A Python tensor in libmarey's format. native_tensor_fini() releases what keeps its memory alive. */
struct native_tensor {
    struct marey_tensor tensor; /* sizes and strides are the arrays below */
    int64_t sizes[MAREY_MAX_RANK], strides[MAREY_MAX_RANK];
    PyObject *owner; /* a capsule or a converted tensor; NULL: the object itself */
    Py_buffer view;  /* obj NULL: none */
};
/*
 * Returns 1 and `out` for a torch tensor, an array of numpy, JAX or CuPy, or an object with __dlpack__, a buffer,
 * __array_interface__ or __cuda_array_interface__; 0 for other objects; -1 and an exception.
 */
/* The same for a torch tensor whose memory contains its values directly; 0 for all others. */
int native_tensor_init_plain(struct native_state *state, PyObject *object, struct native_tensor *out);
/* Creates the names. -1 and an exception on failure. */
int native_tensor_make(struct native_dump *dump);
int native_tensor_init(struct native_state *state, PyObject *object, struct native_tensor *out);
void native_tensor_fini(struct native_tensor *tensor);

/*
 * The fast path of add_tensor_data(path, data, dump_type) for a plain torch tensor. Returns NotImplemented, a new
 * reference, if the call must go through marey/_dumper.py.
 */
PyObject *native_dump_add(struct native_state *state, PyObject *const *args, Py_ssize_t nargs);

/* Image options from a dict: the fields of marey_image_options, with words for enum values. */
struct native_image {
    struct marey_image_options options;
    struct marey_box *boxes;
    struct marey_point *points;
    struct native_tensor mask;
    int has_mask;
};
/* -1 and an exception for an invalid one. */
int native_image_init(struct native_state *state, PyObject *options, struct native_image *out);
void native_image_fini(struct native_image *image);

/* The methods of each file, combined by native_module.c. */
extern PyMethodDef native_dump_functions[], native_range_functions[], native_event_functions[],
    native_switch_functions[], native_async_functions[], native_gpu_functions[],
    native_torch_functions[], native_handle_functions[], native_iteration_functions[],
    native_phase_functions[], native_communication_functions[], native_signature_functions[];

/* Creates the type Profiler. -1 and an exception on failure. In calls_profile.c. */
int calls_make(PyObject *module);
/* Starts the profile that the recording's options request, if any; ends it before the recording stops. Needs the GIL. */
void calls_watch(void);
void calls_unwatch(void);

/* Hooks Python's allocators, permanently, if memory is measured. Needs the GIL. In native_memory.c. */
void native_memory_watch(void);

/*
 * Sorts fastcall arguments into `values` by `names` (n of them, NULL-terminated); missing ones stay NULL. The first
 * `required` must be given. -1 and TypeError on failure.
 */
int native_arguments(const char *function, const char *const *names, Py_ssize_t required,
                     PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **values);
/* The same for a NATIVE_METHOD, with the names as arguments. */
#define NATIVE_ARGUMENTS(function, required, values, ...)                                          \
    (__extension__({                                                                               \
        static const char *const names_[] = {__VA_ARGS__, NULL};                                   \
        native_arguments(function, names_, required, args, nargs, kwnames, values);                \
    }))

/* The place of a site. `file` is owned (bytes in the file system encoding) or NULL. */
struct native_place {
    PyObject *file;
    unsigned line;
};
void native_place_of_caller(struct native_place *place);
void native_place_of_function(struct native_place *place, PyObject *function);

/* `name` as an exact str or bytes (new reference); NULL and TypeError for other types. */
PyObject *native_name(PyObject *name);

/* Everything that identifies a site. References are borrowed; `category` and `domain` are str, None or NULL. */
struct native_site_key {
    PyObject *name, *category, *domain;
    unsigned color;
};

/* The id of a site. -1 and an exception for an invalid argument. */
int native_site(const struct native_site_key *key, const struct native_place *place, marey_id *id);

/*
 * Checks the given `category`, `color` and `domain` (each NULL, None or a value) and stores them in `key`; missing ones
 * become None. -1 and an exception for an invalid one.
 */
int native_site_details(struct native_site_key *key, PyObject *category, PyObject *color,
                        PyObject *domain);

/* The dictionary key of a site: its name if it has nothing else. A new reference. */
PyObject *native_site_dict_key(const struct native_site_key *key);

/* A payload from an int, a float or a text; other types by str(). `owner` is a new reference that keeps the text. */
int native_payload(PyObject *value, struct marey_payload *out, PyObject **owner);

/*
 * Raises the exception for a status: ValueError for EINVAL, RangeError for EMISMATCH, StateError for ESTATE, else
 * MareyError. Returns NULL.
 */
PyObject *native_raise(const struct native_state *state, marey_status status);
/* None, or raises the exception for a failure. */
PyObject *native_result(const struct native_state *state, marey_status status);
/* Result of a function that is one libmarey call without the GIL. */
#define NATIVE_UNLOCKED(state, call) native_result(state, EXT_STATUS_UNLOCKED(call))
/* Checks for str or bytes; NULL and None become NULL. -1 and TypeError otherwise. */
int native_optional_name(PyObject **name);
/* An int of at least `least`. -1 and an exception on failure, ValueError with `rule` if it is smaller. */
int native_count(PyObject *value, long long least, const char *rule, uint64_t *out);
/* A truth value as 0 or 1; 0 for NULL. -1 and an exception on failure. */
int native_truth(PyObject *value, uint32_t *out);

/* The id of a site from the dictionary; a new one gets the caller's place. -1 and an exception on failure. */
int native_id_of_site(struct native_state *state, const struct native_site_key *key, marey_id *id);

/* The id of a bare name, through the caches. -1 and an exception if it is not a name. */
int native_id_slow(struct native_state *state, PyObject *given, marey_id *id);

static inline size_t native_slot_of(PyObject *key)
{
    const uintptr_t address = (uintptr_t)key >> 4;
    return (address ^ (address >> 8)) % NATIVE_SLOTS;
}

static inline int native_id(struct native_state *state, PyObject *name, marey_id *id)
{
    const struct native_slot *slot = &state->slots[NATIVE_ID_SLOTS][native_slot_of(name)];
    if (MAREY_LIKELY(slot->key == name)) {
        *id = slot->id;
        return 0;
    }
    return native_id_slow(state, name, id);
}

/* Stores a name in a cache; takes new references. Long names are not cached, to not keep them alive. */
void native_slot_fill(struct native_slot *slots, PyObject *key, PyObject *range, marey_id id);

static inline void native_begin_now(const struct native_range *range)
{
    if (MAREY_LIKELY(range->payload.type == 0))
        marey_begin_on(range->id);
    else
        marey_begin_payload(range->id, &range->payload);
}

/*
 * Begin and end while nesting is checked. A pending exception (`failing`) is never replaced: libmarey has counted the
 * mismatch. Otherwise -1 and RangeError if ranges do not nest.
 */
void native_begin_checked(const struct native_range *range);
int native_end_checked(const struct native_range *range, int failing);
/* Call when a recording starts or ends. */
void native_nesting_renew(void);

static inline void native_begin(const struct native_range *range, uint32_t on)
{
    if (MAREY_UNLIKELY(on & MAREY_ON_CHECKED))
        native_begin_checked(range);
    else
        native_begin_now(range);
}

/* -1 and an exception if checked ranges do not nest, unless an exception is pending (`failing`). */
static inline int native_end(const struct native_range *range, uint32_t on, int failing)
{
    if (MAREY_UNLIKELY(on & MAREY_ON_CHECKED))
        return native_end_checked(range, failing);
    if (MAREY_UNLIKELY(on))
        marey_end_on(range->id);
    return 0;
}

/* Creates the wrapper of `function` when it is decorated with `range`. */
PyObject *native_decorate(struct native_range *range, PyObject *function);
/* tp_call of Range and Measurement: decorates the single argument. */
PyObject *native_decorate_call(PyObject *self, PyObject *args, PyObject *kwargs);

/* `async with`: methods of Range. */
PyObject *native_aenter(PyObject *self, PyObject *unused);
PyObject *native_aexit(PyObject *self, PyObject *const *args, Py_ssize_t nargs);

#endif
