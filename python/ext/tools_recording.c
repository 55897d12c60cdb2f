/*
 * tools_recording.c: one or several recordings, read as one.
 *
 * Opening reads names, clocks and threads; a report reads the events. Both may take long, so other threads run meanwhile;
 * `busy` keeps them off this object.
 */
#include "tools.h"

#include <marey/import.h>
#include <marey/page.h>
#include <marey/samples_report.h>

struct recording {
    PyObject ob_base;
    marey_recording **opened; /* of each the processes that were asked for */
    marey_recording **wholes; /* that they were selected from; NULL where all were */
    size_t n;
    int busy;
};

static const struct tools_state *state_of(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

static int enter(struct recording *self)
{
    if (self->busy) {
        PyErr_SetString(state_of((PyObject *)self)->error,
                        "another thread is reading this recording");
        return -1;
    }
    self->busy = 1;
    return 0;
}

static void recording_close_all(struct recording *self)
{
    for (size_t i = 0; i < self->n; i++)
        marey_recording_close(self->opened[i]);
    for (size_t i = 0; i < self->n; i++)
        marey_recording_close(self->wholes[i]);
    PyMem_Free(self->opened);
    PyMem_Free(self->wholes);
}

static void recording_dealloc(PyObject *object)
{
    struct recording *self = (struct recording *)object;
    PyTypeObject *type = Py_TYPE(object);
    recording_close_all(self);
    type->tp_free(object);
    Py_DECREF(type);
}

static int open_one(struct recording *self, PyObject *path, const char *process)
{
    PyObject *bytes = NULL;
    if (!PyUnicode_FSConverter(path, &bytes))
        return -1;
    marey_recording *opened = NULL;
    PyThreadState *thread = PyEval_SaveThread();
    const struct marey_import_options wants = {.keep_arguments = 1};
    marey_status status = marey_open(PyBytes_AS_STRING(bytes), &wants, &opened);
    PyEval_RestoreThread(thread);
    Py_DECREF(bytes);
    if (status != MAREY_OK) {
        tools_raise(state_of((PyObject *)self), status);
        return -1;
    }
    marey_recording *part = NULL;
    if (process != NULL && (status = marey_recording_select(opened, process, &part)) != MAREY_OK) {
        marey_recording_close(opened);
        tools_raise(state_of((PyObject *)self), status);
        return -1;
    }
    self->wholes[self->n] = part != NULL ? opened : NULL;
    self->opened[self->n++] = part != NULL ? part : opened;
    return 0;
}

/* Recording(paths, process) */
static PyObject *recording_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *paths;
    const char *process;
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) != 0) {
        PyErr_SetString(PyExc_TypeError, "Recording() takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!z:Recording", &PyTuple_Type, &paths, &process))
        return NULL;
    struct recording *self = (struct recording *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    const Py_ssize_t n = PyTuple_GET_SIZE(paths);
    self->opened = PyMem_Calloc(n > 0 ? (size_t)n : 1, sizeof *self->opened);
    self->wholes = PyMem_Calloc(n > 0 ? (size_t)n : 1, sizeof *self->wholes);
    int rc = self->opened != NULL && self->wholes != NULL ? 0 : -1;
    if (rc < 0)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; rc == 0 && i < n; i++)
        rc = open_one(self, PyTuple_GET_ITEM(paths, i), process);
    if (rc < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* The way back from a reading without the GIL: 0, or -1 and an exception. */
static int leave(struct recording *self, PyThreadState *thread, marey_status status)
{
    PyEval_RestoreThread(thread);
    self->busy = 0;
    if (status == MAREY_OK)
        return 0;
    tools_raise(state_of((PyObject *)self), status);
    return -1;
}

static PyObject *recording_warnings(PyObject *object, PyObject *Py_UNUSED(unused))
{
    const struct recording *self = (struct recording *)object;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < self->n; i++) {
        const char *sentence;
        for (size_t k = 0; (sentence = marey_recording_warning(self->opened[i], k)) != NULL; k++) {
            PyObject *text = tools_text(sentence, strlen(sentence));
            const int rc = text != NULL ? PyList_Append(list, text) : -1;
            Py_XDECREF(text);
            if (rc < 0) {
                Py_DECREF(list);
                return NULL;
            }
        }
    }
    return list;
}

/* Names to domains of the energy counters of a process. */
static PyObject *energy_domains(const marey_recording *recording, const struct marey_process *process)
{
    PyObject *domains = PyDict_New();
    for (uint32_t i = 1; domains != NULL && i <= process->n_sites; i++) {
        const struct marey_site_info *site = marey_recording_site(recording, process->index, i);
        if (strcmp(site->category, "energy") != 0)
            continue;
        PyObject *name = tools_text(site->name, site->name_len);
        PyObject *domain = tools_text(site->domain, strlen(site->domain));
        if (name == NULL || domain == NULL || PyDict_SetItem(domains, name, domain) < 0)
            Py_CLEAR(domains);
        Py_XDECREF(name);
        Py_XDECREF(domain);
    }
    return domains;
}

