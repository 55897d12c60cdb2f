/* What presenters of calls share. */
#ifndef KYMO_PRESENT_CALLS_OUT_H
#define KYMO_PRESENT_CALLS_OUT_H

#include "base/base_internal.h"

/* A function as pstats writes it: "dot.py:7(dot)", "{built-in method builtins.len}". In calls_out.c. */
void kymo__call_place(struct kymo__buf *text, const char *file, uint64_t line, const char *label,
                      size_t len);

#endif
