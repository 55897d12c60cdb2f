/*
 * native_communication.c: the communication of a range, for marey.torch.
 *
 *     with range:
 *         communication(group, "all_reduce", bytes_in, bytes_out, sequence, group_size, peer)
 */
#include <string.h>

#include <marey/communication.h>

#include "native.h"

static const char *const words[] = {
    [MAREY_COLLECTIVE_UNKNOWN] = "unknown",
    [MAREY_COLLECTIVE_ALL_REDUCE] = "all_reduce",
    [MAREY_COLLECTIVE_ALL_GATHER] = "all_gather",
    [MAREY_COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
    [MAREY_COLLECTIVE_ALL_TO_ALL] = "all_to_all",
    [MAREY_COLLECTIVE_BROADCAST] = "broadcast",
    [MAREY_COLLECTIVE_REDUCE] = "reduce",
    [MAREY_COLLECTIVE_GATHER] = "gather",
    [MAREY_COLLECTIVE_SCATTER] = "scatter",
    [MAREY_COLLECTIVE_BARRIER] = "barrier",
    [MAREY_COLLECTIVE_SEND] = "send",
    [MAREY_COLLECTIVE_RECV] = "recv",
    [MAREY_COLLECTIVE_OTHER] = "other",
};

static int what_of(const char *word, enum marey_collective *what)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) {
            *what = (enum marey_collective)i;
            return 0;
        }
    return EXT_FAIL(PyExc_ValueError, "no communication is called '%.200s'", word);
}

/* A negative sequence means unknown. */
static PyObject *communication_tell(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct marey_communication communication;
    const char *word;
    unsigned long long bytes_in, bytes_out;
    long long sequence;
    if (!PyArg_ParseTuple(args, "IsKKLIi:communication", &communication.group, &word, &bytes_in,
                          &bytes_out, &sequence, &communication.group_size, &communication.peer) ||
        what_of(word, &communication.what) < 0)
        return NULL;
    communication.bytes_in = bytes_in;
    communication.bytes_out = bytes_out;
    communication.sequence = sequence < 0 ? UINT64_MAX : (uint64_t)sequence;
    marey_communication_tell(&communication);
    Py_RETURN_NONE;
}

static PyObject *communication_group(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *name, *ranks;
    if (!PyArg_ParseTuple(args, "ss:communication_group", &name, &ranks))
        return NULL;
    return PyLong_FromUnsignedLong(marey_communication_group(name, ranks));
}

PyMethodDef native_communication_functions[] = {
    {"communication", communication_tell, METH_VARARGS, NULL},
    {"communication_group", communication_group, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
