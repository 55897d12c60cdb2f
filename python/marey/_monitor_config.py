"""The block of a trainer in a configuration file: itwinai's YAML, or a mapping.

itwinai's files contain pipelines with named or listed steps; a step is `{_target_: CLASS, ...}`, in older files
`{class_path: CLASS, init_args: {...}}`. Values may be OmegaConf interpolations, `${name}`.
"""

from __future__ import annotations

import os
import re

from marey._monitor_settings import KEYS, SPELLINGS, SWITCHES, check_others

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Iterator, Mapping
    from typing import Any, Union

    Config = Union[str, os.PathLike[str], Mapping[str, Any]]
    Found = tuple[tuple[str, ...], Any]  # a path and its value

DEFAULT_KEY = "training_step"
_DEFAULT_PIPELINE = "training_pipeline"  # itwinai's default pipeline
_INTERPOLATION = re.compile(r"\$\{([^${}]*)\}")


def read_block(config: Config, key: str) -> dict[str, Any]:
    """Return the settings in the block `key`: a name at any depth, or a path such as "pipeline.steps.1".

    ValueError if the block does not exist, or exists several times.
    """
    tree = _read(config)
    where = os.fspath(config) if isinstance(config, (str, os.PathLike)) else "the configuration"
    path, node = _choose(tree, key, where)
    if not _is_mapping(node):
        raise ValueError(f"the block {key!r} is not a mapping but {node!r}")
    target = str(node.get("_target_", node.get("class_path", "")))
    block = {str(name): value for name, value in _arguments(node).items() if name != "_target_"}
    for name in (*KEYS, *SPELLINGS):
        if name in block:
            try:
                block[name] = _resolve(tree, path, block[name])
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
    return block if target in ("", "marey.TrainingMonitor") else _of_trainer(block)


def _of_trainer(block: dict[str, Any]) -> dict[str, Any]:
    """Return marey's settings from a trainer's block, without those of the trainer."""
    ours = {name: value for name, value in block.items() if name in KEYS or name in SPELLINGS}
    check_others({name: value for name, value in block.items() if name not in ours}, warns=False)
    if ours.get("strategy") == "None" or not isinstance(ours.get("strategy"), str):
        ours.pop("strategy", None)  # the description of an object
    if not isinstance(ours.get("loggers"), str):
        ours.pop("loggers", None)  # the trainer's loggers
    return ours


def _read(config: Config) -> Any:
    if not isinstance(config, (str, os.PathLike)):
        return config
    try:
        import yaml
    except ImportError:
        raise ImportError("TrainingMonitor.from_config needs pyyaml to read a file: pip install pyyaml") from None
    with open(config, encoding="utf-8") as file:
        # Documents use an ellipsis for omitted lines; in YAML it would end the document.
        text = "".join("\n" if line.strip() == "..." else line for line in file)
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(f"{os.fspath(config)} is not YAML: {' '.join(str(error).split())}") from None


# ---- blocks ----


def _choose(tree: Any, key: str, where: str) -> Found:
    found = list(_named(tree, key))
    if not found and re.search(r"[.\[]", key):
        found = [_at_path(tree, key, where)]
    if not found and key == DEFAULT_KEY:
        found = list(_trainers(tree)) or ([((), tree)] if _has_switch(tree) else [])
    if not found:
        raise ValueError(f"{where} has no block {key!r}: name the block that has the switches")
    if len(found) == 1 and not _is_trainer(found[0][1]) and "steps" in _arguments(found[0][1]):
        start = found[0][0]  # a pipeline
        found = [((*start, *path), node) for path, node in _trainers(found[0][1])] or found
    if len(found) > 1:
        found = [each for each in found if each[0][0] == _DEFAULT_PIPELINE] or found
    if len(found) > 1:
        paths = ", ".join(".".join(path) for path, _ in found)
        raise ValueError(f"{where} has {len(found)} blocks {key!r}: {paths}; give one of these paths")
    return found[0]


def _named(node: Any, key: str, path: tuple[str, ...] = ()) -> Iterator[Found]:
    for name, value in _children(node):
        if name == key:
            yield (*path, name), value
        else:
            yield from _named(value, key, (*path, name))


def _trainers(node: Any, path: tuple[str, ...] = ()) -> Iterator[Found]:
    for name, value in _children(node):
        if _is_trainer(value):
            yield (*path, name), value
        else:
            yield from _trainers(value, (*path, name))


def _is_trainer(node: Any) -> bool:
    if not _is_mapping(node):
        return False
    target = str(node.get("_target_", node.get("class_path", "")))
    return "Trainer" in target.rpartition(".")[2] or _has_switch(node)


def _has_switch(node: Any) -> bool:
    return any(name in _arguments(node) for name in (*SWITCHES, *SPELLINGS))


def _arguments(node: Any) -> Any:
    if not _is_mapping(node):
        return {}
    return node["init_args"] if "class_path" in node and _is_mapping(node.get("init_args")) else node


def _is_mapping(node: Any) -> bool:
    return hasattr(node, "items")


def _children(node: Any) -> Iterator[tuple[str, Any]]:
    if _is_mapping(node):
        yield from ((str(name), value) for name, value in node.items())
    elif hasattr(node, "__iter__") and not isinstance(node, (str, bytes)):
        yield from ((str(i), value) for i, value in enumerate(node))


def _at_path(tree: Any, key: str, where: str) -> Found:
    """Follow a path, through interpolations and init_args."""
    path: tuple[str, ...] = ()
    node = tree
    for part in _parts(key):
        node = _resolve(tree, path, node)
        inside = dict(_children(node))
        inside = {**dict(_children(_arguments(node))), **inside}
        if part not in inside:
            what = f"{'.'.join(path)!r} has" if path else "it has"
            raise ValueError(f"{where} has no block {key!r}: {what} {', '.join(inside) or 'no blocks'}")
        path, node = (*path, part), inside[part]
    return path, _resolve(tree, path, node)


def _parts(path: str) -> list[str]:
    return [part for part in re.split(r"[.\[\]]", path) if part]


# ---- interpolations ----


def _resolve(tree: Any, path: tuple[str, ...], value: Any, depth: int = 0) -> Any:
    """Resolve `${name}`, `${a.b[0]}`, `${.sibling}` and `${oc.env:NAME,default}` in a value of the block at `path`."""
    while isinstance(value, str) and (match := _INTERPOLATION.search(value)):
        if depth > 50:
            raise ValueError(f"{value} refers to itself")
        depth += 1
        found = _look_up(tree, path, match[1])
        if match[0] == value:
            value = found
        else:
            value = value[: match.start()] + str(_resolve(tree, path, found, depth)) + value[match.end() :]
    return value


def _look_up(tree: Any, path: tuple[str, ...], expression: str) -> Any:
    resolver, is_call, arguments = expression.partition(":")
    if is_call:
        name, _, default = arguments.partition(",")
        if resolver == "oc.env" and (name in os.environ or "," in arguments):
            return os.environ.get(name, default.strip())
        if resolver == "itwinai.cwd":
            return os.getcwd()
        raise ValueError(
            f"${{{expression}}} needs OmegaConf to resolve it: give from_config() the mapping that OmegaConf made"
        )
    dots = len(expression) - len(expression.lstrip("."))
    start = path[: len(path) + 1 - dots] if dots else ()
    node = tree
    for part in (*start, *_parts(expression)):
        inside = {**dict(_children(_arguments(node))), **dict(_children(node))}
        if part not in inside:
            raise ValueError(f"${{{expression}}} leads nowhere: {part!r} does not exist")
        node = inside[part]
    return node
