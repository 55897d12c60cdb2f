"""The stack of training phases that all trainers share."""

from __future__ import annotations

import contextlib

import pytest

import marey
from marey import _phases
from marey._phases import NAMES, phases

NO_PHASE = "(no phase)"  # the time between them, where it is measurable


@pytest.fixture(autouse=True)
def nothing_entered():
    assert phases.depth == 0
    yield
    _phases.annotate(None)
    phases.unwind()


def counts(path):
    return {row["name"]: row["count"] for row in marey.load(path).ranges}


def test_a_phase_is_a_range_and_the_recordings_phase(record):
    with record() as path:
        for name in NAMES:
            with phases(name):
                assert phases.now == name
            assert phases.now is None
    assert counts(path) == dict.fromkeys(NAMES, 1)
    assert {row["name"] for row in marey.load(path).table("phases")} - {NO_PHASE} == set(NAMES)


def test_nesting_brings_back_what_was_there(record):
    with record() as path, marey.phase("mine"):
        phases.enter("evaluate")
        phases.enter("logging")
        phases.leave()
        assert phases.now == "evaluate"
        phases.leave()
        assert phases.now == "mine"
        phases.leave()  # one too many
        assert phases.now == "mine"
    assert counts(path) == {"evaluate": 1, "logging": 1}
    times = {row["name"]: row["count"] for row in marey.load(path).table("phases") if row["name"] != NO_PHASE}
    assert times == {"mine": 2, "evaluate": 2, "logging": 1}


def test_a_phase_that_goes_on_is_not_begun_twice(record):
    with record() as path, phases("forward"), phases("forward"):
        assert phases.depth == 2
    assert phases.depth == 0
    assert counts(path) == {"forward": 1}


def test_an_exception_is_unwound(record):
    with record() as path:
        depth = phases.depth
        phases.enter("data")
        phases.enter("logging")
        phases.unwind(depth)
        assert phases.depth == 0
        with pytest.raises(OSError, match="x"), phases("checkpoint"):
            raise OSError("x")
    assert phases.now is None
    assert counts(path) == {"data": 1, "logging": 1, "checkpoint": 1}
    assert len(marey.load(path).open) == 0


def test_off_nothing_happens_and_a_recording_may_begin_or_end_within(tmp_path):
    phases.enter("forward")
    assert phases.now is None
    marey.start(tmp_path / "run.marey")
    phases.leave()
    phases.enter("backward")
    marey.stop()
    phases.leave()
    assert phases.now is None
    assert counts(tmp_path / "run.marey").get("forward") is None


def test_other_names_are_refused_with_the_vocabulary(record):
    with record(), pytest.raises(ValueError, match=r"'lunch' is not a phase.*data, forward"):
        phases.enter("lunch")
    with pytest.raises(ValueError, match="'lunch' is not a phase"):
        phases("lunch")


def test_annotations_are_made_while_wanted_also_without_a_recording():
    told = []

    @contextlib.contextmanager
    def annotation(name):
        told.append(name)
        yield
        told.append("end")

    with phases("forward"):
        pass
    _phases.annotate(annotation)
    with phases("forward"):
        _phases.annotate(None)
    with phases("forward"):
        pass
    assert told == ["marey:forward", "end"]


def test_one_leads_until_it_follows():
    one, other = object(), object()
    assert phases.lead(one) and phases.lead(one) and not phases.lead(other)
    phases.follow(other)
    assert not phases.lead(other)
    phases.follow(one)
    assert phases.lead(other)
    phases.follow(other)


def test_a_driver_can_be_named():
    marey._native.iteration_begin("marey.hf.Callback")
    assert marey._native.iteration_finish(3, "marey.hf.Callback")
    assert marey.progress()["driver"] == "marey.hf.Callback"
    assert not marey.finish_iteration()


@pytest.mark.needs_torch
def test_a_models_forward_is_a_phase_also_when_it_raises(record):
    import torch

    model = torch.nn.Linear(2, 2)
    hooks = dict(model._forward_hooks), dict(model._forward_pre_hooks)
    detach = _phases.attach_model(model)
    with record() as path:
        model(torch.ones(1, 2))
        with pytest.raises(RuntimeError):
            model(torch.ones(1, 3))
        assert phases.depth == 0
        detach()
        model(torch.ones(1, 2))
    assert counts(path)["forward"] == 2
    assert (model._forward_hooks, model._forward_pre_hooks) == hooks


def test_an_annotation_that_cannot_be_made_leaves_the_stack_as_it_was(record):
    def broken(name):
        raise OSError(name)

    with record() as path, phases("data"):
        _phases.annotate(broken)
        with pytest.raises(OSError, match="marey:logging"):
            phases.enter("logging")
        assert (phases.depth, phases.now) == (1, "data")
        _phases.annotate(None)
    assert counts(path) == {"data": 1}


def test_a_stack_may_be_deep_and_names_be_bytes(record):
    with record() as path, marey.phase(b"\xff"):
        assert phases.now == "\\xff"
        for i in range(1000):
            phases.enter(NAMES[i % len(NAMES)])
        assert phases.depth == 1000
        phases.unwind()
        assert phases.now == "\\xff"
    assert sum(counts(path).values()) == 1000
