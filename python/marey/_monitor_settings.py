"""The settings of a TrainingMonitor: four switches and other parameters, as arguments or from the environment.

itwinai spells two of the switches differently in its code and in its overview; both spellings work here.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # see _start.py
    from collections.abc import Mapping
    from typing import Any

VARIABLE = "MAREY_MONITOR"
SPELLINGS = {"torch_profiling": "enable_torch_profiling", "store_torch_traces": "store_torch_profiling_traces"}
SWITCHES = ("enable_torch_profiling", "store_torch_profiling_traces", "measure_gpu_data", "measure_epoch_time")
COUNTS = ("profiling_wait_epochs", "profiling_warmup_epochs", "profiling_active_epochs", "profiling_steps")
TEXTS = ("run_name", "output_dir", "strategy")
KEYS = (*SWITCHES, *COUNTS, *TEXTS, "loggers", "print_summary")

# Other keys of a trainer's block in itwinai's configuration files; they belong to the trainer.
_OF_TRAINERS = frozenset(
    (
        *("_target_", "_partial_", "_recursive_", "_convert_", "_args_", "name", "config", "epochs", "model", "loss"),
        *("optimizer", "lr_scheduler", "metrics", "logger", "random_seed", "validation_every", "test_every"),
        *("checkpoint_every", "checkpoints_location", "initial_best_validation_metric", "from_checkpoint"),
        *("ray_scaling_config", "ray_tune_config", "ray_run_config", "ray_search_space", "ray_torch_config"),
        *("ray_data_config", "time_ray", "train_dataset", "validation_dataset", "test_dataset", "dataset"),
        *("num_workers", "batch_size"),
    )
)


def spelled(given: Mapping[str, Any]) -> dict[str, Any]:
    """Replace aliases of keys. Raises ValueError if both spellings have different values."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = SPELLINGS.get(key, key)
        if name in found and found[name] != value:
            other = next(short for short, long in SPELLINGS.items() if long == name)
            raise ValueError(f"{name} and {other} are two spellings of one switch with different values: remove one")
        found[name] = value
    return found


def check(settings: Mapping[str, Any]) -> None:
    """Raise ValueError for settings that contradict each other."""
    for name in SWITCHES:
        if name in settings and not isinstance(settings[name], bool):
            raise ValueError(f"{name} must be True or False, not {settings[name]!r}")
    for name in COUNTS:
        value = settings.get(name)
        least = 0 if name in ("profiling_wait_epochs", "profiling_warmup_epochs") else 1
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise ValueError(f"{name} must be an integer of at least {least}, not {value!r}")
    run_name = settings.get("run_name")
    if run_name is not None and (not run_name or os.path.basename(str(run_name)) != str(run_name)):
        raise ValueError(f"run_name names files, so it must not be empty or contain a slash: {run_name!r}")
    if settings.get("store_torch_profiling_traces") and not settings.get("enable_torch_profiling"):
        raise ValueError(
            "store_torch_profiling_traces needs enable_torch_profiling: without profiling there are no traces to "
            "store; switch both on, or neither"
        )


def check_others(others: Mapping[str, Any], *, warns: bool = True) -> None:
    """Check other keys: a likely misspelling is an error, a key that trainers do not have is a warning."""
    import difflib

    strange = [key for key in others if key not in _OF_TRAINERS]
    for key in strange:
        near = difflib.get_close_matches(key, [*KEYS, *SPELLINGS], n=1, cutoff=0.8)
        if near:
            raise ValueError(f"TrainingMonitor has no {key!r}; did you mean {near[0]!r}?")
    if strange and warns:
        import warnings

        warnings.warn(
            f"TrainingMonitor ignores {', '.join(sorted(strange))}; its settings are {', '.join(KEYS)}",
            stacklevel=3,
        )


# ---- the environment ----


def from_environment() -> dict[str, Any]:
    """Read MAREY_MONITOR: comma-separated, "torch_profiling,measure_gpu_data=0,run_name=a"; "0" or "off": all off."""
    text = os.environ.get(VARIABLE, "").strip()
    if text in ("", "1", "on"):
        return {}
    if text in ("0", "off"):
        return dict.fromkeys(SWITCHES, False)
    found: dict[str, Any] = {}
    for word in text.split(","):
        key, has_value, value = word.strip().partition("=")
        name = SPELLINGS.get(key, key)
        if name not in KEYS:
            raise ValueError(f"{VARIABLE} has {key!r}, and knows {', '.join((*SPELLINGS, *KEYS))}")
        found[name] = _value(name, value) if has_value else _yes(name)
    return found


def _yes(name: str) -> bool:
    if name not in (*SWITCHES, "print_summary"):
        raise ValueError(f"{VARIABLE} has {name} without a value: write {name}=...")
    return True


def _value(name: str, text: str) -> Any:
    if name in COUNTS:
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"{VARIABLE} has {name}={text}, which is not a number") from None
    if name in (*SWITCHES, "print_summary"):
        truths = {
            "1": True,
            "true": True,
            "on": True,
            "yes": True,
            "0": False,
            "false": False,
            "off": False,
            "no": False,
        }
        if text.lower() not in truths:
            raise ValueError(f"{VARIABLE} has {name}={text}, which is neither 1 nor 0")
        return truths[text.lower()]
    return text.replace("+", ",") if name == "loggers" else text
