/*
 * kymo/kymo.h: everything. Programs that are measured link libkymo and use switchboard.h and range.h; programs that
 * read recordings link libkymo-tools as well.
 *
 *     #include <kymo/kymo.h>
 *     int main(void)
 *     {
 *         if (kymo_start(&(struct kymo_options){.path = "run.kymo"}) != KYMO_OK)
 *             fprintf(stderr, "%s\n", kymo_last_error());
 *         for (int step = 0; step < 100; step++) {
 *             KYMO_SCOPE("step");
 *             train();
 *         }
 *         kymo_stop();
 *     }
 */
#ifndef KYMO_KYMO_H
#define KYMO_KYMO_H

#include <kymo/base.h>
#include <kymo/breakdown.h>
#include <kymo/calls.h>
#include <kymo/calls_report.h>
#include <kymo/communication.h>
#include <kymo/compare.h>
#include <kymo/cuda.h>
#include <kymo/diff.h>
#include <kymo/doctor.h>
#include <kymo/dump.h>
#include <kymo/dumpfile.h>
#include <kymo/energy.h>
#include <kymo/energy_report.h>
#include <kymo/epochs.h>
#include <kymo/gpu.h>
#include <kymo/gpu_report.h>
#include <kymo/image.h>
#include <kymo/import.h>
#include <kymo/iteration.h>
#include <kymo/legacy.h>
#include <kymo/live.h>
#include <kymo/memory.h>
#include <kymo/memory_report.h>
#include <kymo/memory_timeline.h>
#include <kymo/nvtx.h>
#include <kymo/operators.h>
#include <kymo/page.h>
#include <kymo/partial.h>
#include <kymo/range.h>
#include <kymo/recording.h>
#include <kymo/report.h>
#include <kymo/sampler.h>
#include <kymo/samples.h>
#include <kymo/samples_report.h>
#include <kymo/scaling.h>
#include <kymo/stacks.h>
#include <kymo/stopwatch.h>
#include <kymo/switchboard.h>
#include <kymo/table.h>
#include <kymo/tensor.h>
#include <kymo/torch_trace.h>

#endif
