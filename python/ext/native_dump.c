/*
 * native_dump.c: TensorDumper, the dumper of <marey/dump.h>.
 *
 * There is one instance, whose switch is process-wide, in libmarey: a method that was looked up before enable() works
 * after it. While off, a method only checks its arguments. While on, marey/_dumper.py does the work: it walks
 * dictionaries and lists and adds each tensor with the functions of native_dump_put.c.
 */
#include "native.h"

#include <marey/dump.h>

/* A new reference to marey/_dumper.py's `name`; imports the module on first use. */
static PyObject *of_package(struct native_dump *dump, const char *name)
{
    if (dump->package == NULL)
        dump->package = PyImport_ImportModule("marey._dumper");
    return dump->package != NULL ? PyObject_GetAttrString(dump->package, name) : NULL;
}

_Thread_local struct native_place native_dump_place;

/* Calls a function of marey/_dumper.py. What it adds gets our caller's line as its place. */
static PyObject *by_package(PyObject *self, const char *name, PyObject *const *args,
                            Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *function EXT_OWNED = of_package(&native_single_state(self)->dump, name);
    if (function == NULL)
        return NULL;
    struct native_place place;
    native_place_of_caller(&place);
    const struct native_place outer = native_dump_place;
    native_dump_place = place;
    PyObject *result = PyObject_Vectorcall(function, args, (size_t)nargs, kwnames);
    native_dump_place = outer;
    Py_XDECREF(place.file);
    return result;
}

/* The parameters of a method: NULL-terminated names, of which the first `required` must be given. */
struct signature {
    const char *name;
    const char *const *names;
    Py_ssize_t required, max;
};

/* While off, an invalid call is still an error, as it would be while on. */
static PyObject *off(const struct signature *signature, PyObject *const *args, Py_ssize_t nargs,
                     PyObject *kwnames)
{
    enum { MOST = 16 };
    PyObject *values[MOST] = {NULL};
    if (MAREY_UNLIKELY(kwnames != NULL || nargs < signature->required || nargs > signature->max) &&
        native_arguments(signature->name, signature->names, signature->required, args, nargs,
                         kwnames, values) < 0)
        return NULL;
    Py_RETURN_NONE;
}

#define COUNT_OF(array) (Py_ssize_t)(sizeof(array) / sizeof *(array))

