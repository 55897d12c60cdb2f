/* The registries of exporters and importers as tuples of dicts. */
#include "tools.h"
#include <marey/import.h>

static const char *const contents[] = {
    [MAREY_EXPORT_EVENTS] = "events",
    [MAREY_EXPORT_PATHS] = "paths",
    [MAREY_EXPORT_FUNCTIONS] = "functions",
};

static PyObject *takes(uint32_t bits)
{
    static const char *const names[] = {"filter", "by", "baseline", "window", "startup"};
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < sizeof names / sizeof names[0]; i++) {
        PyObject *name = (bits & 1u << i) != 0 ? PyUnicode_FromString(names[i]) : NULL;
        if ((bits & 1u << i) != 0 && (name == NULL || PyList_Append(list, name) < 0))
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static PyObject *export_format(size_t i)
{
    const struct marey_export_format *const format = marey_export_format_at(i);
    if (format == NULL)
        return NULL;
    return Py_BuildValue("{s:s,s:s,s:s,s:z,s:s,s:z,s:z,s:s,s:N}", "name", format->name,
                         "extensions", format->extensions, "brief", format->brief, "details",
                         format->details, "next", format->next, "missing", format->missing,
                         "leftovers", format->leftovers, "content", contents[format->content],
                         "takes", takes(format->takes));
}

static PyObject *import_format(size_t i)
{
    const struct marey_import_format *const format = marey_import_format_at(i);
    if (format == NULL)
        return NULL;
    return Py_BuildValue("{s:s,s:s,s:s}", "name", format->name, "brief", format->brief,
                         "extensions", format->extensions);
}

static int add_list(PyObject *module, const char *name, PyObject *(*at)(size_t i))
{
    PyObject *list = PyList_New(0), *entry;
    for (size_t i = 0; list != NULL && (entry = at(i)) != NULL; i++) {
        if (PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_DECREF(entry);
    }
    if (PyErr_Occurred())
        Py_CLEAR(list);
    const int status = list != NULL ? PyModule_AddObjectRef(module, name, list) : -1;
    Py_XDECREF(list);
    return status;
}

int tools_add_formats(PyObject *module)
{
    return add_list(module, "export_formats", export_format) < 0
               ? -1
               : add_list(module, "import_formats", import_format);
}
