/*
 * marey/energy.h: energy, power and utilization of GPUs and CPUs during a run (libmarey).
 *
 * A recording with the option energy=1 measures in this process: the thread `marey-energy` reads NVIDIA's NVML and the
 * kernel's RAPL counters and writes ordinary counters of category "energy". Their domain is "<device>|<quantity>":
 *
 *     device    "GPU-<uuid>" as in NVML, "package-0", "package-0-dram"
 *     quantity  power (W), energy (J; only differences count), utilization, sm_active, sm_occupancy, tensor_active,
 *               dram_active (%, means since the value before), sm_clock, memory_clock (MHz), temperature (C),
 *               throttle (bits of NVML's clocks event reasons), memory_used (bytes)
 *
 * One process per node measures, the first to start; if it exits, another process of the recording takes over. Unreadable
 * counters are reported once, in the recording and on stderr, and the program continues. docs/internals/energy.md lists the
 * counters and their sampling intervals.
 */
#ifndef MAREY_ENERGY_H
#define MAREY_ENERGY_H

#include <marey/base.h>

MAREY_BEGIN_C

/*
 * Measure from a process that is not part of the program, as `marey run --energy` does. Its log has the role "energy" and
 * does not count as a process of the recording `path`, an existing directory. `options` has the syntax of MAREY_OPTIONS.
 * Closes any recording this process has open or pending from the environment. Returns immediately; the log appears once
 * this process takes over the measurement. Not from a signal handler; one thread at a time.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_energy_start(const char *path, const char *options);
/* Take a last reading and close the log. Waits at most one second for an unresponsive driver. */
MAREY_API void marey_energy_stop(void);

/* Returns 1 if `options` (syntax of MAREY_OPTIONS) enable energy; 0 also for invalid options. */
MAREY_API int marey_energy_asked(const char *options);

MAREY_END_C
#endif