/* Calls the function of marey/_dumper.py with the method's name. */
#define METHOD_AS(function, method, n_required, ...)                                                 \
    static PyObject *dumper_##function(PyObject *self, PyObject *const *args, Py_ssize_t nargs,      \
                                       PyObject *kwnames)                                            \
    {                                                                                                \
        static const char *const names[] = {__VA_ARGS__};                                            \
        static const struct signature signature = {#method, names, n_required, COUNT_OF(names) - 1}; \
        if (MAREY_LIKELY(!marey_dump_is_enabled()))                                                  \
            return off(&signature, args, nargs, kwnames);                                            \
        return by_package(self, #method, args, nargs, kwnames);                                      \
    }
#define METHOD(method, n_required, ...) METHOD_AS(method, method, n_required, __VA_ARGS__)

METHOD_AS(add_by_package, add_tensor_data, 2, "path", "data", "dump_type", "dump_type_override",
          "permute_axes", "permute_axes_override", "exclude", "image", "hand_over", NULL)
NATIVE_METHOD(dumper_add_tensor_data)
{
    struct native_state *const state = native_single_state(self);
    if (MAREY_UNLIKELY(marey_dump_is_enabled()) && state->dump.is_simple && kwnames == NULL &&
        (nargs == 2 || nargs == 3)) {
        PyObject *result = native_dump_add(state, args, nargs);
        if (result != Py_NotImplemented)
            return result;
        Py_DECREF(result);
    }
    return dumper_add_by_package(self, args, nargs, kwnames);
}

METHOD(add_grad_data, 2, "path", "data", "dump_type", "dump_type_override", "permute_grad_axes",
       "permute_grad_axes_override", "exclude", "image", NULL)
METHOD(set_gradients, 1, "function_values", NULL)
METHOD(dump, 0, "dump_if_empty", NULL)
METHOD(compare_to_dumped_data, 0, "eps_numerical_data", "num_errors_per_tensor_to_show",
       "allow_missing_data_in_current", "allow_missing_data_in_previous", "as_warning",
       "compare_if_empty", "reference", "allow_dtype", NULL)
METHOD(set_dump_is_compare, 0, "eps_numerical_data", "num_errors_per_tensor_to_show",
       "allow_missing_data_in_current", "allow_missing_data_in_previous", "as_warning", "reference",
       "allow_dtype", NULL)
METHOD(set_dump_type_for_all, 1, "dump_type", "include_tensors", "include_grads", NULL)
METHOD(push_range, 1, "range_name", NULL)
METHOD(pop_range, 0, NULL)
METHOD(set_dump_count, 1, "count", NULL)
METHOD(reset_dump_count, 0, NULL)
METHOD(perform_after_dump_count, 2, "count", "action", NULL)
METHOD(register_custom_converter, 2, "data_type", "converter_func", "subclasses", NULL)
METHOD(enable_ragged_batch_dumping, 0, "as_per_sample", NULL)
METHOD(run_if_enabled, 1, "func", NULL)
METHOD(trigger, 0, "reason", NULL)
METHOD(wait, 0, NULL)

/* Modules get hooks even while off, so that enabling later is enough. */
#define METHOD_ALWAYS(method)                                                                      \
    static PyObject *dumper_##method(PyObject *self, PyObject *const *args, Py_ssize_t nargs,      \
                                     PyObject *kwnames)                                            \
    {                                                                                              \
        return by_package(self, #method, args, nargs, kwnames);                                    \
    }

METHOD_ALWAYS(disable)
METHOD_ALWAYS(dump_module)
METHOD_ALWAYS(dump_optimizer)

/* The default layout is that of the class used to enable it. */
NATIVE_METHOD(dumper_enable)
{
    const char *const name =
        self == native_single_state(self)->singles[NATIVE_ACCVLAB] ? "enable_accvlab" : "enable";
    return by_package(self, name, args, nargs, kwnames);
}

EXT_PROPERTY(dumper_is_enabled, PyBool_FromLong(marey_dump_is_enabled()))
EXT_PROPERTY(dumper_dump_count,
             PyLong_FromUnsignedLongLong(marey_dump_is_enabled() ? marey_dump_count() : 0))
EXT_PROPERTY(dumper_dump_dir, PyUnicode_DecodeFSDefault(marey_dump_dir()))

static PyObject *dumper_counts(PyObject *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    struct marey_dump_counts c = {0};
    marey_dump_counts_get(&c);
    return Py_BuildValue("{sKsKsKsKsKsKsK}", "steps", (unsigned long long)c.n_steps, "tensors",
                         (unsigned long long)c.n_tensors, "bytes", (unsigned long long)c.n_bytes,
                         "dropped", (unsigned long long)c.n_dropped, "only_stats",
                         (unsigned long long)c.n_only_stats, "failed", (unsigned long long)c.n_failed,
                         "waited_ns", (unsigned long long)c.waited_ns);
}

/* ---- TensorDumper.Type ---- */

static int set_type_attribute(PyTypeObject *type, PyObject *value)
{
    const int rc = PyDict_SetItemString(type->tp_dict, "Type", value);
    PyType_Modified(type);
    return rc;
}

/*
 * Importing enum would take longer than the rest of the package, so the class is created on first use. It replaces this
 * object: from then on Type is a plain attribute of the class. The caller holds a reference to self.
 */
static PyObject *lazy_get(PyObject *self, PyObject *Py_UNUSED(instance), PyObject *Py_UNUSED(owner))
{
    struct native_state *const state = PyType_GetModuleState(Py_TYPE(self));
    PyObject *type = of_package(&state->dump, "Type");
    if (type != NULL && set_type_attribute(state->single_types[NATIVE_DUMPER], type) < 0)
        Py_CLEAR(type);
    return type;
}

EXT_TYPE(native_lazy_spec, "marey._native.Lazy", PyObject, Py_TPFLAGS_DEFAULT,
         {Py_tp_descr_get, lazy_get})

/* ---- the class ---- */

static PyMethodDef dumper_methods[] = {
    {"enable", NATIVE_FASTCALL(dumper_enable),
     "enable($self, /, dump_dir=None, *, layout=None, mode='full', policy='block', "
     "memory=0, disk=0,\n"
     "       writers=0, durable=False, first=0, last=0, every=0, steps=None, "
     "flight_steps=0, stats=True,\n"
     "       on_nan=False, on_inf=False, over=None, when=None)\n--\n\n"
     "Enable dumping. Steps go to `dump_dir`, by default into the open recording.\n\n"
     "layout is \"marey\", or \"accvlab\" for the files of ACCV-Lab's TensorDumper. mode: "
     "\"full\", \"stats\" or \"digests\".\n"
     "policy when `memory` bytes are waiting: \"block\", \"drop\" or \"stats\". first, "
     "last, every and steps select steps by\n"
     "number. With flight_steps, only the last so many steps are kept, and published by "
     "trigger(), an uncaught exception, a\n"
     "crash, on_nan, on_inf, over (a magnitude) or when(name, tensor). stats=False omits "
     "statistics from the manifest."},
    {"disable", NATIVE_FASTCALL(dumper_disable),
     "disable($self, /)\n--\n\n"
     "Wait until all dumped data are written, then disable. Drops ranges, converters and "
     "actions."},
    {"reset", NATIVE_FASTCALL(dumper_disable),
     "reset($self, /)\n--\n\n"
     "Disable and drop all settings, like disable()."},
    {"add_tensor_data", NATIVE_FASTCALL(dumper_add_tensor_data),
     "add_tensor_data($self, /, path, data, dump_type=None, dump_type_override=None, "
     "permute_axes=None,\n"
     "                permute_axes_override=None, exclude=None, image=None, "
     "hand_over=False)\n--\n\n"
     "Add data at a path, with their current values. Does nothing while disabled.\n\n"
     "data is a tensor of any library, a dict, list or tuple of them, or a function that "
     "returns one. dump_type is the\n"
     "file format; None: the step's container. Overrides and exclude use keys of dicts in "
     "data. image holds image\n"
     "options. With hand_over, a CPU tensor is not copied and must stay unchanged."},
    {"add_grad_data", NATIVE_FASTCALL(dumper_add_grad_data),
     "add_grad_data($self, /, path, data, dump_type=None, dump_type_override=None, "
     "permute_grad_axes=None,\n"
     "              permute_grad_axes_override=None, exclude=None, image=None)\n--\n\n"
     "Register tensors whose gradients set_gradients() computes."},
    {"set_gradients", NATIVE_FASTCALL(dumper_set_gradients),
     "set_gradients($self, /, function_values)\n--\n\n"
     "Compute the gradients of these scalars, summed, by torch.autograd.grad. The graph is kept."},
    {"dump", NATIVE_FASTCALL(dumper_dump),
     "dump($self, /, dump_if_empty=True)\n--\n\n"
     "End the step: write the added data and increment the count."},
    {"compare_to_dumped_data", NATIVE_FASTCALL(dumper_compare_to_dumped_data),
     "compare_to_dumped_data($self, /, eps_numerical_data=1e-06, "
     "num_errors_per_tensor_to_show=1,\n"
     "                       allow_missing_data_in_current=False, "
     "allow_missing_data_in_previous=False,\n"
     "                       as_warning=False, compare_if_empty=True, reference=None, "
     "allow_dtype=False)\n--\n\n"
     "Compare the added data with the dump of the same count in `reference`, by default "
     "the dump directory; then\n"
     "increment the count.\n\n"
     "Raises ValueError, or warns, with the positions and values that differ. A different "
     "dtype is a difference unless\n"
     "allow_dtype."},
    {"set_dump_is_compare", NATIVE_FASTCALL(dumper_set_dump_is_compare),
     "set_dump_is_compare($self, /, eps_numerical_data=1e-06, num_errors_per_tensor_to_show=1,\n"
     "                    allow_missing_data_in_current=False, "
     "allow_missing_data_in_previous=False,\n"
     "                    as_warning=False, reference=None, allow_dtype=False)\n--\n\n"
     "Make dump() compare from now on."},
    {"set_dump_type_for_all", NATIVE_FASTCALL(dumper_set_dump_type_for_all),
     "set_dump_type_for_all($self, /, dump_type, include_tensors=True, include_grads=True)\n--\n\n"
     "Use this format for all data, added already or later, regardless of the calls; None "
     "cancels it."},
    {"push_range", NATIVE_FASTCALL(dumper_push_range),
     "push_range($self, /, range_name)\n--\n\n"
     "Prefix the following paths with a name, or the result of a function."},
    {"pop_range", NATIVE_FASTCALL(dumper_pop_range),
     "pop_range($self, /)\n--\n\n"
     "Remove the last pushed name."},
    {"set_dump_count", NATIVE_FASTCALL(dumper_set_dump_count),
     "set_dump_count($self, /, count)\n--\n\n"
     "Set the number of the current step."},
    {"reset_dump_count", NATIVE_FASTCALL(dumper_reset_dump_count),
     "reset_dump_count($self, /)\n--\n\nSet it to 0."},
    {"perform_after_dump_count", NATIVE_FASTCALL(dumper_perform_after_dump_count),
     "perform_after_dump_count($self, /, count, action)\n--\n\n"
     "Call `action` whenever the count becomes this."},
    {"register_custom_converter", NATIVE_FASTCALL(dumper_register_custom_converter),
     "register_custom_converter($self, /, data_type, converter_func, subclasses=False)\n--\n\n"
     "Dump converter_func(x) instead of each x of this type."},
    {"enable_ragged_batch_dumping", NATIVE_FASTCALL(dumper_enable_ragged_batch_dumping),
     "enable_ragged_batch_dumping($self, /, as_per_sample=False)\n--\n\n"
     "Dump objects with tensor, sample_sizes, non_uniform_dim and num_batch_dims as a "
     "dict of these,\n"
     "or as a list of samples, each truncated to its size."},
    {"run_if_enabled", NATIVE_FASTCALL(dumper_run_if_enabled),
     "run_if_enabled($self, /, func)\n--\n\n"
     "Call func() if this step will be dumped."},
    {"dump_module", NATIVE_FASTCALL(dumper_dump_module),
     "dump_module($self, /, model, patterns='*', *, inputs=True, outputs=True, "
     "params=False, grads=False,\n"
     "            prefix='', optimizer=None, dump_type=None)\n--\n\n"
     "Add inputs and outputs of modules of a torch model as they run. Returns a "
     "marey.DumpHandle, which removes the\n"
     "hooks."},
    {"dump_optimizer", NATIVE_FASTCALL(dumper_dump_optimizer),
     "dump_optimizer($self, /, optimizer, model=None, patterns='*', *, params=True, "
     "grads=True, state=False,\n"
     "               prefix='optimizer', dump_type=None)\n--\n\n"
     "Add gradients before each step of a torch optimizer, and parameters after it. "
     "Returns a marey.DumpHandle."},
    {"trigger", NATIVE_FASTCALL(dumper_trigger),
     "trigger($self, /, reason='trigger')\n--\n\n"
     "Publish the steps kept by the flight recorder."},
    {"wait", NATIVE_FASTCALL(dumper_wait),
     "wait($self, /)\n--\n\n"
     "Wait until all dumped data are written."},
    {"__reduce__", native_single_reduce, METH_NOARGS, "Pickle as the one instance."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef dumper_getset[] = {
    {"is_enabled", dumper_is_enabled, NULL, "Whether dumping is enabled.", NULL},
    {"dump_count", dumper_dump_count, NULL, "The number of the current step.", NULL},
    {"dump_dir", dumper_dump_dir, NULL, "The output directory; \"\" if not known yet.", NULL},
    {"counts", dumper_counts, NULL, "Counts of written and missing data so far, as a dict.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(dumper_doc,
             "Write tensors to files, step by step, to inspect them and to compare two runs.\n\n"
             "TensorDumper() returns the one instance of this process; with arguments it is "
             "enabled as well. Off by default:\n"
             "then its methods do nothing.");

PyDoc_STRVAR(accvlab_doc,
             "marey.TensorDumper, for programs written for ACCV-Lab's: enable() writes "
             "the layout \"accvlab\" by default.");

EXT_LOCAL_TYPE(dumper_spec, "marey.TensorDumper", struct native_single,
               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE |
                   Py_TPFLAGS_IMMUTABLETYPE,
               {Py_tp_doc, (void *)dumper_doc}, {Py_tp_new, native_single_new},
               {Py_tp_methods, dumper_methods}, {Py_tp_getset, dumper_getset},
               {Py_tp_traverse, native_single_traverse})

/* marey.accvlab.TensorDumper: the same dumper, which writes ACCV-Lab's layout unless enable() sets another one. */
EXT_LOCAL_TYPE(accvlab_spec, "marey.accvlab.TensorDumper", struct native_single,
               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
               {Py_tp_doc, (void *)accvlab_doc}, {Py_tp_traverse, native_single_traverse})

int native_dump_make(PyObject *module)
{
    struct native_state *const state = native_state_of(module);
    PyTypeObject **const type = &state->single_types[NATIVE_DUMPER];
    if (native_single_make(module, NATIVE_DUMPER, &dumper_spec, NULL, dumper_enable, NULL) < 0 ||
        native_single_make(module, NATIVE_ACCVLAB, &accvlab_spec, *type, dumper_enable, NULL) < 0)
        return -1;
    /* A subclass would allow a second instance. */
    (*type)->tp_flags &= ~(unsigned long)Py_TPFLAGS_BASETYPE;
    state->dump.dtypes = PyDict_New();
    PyObject *lazy EXT_OWNED = state->dump.dtypes != NULL ? native_new(state, NATIVE_LAZY) : NULL;
    const int rc = lazy != NULL ? set_type_attribute(*type, lazy) : -1;
    return rc == 0 ? native_tensor_make(&state->dump) : -1;
}

#define OBJECTS(X) X(package) X(torch_tensor) X(torch_parameter) X(torch_strided) X(dtypes)
#define VISIT(name) Py_VISIT(dump->name);
#define CLEAR(name) Py_CLEAR(dump->name);

int native_dump_traverse(struct native_dump *dump, visitproc visit, void *arg)
{
    OBJECTS(VISIT)
    for (size_t i = 0; i < NATIVE_N_TENSOR_NAMES; i++)
        Py_VISIT(dump->names[i]);
    return 0;
}

void native_dump_clear(struct native_dump *dump)
{
    for (size_t i = 0; i < NATIVE_N_TENSOR_NAMES; i++)
        Py_CLEAR(dump->names[i]);
    OBJECTS(CLEAR)
}
