/*
 * native.h: what the files of the extension `_native` share.
 *
 * The extension converts Python's arguments, calls libmarey and raises. Everything that is Python's and lives longer
 * than a call is in the module's state, so each interpreter has its own; libmarey's state is the process's.
 *
 *     native_module.c    the module, its state, exceptions
 *     native_names.c     names, colours, payloads and places: from Python objects to what libmarey takes
 *     native_range.c     range(): the Range objects behind `with`
 *     native_async.c     `async with`
 *     native_wrapper.c   Range objects as decorators of plain functions
 *     native_events.c    push, pop, mark, counter; ranges while nesting is checked
 *     native_nvtx.c      NVTXRangeWrapper; ranges by handle, for compiled code
 *     native_cuda.c      the stream that torch works on; waiting for the GPU, by torch where it uses one
 *     native_stopwatch.c Stopwatch
 *     native_measured.c  `with sw("forward"):`, and measurements as decorators
 *     native_iteration.c iterations, epochs
 *     native_phases.c    phases, and the stack of them
 *     native_communication.c  what a range communicates
 *     native_dump.c      TensorDumper
 *     native_dump_image.c  options of images
 *     native_dump_put.c  what marey/_dumper.py asks of <marey/dump.h>
 *     native_dump_tensor.c  tensors of any library: from Python objects to what libmarey takes
 *     native_gpu.c       tracing of GPU work
 *     native_torch.c     operators of PyTorch; with torch_layout.c, torch_observer.c (torch_abi.h)
 *     native_memory.c    Python's allocators, while memory is measured
 *     native_signature.c formatters, and signatures without a profile; with calls_sign*.c (calls_sign.h)
 *     native_switch.c    start, stop and what is asked about the recording
 *
 * All of it runs under the GIL; the module says so to free-threaded interpreters. marey/_native.pyi has the signatures;
 * what has no text in its table of methods is called by the package only.
 */
#ifndef MAREY_PYTHON_NATIVE_H
#define MAREY_PYTHON_NATIVE_H

#include "ext.h"

#include <marey/image.h>
#include <marey/range.h>
#include <marey/switchboard.h>
#include <marey/tensor.h>

/* How many names the dictionaries keep, and how long a name they may keep: past it, time is paid and not memory. */
enum { NATIVE_MAX_NAMES = 1 << 16, NATIVE_MAX_LENGTH = 4096 };

/* Direct-mapped caches over the dictionaries of names: a literal is the same object each time it is executed. */
enum { NATIVE_SLOTS = 256 };
struct native_slot {
    PyObject *key;   /* owned; an exact str; NULL: free */
    PyObject *range; /* owned; NULL in the cache of ids */
    marey_id id;
};
enum { NATIVE_RANGE_SLOTS, NATIVE_ID_SLOTS, NATIVE_MEASURED_SLOTS, NATIVE_N_CACHES };

/* Names of attributes that each tensor is asked for. */
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
    PyObject *package; /* the module marey._dumper, once it was needed */
    int is_simple; /* nothing was said that a plain tensor would have to be asked about: native_dump_add() */
    PyObject *torch_tensor; /* torch.Tensor, torch.nn.Parameter and torch.strided, once torch was seen */
    PyObject *torch_parameter;
    PyObject *torch_strided;
    PyObject *names[NATIVE_N_TENSOR_NAMES];
    PyObject *dtypes; /* dict: torch.dtype, or the name of a type -> number of enum marey_dtype */
};

