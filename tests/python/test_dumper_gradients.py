"""TensorDumper: gradients by autograd.grad, and those of the ordinary backward pass by hooks."""

from __future__ import annotations

import pytest
from dumped import entry, manifest, names, tensors, tree

import marey

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors.torch")

Type = marey.TensorDumper.Type


@pytest.fixture
def dumper(accvlab):
    return accvlab


def grads(folder, step=0):
    return tree(folder, step, "grads.json")


def test_gradients_are_autograds_and_leave_grad_alone(dumper, folder):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    dumper.add_grad_data("g", {"x": x}, Type.JSON)
    loss = (x**2).sum()
    dumper.set_gradients(loss)
    dumper.dump()
    assert grads(folder) == {"g": {"x": [2.0, 4.0]}}
    assert x.grad is None
    loss.backward()  # the graph is still there
    assert x.grad.tolist() == [2, 4]


def test_several_outputs_are_summed(dumper, folder):
    x = torch.tensor([3.0], requires_grad=True)
    dumper.add_grad_data("x", x, Type.JSON)
    dumper.set_gradients([x.sum(), (x * 10).sum()])
    dumper.dump()
    assert grads(folder) == {"x": [11.0]}


def test_what_has_no_gradient_is_said_to_have_none(dumper, folder):
    x = torch.ones(1, requires_grad=True)
    unused = torch.ones(1, requires_grad=True)
    dumper.add_grad_data("d", {"x": x, "plain": torch.ones(1), "unused": unused, "note": "text"}, Type.JSON)
    dumper.set_gradients(x.sum())
    dumper.dump()
    found = grads(folder)["d"]
    assert found["x"] == [1.0]
    assert found["plain"] == "`.requires_grad == False`"
    assert found["unused"] is None
    assert found["note"] == "text"


def test_nothing_that_requires_a_gradient_is_no_error(dumper, folder):
    dumper.add_grad_data("x", torch.ones(1), Type.JSON)
    dumper.set_gradients(torch.ones((), requires_grad=True))
    dumper.dump()
    assert grads(folder)["x"] == "`.requires_grad == False`"


def test_permutation_and_form_are_those_of_the_gradient(dumper, folder):
    x = torch.ones(2, 3, requires_grad=True)
    weight = torch.arange(6.0).reshape(2, 3)
    dumper.add_grad_data("d", {"x": x, "y": x}, Type.JSON, {"y": Type.BINARY}, [1, 0])
    dumper.set_gradients((x * weight).sum())
    dumper.dump()
    assert grads(folder)["d"] == {"x": weight.t().tolist(), "y": "d.y.bin"}
    data = (folder / "0" / "[grads.json]d.y.bin").read_bytes()
    assert data == weight.t().contiguous().numpy().tobytes()


def test_without_gradient_data_there_is_no_file(dumper, folder):
    dumper.add_tensor_data("x", torch.ones(1), Type.JSON)
    dumper.set_gradients(torch.ones((), requires_grad=True))
    dumper.dump()
    assert [path.name for path in (folder / "0").iterdir()] == ["tensors.json"]


def test_a_path_that_is_taken_is_reported_at_the_add(dumper):
    x = torch.ones(1, requires_grad=True)
    dumper.add_grad_data("a.b", x, Type.JSON)
    for path in ("a.b", "a", "a.b.c"):
        with pytest.raises(AssertionError, match="already"):
            dumper.add_grad_data(path, x, Type.JSON)
    dumper.add_grad_data("a.c", x, Type.JSON)


def test_trees_of_tensors_and_gradients_are_apart(dumper, folder):
    x = torch.ones(1, requires_grad=True)
    dumper.add_tensor_data("x", x, Type.JSON)
    dumper.add_grad_data("x", x, Type.JSON)
    dumper.set_gradients((5 * x).sum())
    dumper.dump()
    assert tree(folder) == {"x": [1.0]}
    assert grads(folder) == {"x": [5.0]}


# ---- hooks ----


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer0 = torch.nn.Linear(3, 4)
        self.out = torch.nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.layer0(x)))


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net()


@pytest.fixture
def recorder(folder):
    dumper = marey.TensorDumper(folder)
    yield dumper
    dumper.reset()


def load(folder, name, step=0):
    return tensors(folder, step)[name]


def test_modules_are_dumped_in_the_order_of_execution(recorder, folder, net):
    x = torch.randn(2, 3)
    with recorder.dump_module(net, params=True, grads=True):
        y = net(x)
        y.sum().backward()
        recorder.dump()
    recorder.wait()
    found = names(folder)
    assert found.index("model.in") < found.index("layer0.in") < found.index("layer0.out") < found.index("out_.in")
    assert found.index("out_.out") < found.index("model.out") < found.index("%grad.model.grad_out")
    phases = {record["name"]: (record["tree"], record["phase"]) for record in manifest(folder)}
    assert phases["layer0.out"] == ("tensors", "forward")
    assert phases["layer0.param.weight"] == ("tensors", "forward")
    assert phases["%grad.layer0.grad.weight"] == ("gradients", "backward")
    assert torch.equal(load(folder, "layer0.in"), x)
    assert torch.equal(load(folder, "model.out"), y.detach())
    assert torch.equal(load(folder, "%grad.layer0.grad.weight"), net.layer0.weight.grad)
    assert load(folder, "%grad.model.grad_out").tolist() == [[1], [1]]


