"""Threads and functions with names that break readers: parentheses, newlines, semicolons, no ASCII, very long ones."""

import sys
import threading
import time

FUNCTIONS = ["naïve_größe", "計算する", "a_b" * 1500]
THREADS = ["tr) S 1 2 3", "a;b;c", "line\nbreak", "日本 スレッド", '"quoted" \\ back', "x" * 5000]
TEXT = "def {name}(end):\n    while clock() < end: pass\n"


def main(seconds):
    end = time.perf_counter() + seconds
    scope = {"clock": time.perf_counter}
    for i, name in enumerate(FUNCTIONS):
        exec(compile(TEXT.format(name=name), f"<f{i};x y:3>", "exec"), scope)
    # No source can spell this name, but a code object can have it.
    code = compile(TEXT.format(name="plain"), "dir (a:1);b\n.py", "exec")
    exec(code, scope)
    hostile = scope["plain"]
    names = {name: "f (x.py:3);g\nh 12" for name in ("co_name", "co_qualname") if hasattr(hostile.__code__, name)}
    hostile.__code__ = hostile.__code__.replace(**names)
    functions = [scope[name] for name in FUNCTIONS] + [hostile]
    for i, name in enumerate(THREADS):
        threading.Thread(target=functions[i % len(functions)], args=(end,), name=name, daemon=True).start()
    print("ready", flush=True)
    while time.perf_counter() < end:
        time.sleep(0.05)


main(float(sys.argv[1]))
