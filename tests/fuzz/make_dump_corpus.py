"""Regenerate the corpus of the dump readers, valid and invalid files: `python tests/fuzz/make_dump_corpus.py`."""

from __future__ import annotations

import json
import struct
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    text = header.encode("latin-1") + b"\n"
    return b"\x93NUMPY" + struct.pack("<BBH" if version == 1 else "<BBI", version, 0, len(text)) + text + data


def safetensors(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


FILES = {
    "npy": [
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", bytes(24)),
        npy("{'descr': '>c16', 'fortran_order': True, 'shape': (1,), }", bytes(16), 2),
        npy("{'descr': '<u2', 'fortran_order': False, 'shape': (), }", bytes(2)),
        npy("{'descr': '|V2', 'fortran_order': False, 'shape': (1,)}", bytes(2)),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
        npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (0,), }"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807), }"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9223372036854775807, 9), }", version=3),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
    ],
    "safetensors": [
        safetensors(
            {"a": entry("F32", [2], 0, 8), "b": entry("BF16", [], 8, 10), "e": entry("U8", [0], 8, 8)}, b"0123456789"
        ),
        safetensors({"__metadata__": {"marey_dump": "1"}, "__pad__0": entry("U8", [3], 0, 3)}, bytes(3)),
        safetensors({"a": entry("F4", [2, 2], 0, 2), "b": entry("F6_E2M3", [4], 2, 5)}, bytes(5)),
        safetensors({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 2, 6)}, bytes(6)),
        safetensors({"a": entry("F32", [1], 4, 8)}, bytes(8)),
        safetensors({"a": entry("F32", [2**62, 2**62], 0, 8)}, bytes(8)),
        safetensors(
            b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}',
            b"x",
        ),
        safetensors(b'{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,-1]}}'),
        struct.pack("<Q", 1 << 63) + b"{}",
        safetensors(b"{}"),
    ],
    "bin_meta": [
        b'{"file_data_shape": [2, 3], "file_data_dtype": "torch.float32"}',
        b'{"file_data_dtype": "torch.bfloat16", "more": {"a": [1, null, true]}, "file_data_shape": []}',
        b'{"file_data_shape": [4611686018427387904, 8], "file_data_dtype": "torch.float64"}',
        b'{"file_data_shape": [1.5], "file_data_dtype": "x"}',
    ],
    "tree": [
        b'{"a": [[1.5, -0.0], [NaN, "-Infinity"]], "b": {"c": [1, 2, 9223372036854775808], "d": []}, "e": 1e400}',
        b'{"img": [["img.0.0.png"], ["x.bin", null]], "t": "\\ud83d\\ude00\\ud800", "l": [[], []], "f": [true, false]}',
        b'[[1], [2, 3], [[4]], {"": {}, "x/y": [1, null], "..": [null]}]',
        b"[" * 300 + b"]" * 300,
        b'{"a":' * 300 + b"1" + b"}" * 300,
        b"[-9223372036854775808, 18446744073709551615, 0.1e-5]",
        b'{"a": [1, 2',
        b"3.4028235e+38",
    ],
    "manifest": [
        b'{"marey_dump":1,"step":12,"rank":3,"world":8,"pid":4711,"host":"node7","run":null,"unix_ns":5,"mode":"full",'
        b'"data_start":4096,"reason":null}\n'
        b'{"seq":0,"tree":"tensors","path":["a","b"],"name":"a.b","type":"container","dtype":"bfloat16","shape":[2,3],'
        b'"strides":[-3,1],"offset":64,"bytes":12,"phase":"forward","source":"t.py:1","digest":"'
        + b"0123456789abcdef" * 2
        + b'","blocks":["'
        + b"0" * 32
        + b'"],"stats":{"n":6,"nan":0,"min":-1,"max":"Infinity","mean":"NaN","histogram":{"39":4}}}\n'
        b'{"seq":1,"tree":"gradients","path":["e"],"name":"%grad.e","value":3}\n'
        b'{"seq":2,"name":"p[2]","type":"image_rgb","dtype":"float32","shape":[1],"files":["p.0.png","p.1.png"]}\n'
        b'{"end":true,"tensors":1,"values":2,"bytes":12}\n',
        b'{"marey_dump":1,"data_start":4096}\n{"seq":0,"name":"a","dtype":"float64","shape":[4],"offset":250,"bytes":32}\n'
        b'{"seq":0,"name":"b","files":["../x"]}\n{"seq":0,"name":"c","value":"text"}\n{"seq":1,"na',
        b'{"marey_dump":1,"data_start":0}\n{"seq":0,"name":"a","dtype":"float64","offset":0,"bytes":0}\n'
        b'{"seq":1,"name":"b","type":"json","files":["b.json"]}\n{"end":true}\n',
        b'{"marey_dump":2}\n',
        b'{"marey_dump":1,"data_start":9223372036854775807}\n{"seq":0,"name":"a","dtype":"uint8","shape":[0],"offset":0,'
        b'"bytes":0}\n{"end":true}\n',
    ],
    "number": [
        b"0.1\0\0\0\0\0",
        b"-1.7976931348623157e+308",
        b"4.9406564584124654417656879286822137236505980e-324",
        b"9007199254740993.00000000000000000000000000000001",
        b"\x01\x00\x00\x00\x00\x00\x00\x00",
        b"\xff\xff\x7f\x7f\xff\xff\xef\x7f",
        b"../../x\xff[3].%",
        b"9007199254740993.00.00001990..046[",
        b"\xfd\x43\xae\x15\x00\x00\x00\x00",
    ],
}


def main() -> None:
    for target, files in FILES.items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for i, data in enumerate(files):
            (folder / f"{i:02d}").write_bytes(data)


if __name__ == "__main__":
    main()
