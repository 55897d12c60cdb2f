"""What all tests share: programs under test react to Ctrl-C, also where the tests run in the background."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs that are started then have the default