static PyObject *describe_process(const marey_recording *recording,
                                  const struct marey_process *process)
{
    int has_streams = 0;
    for (uint32_t i = 0; i < process->n_lanes && !has_streams; i++)
        has_streams = marey_recording_lane(recording, process->index, i)->kind == MAREY_LANE_GPU;
    return Py_BuildValue(
        "{sLsisisNsNsKsKsLsNsNsN}", "pid", (long long)process->pid, "rank", (int)process->rank,
        "world_size", (int)process->world_size, "host",
        tools_text(process->host, strlen(process->host)), "run_id",
        tools_text(process->run_id, strlen(process->run_id)), "first_ns",
        (unsigned long long)process->first_ns, "last_ns", (unsigned long long)process->last_ns,
        "mono_to_unix_ns", (long long)process->mono_to_unix_ns, "has_events",
        PyBool_FromLong(process->n_words != 0), "has_streams", PyBool_FromLong(has_streams),
        "energy_domains", energy_domains(recording, process));
}

/* The processes in the order of an export, without samplers. */
static PyObject *recording_processes(PyObject *object, PyObject *Py_UNUSED(unused))
{
    const struct recording *self = (struct recording *)object;
    PyObject *list = PyList_New(0);
    for (size_t r = 0; list != NULL && r < self->n; r++) {
        for (size_t i = 0; list != NULL && i < marey_recording_n_logs(self->opened[r]); i++) {
            const struct marey_process *process = marey_recording_process(self->opened[r], i);
            if (process->n_words == 0 && process->sampling[0] != '\0')
                continue;
            PyObject *described = describe_process(self->opened[r], process);
            if (described == NULL || PyList_Append(list, described) < 0)
                Py_CLEAR(list);
            Py_XDECREF(described);
        }
    }
    return list;
}

/* Set what to compare with and keep other threads off it. -1 and an exception when that cannot be had. */
static int take_baseline(PyObject *self, PyObject *baseline, struct marey_export_options *options)
{
    if (baseline == Py_None)
        return 0;
    if (!Py_IS_TYPE(baseline, Py_TYPE(self))) {
        PyErr_SetString(PyExc_TypeError, "the baseline is not a recording");
        return -1;
    }
    struct recording *old = (struct recording *)baseline;
    options->baseline = old->opened;
    options->n_baseline = old->n;
    return baseline == self ? 0 : enter(old);
}

static void leave_baseline(PyObject *self, PyObject *baseline)
{
    if (baseline != Py_None && baseline != self)
        ((struct recording *)baseline)->busy = 0;
}

static int warn_left_out(uint64_t n, const char *what)
{
    if (n == 0)
        return 0;
    return PyErr_WarnFormat(PyExc_RuntimeWarning, 2, "%s: %llu", what, (unsigned long long)n);
}

