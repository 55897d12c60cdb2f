/* Print every event of a recording, or of a trace as if it were one: the lines of tests/unit/event_list.h. */
#include <stdio.h>

#include "event_list.h"
#include <marey/import.h>

int main(int argc, char **argv)
{
    marey_recording *recording = NULL;
    if (argc != 2 || marey_open(argv[1], NULL, &recording) != MAREY_OK) {
        fprintf(stderr, "%s\n", argc == 2 ? marey_last_error() : "list_events TRACE");
        return 2;
    }
    const int is_wrong = list_events(recording, stdout);
    marey_recording_close(recording);
    return is_wrong;
}
