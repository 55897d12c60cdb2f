/* Arrays that grow. */
#include <stdlib.h>
#include <string.h>

#include "inject.h"

bool inject_array_resize(void *array, size_t n, size_t bytes)
{
    void *old;
    memcpy(&old, array, sizeof old); /* whatever it points to */
    void *const resized = realloc(old, n * bytes);
    if (resized != NULL)
        memcpy(array, &resized, sizeof resized);
    return resized != NULL;
}
