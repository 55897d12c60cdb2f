/*
 * native_cuda.c: torch's current stream, for GPU times; and waiting for the GPU on behalf of libmarey.
 *
 * libmarey calls stream_hook() at both ends of a measurement, so it uses two fast torch functions that look up a number
 * each and create no object. If they are missing or raise (no GPU, another module with that name), libmarey decides;
 * its default stream is also torch's.
 *
 * libmarey waits inside a push, a pop or a measurement, through the CUDA runtime it finds. If torch uses the GPU, torch
 * can do better: it knows the current device and whether a graph is being captured. So libmarey calls wait_hook()
 * first. The hook acts only for calls from this extension, which hold the GIL and are marked by native_wait_begin();
 * calls of other threads from C are left to libmarey.
 */
#include "native.h"

#include <marey/cuda.h>

/* ---- torch's stream ---- */

/* Threads of the program may measure from C without the GIL; torch in Python does not know them. */
static int holds_gil(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked() != NULL;
#else
    return Py_IsInitialized() && PyGILState_Check();
#endif
}

PyObject *native_imported(const char *module)
{
    PyObject *name EXT_OWNED = PyUnicode_FromString(module);
    return name != NULL ? PyImport_GetModule(name) : NULL;
}

static int ask_torch(void **stream)
{
    PyObject *torch EXT_OWNED = native_imported("torch._C");
    PyObject *device EXT_OWNED =
        torch != NULL ? PyObject_CallMethod(torch, "_cuda_getDevice", NULL) : NULL;
    PyObject *number EXT_OWNED =
        device != NULL ? PyObject_CallMethod(torch, "_cuda_getCurrentRawStream", "O", device) : NULL;
    if (number != NULL)
        *stream = PyLong_AsVoidPtr(number);
    return number != NULL && !PyErr_Occurred() ? 1 : -1;
}

static int stream_hook(void **stream)
{
    if (!holds_gil())
        return -1;
    EXT_KEEP_ERROR(); /* of a failed block, which is still measured */
    return ask_torch(stream);
}

/* ---- waiting ---- */

/* What wait_hook() does on this thread. */
static _Thread_local enum native_wait waiting;

/* Calls a boolean function of torch.cuda. -1 and an exception on failure. */
static int ask(PyObject *cuda, const char *function)
{
    PyObject *answer EXT_OWNED = PyObject_CallMethod(cuda, function, NULL);
    return answer != NULL ? PyObject_IsTrue(answer) : -1;
}

/* torch.cuda if torch is loaded and uses the GPU: a new reference. NULL without an exception otherwise. */
static PyObject *torch_cuda_in_use(void)
{
    PyObject *cuda = native_imported("torch.cuda");
    if (cuda != NULL && ask(cuda, "is_initialized") <= 0)
        Py_CLEAR(cuda);
    PyErr_Clear(); /* torch is being imported, or it is another module with that name: do not wait */
    return cuda;
}

/* During a graph capture a wait would invalidate it, and its kernels do not run yet. -1 and torch's exception. */
static int wait_by_torch(PyObject *cuda)
{
    const int is_capturing = ask(cuda, "is_current_stream_capturing");
    if (is_capturing != 0)
        return is_capturing < 0 ? -1 : 0;
    PyObject *done EXT_OWNED = PyObject_CallMethod(cuda, "synchronize", NULL);
    return done != NULL ? 0 : -1;
}

/* Waits through torch or libmarey. -1 and torch's exception on failure. */
static int wait_now(void)
{
    int rc = 0;
    waiting = NATIVE_WAIT_GOES_ON;
    PyObject *cuda EXT_OWNED = torch_cuda_in_use();
    if (cuda != NULL)
        rc = wait_by_torch(cuda);
    else
        EXT_UNLOCKED(marey_cuda_sync());
    waiting = NATIVE_WAIT_IS_DONE;
    return rc;
}

static int wait_hook(void)
{
    if (waiting == NATIVE_WAIT_IS_OURS)
        wait_now(); /* an exception is found after the call */
    return waiting == NATIVE_WAIT_IS_DONE ? 1 : -1;
}

enum native_wait native_wait_begin(void)
{
    const enum native_wait before = waiting;
    waiting = before == NATIVE_WAIT_GOES_ON ? NATIVE_WAIT_IS_DONE : NATIVE_WAIT_IS_OURS;
    return before;
}

void native_wait_end(enum native_wait before)
{
    waiting = before == NATIVE_WAIT_GOES_ON ? before : NATIVE_WAIT_IS_NOT_OURS;
}

int native_wait_first(void)
{
    return waiting == NATIVE_WAIT_IS_OURS ? wait_now() : 0;
}

void native_cuda_make(void)
{
    marey_cuda_set_stream_hook(stream_hook);
    marey_cuda_set_sync_hook(wait_hook);
}
