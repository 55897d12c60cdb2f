#!/usr/bin/env python3
"""Break a trace down with Holistic Trace Analysis, and print the cost as JSON.

    hta_peer.py FILE

CPU time from the open file to the two tables that correspond to marey breakdown's, without loading the package.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings

from hta.trace_analysis import TraceAnalysis


def main() -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    started = time.process_time()
    analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="", include_last_profiler_step=True)
    breakdown = analysis.get_temporal_breakdown(visualize=False)
    overlap = analysis.get_comm_comp_overlap(visualize=False)
    cpu_s = time.process_time() - started
    print(
        json.dumps(
            {
                "cpu_s": cpu_s,
                "compute_us": float(breakdown["compute_time(us)"][0]),
                "overlap_percent": float(overlap["comp_comm_overlap_pctg"][0]),
            }
        )
    )


if __name__ == "__main__":
    main()
