"""Regenerate the corpus from real recordings: `PYTHONPATH=<build>/python python tests/fuzz/make_corpus.py`.

A few small files for each target, with all kinds of blocks, records and ends. Run it when the format is extended.
"""

from __future__ import annotations

import gzip
import os
import pickle
import random
import re
import signal
import struct
import tempfile
import threading
import zlib
from pathlib import Path

import marey
from marey import _tools

CORPUS = Path(__file__).parent / "corpus"
CHUNK_BYTES, CHUNK_HEAD_BYTES, POOL_HEAD_INPUT = 32 << 10, 128, 64

OPTIONS = [
    "",
    "pool=64MiB,disk=1g,policy=keep-newest,clock=monotonic,check=yes,children=off",
    "rank=3,world_size=8,run_id=abc,pool_in=shm",
    "pool=,policy",
    "no=such,key=1",
    "pool=18446744073709551615T",
]

# A key or path, and an input of the doctor.
DOCTOR = [
    (
        "/data/a b/run",
        "/dev/vda / ext4 rw 0 0\ntmpfs /data tmpfs rw,noexec 0 0\nsrv:/x /data/a\\040b nfs4 rw 0 0\n",
    ),
    ("cpu", "5:cpuset:/a\n4:cpu,cpuacct:/docker/1:2\n0::/two\n"),
    ("", "0::/user.slice\n"),
    ("CapEff", "Name:\tpython\nCapEff:\t000001ffffffffff\nSeccomp:\t2\n"),
    ("model name", "processor\t: 0\nmodel name\t: AMD EPYC\n"),
    ("quota", "150000 100000\n"),
    (
        "lib",
        "\tlibmarey.so.0 (libc6,x86-64) => /usr/lib/libmarey.so.0\n\tlibmarey.so.0 (libc6) => /opt/libmarey.so.0\n",
    ),
    ("version", "version=3.11.7\nsite0=/usr/lib/python3\nmarey=0.1.0\n"),
    ("energy0", "gpu0=A GPU\nenergy0=ok 20000000 17 3000\ninstant0=no Not Supported\n"),
]

# What energy is measured by: CUDA's two variables, the GPUs of a machine, lines of the lock's file, the name of a zone.
GPUS = "GPU-00000000-1111\tH200\tMIG-1\tMIG-2\nGPU-00000001-1111\tH200\n"
ENERGY = [
    ("0,1", "PCI_BUS_ID", GPUS, "=0,1\n*\n=\n", "x"),
    ("GPU-00000001,MIG-2", "", GPUS, "123456\n", "x"),
    ("intel-rapl:0:1", "package-0", GPUS, "=torn", "dram"),
    ("intel-rapl:0", "", GPUS, "\n\n*", "package-1"),
    ("1,1,-1, 0", "FASTEST_FIRST", "GPU-a\tA\nGPU-b\tB\n", "", ""),
]

# Contents of /proc for usage over intervals.
USAGE = [
    "0.20 0.18 0.12 1/80 11206\n",
    "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3 4 5 6 7 8 9 10\n",
    "77 (a) R 1 (b) S 12 1 1 0 -1 4194560 1 2 3 4 5 6 700 30 20 0 1 0 4242 9 9\n",
    "4096 512 100 1 0 64 0\n",
    "99999999999999999999999 18446744073709551615 x\n",
]

# Small files of other tools, one of each format, and an invalid one.
IMPORTS = {
    "kineto.json": b'{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2}, '
    b'"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 7, "tid": 7, "ts": 1.5, "dur": 9.250, '
    b'"args": {"External id": 3}}, {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 4.0, "dur": 2, '
    b'"args": {"device": 0, "stream": 7, "correlation": 5}}, {"ph": "s", "id": 5, "pid": 7, "tid": 7, "ts": 2, '
    b'"cat": "ac2g", "name": "ac2g"}]}',
    "array.json": b'[{"ph":"B","name":"a","ts":1,"pid":1,"tid":1},{"ph":"E","ts":2,"pid":1,"tid":1},\n',
    "collapsed.folded": b"main;step;forward 12\nmain;step 3\n",
    "speedscope.json": b'{"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": '
    b'[{"name": "a"}]}, "profiles": [{"type": "evented", "name": "t", "unit": "nanoseconds", "startValue": 0, '
    b'"endValue": 9, "events": [{"type": "O", "frame": 0, "at": 1}, {"type": "C", "frame": 0, "at": 5}]}]}',
    "nothing.txt": b"# Notes\n",
}


