/* permission.c: what the kernel looks at before one process may read another, and what to type when it says no. */
#ifndef MAREY_PERMISSION_H
#define MAREY_PERMISSION_H

#include <sys/types.h>

#include "base/base_internal.h"

struct marey__permission {
    pid_t pid;
    uid_t uid, own_uid;
    uint64_t capabilities,
        own_capabilities; /* those that the process is permitted; those that we have in force */
    int yama;             /* kernel.yama.ptrace_scope; -1: the kernel has none */
    pid_t tracer;         /* who traces it already, as a debugger does; 0: nobody */
    bool is_filtered;     /* our system calls are, by seccomp */
    bool is_descendant;   /* we started it, or one who did */
    bool is_undumpable, is_other_user_namespace;
};
/* False when there is no such process. */
bool marey__permission_look(pid_t pid, struct marey__permission *out);
/* The sentence for one that was refused, in 512 bytes at most. */
void marey__permission_explain(const struct marey__permission *permission, char *out, size_t size);

#endif
