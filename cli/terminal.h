/*
 * A terminal that is drawn on: the alternate screen, keys as they are typed, its size. Plain ANSI, no library.
 *
 * Whatever ends the program puts the terminal back: a return, exit(), a signal that asks it to end, a crash. Only what
 * nobody can catch (SIGKILL) does not.
 */
#ifndef MAREY_CLI_TERMINAL_H
#define MAREY_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether there is one to draw on and to get keys from. */
bool terminal_is_there(void);

/*
 * Take the terminal. Signals are then taken only by terminal_wait: threads that are started later inherit that they are
 * blocked. False where it cannot be had, with errno set.
 */
bool terminal_open(void);
/* Give it back. As often as one likes; at exit by itself. */
void terminal_close(void);

/* Columns and rows now; 80 and 24 where it does not say. */
void terminal_size(uint32_t *columns, uint32_t *rows);

/* Show `text`, lines ended by '\n', from the first row on, and nothing else. What is past the last column or row is cut. */
void terminal_show(const char *text, size_t len);

enum terminal_event {
    TERMINAL_NOTHING = 0,  /* the time is over */
    TERMINAL_RESIZED = -1, /* or taken back after a stop: draw again */
    TERMINAL_ENDED = -2,   /* somebody asks us to end, or nobody is there any more */
};
/* Wait for a key, at most `timeout_ms`: its byte, or an event. Keys of more than one byte are returned as 27. */
int terminal_wait(int timeout_ms);
/* The signal that asked us to end; 0: none. Die by it once everything is put away. */
int terminal_signal(void);

#endif
