"""A real training loop under marey."""

from __future__ import annotations

import pytest

import marey

pytestmark = pytest.mark.needs_torch

STEPS = 20


def train(steps: int) -> list[float]:
    """Train a small network on the CPU, with ranges where a user would put them."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = torch.randn(64, 16)
    target = data.sum(dim=1, keepdim=True)
    losses = []
    for step in range(steps):
        with marey.range("step", payload=step):
            with marey.range("forward"):
                loss = torch.nn.functional.mse_loss(model(data), target)
            with marey.range("backward"):
                optimizer.zero_grad()
                loss.backward()
            with marey.range("optimizer", category="update"):
                optimizer.step()
        losses.append(float(loss.detach()))
        marey.counter("loss", loss.detach())
    return losses


def test_a_training_loop_is_measured_and_not_changed(record):
    without = train(STEPS)
    with record() as path:
        within = train(STEPS)
    assert within == without

    recording = marey.load(path)
    ranges = recording.ranges
    assert dict(zip(ranges["name"], ranges["count"])) == dict.fromkeys(
        ("step", "forward", "backward", "optimizer"), STEPS
    )
    step = ranges.row(name="step")
    parts = sum(ranges.row(name=name)["total_ns"] for name in ("forward", "backward", "optimizer"))
    assert step["self_ns"] == step["total_ns"] - parts
    loss = recording.counters.row(name="loss")
    assert loss["count"] == STEPS
    assert loss["last"] == pytest.approx(within[-1])
    assert recording.lost_events == 0


def test_a_decorated_module_trains(record):
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        @marey.range("Model.forward")
        def forward(self, x):
            return self.layer(x)

    with record() as path:
        model = Model()
        for _ in range(5):
            model(torch.ones(2, 4)).sum().backward()
    assert marey.load(path).ranges.row(name="Model.forward")["count"] == 5


def test_ranges_in_hooks_run_on_autograds_thread(record):
    import torch

    x = torch.ones(3, requires_grad=True)

    def hook(grad):
        with marey.range("hook"):
            return grad * 2

    with record() as path, marey.range("backward"):
        y = x * 3
        y.register_hook(hook)
        y.sum().backward()
    assert marey.load(path).ranges.row(name="hook")["count"] == 1
    assert x.grad.tolist() == [6.0, 6.0, 6.0]


def test_data_loader_workers_record_into_logs_of_their_own(run_python, tmp_path):
    run_python("""
        import marey
        import torch

        class Squares(torch.utils.data.Dataset):
            def __len__(self):
                return 16

            def __getitem__(self, i):
                with marey.range("load one"):
                    return torch.tensor(i * i)

        if __name__ == "__main__":
            marey.start("run.marey")
            loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=2)
            with marey.range("epoch"):
                assert sum(int(batch.sum()) for batch in loader) == sum(i * i for i in range(16))
            marey.stop()
    """)
    recording = marey.load(tmp_path / "run.marey")
    assert recording.ranges.row(name="load one")["count"] == 16
    assert recording.ranges.row(name="epoch")["count"] == 1
    assert len(recording.processes) == 3


def test_marey_run_with_a_training_script(run_python, marey_command, tmp_path):
    out = tmp_path / "run.marey"
    run_python(
        """
        import torch
        import marey

        model = torch.nn.Linear(4, 1)
        for _ in range(3):
            with marey.range("step"):
                model(torch.ones(2, 4)).sum().backward()
        """,
        command=[*marey_command, "run", "--only", "ranges", "-o", str(out), "--"],
    )
    assert marey.load(out).ranges["count"] == [3]
