"""With a real GPU: marey doctor finds its counters, measures how often they change, and tries CUPTI.

A plain program: exit status 0 if everything holds, 1 if something does not, 77 without a GPU or torch.

    python tests/gpu/test_doctor_measures.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from gpu_program import FAILURES, check, import_torch

ASK = "import json, marey; print(json.dumps([dict(row) for row in marey.doctor(wait=30)]))"

Found = dict[tuple[str, str], dict[str, Any]]


def doctor(**environment: str) -> Found:
    """The findings of a separate process that has not used CUDA."""
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return {(row["subject"], row["thing"]): row for row in json.loads(done.stdout)}


def show(found: Found) -> None:
    for (subject, thing), row in found.items():
        if subject in ("cuda", "energy", "nvtx"):
            print(f"  {row['state']:<8} {thing:<22} {row['value']}")
            if row["advice"]:
                print(f"           -> {row['advice']}")


def check_counters(found: Found) -> None:
    """Products have periods from a millisecond to two seconds; others would be a bug."""
    for thing in ("gpu 0 energy counter", "gpu 0 power", "gpu 0 utilization"):
        row = found["energy", thing]
        period = row["amount"] or 0
        check(f"{thing}: {row['state']}, {period / 1e6:.2f} ms", row["state"] == "ok" and 1e5 < period < 2e9)
    check("clocks, temperature and throttle reasons", found["energy", "gpu 0 state"]["state"] == "ok")
    check(f"activity: {found['energy', 'gpu 0 activity']['value']}", found["energy", "gpu 0 activity"] is not None)


def check_devices(torch: Any, found: Found) -> None:
    n = torch.cuda.device_count()
    for i in range(n):
        # torch.cuda tells UUIDs from 2.5 on.
        uuid = getattr(torch.cuda.get_device_properties(i), "uuid", None)
        value = found["cuda", f"CUDA device {i}"]["value"]
        print(f"CUDA device {i}: {value}, torch says {uuid}")
        check(f"CUDA device {i} has torch's UUID", uuid is None or str(uuid) in value)
    check(f"there are no more than {n}", ("cuda", f"CUDA device {n}") not in found)
    hidden = doctor(CUDA_VISIBLE_DEVICES="")
    row = hidden["cuda", "CUDA devices"]
    check(f"hidden devices: {row['value']}", row["state"] in ("missing", "off"))


def main() -> int:
    torch = import_torch()
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    found = doctor()
    show(found)
    check_counters(found)
    check_devices(torch, found)
    tracing = found["cuda", "GPU tracing"]
    check(f"CUPTI: {tracing['value']}", tracing["state"] == "ok")
    # From a process that uses CUDA, whose children cannot: told, and the process goes on.
    torch.ones(1, device="cuda")
    import marey

    row = next(row for row in marey.doctor(wait=30) if row["thing"] in ("CUDA devices", "CUDA device 0"))
    check(f"from a process with a context: {row['value']}", row["state"] in ("ok", "missing"))
    check("which goes on", float(torch.ones(4, device="cuda").sum()) == 4.0)
    print("all holds" if not FAILURES else f"{len(FAILURES)} do not hold")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
