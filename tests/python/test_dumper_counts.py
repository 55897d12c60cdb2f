"""TensorDumper: counts, actions, kept steps and their data, triggers of the flight recorder."""

from __future__ import annotations

import json

import pytest
from dumped import entry, names, steps, tensors
from optional_parts import needs_digests

import marey

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors.torch")

Type = marey.TensorDumper.Type


@pytest.fixture
def off():
    yield
    marey.TensorDumper().reset()


def run(dumper, n, value=lambda i: torch.full((2,), float(i))):
    for i in range(n):
        dumper.add_tensor_data("x", value(i))
        dumper.dump()
    dumper.wait()


def test_each_dump_counts(dumper, folder):
    run(dumper, 3)
    assert dumper.dump_count == 3
    assert steps(folder) == [0, 1, 2]
    assert [tensors(folder, i)["x"][0].item() for i in range(3)] == [0, 1, 2]
    assert dumper.counts["steps"] == 3 and dumper.counts["tensors"] == 3


def test_an_empty_dump_counts_unless_told_otherwise(dumper, folder):
    dumper.dump(dump_if_empty=False)
    assert dumper.dump_count == 0
    dumper.dump()
    assert dumper.dump_count == 1
    dumper.wait()
    assert names(folder) == []


def test_the_count_can_be_set(dumper, folder):
    dumper.set_dump_count(40)
    run(dumper, 2)
    dumper.reset_dump_count()
    assert dumper.dump_count == 0
    assert steps(folder) == [40, 41]
    with pytest.raises(ValueError, match="-1"):
        dumper.set_dump_count(-1)


def test_actions_run_when_the_count_becomes_theirs(dumper):
    seen = []
    dumper.perform_after_dump_count(1, lambda: seen.append("replaced"))
    dumper.perform_after_dump_count(1, lambda: seen.append(1))
    dumper.perform_after_dump_count(7, lambda: seen.append(7))
    dumper.dump()
    assert seen == [1]
    dumper.set_dump_count(7)
    dumper.set_dump_count(1)
    assert seen == [1, 7, 1]


def test_an_exit_after_some_dumps_leaves_them_all(tmp_path, run_python):
    done = run_python(
        """
        import marey, torch

        dumper = marey.TensorDumper("d")
        dumper.perform_after_dump_count(3, exit)
        for i in range(10):
            dumper.add_tensor_data("x", torch.full((1000,), float(i)))
            dumper.dump()
        print("not reached")
        """
    )
    assert "not reached" not in done.stdout
    assert steps(tmp_path / "d") == [0, 1, 2]


# ---- which steps ----


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"first": 2, "last": 4}, [2, 3, 4]),
        ({"every": 3}, [0, 3, 6]),
        ({"first": 1, "every": 4}, [1, 5]),
        ({"steps": [0, 5]}, [0, 5]),
    ],
)
@pytest.mark.usefixtures("off")
def test_steps_are_chosen_by_their_numbers(folder, options, kept):
    dumper = marey.TensorDumper(folder, **options)
    run(dumper, 8)
    assert dumper.dump_count == 8
    assert steps(folder) == kept
    assert [tensors(folder, i)["x"][0].item() for i in kept] == kept


@pytest.mark.usefixtures("off")
def test_actions_count_steps_that_are_passed_over(folder):
    seen = []
    dumper = marey.TensorDumper(folder, steps=[5])
    dumper.perform_after_dump_count(2, lambda: seen.append(dumper.dump_count))
    run(dumper, 3)
    assert seen == [2]


# ---- what is kept ----


@pytest.mark.usefixtures("off")
def test_statistics_alone(folder):
    dumper = marey.TensorDumper(folder, mode="stats")
    run(dumper, 1, lambda i: torch.tensor([1.0, -2.0, float("nan"), 0.0]))
    line = entry(folder, "x")
    assert "offset" not in line
    assert (line["stats"]["n"], line["stats"]["nan"], line["stats"]["min"], line["stats"]["max"]) == (4, 1, -2, 1)


