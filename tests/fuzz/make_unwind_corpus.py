"""Make the corpus of fuzz_unwind: `python tests/fuzz/make_unwind_corpus.py`. Needs a C compiler for x86-64.

A small library with frames of several kinds, registers within one of its functions, and a stack that leads out of it.
"""

from __future__ import annotations

import struct
import subprocess
import tempfile
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus" / "unwind"
CODE_AT, STACK_AT = 0x400000, 0x7FF000
SOURCE = """
#include <alloca.h>
volatile int sink;
__attribute__((noinline)) int inner(int n) { return n + sink; }
__attribute__((noinline)) int middle(int n) { char text[64]; sink = inner(n) + text[n]; return sink + 1; }
__attribute__((noinline)) int outer(int n) { char *p = alloca(n); p[0] = 1; return middle(n) + p[n / 2]; }
__attribute__((noinline, aligned(64))) int aligned(int n) {
    _Alignas(64) char text[128]; text[n] = 1; return outer(n) + text[1]; }
__asm__(".text\\n.type bare,@function\\nbare: push %rbp\\n sub $0x40,%rsp\\n call outer\\n add $0x40,%rsp\\n"
        " pop %rbp\\n ret\\n.size bare,.-bare\\n");
"""
FLAGS = [
    "-O1",
    "-shared",
    "-fPIC",
    "-nostdlib",
    "-fasynchronous-unwind-tables",
    "-fcf-protection=none",
    "-fno-stack-protector",
]
LINK = "-Wl,-z,noseparate-code,-z,norelro,-z,max-page-size=4096,--hash-style=sysv,--build-id=sha1"


def library(*more: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "small.c"), Path(folder, "small.so")
        source.write_text(SOURCE)
        subprocess.run(["cc", *FLAGS, LINK, *more, str(source), "-o", str(made)], check=True)
        return made.read_bytes()


def functions(data: bytes) -> dict[str, int]:
    """Addresses by name, from the full table of symbols where there is one."""
    (sections_at,), (n,) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<H", data, 60)
    heads = [struct.unpack_from("<IIQQQQIIQQ", data, sections_at + 64 * i) for i in range(n)]
    table = min((head for head in heads if head[1] in (2, 11)), key=lambda head: head[1])
    texts = heads[table[6]]
    found = {}
    for at in range(table[4], table[4] + table[5], 24):
        name, kind, _, _, value, _ = struct.unpack_from("<IBBHQQ", data, at)
        if kind & 15 == 2:
            end = data.index(b"\0", texts[4] + name)
            found[data[texts[4] + name : end].decode()] = value
    return found


def thread(data: bytes, function: str, n_words: int) -> bytes:
    """Registers in `function`, and a stack full of what its callers may return to."""
    places = functions(data)
    registers = [0] * 17
    registers[6], registers[7], registers[16] = STACK_AT + 64, STACK_AT, CODE_AT + places[function] + 4
    words = [CODE_AT + list(places.values())[i % len(places)] + 9 + i % 7 for i in range(n_words)]
    return struct.pack(f"<H17Q{n_words}Q", 8 * n_words, *registers, *words)


def main() -> None:
    CORPUS.mkdir(parents=True, exist_ok=True)
    whole, stripped = library(), library("-s")
    for function in ("inner", "outer", "aligned", "bare"):
        (CORPUS / f"{function}.bin").write_bytes(thread(whole, function, 48) + whole)
    (CORPUS / "stripped.bin").write_bytes(thread(stripped, "middle", 16) + stripped)
    generated = b"600100 40 py::f:/a.py\n600140 4 g\n"
    (CORPUS / "perf_map.bin").write_bytes(struct.pack("<H17Q", 0, *[0x600100] * 17) + generated)


if __name__ == "__main__":
    main()
