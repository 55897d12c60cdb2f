/* Run each file named on the command line through the target once: the corpus as an ordinary test, by any compiler. */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        return 0;
    const long size = ftell(file);
    rewind(file);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    const int ok = data != NULL && fread(data, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    if (ok)
        LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return ok;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++)
        n += replay(argv[i]);
    printf("%d of %d files replayed\n", n, argc - 1);
    return argc > 1 && n == argc - 1 ? 0 : 1;
}