@needs_digests
@pytest.mark.usefixtures("off")
def test_digests_alone(folder):
    dumper = marey.TensorDumper(folder, mode="digests")
    run(dumper, 2, lambda i: torch.tensor([1.0, 2.0]) if i == 0 else torch.tensor([2.0, 1.0]))
    first, second = (entry(folder, "x", i) for i in range(2))
    assert "offset" not in first
    assert first["digest"] != second["digest"] and len(first["digest"]) == 32


@pytest.mark.usefixtures("off")
def test_without_statistics_the_manifest_has_none(folder):
    dumper = marey.TensorDumper(folder, stats=False)
    run(dumper, 1)
    assert "stats" not in entry(folder, "x")


# ---- triggers ----


def with_bad(bad):
    return lambda i: torch.tensor([1.0, bad]) if i == 5 else torch.ones(2)


def reason(folder, step):
    return json.loads((folder / f"step-{step:08d}.jsonl").read_text().splitlines()[0])["reason"]


@pytest.mark.parametrize(
    ("options", "bad"),
    [
        ({"on_nan": True}, float("nan")),
        ({"on_inf": True}, float("-inf")),
        ({"over": 100.0}, -1000.0),
        ({"when": lambda name, tensor: name == "x" and tensor[1] > 6}, 7.0),
    ],
)
@pytest.mark.usefixtures("off")
def test_a_trigger_writes_the_step_that_has_it(folder, options, bad):
    dumper = marey.TensorDumper(folder, **options)
    run(dumper, 8, with_bad(bad))
    assert 5 in steps(folder)
    assert not {0, 1, 2, 3, 6, 7} & set(steps(folder))
    assert "x" in reason(folder, 5)


@pytest.mark.usefixtures("off")
def test_numbers_that_are_all_right_trigger_nothing(folder):
    dumper = marey.TensorDumper(folder, on_nan=True, on_inf=True, over=100.0)
    run(dumper, 8, lambda i: torch.tensor([100.0, -100.0]))
    assert steps(folder) == []


@pytest.mark.usefixtures("off")
def test_the_flight_recorder_writes_the_steps_before_as_well(folder):
    dumper = marey.TensorDumper(folder, flight_steps=3, on_nan=True)
    run(dumper, 6, with_bad(float("nan")))
    assert steps(folder) in ([2, 3, 4, 5], [3, 4, 5])
    assert torch.isnan(tensors(folder, 5)["x"][1])


@pytest.mark.usefixtures("off")
def test_it_can_be_set_off_by_hand(folder):
    dumper = marey.TensorDumper(folder, flight_steps=2)
    run(dumper, 4)
    assert steps(folder) == []
    dumper.trigger("because")
    dumper.wait()
    assert steps(folder) == [2, 3]
    assert reason(folder, 3) == "because"


def test_an_uncaught_exception_sets_it_off(tmp_path, run_python):
    done = run_python(
        """
        import marey, torch

        dumper = marey.TensorDumper("d", flight_steps=2)
        for i in range(5):
            dumper.add_tensor_data("x", torch.full((2,), float(i)))
            if i == 4:
                raise ValueError("loss exploded")
            dumper.dump()
        """,
        check=False,
    )
    assert done.returncode == 1
    assert "ValueError: loss exploded" in done.stderr
    written = steps(tmp_path / "d")
    assert 3 in written and 0 not in written
    assert reason(tmp_path / "d", 3) == "uncaught ValueError: loss exploded"
    assert 4 in written, "what was added when it happened is written too"


def test_without_an_exception_nothing_is_written(tmp_path, run_python):
    run_python(
        """
        import marey, torch

        dumper = marey.TensorDumper("d", flight_steps=2)
        for i in range(5):
            dumper.add_tensor_data("x", torch.full((2,), float(i)))
            dumper.dump()
        """
    )
    assert not (tmp_path / "d").exists() or steps(tmp_path / "d") == []