/* The phases' part of the state: native_phases.c. */
struct native_phases {
    PyObject *vocabulary; /* dict: name -> (Range, text of an annotation); NULL before marey/_phases.py */
    PyObject *make;       /* makes what is in it */
    PyObject *now;        /* the current phase: str or bytes; NULL: none */
    PyObject *annotate; /* makes the annotation of a phase; NULL: none is wanted */
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

/* Types with one instance. */
enum native_single_type {
    NATIVE_NVTX, /* programs ask for it in front of each push */
    NATIVE_STOPWATCH,
    NATIVE_DUMPER,
    NATIVE_ACCVLAB, /* that of marey.accvlab: the same dumper, with another default layout */
    NATIVE_N_SINGLES
};

struct native_state {
    PyObject *error;       /* marey.MareyError */
    PyObject *range_error; /* marey.RangeError */
    PyObject *state_error; /* marey.StateError */
    PyTypeObject *types[NATIVE_N_TYPES], *single_types[NATIVE_N_SINGLES];
    PyObject *singles[NATIVE_N_SINGLES];
    PyObject *measured;   /* dict: name -> Measurement */
    int strict;           /* misuse of the stopwatch raises */
    int told_of_print;    /* a report could not be printed, and that was reported */
    int warned_of_range;  /* of a range() that is a statement */
    PyObject *ready;      /* an awaitable that is done */
    PyObject *handles;    /* a ContextVar: the open async ranges of a task, see native_async.c */
    PyObject *ranges;     /* dict: key of a site -> Range */
    PyObject *ids;        /* dict: name -> id, for push, mark and counter */
    unsigned n_own_types; /* Range objects with a type of their own so far */
    PyObject *formatters; /* of marey.profiler.register, see native_signature.c */
    struct native_dump dump;
    struct native_phases phases;
    struct native_slot slots[NATIVE_N_CACHES][NATIVE_SLOTS];
};

/* What range() returns. Never changes once made, so threads and tasks share it freely. */
struct native_range {
    PyObject ob_base;
    marey_id id;
    unsigned color;
    struct marey_payload payload; /* type 0: none; text is owned by payload_owner */
    PyObject *payload_owner;
    PyObject *name;     /* as it was given: str or bytes */
    PyObject *category; /* str or None */
    PyObject *domain;   /* str or None */
};

/* The state, from the module, or from an instance of one of its types. */
static inline struct native_state *native_state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

/* A new instance; NULL and an exception otherwise. */
static inline void *native_new(const struct native_state *state, enum native_type type)
{
    return state->types[type]->tp_alloc(state->types[type], 0);
}

/* A function that takes arguments by place and by name: its head, and what a table of methods has for it. */
typedef PyObject *native_fastcall(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                  PyObject *kwnames);
#define NATIVE_METHOD(name)                                                                        \
    static PyObject *name(__attribute__((unused)) PyObject *self, PyObject *const *args,           \
                          Py_ssize_t nargs, PyObject *kwnames)
#define NATIVE_FASTCALL(function)                                                                  \
    (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS

/* The instance of a type with one. */
struct native_single {
    PyObject ob_base;
    vectorcallfunc vectorcall;  /* NULL: it is not called */
    struct native_state *state; /* the module's, which the type keeps alive */
    native_fastcall *enable; /* Type() gives the instance, Type(arguments) calls this with them as well */
};
static inline struct native_state *native_single_state(PyObject *self)
{
    return ((struct native_single *)self)->state;
}
/* tp_new; __reduce__: copied or sent to another process, it is the one instance there. */
PyObject *native_single_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);
PyObject *native_single_reduce(PyObject *self, PyObject *unused);
int native_single_traverse(PyObject *self, visitproc visit, void *arg);
/* Make the type, derived from `base` (NULL: from none), and its instance. -1 and an exception otherwise. */
int native_single_make(PyObject *module, enum native_single_type number, PyType_Spec *spec,
                       PyTypeObject *base, native_fastcall *enable, vectorcallfunc call);

/* Make NVTXRangeWrapper, Stopwatch, both TensorDumpers and their instances. -1 and an exception otherwise. */
int native_nvtx_make(PyObject *module);
int native_stopwatch_make(PyObject *module);
int native_dump_make(PyObject *module);

/* A module that was imported: a new reference, or NULL with or without an exception. In native_cuda.c. */
PyObject *native_imported(const char *module);
/* Let libmarey ask for torch's streams, and wait for the GPU by torch. */
void native_cuda_make(void);
/*
 * Around a call of libmarey that may wait for the GPU in its midst: meanwhile the wait is torch's, where torch uses the
 * GPU. What torch raises stays set: look for it behind native_wait_end(), which takes what begin gave.
 */
enum native_wait {
    NATIVE_WAIT_IS_NOT_OURS = 0,
    NATIVE_WAIT_IS_OURS,
    NATIVE_WAIT_IS_DONE,
    NATIVE_WAIT_GOES_ON, /* a torch whose synchronize() has ranges in it comes back here: those do not wait */
};
enum native_wait native_wait_begin(void);
void native_wait_end(enum native_wait before);
/* Between the two: wait now, so that the call itself does not. -1 and an exception when torch raises one. */
int native_wait_first(void);

/* What sw(given) gives: a new reference to the Measurement of a name. */
PyObject *native_measured(struct native_state *state, PyObject *given);

/* A call of the stopwatch on one measurement, by the enable bits `on`. None, or NULL and an exception when strict. */
typedef marey_status native_stopwatch_call(marey_id id);
PyObject *native_stopwatch_call_on(const struct native_state *state, uint32_t on,
                                   native_stopwatch_call *call, marey_id id);
/* What its status means: None, or NULL and an exception when strict. */
PyObject *native_stopwatch_end(const struct native_state *state, marey_status status);

/*
 * End an iteration and print the stopwatch's report when it is due. 1 when it counts, 0 when another driver does the
 * counting, -1 and an exception for a measurement that still runs when strict, or for what ends a program.
 */
int native_stopwatch_finish(struct native_state *state, const char *driver, double samples);
/* How many samples: 0 for NULL and None. -1 and an exception otherwise. */
int native_samples(PyObject *value, double *samples);

/*
 * A function that is measured begins: 1 when it is measured from here, 0 when not (off, or it runs already), -1 and an
 * exception. Finish takes the function's result, NULL with its exception too, and gives it back or an exception.
 */
int native_measured_begin(const struct native_range *range, uint32_t on);
PyObject *native_measured_finish(const struct native_range *range, PyObject *result);

/* The line of the program that called a method of the dumper on this thread; `file` is lent, NULL: not known. */
extern _Thread_local struct native_place native_dump_place;

int native_dump_traverse(struct native_dump *dump, visitproc visit, void *arg);
void native_dump_clear(struct native_dump *dump);

/* No phase goes on. */
void native_phases_forget(struct native_phases *phases);
int native_phases_traverse(struct native_phases *phases, visitproc visit, void *arg);
void native_phases_clear(struct native_phases *phases);

/* A tensor that Python holds, as libmarey takes it. What keeps its memory there is released by native_tensor_fini(). */
struct native_tensor {
    struct marey_tensor tensor; /* its sizes and strides are the arrays below */
    int64_t sizes[MAREY_MAX_RANK], strides[MAREY_MAX_RANK];
    PyObject *owner; /* a capsule or a converted tensor; NULL: the object itself */
    Py_buffer view;  /* obj NULL: none */
};
/*
 * 1 and `out` for a tensor of torch, an array of numpy, JAX or CuPy, or whatever has __dlpack__, a buffer,
 * __array_interface__ or __cuda_array_interface__; 0 for something else; -1 and an exception.
 */
/* The same for a tensor of torch whose memory holds its numbers as they are; 0 for all others. */
int native_tensor_init_plain(struct native_state *state, PyObject *object, struct native_tensor *out);
/* Make the names. -1 and an exception otherwise. */
int native_tensor_make(struct native_dump *dump);
int native_tensor_init(struct native_state *state, PyObject *object, struct native_tensor *out);
void native_tensor_fini(struct native_tensor *tensor);

/*
 * The short way of add_tensor_data(path, data, dump_type) for a plain tensor of torch. NotImplemented, a new reference, for
 * what has to go the long way through marey/_dumper.py.
 */
PyObject *native_dump_add(struct native_state *state, PyObject *const *args, Py_ssize_t nargs);

/* Options of images, of a dict: as marey_image_options names them, words in place of numbers. */
struct native_image {
    struct marey_image_options options;
    struct marey_box *boxes;
    struct marey_point *points;
    struct native_tensor mask;
    int has_mask;
};
/* -1 and an exception when one does not fit. */
int native_image_init(struct native_state *state, PyObject *options, struct native_image *out);
void native_image_fini(struct native_image *image);

/* The methods of each file, put together by native_module.c. */
extern PyMethodDef native_dump_functions[], native_range_functions[], native_event_functions[],
    native_switch_functions[], native_async_functions[], native_gpu_functions[],
    native_torch_functions[], native_handle_functions[], native_iteration_functions[],
    native_phase_functions[], native_communication_functions[], native_signature_functions[];

/* What belongs to the type Profiler. -1 and an exception otherwise. In calls_profile.c. */
int calls_make(PyObject *module);
/* Begin the profile that the recording's options ask for, if they do; end it before the recording stops. With the GIL. */
void calls_watch(void);
void calls_unwatch(void);

/* Stand in front of Python's allocators, for good, if memory is measured. With the GIL. In native_memory.c. */
void native_memory_watch(void);

/*
 * Sort a fastcall's arguments into `values` by `names` (n of them, NULL-terminated); what is not given stays NULL.
 * The first `required` must be there. -1 and a TypeError otherwise.
 */
int native_arguments(const char *function, const char *const *names, Py_ssize_t required,
                     PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **values);
/* The same of a NATIVE_METHOD, with the names. */
#define NATIVE_ARGUMENTS(function, required, values, ...)                                          \
    (__extension__({                                                                               \
        static const char *const names_[] = {__VA_ARGS__, NULL};                                   \
        native_arguments(function, names_, required, args, nargs, kwnames, values);                \
    }))

/* Where a site stands. `file` is owned (bytes in the file system's encoding) or NULL. */
struct native_place {
    PyObject *file;
    unsigned line;
};
void native_place_of_caller(struct native_place *place);
void native_place_of_function(struct native_place *place, PyObject *function);

/* `name` as an exact str or bytes (new reference); NULL and a TypeError for anything else. */
PyObject *native_name(PyObject *name);

/* Everything a site is known by. References are borrowed; `category` and `domain` are a str, None or NULL. */
struct native_site_key {
    PyObject *name, *category, *domain;
    unsigned color;
};

/* The id of a site. -1 and an exception when an argument does not fit. */
int native_site(const struct native_site_key *key, const struct native_place *place, marey_id *id);

/*
 * Check `category`, `color` and `domain` as they were given (each NULL, None or a value) and put them into `key`; what
 * is not given is None there. -1 and an exception when one does not fit.
 */
int native_site_details(struct native_site_key *key, PyObject *category, PyObject *color,
                        PyObject *domain);

/* What the site is found by in a dictionary: its name when it has nothing else. A new reference. */
PyObject *native_site_dict_key(const struct native_site_key *key);

/* A payload of an int, a float or a text; anything else by str(). `owner` is a new reference that keeps the text. */
int native_payload(PyObject *value, struct marey_payload *out, PyObject **owner);

/*
 * Raise what a status means: ValueError for EINVAL, RangeError for EMISMATCH, StateError for ESTATE, else MareyError.
 * Returns NULL.
 */
PyObject *native_raise(const struct native_state *state, marey_status status);
/* None, or the exception of a status that is not MAREY_OK. */
PyObject *native_result(const struct native_state *state, marey_status status);
/* What a function returns that is one call of libmarey while other threads run. */
#define NATIVE_UNLOCKED(state, call) native_result(state, EXT_STATUS_UNLOCKED(call))
/* A str or bytes; NULL stays NULL, and so does None. -1 and a TypeError otherwise. */
int native_optional_name(PyObject **name);
/* An int from `least` up. -1 and an exception otherwise, a ValueError with `rule` for one that is below. */
int native_count(PyObject *value, long long least, const char *rule, uint64_t *out);
/* A truth value as a bit; 0 for NULL. -1 and an exception otherwise. */
int native_truth(PyObject *value, uint32_t *out);

/* The id of a site through the dictionary; its place, when it is new, is the caller's. -1 and an exception otherwise. */
int native_id_of_site(struct native_state *state, const struct native_site_key *key, marey_id *id);

/* The id of a bare name, through the caches. -1 and an exception when it is not a name. */
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

/* Remember a name in a cache; both references are taken anew. Long names are not worth keeping alive for it. */
void native_slot_fill(struct native_slot *slots, PyObject *key, PyObject *range, marey_id id);

static inline void native_begin_now(const struct native_range *range)
{
    if (MAREY_LIKELY(range->payload.type == 0))
        marey_begin_on(range->id);
    else
        marey_begin_payload(range->id, &range->payload);
}

/*
 * The same while nesting is checked, and the end. An exception that is already on its way (`failing`) is never replaced
 * by ours: libmarey has counted the mismatch. Otherwise -1 and a RangeError when ranges do not nest.
 */
void native_begin_checked(const struct native_range *range);
int native_end_checked(const struct native_range *range, int failing);
/* A recording starts or ends. */
void native_nesting_renew(void);

static inline void native_begin(const struct native_range *range, uint32_t on)
{
    if (MAREY_UNLIKELY(on & MAREY_ON_CHECKED))
        native_begin_checked(range);
    else
        native_begin_now(range);
}

/* -1 and an exception when ranges do not nest, are checked, and no exception is on its way (`failing`). */
static inline int native_end(const struct native_range *range, uint32_t on, int failing)
{
    if (MAREY_UNLIKELY(on & MAREY_ON_CHECKED))
        return native_end_checked(range, failing);
    if (MAREY_UNLIKELY(on))
        marey_end_on(range->id);
    return 0;
}

/* Make the wrapper of `function` when it is decorated with `range`. */
PyObject *native_decorate(struct native_range *range, PyObject *function);
/* tp_call of Range and Measurement: decorate the one argument. */
PyObject *native_decorate_call(PyObject *self, PyObject *args, PyObject *kwargs);

/* `async with`: methods of Range. */
PyObject *native_aenter(PyObject *self, PyObject *unused);
PyObject *native_aexit(PyObject *self, PyObject *const *args, Py_ssize_t nargs);

#endif
