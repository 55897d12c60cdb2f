/*
 * tools_recording.c: one or several recordings, read as one.
 *
 * Opening reads names, clocks and threads; a report reads the events. Both may take long, so they release the GIL;
 * `busy` excludes other threads from this object.
 */
#include "tools/tools.h"

#include <marey/import.h>
#include <marey/page.h>

struct recording {
    PyObject ob_base;
    marey_recording **opened; /* the selected processes of each */
    marey_recording **wholes; /* their sources, after the others; NULL if all were selected */
    size_t n;
    int busy;
};

static void recording_finalize(PyObject *object)
{
    struct recording *self = (struct recording *)object;
    for (size_t i = 0; i < self->n; i++)
        marey_recording_close(self->opened[i]);
    for (size_t i = 0; i < self->n; i++)
        marey_recording_close(self->wholes[i]);
    PyMem_Free(self->opened);
}

static int open_one(struct recording *self, PyObject *path, const char *process)
{
    static const struct marey_import_options wants = {.keep_arguments = 1};
    PyObject *bytes EXT_OWNED = NULL;
    marey_recording *opened = NULL, *part = NULL;
    if (!PyUnicode_FSConverter(path, &bytes))
        return -1;
    marey_status status = EXT_STATUS_UNLOCKED(marey_open(PyBytes_AS_STRING(bytes), &wants, &opened));
    if (status == MAREY_OK && process != NULL)
        status = marey_recording_select(opened, process, &part);
    if (status != MAREY_OK) {
        marey_recording_close(opened);
        tools_raise(tools_state_of((PyObject *)self), status);
        return -1;
    }
    self->wholes[self->n] = part != NULL ? opened : NULL;
    self->opened[self->n++] = part != NULL ? part : opened;
    return 0;
}

/* Recording(paths, process) */
static PyObject *recording_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *paths;
    const char *process;
    if (!PyArg_ParseTuple(args, "O!z:Recording", &PyTuple_Type, &paths, &process))
        return NULL;
    struct recording *self = (struct recording *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    const Py_ssize_t n = PyTuple_GET_SIZE(paths);
    self->opened = PyMem_Calloc(2 * (size_t)n + 1, sizeof *self->opened);
    self->wholes = self->opened + n;
    if (self->opened == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++)
        open_one(self, PyTuple_GET_ITEM(paths, i), process);
    if (PyErr_Occurred())
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int enter(PyObject *self)
{
    return tools_enter(self, &((struct recording *)self)->busy, "recording");
}

/* None, or raises for a failure. */
static PyObject *leave(PyObject *self, marey_status status)
{
    const int rc = tools_leave(self, &((struct recording *)self)->busy, status);
    return rc == 0 ? Py_NewRef(Py_None) : NULL;
}

/* Excludes other threads from this recording and from another one to compare with (None: none), which is lent. */
static int enter_with(PyObject *self, PyObject *other, marey_recording *const **list, size_t *n)
{
    struct recording *const old = (struct recording *)other;
    if (other == Py_None)
        return enter(self);
    if (!Py_IS_TYPE(other, Py_TYPE(self)))
        return EXT_FAIL(PyExc_TypeError, "the baseline is not a recording");
    *list = old->opened;
    *n = old->n;
    if (other != self && enter(other) < 0)
        return -1;
    const int rc = enter(self);
    if (rc < 0 && other != self)
        old->busy = 0;
    return rc;
}

static PyObject *leave_with(PyObject *self, PyObject *other, marey_status status)
{
    if (other != Py_None)
        ((struct recording *)other)->busy = 0;
    return leave(self, status);
}

static PyObject *recording_warnings(PyObject *object, PyObject *Py_UNUSED(unused))
{
    const struct recording *self = (struct recording *)object;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < self->n; i++) {
        const char *sentence;
        for (size_t k = 0;
             list != NULL && (sentence = marey_recording_warning(self->opened[i], k)) != NULL; k++)
            list = ext_append(list, tools_text(sentence, strlen(sentence)));
    }
    return list;
}

