/*
 * marey/marey.h: includes all headers. Instrumented programs link libmarey and use switchboard.h and range.h; programs that
 * read recordings also link libmarey-tools.
 *
 *     #include <marey/marey.h>
 *     int main(void)
 *     {
 *         if (marey_start(&(struct marey_options){.path = "run.marey"}) != MAREY_OK)
 *             fprintf(stderr, "%s\n", marey_last_error());
 *         for (int step = 0; step < 100; step++) {
 *             MAREY_SCOPE("step");
 *             train();
 *         }
 *         marey_stop();
 *     }
 */
#ifndef MAREY_MAREY_H
#define MAREY_MAREY_H

#include <marey/base.h>
#include <marey/breakdown.h>
#include <marey/calls.h>
#include <marey/communication.h>
#include <marey/compare.h>
#include <marey/cuda.h>
#include <marey/diff.h>
#include <marey/doctor.h>
#include <marey/dump.h>
#include <marey/dumpfile.h>
#include <marey/energy.h>
#include <marey/gpu.h>
#include <marey/image.h>
#include <marey/import.h>
#include <marey/iteration.h>
#include <marey/live.h>
#include <marey/memory.h>
#include <marey/memory_timeline.h>
#include <marey/nvtx.h>
#include <marey/operators.h>
#include <marey/page.h>
#include <marey/partial.h>
#include <marey/range.h>
#include <marey/recording.h>
#include <marey/report.h>
#include <marey/sampler.h>
#include <marey/samples.h>
#include <marey/stacks.h>
#include <marey/stopwatch.h>
#include <marey/switchboard.h>
#include <marey/table.h>
#include <marey/tensor.h>
#include <marey/torch_trace.h>

#endif