def record_one_of_each() -> None:
    """Every kind of event, and names that are hard to write down."""
    for payload in (None, -1, 2.5, "text", ""):
        with marey.range("step", payload=payload), marey.range('"quoted"\n\0name', category="c", color=0xFF00FF00):
            marey.counter("loss", 0.5)
            marey.mark("mark", payload=payload)
    marey.push("left open")


def record_in_many_threads() -> None:
    """A few words in each lane: too few to compress, so they are stored uncompressed in the log."""
    for i in range(8):
        thread = threading.Thread(target=marey.mark, args=("mark",), kwargs={"payload": i if i % 2 else "text"})
        thread.start()
        thread.join()


def in_a_child(work: object) -> None:
    """Run `work` in a forked child and wait for its end."""
    child = os.fork()
    if child == 0:
        work()  # type: ignore[operator]
        os._exit(0)
    os.waitpid(child, 0)


def record(path: Path, options: dict[str, object], ending: str) -> None:
    def work() -> None:
        marey.start(path, **options)
        record_in_many_threads()
        record_one_of_each()
        if ending == "stop":
            marey.stop()
        else:
            os.kill(os.getpid(), signal.SIGKILL)

    in_a_child(work)


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def scrub(block: bytes) -> bytes:
    """Replace folder names and the boot id, which belong to the machine that made the corpus."""
    text = re.sub(
        rb"(/[\w.-]+)+(?=/)|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", lambda m: b"x" * len(m[0]), block[48:]
    )
    header = block[:44] + b"\0\0\0\0"
    return header[:44] + struct.pack("<I", crc32c(header + text)) + text


def log_of(path: Path) -> bytes:
    """The log's bytes by block, with scrubbed properties."""
    data, out, at = next(path.glob("*.klog")).read_bytes(), [], 0
    while at < len(data):
        kind, packed_len = data[at + 4], struct.unpack_from("<I", data, at + 20)[0]
        block = data[at : at + 48 + packed_len]
        out.append(scrub(block) if kind in (1, 2) else block)
        out.append(b"\0" * (-packed_len % 8))
        at += 48 + packed_len + -packed_len % 8
    return b"".join(out)


def pool_input(pool: bytes) -> bytes:
    """A pool in the format of fuzz_pool.c: the head's first bytes, then each used chunk with its length."""
    out = [pool[:POOL_HEAD_INPUT]]
    for at in range(CHUNK_BYTES, len(pool) - CHUNK_BYTES + 1, CHUNK_BYTES):
        chunk = pool[at : at + CHUNK_BYTES]
        used = chunk.rstrip(b"\0")
        if len(used) > CHUNK_HEAD_BYTES:
            out.append(struct.pack("<H", len(used)) + used)
    return b"".join(out)


def packed_results() -> list[bytes]:
    """Serialized stopwatches: empty, a name without iterations, several names, a truncated one."""
    stopwatch = marey.Stopwatch(0)
    parts = [_tools.stopwatch_pack(0)]
    with stopwatch("alone"):
        pass
    parts.append(_tools.stopwatch_pack(-1))
    for i in range(30):
        for name in ("forward", "", '"odd"\n\0name'):
            with stopwatch(name):
                sum(range(50 * i))
        stopwatch.finish_iter()
    parts.append(_tools.stopwatch_pack(7))
    stopwatch.reset()
    return [*parts, parts[-1][:-5]]


def block(kind: int, payload: bytes, lane: int = 0, sequence: int = 0) -> bytes:
    """A block that is not packed; the words of one count from tick 0."""
    header = struct.pack("<IBBHIIIIQQI", 0x4B4C424D, kind, 1, 0, lane, sequence, *[len(payload)] * 2, 0, 5000, 0)
    checksum = struct.pack("<I", crc32c(header + b"\0\0\0\0" + payload))
    return header + checksum + payload + b"\0" * (-len(payload) % 8)


