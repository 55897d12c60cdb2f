/*
 * A recording as lines of text, one per process, lane and event, with all recorded data. Uses only
 * public headers, so that a program of the command line's tests can print it as well.
 */
#ifndef MAREY_TEST_EVENT_LIST_H
#define MAREY_TEST_EVENT_LIST_H

#include <stdio.h>

#include <marey/recording.h>

/*
 * Fields are separated by tabs; times are nanoseconds.
 *
 *   process PID RANK WORLD_SIZE COMMAND HOST BACKEND GPU SOURCE
 *   note    PID SENTENCE
 *   thread  PID TID NAME                 stream PID DEVICE STREAM NAME
 *   range   PID TID BEGIN END NAME CATEGORY FILE:LINE DETAILS
 *   work    PID DEVICE STREAM BEGIN END NAME CATEGORY KIND CORRELATION BYTES DETAILS
 *   mark    PID TID NS NAME CATEGORY     counter PID TID NS NAME CATEGORY VALUE
 *   flow    PID TID NS NAME CATEGORY ID END          async_begin, async_end PID TID NS NAME CATEGORY ID
 *   iteration_begin, iteration_end PID TID NS NUMBER
 *
 * DETAILS are, each where it is there, launch=CORRELATION, shape=JSON, args=JSON and
 * comm=WHAT:GROUP:DOMAIN:BYTES_IN:BYTES_OUT:SEQUENCE:SIZE:PEER, separated by blanks.
 */
int list_events(marey_recording *recording, FILE *out);

#endif
