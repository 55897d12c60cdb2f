/* Arrays that grow. */
#include <stdlib.h>

#include "inject.h"

bool inject_array_resize(void *array, size_t n, size_t bytes)
{
    void **const place = array; /* whatever it points to */
    void *const resized = realloc(*place, n * bytes);
    if (resized != NULL)
        *place = resized;
    return resized != NULL;
}
