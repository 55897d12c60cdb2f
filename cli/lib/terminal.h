/*
 * A full-screen terminal: the alternate screen, unbuffered keys, its size. Plain ANSI, no library.
 *
 * The terminal is restored however the program ends: a return, exit(), a terminating signal, a crash; only SIGKILL
 * cannot be caught.
 */
#ifndef MAREY_CLI_TERMINAL_H
#define MAREY_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether there is a terminal for output and keys. */
bool terminal_is_there(void);

/*
 * Takes over the terminal. From then on only terminal_wait receives signals: threads started later inherit the blocked
 * mask. False with errno set on failure.
 */
bool terminal_open(void);
/* Restores it. May be called repeatedly; called automatically at exit. */
void terminal_close(void);

/* The current size; 80 by 24 if unknown. */
void terminal_size(uint32_t *columns, uint32_t *rows);

/* Shows only `text`, newline-terminated lines, from the first row. Truncated at the last column and row. */
void terminal_show(const char *text, size_t len);

enum terminal_event {
    TERMINAL_NOTHING = 0,  /* timeout */
    TERMINAL_RESIZED = -1, /* or continued after a stop: draw again */
    TERMINAL_ENDED = -2,   /* asked to end, or hung up */
};
/* Waits for a key, at most `timeout_ms`. Returns its byte, or an event. Multi-byte keys are returned as 27. */
int terminal_wait(int timeout_ms);
/* The signal that asked us to end; 0: none. Die by it after cleaning up. */
int terminal_signal(void);

#endif
