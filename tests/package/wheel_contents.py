"""Check a wheel: does it match its name, is it complete, and independent of this machine?

python wheel_contents.py WHEEL SOURCE_DIR        status 1 and a line for each thing that is wrong

Run it with the Python the wheel is for; it needs nothing but the standard library and readelf.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

EXPECTED = [
    "marey/__init__.py",
    "marey/torch.py",
    "marey/py.typed",
    "marey/_native.pyi",
    "marey/_tools.pyi",
    "marey/bin/marey",
    "marey/boot/sitecustomize.py",
    "marey/include/marey/marey.h",
    "marey/libmarey.so",
    "marey/libmarey.so.0",
    "marey/libmarey-tools.so",
    "marey/libmarey-tools.so.0",
    "marey/libmarey-memory.so",
    "marey/libmarey-mpi.so",
    "marey/libmarey-nvtx.so",
    "marey/_native" + sysconfig.get_config_var("EXT_SUFFIX"),
    "marey/_tools" + sysconfig.get_config_var("EXT_SUFFIX"),
    "data/data/share/man/man1/marey.1",
    "data/data/share/man/man1/marey-run.1",
    "data/data/share/bash-completion/completions/marey",
    "data/data/share/zsh/site-functions/_marey",
    "data/data/share/fish/vendor_completions.d/marey.fish",
    "dist-info/METADATA",
    "dist-info/RECORD",
    "dist-info/entry_points.txt",
]
# What the libraries and the command may ask of the system.
NEEDED = re.compile(r"lib(marey|marey-tools)\.so\.0|lib(c|m|z|zstd|sqlite3|isal|pthread|dl)\.so\.\d+|ld-linux.*")


def short(name: str, version: str) -> str:
    """A name in the wheel without the version in front of .data and .dist-info."""
    return name.replace(f"marey-{version}.", "", 1)


def wrong_names(wheel: Path, names: list[str], version: str) -> Iterator[str]:
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    if not wheel.name.startswith(f"marey-{version}-{tag}-{tag}-linux_"):
        yield f"the name {wheel.name} does not say {tag} and linux"
    have = {short(name, version) for name in names}
    yield from (f"{name} is missing" for name in EXPECTED if name not in have)
    if not any(name.startswith("dist-info/") and name.endswith("LICENSE") for name in have):
        yield "the license is missing"
    known = ("marey/", "data/data/share/", "dist-info/")
    yield from (f"{name} does not belong here" for name in have if not name.startswith(known))
    yield from (f"{name} does not belong here" for name in have if re.search(r"\.(c|o|a)$|__pycache__|CMake", name))


def wrong_metadata(text: str, tags: str, version: str) -> Iterator[str]:
    metadata = Parser().parsestr(text)
    if (metadata["Name"], metadata["Version"]) != ("marey", version):
        yield f"the metadata are those of {metadata['Name']} {metadata['Version']}"
    if metadata["Requires-Python"] != ">=3.10":
        yield f"it requires Python {metadata['Requires-Python']}"
    if [line for line in metadata.get_all("Requires-Dist", []) if "extra" not in line]:
        yield "it requires other packages"
    if "Root-Is-Purelib: false" not in tags:
        yield "it says that it is the same for every machine"


def wrong_binary(name: str, path: Path) -> Iterator[str]:
    dynamic = subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True, check=True).stdout
    runpath = re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic)
    entries = [entry for line in runpath for entry in line.split(":")]
    yield from (f"{name} looks for libraries in {entry}" for entry in entries if not entry.startswith("$ORIGIN"))
    if "libmarey" in "".join(re.findall(r"NEEDED.*", dynamic)) and not entries:
        yield f"{name} does not say where its libraries are"
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not NEEDED.fullmatch(library):
            yield f"{name} needs {library}"
    soname = re.findall(r"\(SONAME\).*\[(.*)\]", dynamic)
    if soname and soname[0] != path.name and path.name.startswith("lib"):
        yield f"{name} calls itself {soname[0]}"


def wrong_contents(name: str, path: Path, source: Path) -> Iterator[str]:
    content = path.read_bytes()
    for place in {str(source), str(source.resolve()), str(Path.home()) + "/"}:
        if place.encode() in content:
            yield f"{name} knows of {place}"
    if content.startswith(b"\x7fELF"):
        yield from wrong_binary(name, path)


def wrong(wheel: Path, source: Path) -> Iterator[str]:
    version = wheel.name.split("-")[1]
    info = f"marey-{version}.dist-info"
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        yield from wrong_names(wheel, names, version)
        yield from wrong_metadata(
            archive.read(f"{info}/METADATA").decode(), archive.read(f"{info}/WHEEL").decode(), version
        )
        archive.extractall(folder)
        for name in names:
            if not name.startswith(info):
                yield from wrong_contents(name, Path(folder, name), source)
        if not archive.getinfo("marey/bin/marey").external_attr >> 16 & 0o111:
            yield "marey/bin/marey is not executable"


def main() -> int:
    found = list(wrong(Path(sys.argv[1]), Path(sys.argv[2])))
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{Path(sys.argv[1]).name}: {len(found) or 'nothing'} wrong")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
