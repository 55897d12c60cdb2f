"""Whether this is the long run of `make check`, which includes the tests marked slow."""

from __future__ import annotations

import os

IS_LONG = os.environ.get("MAREY_LONG", "") not in ("", "0")
