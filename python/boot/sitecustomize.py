"""Start recording in an unmodified Python program.

`marey run` puts this folder first in PYTHONPATH, so that the interpreter imports this file as `sitecustomize` while it
starts. It removes itself from the path, imports the sitecustomize that it hides, if any, and loads the extension
marey._native: that loads libmarey, which reads $MAREY and starts recording. The package `marey` itself is not
imported, so that the program finds sys.modules as it would without us.

On any error here, the program runs as if this file did not exist. This file must work with every Python 3 that a
program may use, even ones too old for marey, so it avoids newer syntax.
"""

import os
import sys


def _step_aside():
    """Leave sys.path and sys.modules as if this folder did not exist."""
    here = os.path.realpath(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [p for p in sys.path if not p or os.path.realpath(p) != here]
    sys.modules.pop("sitecustomize", None)


def _find(name, folders):
    """Find a module in `folders` (None: sys.path) without importing what is above it."""
    from importlib.machinery import PathFinder

    return PathFinder.find_spec(name, folders)


def _load(spec):
    """Load a module under its own name, without the package around it."""
    from importlib import _bootstrap

    module = _bootstrap.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(spec.name, None)
        raise


def _find_native(folders):
    """Find marey._native for this interpreter in the package below one of `folders` (None: sys.path)."""
    package = _find("marey", folders)
    if package is None or not package.submodule_search_locations:
        return None
    return _find("marey._native", list(package.submodule_search_locations))


class _PackageFinder(object):
    """Lets the program import `marey` from a folder, and nothing else from there.

    The folder may be another environment's site-packages, whose other packages must not appear in this one.
    """

    def __init__(self, folder):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        """Find `marey`; its submodules are then found through its own path."""
        return _find(name, [self.folder]) if name == "marey" else None


def _complain(reason):
    """Say once for the whole run why this interpreter records nothing."""
    if os.environ.get("MAREY_BOOT_SAID"):
        return
    os.environ["MAREY_BOOT_SAID"] = "1"
    sys.stderr.write(
        "marey: %s (Python %d.%d) does not record: %s\n"
        % (sys.executable or "python", sys.version_info[0], sys.version_info[1], reason)
    )


def _start():
    """Bring libmarey in, which starts recording by itself."""
    if not os.environ.get("MAREY"):
        return
    spec = _find_native(None)
    folder = os.environ.get("MAREY_PACKAGE_DIR")
    if spec is None and folder:
        spec = _find_native([folder])
        if spec is not None:
            sys.meta_path.append(_PackageFinder(folder))
    if spec is None:
        if sys.version_info < (3, 10):
            _complain("Python %d.%d is not supported; 3.10 to 3.13 are" % sys.version_info[:2])
        else:
            _complain("it has no package marey built for it; install marey into that environment")
        return
    _load(spec)
    here = [os.path.dirname(spec.origin)]
    _load(_find("marey._imports", here))
    _watch("marey._loader_workers", here)
    if sys.modules["marey._native"].gpu_is_on():
        _watch("marey._torch_profiler", here)
        _watch("marey._auto_cuda", here)
    if sys.modules["marey._native"].auto_is_on():
        _watch("marey._auto", here)


def _watch(name, folders):
    """Load a module that waits for torch."""
    _load(_find(name, folders))
    sys.modules[name].watch()


def _boot():
    this = sys.modules.get("sitecustomize")
    _step_aside()
    try:
        following = _find("sitecustomize", None)
        if following is not None:
            _load(following)  # site reports its exceptions, as without marey
    finally:
        try:
            _start()
        except Exception as error:
            _complain("%s; install marey into that environment" % error)
        # The import system expects to find what it has just imported.
        sys.modules.setdefault("sitecustomize", this)


_boot()
