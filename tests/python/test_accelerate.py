"""marey.accelerate with the real accelerate and a plain loop."""

from __future__ import annotations

import importlib
import sys

import pytest
from phase_events import counts, nothing_stays, steps  # noqa: F401  # one is a fixture

import marey

torch = pytest.importorskip("torch")
accelerate = pytest.importorskip("accelerate")

from marey.accelerate import trace  # noqa: E402

N_SAMPLES, BATCH = 16, 2


class Fault(Exception):
    pass


def accelerator_of(n_accumulated=1):
    accelerate.state.AcceleratorState._reset_state(True)
    accelerate.state.GradientState._reset_state()
    return accelerate.Accelerator(cpu=True, gradient_accumulation_steps=n_accumulated)


def parts():
    model = torch.nn.Linear(4, 1)
    data = torch.utils.data.TensorDataset(torch.randn(N_SAMPLES, 4))
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH)
    return model, torch.optim.SGD(model.parameters(), lr=0.1), loader


def train(accelerator, model, optimizer, loader, fails=False):
    for (batch,) in loader:
        with accelerator.accumulate(model):
            loss = model(batch).square().mean()
            if fails:
                loss.register_hook(fail)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


def fail(_):
    raise Fault


def traces_of(accelerator, model, optimizer, loader):
    owners = (accelerator, optimizer)
    shadowed = [{name for name in vars(each) if callable(getattr(type(each), name, None))} for each in owners]
    return [*shadowed, type(loader).__iter__, len(model._forward_hooks), len(model._forward_pre_hooks)]


@pytest.mark.parametrize("n_accumulated", [1, 4])
@pytest.mark.parametrize("is_prepared_before", [True, False])
def test_a_plain_loop_has_its_phases(tmp_path, n_accumulated, is_prepared_before):
    accelerator = accelerator_of(n_accumulated)
    path = tmp_path / "run.marey"
    if is_prepared_before:
        prepared = accelerator.prepare(*parts())
        before = traces_of(accelerator, *prepared)
    with trace(accelerator, path):
        if not is_prepared_before:
            prepared = accelerator.prepare(*parts())
        for _ in range(2):
            with marey.epoch():
                train(accelerator, *prepared)
    if is_prepared_before:
        assert traces_of(accelerator, *prepared) == before
    assert not marey.enabled()
    n_steps = 2 * N_SAMPLES // BATCH // n_accumulated
    expected = [*["data", "forward", "backward"] * n_accumulated, "optimizer", "optimizer"]
    assert steps(path) == [expected] * n_steps
    recording = marey.load(path)
    [row] = recording.throughput
    assert (row["iterations"], row["samples"]) == (n_steps, 2 * N_SAMPLES)
    assert [row["samples"] for row in recording.table("epochs")] == [N_SAMPLES] * 2


def test_models_in_eval_mode_evaluate_and_states_are_saved(record, tmp_path):
    accelerator = accelerator_of()
    model, optimizer, loader = accelerator.prepare(*parts())
    with record() as path, trace(accelerator, tmp_path / "other.marey"):
        train(accelerator, model, optimizer, loader)
        model.eval()
        for (batch,) in loader:
            model(batch)
        model.train()
        train(accelerator, model, optimizer, loader)
        accelerator.save_state(tmp_path / "state")
        accelerator.log({"loss": 1.0})
    n = N_SAMPLES // BATCH
    found = counts(path)
    assert (found["evaluate"], found["forward"], found["checkpoint"], found["logging"]) == (n, 2 * n, 1, 1)
    [row] = marey.load(path).throughput
    assert (row["iterations"], row["samples"]) == (2 * n, 2 * N_SAMPLES)
    assert not (tmp_path / "other.marey").exists()


def test_an_exception_leaves_everything_as_it_was(tmp_path):
    accelerator = accelerator_of()
    prepared = accelerator.prepare(*parts())
    before = traces_of(accelerator, *prepared)
    with pytest.raises(Fault), trace(accelerator, tmp_path / "run.marey"):
        train(accelerator, *prepared, fails=True)
    assert traces_of(accelerator, *prepared) == before
    assert not marey.enabled()
    assert len(marey.load(tmp_path / "run.marey").open) == 0


def test_a_second_trace_is_quiet(record):
    accelerator = accelerator_of()
    prepared = accelerator.prepare(*parts())
    with record() as path:
        first, second = trace(accelerator), trace(accelerator)
        train(accelerator, *prepared)
        second.undo()
        first.undo()
        first.undo()
    assert counts(path)["forward"] == N_SAMPLES // BATCH


def test_something_else_is_refused():
    with pytest.raises(TypeError, match="takes an Accelerator, not int"):
        trace(3)


def test_without_accelerate_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    monkeypatch.delitem(sys.modules, "marey.accelerate")
    with pytest.raises(ImportError, match=r"^marey\.accelerate needs accelerate: pip install accelerate$"):
        importlib.import_module("marey.accelerate")