def words(*events: tuple[int, ...]) -> bytes:
    """Records as (ticks, type, further words ...), and plain words as (ticks, -kind, site)."""
    out = []
    for ticks, kind, *more in events:
        if kind < 0:
            out.append(ticks << 24 | -kind << 20 | more[0])
        else:
            out += [ticks << 24 | 15 << 20 | kind << 12 | len(more) + 1, *more]
    return struct.pack(f"<{len(out)}Q", *out)


def log_of_iterations() -> bytes:
    """Two threads; iterations, an epoch, phases, a range that ends alone, a piece that is missing."""
    pairs = {"pid": "7", "rank": "1", "clock": "tsc", "tick_hz": "1000000000"}
    texts = b"".join(struct.pack("<II", len(k), len(v)) + k.encode() + v.encode() for k, v in pairs.items())
    sites = b"".join(struct.pack("<7I", i + 1, 0, 0, 4, 0, 0, 0) + name for i, name in enumerate((b"step", b"load")))
    clock = struct.pack("<8Q", 0, 0, 10**18, 20, 10**9, 10**9, 10**18 + 10**9, 20)
    main = [(10, 9, 0, 1), (10, 10, 1)]
    for i in range(8):
        start = 100 * i + 20
        main += [(start, -1, 1), (start + 5, -1, 2), (start + 30, 11, 1), (start + 40, -2, 2)]
        main += [(start + 60, 8, i)] if i % 3 == 0 else []
        main.append((100 * i + 110, 7, i, i < 2, 0x4030000000000000))
    main += [(900, 10, 0), (910, 9, 0, 0), (920, 7, 0, 0, 0), (930, 9, 1, 1)]
    loader = [event for i in range(8) for event in ((100 * i + 30, -1, 2), (100 * i + 125, -2, 2))]
    return b"".join(
        [
            block(1, texts),
            block(2, sites),
            block(5, clock),
            block(4, words(*main[:20])),
            block(4, words(*main[20:]), sequence=1),
            block(4, words(*loader[:6]), lane=1),
            block(4, words((500, 6, 3, 20), *loader[10:]), lane=1, sequence=2),
            block(7, struct.pack("<II", 3, 4) + b"endstop"),
        ]
    )


def text_words(text: bytes) -> tuple[int, ...]:
    """A string as in ARGUMENTS records: its length, then whole words."""
    return (len(text), *struct.unpack(f"<{(len(text) + 7) // 8}Q", text + b"\0" * (-len(text) % 8)))


def log_of_gpu_work() -> bytes:
    """An imported trace: a thread that launches, streams with work, communication, arguments and flows."""
    pairs = {"pid": "7", "rank": "1", "clock": "trace", "tick_hz": "1000000000", "source": "kineto"}
    texts = b"".join(struct.pack("<II", len(k), len(v)) + k.encode() + v.encode() for k, v in pairs.items())
    names = (b"step", b"load", b"gemm", b"pg_0", b"flow")
    sites = b"".join(struct.pack("<7I", i + 1, 0, 0, 4, 0, 4, 0) + name + b"[0,]" for i, name in enumerate(names))
    clock = struct.pack("<4Q", 0, 0, 10**18, 0)
    reduce = (4 | 1 << 20, 4096, 4096, 12, 2 | 0xFFFFFFFF << 32)
    thread = [(10, -1, 1), (10, 15, *text_words(b'{"a": [1, {"b": NaN}], "correlation": 7}')), (10, -1, 2), (10, 13, 7)]
    thread += [(10, 16, 5, 3, 0), (20, 14, *reduce), (30, -2, 2), (30, 13, 8), (30, -2, 1), (40, 17, 9), (40, -1, 1)]
    stream = [(25, 12, 3 | 4 << 20, 50, 0, 0), (25, 12, 3 | 1 << 20, 20, 7, 0), (25, 15, *text_words(b"{broken"))]
    stream += [(25, 16, 5, 3, 2), (30, 12, 3 | 2 << 20, 60, 8, 512), (35, 16, 5, 4, 1), (40, 12, 3 | 1 << 20, 5, 9, 0)]
    further = [(40, 14, *reduce), (40, 15, *text_words(b'{"grid": [1, 2, 3]}')), (60, 12, 3 | 5 << 20, 0, 0, 0)]
    return b"".join(
        [
            block(1, texts),
            block(2, sites),
            block(5, clock),
            block(3, struct.pack("<qII", 7, 0, 4) + b"main"),
            block(3, struct.pack("<qII", 1 << 32 | 7, 1, 0), lane=1),
            block(3, struct.pack("<qII", 7, 0, 0), lane=2),
            block(4, words(*thread)),
            block(4, words(*stream), lane=1),
            block(4, words(*further), lane=1, sequence=1),
            block(4, words((15, -1, 1), (50, -2, 1)), lane=2),
            block(7, struct.pack("<II", 3, 4) + b"endstop"),
        ]
    )