def test_hooks_change_no_number(recorder, net):
    import copy

    other = copy.deepcopy(net)
    x = torch.randn(5, 3)
    recorder.dump_module(net, params=True, grads=True)
    net(x).sum().backward()
    other(x).sum().backward()
    for a, b in zip(net.parameters(), other.parameters()):
        assert torch.equal(a.grad, b.grad)


def test_patterns_choose_modules(recorder, folder, net):
    with recorder.dump_module(net, "lay*", inputs=False):
        net(torch.ones(1, 3))
        recorder.dump()
    recorder.wait()
    assert names(folder) == ["layer0.out"]
    with pytest.raises(ValueError, match="layer0, out"):
        recorder.dump_module(net, ["nothing*", "like?it"])


def test_a_module_called_twice_in_a_step_has_both(recorder, folder, net):
    with recorder.dump_module(net, "layer0", inputs=False):
        for _ in range(2):
            net(torch.ones(1, 3))
            net(torch.full((1, 3), 2.0))
            recorder.dump()
    recorder.wait()
    assert names(folder, 0) == names(folder, 1) == ["layer0.out", "layer0.call1.out"]
    assert not torch.equal(load(folder, "layer0.out"), load(folder, "layer0.call1.out"))


def test_hooks_go_when_they_are_removed(recorder, folder, net):
    handle = recorder.dump_module(net, grads=True, params=True)
    handle.remove()
    handle.remove()
    net(torch.ones(1, 3)).sum().backward()
    recorder.dump()
    recorder.wait()
    assert names(folder) == []
    assert not net._forward_hooks and not net.layer0._forward_pre_hooks


def test_hooks_wait_until_the_dumper_is_enabled(tmp_path, net):
    dumper = marey.TensorDumper()
    handle = dumper.dump_module(net, "layer0")
    net(torch.ones(1, 3))
    dumper.enable(tmp_path / "d")
    net(torch.ones(1, 3))
    dumper.dump()
    dumper.reset()
    handle.remove()
    assert names(tmp_path / "d") == ["layer0.in", "layer0.out"]


def test_the_optimizers_phase(recorder, folder, net):
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    before = net.layer0.weight.detach().clone()
    with recorder.dump_optimizer(optimizer, net, state=True):
        net(torch.ones(1, 3)).sum().backward()
        gradient = net.layer0.weight.grad.clone()
        optimizer.step()
        recorder.dump()
    recorder.wait()
    assert entry(folder, "optimizer.param.layer0.weight")["phase"] == "optimizer"
    assert torch.equal(load(folder, "optimizer.param.layer0.weight"), net.layer0.weight.detach())
    assert not torch.equal(net.layer0.weight.detach(), before)
    assert torch.equal(load(folder, "%grad.optimizer.grad.layer0.weight"), gradient)
    assert entry(folder, "optimizer.state.layer0.weight.exp_avg")["shape"] == [4, 3]


def test_dump_module_takes_the_optimizer_along(recorder, folder, net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with recorder.dump_module(net, "layer0", params=True, optimizer=optimizer):
        net(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        recorder.dump()
    recorder.wait()
    assert names(folder)[-2:] == ["optimizer.param.layer0.weight", "optimizer.param.layer0.bias"]


def test_arguments_that_cannot_be_dumped_do_not_stop_the_model(recorder, folder):
    class Odd(torch.nn.Module):
        def forward(self, x: torch.Tensor, how: object, *, scale: float = 1.0) -> dict[str, torch.Tensor]:
            return {"y": x * scale}

    from marey import _dump_leaves

    _dump_leaves._told.clear()
    model = Odd()
    recorder.dump_module(model)
    with pytest.warns(UserWarning, match="object"):
        model(torch.ones(1), object(), scale=2.0)
    recorder.dump()
    recorder.wait()
    assert names(folder) == ["model.in.args[0]", "model.in.scale", "model.out.y"]


def test_what_is_computed_again_in_the_backward_pass_is_of_that_phase(recorder, folder, net):
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(1, 3, requires_grad=True)
    with recorder.dump_module(net, "layer0", outputs=False):
        checkpoint(net.layer0, x, use_reentrant=False).sum().backward()
        recorder.dump()
    recorder.wait()
    assert [(record["name"], record["phase"]) for record in manifest(folder)] == [
        ("layer0.in", "forward"),
        ("layer0.call1.in", "backward"),
    ]