/* export(format, fd, filter or None, by or None, baseline or None, calls, samples or None) */
static PyObject *recording_export(PyObject *object, PyObject *args)
{
    struct recording *self = (struct recording *)object;
    const char *format;
    int fd;
    PyObject *baseline, *chosen;
    uint64_t n_too_deep = 0, n_unmatched = 0;
    struct marey_export_options options = {.n_too_deep = &n_too_deep, .n_unmatched = &n_unmatched};
    struct marey_samples_filter samples = {0};
    if (!PyArg_ParseTuple(args, "sizzOpO:export", &format, &fd, &options.filter, &options.by,
                          &baseline, &options.calls, &chosen))
        return NULL;
    if (chosen != Py_None) {
        if (tools_samples_filter(chosen, &samples) < 0)
            return NULL;
        options.samples = &samples;
        options.startup = samples.startup;
    }
    if (take_baseline(object, baseline, &options) < 0)
        return NULL;
    if (enter(self) < 0) {
        leave_baseline(object, baseline);
        return NULL;
    }
    PyThreadState *thread = PyEval_SaveThread();
    const marey_status status = marey_export(self->opened, self->n, format, &options, fd);
    PyEval_RestoreThread(thread);
    self->busy = 0;
    leave_baseline(object, baseline);
    if (status != MAREY_OK)
        return tools_raise(state_of(object), status);
    if (warn_left_out(n_too_deep, "ranges left out, nested too deep") < 0 ||
        warn_left_out(n_unmatched, "async events left out, too many async ranges in flight") < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* page(fd, title or None, max_ranges, settings of "ranges") */
static PyObject *recording_page(PyObject *object, PyObject *args)
{
    struct recording *self = (struct recording *)object;
    struct marey_page_options options = {0};
    unsigned long long max_ranges;
    PyObject *tuple;
    int fd;
    if (!PyArg_ParseTuple(args, "izKO!:page", &fd, &options.title, &max_ranges, &PyTuple_Type, &tuple))
        return NULL;
    options.max_ranges = max_ranges;
    const char **settings = tools_settings(tuple);
    if (settings == NULL || enter(self) < 0) {
        PyMem_Free(settings);
        return NULL;
    }
    options.report.settings = settings;
    PyThreadState *thread = PyEval_SaveThread();
    const marey_status status = marey_page_write(self->opened, self->n, &options, fd);
    const int rc = leave(self, thread, status);
    PyMem_Free(settings);
    return rc == 0 ? Py_NewRef(Py_None) : NULL;
}

/* The recordings of the other one, where there is one; -1 with an exception. It is busy until leave_baseline(). */
static int take_before(PyObject *self, PyObject *before, struct marey_page_calls_options *options)
{
    struct marey_export_options lent = {0};
    if (take_baseline(self, before, &lent) < 0)
        return -1;
    options->before = lent.baseline;
    options->n_before = lent.n_baseline;
    return 0;
}

/* calls_page(fd, title or None, name or None, before or None, name_before or None) */
static PyObject *recording_calls_page(PyObject *object, PyObject *args)
{
    struct recording *self = (struct recording *)object;
    struct marey_page_calls_options options = {0};
    PyObject *before;
    int fd;
    if (!PyArg_ParseTuple(args, "izzOz:calls_page", &fd, &options.title, &options.name, &before,
                          &options.name_before))
        return NULL;
    if (take_before(object, before, &options) < 0)
        return NULL;
    if (enter(self) < 0) {
        leave_baseline(object, before);
        return NULL;
    }
    PyThreadState *thread = PyEval_SaveThread();
    const marey_status status = marey_page_calls(self->opened, self->n, &options, fd);
    PyEval_RestoreThread(thread);
    self->busy = 0;
    leave_baseline(object, before);
    if (status != MAREY_OK)
        return tools_raise(state_of(object), status);
    Py_RETURN_NONE;
}

/* Settings of an analysis out of a tuple of str, NULL after the last; to be freed. The tuple lends them. */
const char **tools_settings(PyObject *tuple)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    const char **settings = PyMem_Calloc((size_t)n + 1, sizeof *settings);
    if (settings == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; settings != NULL && i < n; i++) {
        PyObject *const item = PyTuple_GET_ITEM(tuple, i);
        if (item == Py_None)
            continue;
        settings[i] = PyBytes_Check(item) ? PyBytes_AS_STRING(item) : PyUnicode_AsUTF8(item);
        if (settings[i] == NULL) {
            PyMem_Free(settings);
            return NULL;
        }
    }
    return settings;
}

/* analyze(analysis, settings) */
static PyObject *recording_analyze(PyObject *object, PyObject *args)
{
    struct recording *self = (struct recording *)object;
    const char *analysis;
    PyObject *tuple;
    marey_report *report = NULL;
    if (!PyArg_ParseTuple(args, "sO!:analyze", &analysis, &PyTuple_Type, &tuple))
        return NULL;
    const char **settings = tools_settings(tuple);
    if (settings == NULL || enter(self) < 0) {
        PyMem_Free(settings);
        return NULL;
    }
    const struct marey_report_options options = {.settings = settings};
    PyThreadState *thread = PyEval_SaveThread();
    const marey_status status =
        marey_report_create(analysis, self->opened, self->n, &options, &report);
    const int rc = leave(self, thread, status);
    PyMem_Free(settings);
    return rc == 0 ? tools_report_create(state_of(object), report) : NULL;
}

static PyMethodDef recording_methods[] = {
    {"warnings", recording_warnings, METH_NOARGS,
     "warnings($self, /)\n--\n\nWhat is missing or doubtful."},
    {"processes", recording_processes, METH_NOARGS,
     "processes($self, /)\n--\n\nIdentity and times of each process, as dicts."},
    {"export", recording_export, METH_VARARGS,
     "export($self, format, fd, filter, by, baseline, calls, samples, /)\n--\n\nThe events or "
     "their sums, for another tool."},
    {"page", recording_page, METH_VARARGS,
     "page($self, fd, title, max_ranges, settings, /)\n--\n\nThe report page."},
    {"calls_page", recording_calls_page, METH_VARARGS,
     "calls_page($self, fd, title, name, before, name_before, /)\n--\n\nThe page of calls alone."},
    {"analyze", recording_analyze, METH_VARARGS,
     "analyze($self, analysis, settings, /)\n--\n\nThe report of an analysis."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot recording_slots[] = {
    {Py_tp_new, recording_new},
    {Py_tp_dealloc, recording_dealloc},
    {Py_tp_methods, recording_methods},
    {0, NULL},
};
static PyType_Spec recording_spec = {
    .name = "marey._tools.Recording",
    .basicsize = sizeof(struct recording),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = recording_slots,
};

PyTypeObject *tools_recording_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &recording_spec, NULL);
}