def log_of_energy() -> bytes:
    """Counters of a GPU and of a package, one of which is reset; an epoch, iterations, a phase and a range."""
    pairs = {"pid": "7", "rank": "0", "host": "a", "devices": "GPU-1", "clock": "tsc", "tick_hz": "1000"}
    pairs["energy_sources"] = "GPU-1|H200|power: instant, 9 readings, a new value every 0.100 s"
    texts = b"".join(struct.pack("<II", len(k), len(v)) + k.encode() + v.encode() for k, v in pairs.items())
    domains = (b"GPU-1|power", b"GPU-1|energy", b"GPU-1|utilization", b"package-0|energy")
    sites = struct.pack("<7I", 1, 0, 0, 4, 0, 0, 0) + b"step"
    for i, domain in enumerate(domains):
        name = b"GPU 0 " + domain.split(b"|")[1]
        whole = struct.pack("<7I", i + 2, 0, 0, len(name), 6, len(domain), 0) + name + b"energy" + domain
        sites += whole + b"\0" * (-len(whole) % 4)
    clock = struct.pack("<8Q", 0, 0, 10**18, 20, 1000, 10**9, 10**18 + 10**9, 20)

    def reading(tick: int, site: int, value: float) -> tuple[int, ...]:
        return (tick, 3, site, *struct.unpack("<Q", struct.pack("<d", value)))

    meter = []
    for tick in range(0, 5000, 100):
        meter.append(reading(tick, 2, 200.0 + tick % 700))
        meter += [reading(tick, 4, 50.0)] if tick % 1000 == 0 else []
        meter += [reading(tick, 3, tick * 0.4 if tick < 3000 else tick * 0.1)] if tick % 1000 == 0 else []
        meter.append(reading(tick, 5, (65530.0 + tick * 0.01) % 65536))
    main = [(10, 9, 0, 1), (10, 10, 1), (20, -1, 1), (1500, -2, 1)]
    main += [(1000 * i, 7, i, 0, 0x4030000000000000) for i in range(2, 5)] + [(4500, 10, 0), (4600, 9, 0, 0)]
    return b"".join(
        [
            block(1, texts),
            block(2, sites),
            block(5, clock),
            block(4, words(*main)),
            block(4, words(*meter), lane=1),
            block(7, struct.pack("<II", 3, 4) + b"endstop"),
        ]
    )


