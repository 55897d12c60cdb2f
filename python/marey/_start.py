"""Start and stop from Python: options by keyword, recording of child processes, folders of headers and libraries."""

from __future__ import annotations

import atexit
import os
import sys

from marey import _imports, _native  # noqa: F401  # the hooks for torch use _imports

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take longer than all the rest of the package
    from typing import Optional, Union

    Option = Union[str, int, float, bool, os.PathLike[str], list[str], tuple[str, ...]]

# Environment variables before start() changed them; empty if nothing has to be restored.
_saved_environment: dict[str, Optional[str]] = {}


def start(path: Optional[Union[str, os.PathLike[str]]] = None, **options: Option) -> None:
    """Begin a recording in the directory `path` (default: $MAREY, else "run.marey").

    Options are those of MAREY_OPTIONS, listed by marey.options_help(): `marey.start(pool="64MiB", check=True)`. Keys
    with a dot are passed as `**{"stopwatch.warmup": 5}`; `dump_dir` means "dump.dir". Sizes are bytes or strings like
    "64MiB". `calls=True` records calls of Python functions; `calls_modules` (names of modules), `calls_signatures`,
    `calls_builtins` and `calls_memory` mean "calls.modules" and so on. An unknown option or an invalid value raises
    ValueError, a recording that is already open MareyError.

    Processes started from here on record into the same directory, until stop(). Under `marey run`, or with MAREY set,
    the first start() joins the recording that is already on, and ignores `path` and the options.
    """
    text = _options_text({_option_key(key): value for key, value in options.items()})
    joins = _native.enabled()
    _native.start("" if path is None else path, text)
    _watch()
    if not joins:  # otherwise the environment already has what children need
        _enter_environment(os.path.abspath(_native.recording_path()), text)


def _watch() -> None:
    """Install the hooks for torch when it is imported."""
    from marey import _loader_workers

    _loader_workers.watch()
    if _native.gpu_is_on():
        from marey import _auto_cuda, _torch_profiler

        _torch_profiler.watch()
        _auto_cuda.watch()
    if _native.auto_is_on():
        from marey import _auto

        _auto.watch()


def stop() -> None:
    """End the recording and write what is still in memory. Does nothing without a recording."""
    tell_versions()
    if "marey._auto_compile" in sys.modules:
        sys.modules["marey._auto_compile"].finish()
    _leave_environment()
    _native.stop()


def reset() -> None:
    """Stop, and discard options and nesting stacks. Range objects stay valid."""
    _leave_environment()
    _native.reset()


def tell_versions() -> None:
    """Record the version of Python and of the relevant libraries that are loaded now."""
    versions = ["Python " + ".".join(map(str, sys.version_info[:3]))]
    for name in ("torch", "numpy", "jax", "tensorflow", "transformers", "lightning"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            versions.append(f"{name} {version}")
    _native.set_versions(", ".join(versions))


# At import, for a recording that opens with the first event; at exit, for libraries loaded in between.
tell_versions()
atexit.register(tell_versions)

if _native.enabled():  # by the environment
    _watch()


def options_help() -> str:
    """One line for each option of start(): name, default, meaning."""
    return _native.options_help()


def get_include() -> str:
    """The directory of the C headers, for extensions with their own ranges."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


def get_library_dir() -> str:
    """The directory of the libmarey of this process, to link with: it must be the only copy."""
    return os.path.dirname(os.path.abspath(_native.library_path()))


def _options_text(options: dict[str, Option]) -> str:
    """Format options for MAREY_OPTIONS."""
    return ",".join(f"{key}={_option_value(key, value)}" for key, value in options.items())


def _option_key(key: str) -> str:
    return key.replace("_", ".", 1) if key == "dump_dir" or key.startswith("calls_") else key


def _option_value(key: str, value: Option) -> str:
    if isinstance(value, (list, tuple)):
        return ":".join(_option_value(key, item) for item in value)
    if isinstance(value, bool):
        return "1" if value else "0"
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else str(value)
    if "," in text or "\0" in text:
        raise ValueError(f"option {key}: {text!r} has a comma or a NUL, which options cannot hold")
    return text


def _enter_environment(path: str, text: str) -> None:
    for key, value in (("MAREY", path), ("MAREY_OPTIONS", text)):
        _saved_environment.setdefault(key, os.environ.get(key))
        os.environ[key] = value


def _leave_environment() -> None:
    for key, value in _saved_environment.items():
        if value is None:
            os.environ.pop(key, None)
        else:
            os.environ[key] = value
    _saved_environment.clear()
