"""marey.numba_nvtx under ACCV-Lab's name: `import marey.accvlab.numba_nvtx as nvtx`."""

from __future__ import annotations

from marey.numba_nvtx import range_pop, range_push, register_string

__all__ = ["range_pop", "range_push", "register_string"]