def png(width: int, height: int, depth: int, color: int, *, interlaced: int = 0, palette: bytes = b"") -> bytes:
    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    row = (width * depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color] + 7) // 8
    rows = b"".join(bytes([y % 5]) + random.Random(y).randbytes(row) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced)
    parts = [part(b"IHDR", header), part(b"tEXt", b"name\0layer0")]
    parts += [part(b"PLTE", palette)] if palette else []
    packed = zlib.compress(rows)
    parts += [part(b"IDAT", packed[:20]), part(b"IDAT", packed[20:]), part(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def log_of_memory() -> bytes:
    """Samples with two stacks, one block freed and one freed twice, resident memory, a phase and iterations."""
    pairs = {"pid": "7", "clock": "tsc", "tick_hz": "1000", "memory": "malloc=yes\npython=yes\ninterval=1000"}
    pairs["memory_counts"] = "told=4\ndropped=1\nunfollowed=0\nticks=9\nlast_interval=2000"
    texts = b"".join(struct.pack("<II", len(k), len(v)) + k.encode() + v.encode() for k, v in pairs.items())
    names = [(b"high", b"", b"", b""), (b"resident memory (bytes)", b"memory", b"process|resident", b"")]
    names += [(b"peak", b"memory", b"process|peak", b""), (b"limit", b"memory", b"process|limit", b"")]
    names += [(b"a.out+0x10", b"frame", b"native", b"/no/a.out"), (b"f", b"frame", b"python", b"/no/f.py")]
    sites = b""
    for i, parts in enumerate(names):
        whole = struct.pack("<7I", i + 1, 3, 0, *map(len, parts)) + b"".join(parts)
        sites += whole + b"\0" * (-len(whole) % 4)
    clock = struct.pack("<8Q", 0, 0, 10**18, 20, 1000, 10**9, 10**18 + 10**9, 20)
    double = {value: struct.unpack("<Q", struct.pack("<d", value))[0] for value in (1e6, 2e6)}
    main = [(10, 10, 1), *((100 * i, 7, i, 0, 0) for i in range(1, 12)), (1300, 10, 0)]
    told: list[tuple[int, ...]] = [(20, 18, 1, 5 | 6 << 32), (20, 18, 2, 6)]
    told += [(100 * i + 50, 19, 5, i, 700, 1000, 1 + i % 2 | (i % 2) << 32, 7) for i in range(12)]
    told += [(700, 20, 1, 2), (700, 20, 1, 2), (800, 20, 0, 99)]
    told += [(100 * i, 3, 2, double[1e6]) for i in range(12)] + [(1300, 3, 3, double[2e6]), (1300, 3, 4, double[2e6])]
    return b"".join(
        [
            block(1, texts),
            block(2, sites),
            block(5, clock),
            block(4, words(*sorted(main))),
            block(4, words(*sorted(told)), lane=1),
        ]
    )


def elf() -> bytes:
    """A program file with only a table of two functions."""
    names = b"\0main\0work\0"
    symbols = b"".join(struct.pack("<IBBHQQ", name, 2, 0, 1, value, 16) for name, value in ((1, 0x1000), (6, 0x1010)))
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64, 0, 64, 56, 0, 64, 3, 0)
    at = 64 + 3 * 64
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, at, len(symbols), 2, 0, 8, 24)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, at + len(symbols), len(names), 0, 0, 1, 0)
    return head + sections + symbols + names


def snapshot() -> dict[str, object]:
    """A snapshot of torch's allocator: a segment, its blocks, and their history."""
    frames = [{"filename": "model.py", "line": 7, "name": "forward"}]
    blocks = [
        {"address": 4096 + i * 512, "size": 512, "requested_size": 500, "state": state, "frames": frames}
        for i, state in enumerate(("active_allocated", "inactive", "active_pending_free"))
    ]
    segment = {"device": 0, "address": 4096, "total_size": 1536, "stream": 0, "blocks": blocks, "pool": (0, 1)}
    trace = [
        {"action": action, "addr": address, "size": 512, "stream": 0, "time_us": 1000 + i, "frames": frames}
        for i, (action, address) in enumerate(
            zip(
                ["segment_alloc", "alloc", "alloc", "free_requested", "free_completed", "free_requested", "oom", "x"],
                (4096, 4096, 4608, 4608, 4608, 9999, 0, 1),
            )
        )
    ]
    numbers = {"large": 1 << 70, "negative": -5, "share": 0.5, "none": None, "flag": True, "bytes": b"x"}
    return {"segments": [segment], "device_traces": [trace, []], "allocator_settings": numbers}


def write_memory() -> None:
    for target in ("held", "elf", "snapshot"):
        (CORPUS / target).mkdir(exist_ok=True)
    (CORPUS / "held" / "samples.klog").write_bytes(log_of_memory())
    (CORPUS / "elf" / "two.elf").write_bytes(elf())
    for protocol in (2, 3, 4, 5):
        (CORPUS / "snapshot" / f"{protocol}.pickle").write_bytes(pickle.dumps(snapshot(), protocol))


def calls_entry(tag: str, *fields: object) -> bytes:
    """A tag, then integers as varints, floats as eight bytes, strings after their length."""
    out = tag.encode()
    for field in fields:
        number = len(field) if isinstance(field, str) else field
        if isinstance(number, float):
            out += struct.pack("<d", number)
            continue
        assert isinstance(number, int)
        while number > 0x7F:
            out += bytes([number & 0x7F | 0x80])
            number >>= 7
        out += bytes([number]) + (field.encode() if isinstance(field, str) else b"")
    return out


