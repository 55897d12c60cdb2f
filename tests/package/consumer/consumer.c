/*
 * A project outside the tree: links both libraries as they are installed, records a range and finds it again.
 */
#include <kymo/kymo.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, kymo_last_error());
    return 1;
}

int main(void)
{
    if (strcmp(kymo_version(), KYMO_VERSION) != 0 || kymo_abi() != KYMO_ABI)
        return fail("headers and library are not of one version");
    if (kymo_start(&(struct kymo_options){.path = "consumer.kymo"}) != KYMO_OK)
        return fail("kymo_start");
    {
        KYMO_SCOPE("work");
    }
    kymo_stop();

    kymo_recording *recording = NULL;
    if (kymo_recording_open("consumer.kymo", &recording) != KYMO_OK)
        return fail("kymo_recording_open");
    kymo_recording_close(recording);
    return 0;
}
