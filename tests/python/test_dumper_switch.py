"""TensorDumper: one instance, off by default, on by itself, by a recording's options, by the environment."""

from __future__ import annotations

import copy
import pickle

import pytest
from dumped import steps, tensors

import marey

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors.torch")

Type = marey.TensorDumper.Type


@pytest.fixture(autouse=True)
def off():
    yield
    marey.TensorDumper().reset()


def test_every_call_gives_the_one_instance():
    dumper = marey.TensorDumper()
    assert marey.TensorDumper() is dumper
    assert marey.TensorDumper.__new__(marey.TensorDumper) is dumper
    assert copy.deepcopy(dumper) is dumper
    assert pickle.loads(pickle.dumps(dumper)) is dumper


def test_off_by_default_and_then_nothing_is_done(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dumper = marey.TensorDumper()
    assert dumper.is_enabled is False
    assert dumper.add_tensor_data("a", torch.ones(2), Type.JSON) is None
    assert dumper.add_grad_data("a", torch.ones(2), Type.JSON) is None
    assert dumper.set_gradients(torch.ones(())) is None
    assert dumper.dump() is None
    assert dumper.compare_to_dumped_data() is None
    assert dumper.set_dump_is_compare() is None
    assert dumper.set_dump_type_for_all(Type.JSON) is None
    assert dumper.push_range("a") is None
    assert dumper.pop_range() is None
    assert dumper.set_dump_count(3) is None
    assert dumper.reset_dump_count() is None
    assert dumper.perform_after_dump_count(0, lambda: 1 / 0) is None
    assert dumper.register_custom_converter(int, lambda x: x) is None
    assert dumper.enable_ragged_batch_dumping() is None
    assert dumper.run_if_enabled(lambda: 1 / 0) is None
    assert dumper.add_tensor_data("lazy", lambda: 1 / 0) is None
    assert dumper.trigger() is None
    assert dumper.wait() is None
    assert dumper.dump_count == 0
    assert list(tmp_path.iterdir()) == []


def test_off_a_wrong_call_is_still_told():
    dumper = marey.TensorDumper()
    with pytest.raises(TypeError, match="data"):
        dumper.add_tensor_data("a")
    with pytest.raises(TypeError, match="colour"):
        dumper.add_tensor_data("a", 1, colour="red")
    with pytest.raises(TypeError, match="takes at most 0"):
        dumper.pop_range("name")


def test_a_method_taken_before_enabling_works_after_it(tmp_path):
    dumper = marey.TensorDumper()
    add, dump = dumper.add_tensor_data, dumper.dump
    add("early", torch.zeros(1))
    dumper.enable(tmp_path / "d")
    add("late", torch.ones(1))
    dump()
    dumper.disable()
    assert list(tensors(tmp_path / "d")) == ["late"]


def test_the_constructor_enables_as_well(tmp_path):
    dumper = marey.TensorDumper(str(tmp_path / "d"))
    assert dumper.is_enabled is True
    assert dumper.dump_dir == str(tmp_path / "d")


def test_a_second_enable_is_an_error_until_it_is_disabled(tmp_path):
    dumper = marey.TensorDumper(tmp_path / "a")
    with pytest.raises(RuntimeError, match="already enabled"):
        dumper.enable(tmp_path / "b")
    dumper.disable()
    dumper.enable(tmp_path / "b")
    assert dumper.dump_dir == str(tmp_path / "b")


def test_disabling_forgets_what_it_was_told(tmp_path):
    dumper = marey.TensorDumper(tmp_path / "a")
    dumper.push_range("r")
    dumper.set_dump_type_for_all(Type.JSON)
    dumper.perform_after_dump_count(1, lambda: 1 / 0)
    dumper.add_tensor_data("dropped", torch.ones(1))
    dumper.disable()
    dumper.enable(tmp_path / "b")
    assert dumper.dump_count == 0
    dumper.add_tensor_data("x", torch.ones(1))
    dumper.dump()
    dumper.disable()
    assert list(tensors(tmp_path / "b")) == ["x"]


def test_the_directory_is_made_when_something_is_dumped(tmp_path):
    dumper = marey.TensorDumper(tmp_path / "d")
    assert not (tmp_path / "d").exists()
    dumper.dump()
    dumper.wait()
    assert steps(tmp_path / "d") == [0]


@pytest.mark.parametrize("options", [{"layout": "zip"}, {"mode": "some"}, {"policy": "hope"}])
def test_options_that_are_none_are_refused(tmp_path, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        marey.TensorDumper(tmp_path / "d", **options)
    assert not marey.TensorDumper().is_enabled


def test_without_a_directory_it_takes_the_recordings(tmp_path):
    marey.start(tmp_path / "run.marey")
    dumper = marey.TensorDumper()
    dumper.enable()
    dumper.add_tensor_data("x", torch.ones(1))
    dumper.dump()
    dumper.disable()
    assert list(tensors(tmp_path / "run.marey" / "dumps")) == ["x"]


def test_an_explicit_directory_wins_over_the_recordings(tmp_path):
    marey.start(tmp_path / "run.marey")
    dumper = marey.TensorDumper(tmp_path / "mine")
    dumper.dump()
    dumper.disable()
    assert steps(tmp_path / "mine") == [0]
    assert not (tmp_path / "run.marey" / "dumps").exists()


def test_with_neither_it_says_what_to_do():
    with pytest.raises(ValueError, match="need a directory"):
        marey.TensorDumper().enable()


SCRIPT = """
    import marey, torch

    dumper = marey.TensorDumper()
    assert dumper.is_enabled
    for i in range(2):
        dumper.add_tensor_data("x", torch.full((2,), float(i)))
        dumper.dump()
"""


def test_the_environment_enables_it(tmp_path, run_python):
    environment = {"MAREY": str(tmp_path / "run.marey"), "MAREY_OPTIONS": f"dump.dir={tmp_path / 'd'}"}
    run_python(SCRIPT, env=environment)
    assert steps(tmp_path / "d") == [0, 1]
    assert tensors(tmp_path / "d", 1)["x"].tolist() == [1, 1]


def test_the_environment_makes_a_flight_recorder_that_an_exception_sets_off(tmp_path, run_python):
    environment = {"MAREY": str(tmp_path / "run.marey"), "MAREY_OPTIONS": f"dump.dir={tmp_path / 'd'},dump.flight=2"}
    done = run_python(SCRIPT + "    raise ValueError\n", env=environment, check=False)
    assert done.returncode == 1
    assert steps(tmp_path / "d") == [0, 1]
    run_python(SCRIPT, env={**environment, "MAREY_OPTIONS": f"dump.dir={tmp_path / 'e'},dump.flight=2"})
    assert not (tmp_path / "e").exists() or steps(tmp_path / "e") == []


def test_marey_run_enables_it(tmp_path, run_python, marey_command):
    command = [
        *marey_command,
        "run",
        "--only",
        "ranges",
        "-o",
        str(tmp_path / "run.marey"),
        "--options",
        f"dump.dir={tmp_path / 'd'}",
        "--",
    ]
    run_python(SCRIPT, command=command)
    assert steps(tmp_path / "d") == [0, 1]


def test_start_enables_it(tmp_path):
    marey.start(tmp_path / "run.marey", dump_dir=tmp_path / "d")
    dumper = marey.TensorDumper()
    assert dumper.is_enabled
    dumper.add_tensor_data("x", torch.ones(1))
    dumper.dump()
    dumper.wait()
    assert list(tensors(tmp_path / "d")) == ["x"]


def test_importing_marey_imports_neither_torch_nor_numpy(run_python):
    run_python("""
        import sys
        import marey

        dumper = marey.TensorDumper()
        dumper.add_tensor_data("x", 1)
        dumper.dump()
        assert marey.TensorDumper.Type.PICKLE == 5
        assert not {"torch", "numpy"} & set(sys.modules)
    """)
