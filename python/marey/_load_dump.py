"""marey.load_dump(): dumps read back, each value as an array."""

from __future__ import annotations

from _collections_abc import Mapping  # loaded by every interpreter; collections.abc would cost more than this module

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    import os
    from collections.abc import Iterator
    from typing import Any, Optional, Union

    from marey import _tools

    Path = Union[str, os.PathLike[str]]


class Dump(Mapping[str, "Any"]):
    """The values of one step of one rank, by name: dump["layer0.out"]. `steps` lists the others, step() opens one.

    A tensor is a read-only numpy array; bfloat16 and 8-bit floats need ml_dtypes, and without it are torch tensors.
    Other values keep their type: str, int, float, bool, None, {} and [].
    """

    def __init__(self, dumps: _tools.Dumps, place: int, tree: str, allow_pickle: bool) -> None:
        """Wrap one step of an open dump."""
        self._dumps, self._place, self._tree, self._allow_pickle = dumps, place, tree, allow_pickle
        self._about = dumps.step(place)
        self._values = {
            value["name"]: (i, value) for i, value in enumerate(dumps.values(place)) if value["tree"] == tree
        }

    @property
    def number(self) -> int:
        """The number of this step."""
        return self._about["step"]

    @property
    def rank(self) -> Optional[int]:
        """The rank that wrote it, if known."""
        return self._about["rank"]

    @property
    def steps(self) -> list[tuple[int, Optional[int]]]:
        """The number and the rank of each step."""
        listed = (self._dumps.step(i) for i in range(len(self._dumps)))
        return [(step["step"], step["rank"]) for step in listed]

    @property
    def gradients(self) -> Dump:
        """The gradients of this step, by name."""
        return Dump(self._dumps, self._place, "gradients", self._allow_pickle)

    @property
    def notes(self) -> list[str]:
        """Damaged or omitted data found so far."""
        return self._dumps.notes()

    def step(self, number: int, rank: Optional[int] = None) -> Dump:
        """Return another step of the same dump."""
        return Dump(self._dumps, _find(self._dumps, number, rank), self._tree, self._allow_pickle)

    def about(self, name: Optional[str] = None) -> dict[str, Any]:
        """Describe a value: dtype, shape, phase, digest, stats and so on; without a name, the step."""
        return dict(self._about) if name is None else dict(self._find(name)[1])

    def torch(self, name: str) -> Any:
        """Return a tensor as a torch tensor, copied."""
        from marey._arrays import as_torch

        return as_torch(self._dumps.get(self._place, self._find(name)[0]))

    def __getitem__(self, name: str) -> Any:
        i, value = self._find(name)
        if value["kind"] == "bytes" or value["type"] == "pickle":
            return self._unpickle(value)
        if value["kind"] != "tensor":
            return _plain(value)
        from marey._arrays import as_array

        return as_array(self._dumps.get(self._place, i))

    def _find(self, name: str) -> tuple[int, _tools._Value]:
        if name not in self._values:
            from difflib import get_close_matches

            near = get_close_matches(name, self._values, n=3)
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise KeyError(f"step {self.number} has no value {name!r}{hint}")
        return self._values[name]

    def _unpickle(self, value: _tools._Value) -> Any:
        if not self._allow_pickle:
            raise ValueError(
                f"{value['name']} is a pickle, which can run any code when it is loaded; "
                "load_dump(path, allow_pickle=True) loads those that you trust"
            )
        import pickle

        with open(value["files"][0], "rb") as file:
            return pickle.load(file)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        rank = "" if self.rank is None else f", rank {self.rank}"
        lines = [f"<step {self.number}{rank} of {self._about['path']}: {len(self)} {self._tree}>"]
        lines += [f"  {name}  {_form(value)}" for name, (_, value) in list(self._values.items())[:50]]
        lines += [f"  ... and {len(self) - 50} more"] if len(self) > 50 else []
        return "\n".join(lines)


def _plain(value: _tools._Value) -> Any:
    import json

    if value["kind"] in ("dict", "list"):
        return {} if value["kind"] == "dict" else []
    return value["text"] if value["kind"] == "text" else json.loads(value["text"] or "null")


def _form(value: _tools._Value) -> str:
    if value["dtype"] is None or value["shape"] is None:
        return value["kind"] if value["text"] is None else value["text"]
    missing = "" if value["has_data"] else f", {value['missing'] or 'its numbers were not kept'}"
    return f"{value['dtype']} {list(value['shape'])}{missing}"


def _find(dumps: _tools.Dumps, number: Optional[int], rank: Optional[int]) -> int:
    """Find a step; by default the last one, of the lowest rank."""
    listed = [dumps.step(i) for i in range(len(dumps))]
    if number is None and listed:
        number = max(step["step"] for step in listed)
    for i, step in enumerate(listed):
        if step["step"] == number and rank in (None, step["rank"]):
            return i
    wanted = f"step {number}" + ("" if rank is None else f" of rank {rank}")
    raise KeyError(f"there is no {wanted}; there are {sorted({step['step'] for step in listed})}")


def load_dump(
    path: Path, *, step: Optional[int] = None, rank: Optional[int] = None, allow_pickle: bool = False
) -> Dump:
    """Open a dump, of either layout, or one file of tensors; `load_dump(path)["layer0.out"]` is an array.

    By default, opens the last step and the lowest rank. Each value is read on first access. Pickles may run any code:
    set `allow_pickle` only if you trust them.
    """
    from marey import _tools

    dumps = _tools.Dumps(path)
    return Dump(dumps, _find(dumps, step, rank), "tensors", allow_pickle)
