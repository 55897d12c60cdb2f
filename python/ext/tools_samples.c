/*
 * tools_samples.c: which samples count, for exports.
 */
#include "tools.h"

#include <marey/samples_report.h>

int tools_samples_filter(PyObject *chosen, struct marey_samples_filter *filter)
{
    if (!PyTuple_Check(chosen)) {
        PyErr_SetString(PyExc_TypeError, "the choice of samples is not a tuple");
        return -1;
    }
    return PyArg_ParseTuple(chosen, "zpzzzzzzzp:samples", &filter->mode, &filter->idle,
                            &filter->range, &filter->iterations, &filter->epochs, &filter->phase,
                            &filter->thread, &filter->rank, &filter->process, &filter->startup)
               ? 0
               : -1;
}