/* Names to domains of a process's energy counters. */
static PyObject *energy_domains(const marey_recording *recording, const struct marey_process *process)
{
    PyObject *domains = PyDict_New();
    for (uint32_t i = 1; domains != NULL && i <= process->n_sites; i++) {
        const struct marey_site_info *site = marey_recording_site(recording, process->index, i);
        if (strcmp(site->category, "energy") == 0 &&
            ext_put(domains, tools_text(site->name, site->name_len),
                    tools_text(site->domain, strlen(site->domain))) < 0)
            Py_CLEAR(domains);
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

/* The processes in export order, without samplers. */
static PyObject *recording_processes(PyObject *object, PyObject *Py_UNUSED(unused))
{
    const struct recording *self = (struct recording *)object;
    PyObject *list = PyList_New(0);
    for (size_t r = 0; list != NULL && r < self->n; r++) {
        for (size_t i = 0; list != NULL && i < marey_recording_n_logs(self->opened[r]); i++) {
            const struct marey_process *process = marey_recording_process(self->opened[r], i);
            if (process->n_words != 0 || process->sampling[0] == '\0')
                list = ext_append(list, describe_process(self->opened[r], process));
        }
    }
    return list;
}

static int warn_left_out(uint64_t n, const char *what)
{
    if (n == 0)
        return 0;
    return PyErr_WarnFormat(PyExc_RuntimeWarning, 2, "%s: %llu", what, (unsigned long long)n);
}

/* export(format, fd, filter or None, by or None, baseline or None, calls, settings of "samples" or None) */
static PyObject *recording_export(PyObject *object, PyObject *args)
{
    const struct recording *self = (struct recording *)object;
    const char *format;
    int fd;
    PyObject *baseline, *chosen;
    uint64_t n_too_deep = 0, n_unmatched = 0;
    struct marey_export_options options = {.n_too_deep = &n_too_deep, .n_unmatched = &n_unmatched};
    const char **samples = NULL;
    if (!PyArg_ParseTuple(args, "sizzOpO:export", &format, &fd, &options.filter, &options.by,
                          &baseline, &options.calls, &chosen) ||
        (chosen != Py_None && (samples = tools_settings(chosen)) == NULL))
        return NULL;
    options.samples = samples;
    if (enter_with(object, baseline, &options.baseline, &options.n_baseline) < 0) {
        PyMem_Free(samples);
        return NULL;
    }
    const marey_status status =
        EXT_STATUS_UNLOCKED(marey_export(self->opened, self->n, format, &options, fd));
    PyMem_Free(samples);
    PyObject *done = leave_with(object, baseline, status);
    if (done != NULL &&
        (warn_left_out(n_too_deep, "ranges left out, nested too deep") < 0 ||
         warn_left_out(n_unmatched, "async events left out, too many async ranges in flight") < 0))
        Py_CLEAR(done);
    return done;
}

/* page(fd, title or None, max_ranges, settings of "ranges") */
static PyObject *recording_page(PyObject *object, PyObject *args)
{
    const struct recording *self = (struct recording *)object;
    struct marey_page_options options = {0};
    unsigned long long max_ranges;
    PyObject *tuple;
    int fd;
    if (!PyArg_ParseTuple(args, "izKO!:page", &fd, &options.title, &max_ranges, &PyTuple_Type, &tuple))
        return NULL;
    options.max_ranges = max_ranges;
    const char **settings EXT_FREED = tools_settings(tuple);
    if (settings == NULL || enter(object) < 0)
        return NULL;
    options.report.settings = settings;
    return leave(object, EXT_STATUS_UNLOCKED(marey_page_write(self->opened, self->n, &options, fd)));
}

/* calls_page(fd, title or None, name or None, before or None, name_before or None) */
static PyObject *recording_calls_page(PyObject *object, PyObject *args)
{
    const struct recording *self = (struct recording *)object;
    struct marey_page_calls_options options = {0};
    PyObject *before;
    int fd;
    if (!PyArg_ParseTuple(args, "izzOz:calls_page", &fd, &options.title, &options.name, &before,
                          &options.name_before) ||
        enter_with(object, before, &options.before, &options.n_before) < 0)
        return NULL;
    const marey_status status =
        EXT_STATUS_UNLOCKED(marey_page_calls(self->opened, self->n, &options, fd));
    return leave_with(object, before, status);
}

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
    const struct recording *self = (struct recording *)object;
    const char *analysis;
    PyObject *tuple;
    marey_report *report = NULL;
    if (!PyArg_ParseTuple(args, "sO!:analyze", &analysis, &PyTuple_Type, &tuple))
        return NULL;
    const char **settings EXT_FREED = tools_settings(tuple);
    if (settings == NULL || enter(object) < 0)
        return NULL;
    const struct marey_report_options options = {.settings = settings};
    PyObject *done EXT_OWNED =
        leave(object, EXT_STATUS_UNLOCKED(
                          marey_report_create(analysis, self->opened, self->n, &options, &report)));
    return done != NULL ? tools_report_create(tools_state_of(object), report) : NULL;
}

static PyMethodDef recording_methods[] = {
    {"warnings", recording_warnings, METH_NOARGS, NULL},
    {"processes", recording_processes, METH_NOARGS, NULL},
    {"export", recording_export, METH_VARARGS, NULL},
    {"page", recording_page, METH_VARARGS, NULL},
    {"calls_page", recording_calls_page, METH_VARARGS, NULL},
    {"analyze", recording_analyze, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
EXT_TYPE(tools_recording_spec, "marey._tools.Recording", struct recording, Py_TPFLAGS_DEFAULT,
         {Py_tp_new, recording_new}, {Py_tp_finalize, recording_finalize},
         {Py_tp_methods, recording_methods})
