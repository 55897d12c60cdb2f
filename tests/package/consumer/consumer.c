/*
 * A project outside the tree: links both installed libraries, records a range and reads it.
 */
#include <marey/marey.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, marey_last_error());
    return 1;
}

int main(void)
{
    if (strcmp(marey_version(), MAREY_VERSION) != 0 || marey_abi() != MAREY_ABI)
        return fail("headers and library are not of one version");
    if (marey_start(&(struct marey_options){.path = "consumer.marey"}) != MAREY_OK)
        return fail("marey_start");
    {
        MAREY_SCOPE("work");
    }
    marey_stop();

    marey_recording *recording = NULL;
    if (marey_recording_open("consumer.marey", &recording) != MAREY_OK)
        return fail("marey_recording_open");
    marey_recording_close(recording);
    return 0;
}
