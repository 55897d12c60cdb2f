/* How a terminal is told to write, for those presenters that may use colour. */
#ifndef KYMO_PRESENT_STYLE_H
#define KYMO_PRESENT_STYLE_H

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define RED "\033[31m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

#endif
