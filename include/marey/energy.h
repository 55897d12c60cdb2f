/*
 * marey/energy.h: energy, power and utilization of GPUs and processors, beside the program (libmarey).
 *
 * A recording that is started with the option energy=1 measures in this process: a thread, `marey-energy`, reads NVIDIA's NVML
 * and the kernel's RAPL counters and writes plain counters of category "energy". Their domain is "<device>|<quantity>":
 *
 *     device    "GPU-<uuid>" as NVML spells it, "package-0", "package-0-dram"
 *     quantity  power (W), energy (J; only differences count), utilization, sm_active, sm_occupancy, tensor_active,
 *               dram_active (%, means since the value before), sm_clock, memory_clock (MHz), temperature (C),
 *               throttle (bits of NVML's clocks event reasons), memory_used (bytes)
 *
 * One process of a node measures, whichever is first; others of the same recording stand by and go on where it ends. What
 * cannot be read is told once, in the recording and on stderr, and the program goes on. docs/internals/energy.md has what
 * is read how often.
 */
#ifndef MAREY_ENERGY_H
#define MAREY_ENERGY_H

#include <marey/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Measure from this process, which is no part of the program: its log says so (role "energy") and counts as no process of
 * the recording `path`, a directory that is there. `options` is text as MAREY_OPTIONS has it. `marey run --energy` does
 * this. Whatever recording this process had open or pending by the environment is given up. Returns at once; the log
 * appears when it is this process's turn. Not from a signal handler, and one thread at a time.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_energy_start(const char *path, const char *options);
/* Read once more, and close the log. Waits a second at most for a driver that does not answer. */
MAREY_API void marey_energy_stop(void);

/* Whether options (text as MAREY_OPTIONS has it) ask for energy; 0 also where they are wrong. */
MAREY_API int marey_energy_asked(const char *options);

#ifdef __cplusplus
}
#endif
#endif