def log_of_calls() -> bytes:
    """Two threads, recursion, a method, two shapes, a second profile, paths that were not followed."""
    pairs = {"pid": "7", "clock": "tsc", "tick_hz": "1000"}
    texts = b"".join(struct.pack("<II", len(k), len(v)) + k.encode() + v.encode() for k, v in pairs.items())
    clock = struct.pack("<8Q", 0, 0, 10**18, 20, 1000, 10**9, 10**18 + 10**9, 20)
    first = [("P", 0, 0.0, 3, 90000), ("T", 1, 70, "MainThread"), ("T", 2, 71, "worker")]
    first += [("F", 1, 0, 3, "main", "main", "/a/x.py", "x"), ("F", 2, 0, 9, "dot", "dot", "/a/x.py", "x")]
    first += [("F", 3, 1, 0, "<built-in method builtins.len>", "len", "~", "builtins")]
    first += [
        ("S", 1, 2, 32, "a:ndarray(dtype=float32, shape=(16,)), b:int"),
        ("S", 2, 2, 64, "self:Model, b:list(int)"),
    ]
    first += [
        ("N", 1, 1, 0, 1, 0),
        ("N", 2, 1, 1, 2, 1),
        ("N", 3, 1, 2, 2, 2),
        ("N", 4, 1, 3, 3, 0),
        ("N", 5, 2, 0, 2, 1),
    ]
    first += [("C", i, 2 * i, i // 4, 10, 40 // i, 9) for i in range(1, 6)]
    second = [
        ("P", 0, 0.0, 3, 90000),
        ("N", 6, 1, 0, 0, 0),
        ("N", 7, 1, 6, 2, 1),
        ("C", 7, 5, 0, 6, 7, 8),
        ("O", 5, 1, 4096),
    ]
    other = [
        ("P", 1, 1000.0, 8, 0),
        ("F", 1, 2, 4, "jitted", "jitted", "x.py", ""),
        ("T", 1, 70, ""),
        ("N", 1, 1, 0, 1, 0),
    ]
    other += [("C", 1, 1, 0, 1, 1, 1)]
    blocks = [block(8, b"".join(calls_entry(*entry) for entry in entries)) for entries in (first, second, other)]
    return b"".join([block(1, texts), block(5, clock), *blocks])


def write_calls() -> None:
    (CORPUS / "calls").mkdir(exist_ok=True)
    whole = log_of_calls()
    (CORPUS / "calls" / "tree.klog").write_bytes(whole)
    (CORPUS / "calls" / "cut.klog").write_bytes(whole[:-20])


def log_of_samples() -> bytes:
    """A sampler that sampled itself, so that a range is in the same log; two processes, three threads."""
    pairs = {"pid": "7", "host": "h", "clock": "monotonic", "tick_hz": "1000000000"}
    pairs["sampling"] = "rate=100\nstrategy=exact"
    texts = b"".join(struct.pack("<II", len(k), len(v)) + k.encode() + v.encode() for k, v in pairs.items())
    clock = struct.pack("<8Q", 0, 0, 10**18, 20, 10**10, 10**10, 10**18 + 10**10, 20)
    name = b"forward"
    site = struct.pack("<7I", 1, 3, 0, len(name), 0, 0, 0) + name + b"\0"
    thread = struct.pack("<qII", 70, 0, 1) + b"m"
    events = words((10**9, 1, 1), (2 * 10**9, 2, 1), (3 * 10**9, 1, 1), (4 * 10**9, 2, 1))
    first = [
        ("M", 1, 7, 1, 0, 1, 0, 0x030B00F0, "python train.py"),
        ("M", 2, 8, 7, 5, 0, 3, 0, "python -c worker"),
        ("T", 1, 1, 70, 0, 1, "MainThread"),
        ("T", 2, 1, 71, 0, 0, "pool"),
        ("T", 3, 2, 80, 0, 1, "MainThread"),
        ("F", 1, 0, 3, "main", "/a/train.py", ""),
        ("F", 2, 0, 9, "Linear.forward", "/x/site-packages/torch/nn/linear.py", ""),
        ("F", 3, 1, 0, "gemm", "", "libblas.so"),
        ("L", 1, 3, 1, 4, 2, 10, 3, 0),
        ("K", 1, 4, 0, 1, 1, 2, 1, 3, 3, 2),
        # Process 1, units of 2^20 ns, three rounds, no weights; changes: rounds, threads, what, stacks, flags, waits.
        ("A", 1, 20, 3, 1000, 500, 1500, 0, 4, 0, 0, 1, 1, 1, 2, 1, 2, 7, 3, 3, 8, 3, 1, 2, 5, 2, 4, 513),
        ("A", 2, 16, 2, 20000, 3000, 1, 1, 5000000, 1, 0, 3, 3, 4, 193),
    ]
    second = [
        ("K", 5, 1, 1, 2),
        ("A", 1, 0, 1, 4 * 10**9, 0, 1, 0, 1, 3, 5, 320),
        ("O", 1, 3, 4, 4, 0),
        ("O", 0, 18, *range(18)),
    ]
    blocks = [block(9, b"".join(calls_entry(*entry) for entry in entries)) for entries in (first, second)]
    return b"".join([block(1, texts), block(5, clock), block(2, site), block(3, thread), block(4, events), *blocks])


def write_samples() -> None:
    (CORPUS / "samples").mkdir(exist_ok=True)
    whole = log_of_samples()
    (CORPUS / "samples" / "rounds.klog").write_bytes(whole)
    (CORPUS / "samples" / "cut.klog").write_bytes(whole[:-30])


def main() -> None:
    for target in ("log", "pool", "options", "doctor", "energy", "stopwatch", "usage", "sink", "open", "png", "epochs"):
        (CORPUS / target).mkdir(parents=True, exist_ok=True)
    for i, text in enumerate(OPTIONS):
        (CORPUS / "options" / f"{i}.txt").write_text(text)
    for i, (key, text) in enumerate(DOCTOR):
        (CORPUS / "doctor" / f"{i}.txt").write_bytes(bytes([len(key)]) + key.encode() + text.encode())
    for i, texts in enumerate(ENERGY):
        (CORPUS / "energy" / f"{i}.txt").write_text("\0".join(texts))
    for i, text in enumerate(USAGE):
        (CORPUS / "usage" / f"{i}.txt").write_text(text)
    for i, packed in enumerate(packed_results()):
        (CORPUS / "stopwatch" / f"{i}.bin").write_bytes(packed)
    for name, data in IMPORTS.items():
        (CORPUS / "open" / name).write_bytes(data)
    (CORPUS / "open" / "kineto.json.gz").write_bytes(gzip.compress(IMPORTS["kineto.json"], mtime=0))
    for color, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
        for depth in depths:
            colors = bytes(range(3 << min(depth, 6))) if color == 3 else b""
            (CORPUS / "png" / f"{color}-{depth}.png").write_bytes(png(5, 6, depth, color, palette=colors))
    (CORPUS / "png" / "interlaced.png").write_bytes(png(5, 6, 8, 0, interlaced=1))
    (CORPUS / "png" / "no-palette.png").write_bytes(png(5, 6, 8, 3))
    for i in range(4):
        (CORPUS / "sink" / f"{i}.bin").write_bytes(random.Random(i).randbytes(80 << i))
    (CORPUS / "log" / "iterations.klog").write_bytes(log_of_iterations())
    (CORPUS / "log" / "gpu.klog").write_bytes(log_of_gpu_work())
    (CORPUS / "joules" / "meters.klog").write_bytes(log_of_energy())
    (CORPUS / "epochs" / "iterations.klog").write_bytes(log_of_iterations())
    (CORPUS / "epochs" / "phases.klog").write_bytes(log_of_energy())
    write_memory()
    write_calls()
    write_samples()
    with tempfile.TemporaryDirectory() as folder:
        for name, options in {
            "plain": {},
            "monotonic": {"clock": "monotonic"},
            "checked": {"check": True},
            "newest": {"policy": "keep-newest"},
        }.items():
            path = Path(folder) / f"{name}.marey"
            record(path, options, "stop")
            (CORPUS / "log" / f"{name}.klog").write_bytes(log_of(path))
        killed = Path(folder) / "killed.marey"
        record(killed, {}, "kill")
        (CORPUS / "log" / "unfinalized.klog").write_bytes(log_of(killed))
        (CORPUS / "pool" / "killed.pool").write_bytes(pool_input(next(killed.glob("*.pool")).read_bytes()))
        marey.load(killed)
        (CORPUS / "log" / "finalized.klog").write_bytes(log_of(killed))


if __name__ == "__main__":
    main()
