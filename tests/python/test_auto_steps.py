"""Steps of unmodified programs: hints match the updates and batches counted by the program."""

from __future__ import annotations

import pytest
from auto_hints import check, run_auto

pytest.importorskip("torch")


def test_a_plain_loop(tmp_path):
    seen = run_auto(
        tmp_path,
        """
        net = model()
        optimizer = torch.optim.AdamW(net.parameters())
        for epoch in range(2):
            for batch in loader(10):
                own("B")
                optimizer.zero_grad()
                loss = loss_of(net, batch)
                loss.backward()
                optimizer.step()
                own("U")
            own("E")
        """,
    )
    check(seen)
    assert not seen.has_package
    assert seen.own == "BUBUBUE" * 2
    batches = [n for what, n in zip(seen.hints, seen.samples) if what == "B"]
    assert batches == [4, 4, 2] * 2
    assert len({who for what, who in zip(seen.hints, seen.who) if what == "U"}) == 1
    assert seen.spans == ["data", *["data", "forward", "backward", "optimizer"] * 3, "data"] * 2


def test_two_optimizers_of_a_gan(tmp_path):
    seen = run_auto(
        tmp_path,
        """
        G, D = model(), nn.Linear(1, 1)
        optimizers = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        for batch in loader():
            own("B")
            for optimizer in optimizers:
                optimizer.zero_grad()
                fake = G(batch[0])
                (D(fake) if optimizer is optimizers[0] else -D(fake.detach())).mean().backward()
                optimizer.step()
                own("U")
        own("E")
        """,
    )
    check(seen)
    who = [who for what, who in zip(seen.hints, seen.who) if what == "U"]
    assert who == who[:2] * 3
    assert len(set(who)) == 2


def test_five_critic_updates_for_one_of_the_generator(tmp_path):
    seen = run_auto(
        tmp_path,
        """
        G, D = model(), nn.Linear(1, 1)
        of_g, of_d = torch.optim.RMSprop(G.parameters()), torch.optim.RMSprop(D.parameters())
        for i, batch in enumerate(loader(40)):
            own("B")
            D(G(batch[0]).detach()).mean().backward()
            of_d.step()
            own("U")
            if i % 5 == 4:
                D(G(batch[0])).mean().backward()
                of_g.step()
                own("U")
        own("E")
        """,
    )
    check(seen)
    who = [who for what, who in zip(seen.hints, seen.who) if what == "U"]
    assert who == [*[who[0]] * 5, who[5]] * 2
    assert who[0] != who[5]


def test_gradient_accumulation(tmp_path):
    seen = run_auto(
        tmp_path,
        """
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        for i, batch in enumerate(loader(48)):
            own("B")
            loss_of(net, batch).backward()
            if i % 4 == 3:
                optimizer.step()
                own("U")
                optimizer.zero_grad()
                scheduler.step()
        own("E")
        """,
    )
    assert check(seen).own == "BBBBU" * 3 + "E"


def test_updates_that_a_scaler_skips(tmp_path):
    seen = run_auto(
        tmp_path,
        """
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
        off = torch.amp.GradScaler("cpu", enabled=False)
        n_skipped = 0
        for i, batch in enumerate(loader(24)):
            own("B")
            loss = loss_of(net, batch) * (float("inf") if i in (0, 3) else 1)
            (off if i == 5 else scaler).scale(loss).backward()
            before = scaler.get_scale()
            (off if i == 5 else scaler).step(optimizer)
            own("U")
            (off if i == 5 else scaler).update()
            n_skipped += scaler.get_scale() < before
            optimizer.zero_grad()
        own("E")
        assert n_skipped == 2, n_skipped
        """,
    )
    check(seen)
    assert len({who for what, who in zip(seen.hints, seen.who) if what == "U"}) == 1


def test_an_optimizer_that_calls_back(tmp_path):
    seen = run_auto(
        tmp_path,
        """
        net = model()
        optimizer = torch.optim.LBFGS(net.parameters(), max_iter=4)
        n_calls = 0
        for batch in loader():
            own("B")
            def closure():
                global n_calls
                n_calls += 1
                optimizer.zero_grad()
                loss = loss_of(net, batch)
                loss.backward()
                return loss
            optimizer.step(closure)
            own("U")
        own("E")
        assert n_calls > 3
        """,
    )
    check(seen)
    assert "optimizer/forward" in seen.spans
    assert "optimizer/backward" in seen.spans
    assert "forward" not in seen.spans


def test_optimizers_that_step_inside_backward(tmp_path):
    seen = run_auto(
        tmp_path,
        """
        net = model()
        optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in net.parameters()}
        n_steps = 0
        def hook(parameter):
            global n_steps
            n_steps += 1
            optimizers[parameter].step()
            optimizers[parameter].zero_grad()
        for p in net.parameters():
            p.register_post_accumulate_grad_hook(hook)
        for batch in loader():
            own("B")
            loss_of(net, batch).backward()
            own("U")
        own("E")
        assert n_steps == 12
        """,
    )
    check(seen)
    assert [who for what, who in zip(seen.hints, seen.who) if what == "U"] == [0] * 3
    assert not any("optimizer" in span for span in seen.spans)


def test_nested_runs_of_autograd_and_recomputation(tmp_path):
    seen = run_auto(
        tmp_path,
        """
        from torch.utils.checkpoint import checkpoint
        net, inner = model(), nn.Linear(4, 4)
        class Whole(nn.Module):
            def __init__(self):
                super().__init__()
                self.net, self.inner = net, inner
            def forward(self, x):
                for is_reentrant in (False, True):
                    x = checkpoint(self.inner, x, use_reentrant=is_reentrant)
                return self.net(x)
        whole = Whole()
        optimizer = torch.optim.SGD(whole.parameters(), lr=0.1)
        for x, y in loader(4):
            own("B")
            x.requires_grad_()
            loss = ((whole(x) - y) ** 2).mean()
            penalty, = torch.autograd.grad(whole.net(x).sum(), x, create_graph=True)
            (loss + penalty.norm()).backward()
            optimizer.step()
            own("U")
        own("E")
        """,
    )
    check(seen)
    assert seen.spans[2:] == [
        *["forward", "backward", "backward", "backward/recompute", "backward/recompute", "optimizer", "data"]
    ]


def test_evaluation_and_inference(tmp_path):
    seen = run_auto(
        tmp_path,
        """
        import pickle, copy
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for batch in loader(8):
            own("B")
            loss_of(net, batch).backward()
            optimizer.step()
            own("U")
        own("E")
        net.eval()
        for batch in loader(4):
            own("B")
            net(batch[0])
        own("E")
        net.train()
        with torch.no_grad():
            net(batch[0])
        torch.save(net.state_dict(), "net.pt")
        assert torch.equal(copy.deepcopy(net)(batch[0]), net(batch[0]))
        assert torch.equal(torch.jit.script(net)(batch[0]), net(batch[0]))
        with open("net.pickle", "wb") as file:
            pickle.dump(net, file)
        net(batch[0])
        """,
    )
    check(seen)
    training = ["data", "forward", "backward", "optimizer"]
    assert seen.spans[:16] == [
        *["data", *training, *training, "data", "data", "data", "evaluate", "data", "forward", "checkpoint"]
    ]  # without gradients, but in train mode: a rollout, or the fixed part of a GAN
    # copies are not the model that is trained; pickling a storage is a torch.save()
    assert [span for span in seen.spans[16:] if span != "checkpoint"] == ["forward", "forward", "forward"]
    assert b"marey" not in (tmp_path / "net.pickle").read_bytes()


@pytest.mark.parametrize(
    "options", ["num_workers=0", "num_workers=2", "num_workers=1, multiprocessing_context='spawn'"]
)
def test_inference_with_workers(tmp_path, options):
    seen = run_auto(
        tmp_path,
        f"""
        if __name__ == "__main__":
            net = model().eval()
            with torch.no_grad():
                for batch in loader(20, {options}):
                    own("B")
                    net(batch[0])
                own("E")
        """,
    )
    check(seen)
    assert seen.own == "BBBBBE"
    assert seen.spans.count("evaluate") == 4  # the model is found at the second batch


def test_broken_loops(tmp_path):
    seen = run_auto(
        tmp_path,
        """
        class Fails(Exception):
            pass
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.net, self.error = model(), None
            def forward(self, x):
                error, self.error = self.error, None
                if error is not None:
                    raise error
                return self.net(x)
        class Failing(torch.optim.SGD):
            def step(self, closure=None):
                super().step()
                raise Fails
        net = Net()
        optimizer, failing = torch.optim.SGD(net.parameters(), lr=0.1), Failing(net.parameters(), lr=0.1)
        for i, batch in enumerate(loader(48)):
            own("B")
            if i in (2, 4):
                net.error = Fails() if i == 2 else KeyboardInterrupt()
            try:
                loss = loss_of(net, batch)
                if i == 5:
                    loss.register_hook(lambda grad: 1 / 0)
                loss.backward()
                own("U")
                (failing if i == 6 else optimizer).step()
            except (Fails, KeyboardInterrupt, ZeroDivisionError):
                continue
            if i == 8:
                break
        try:
            next(iter(loader(collate_fn=lambda samples: 1 / 0)))
        except ZeroDivisionError:
            own("E")
        """,
    )
    check(seen)
    assert seen.own.count("U") == 9 - 3
    assert not any("/" in span for span in seen.spans)


def test_a_thread_that_trains_and_one_that_loads(tmp_path):
    seen = run_auto(
        tmp_path,
        """
        import queue, threading
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        is_trained = threading.Event()
        def evaluate():
            for batch in loader(8):
                net(batch[0])
        def train():
            for batch in loader():
                own("B")
                loss_of(net, batch).backward()
                optimizer.step()
                own("U")
                other = threading.Thread(target=evaluate)
                other.start()
                other.join()
            own("E")
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        for batch in loader(8):  # the one that trained has ended
            own("B")
            loss_of(net, batch).backward()
            optimizer.step()
            own("U")
        own("E")
        """,
    )
    check(seen)


def test_classes_that_a_program_replaces(tmp_path):
    seen = run_auto(
        tmp_path,
        """
        class Loader(torch.utils.data.DataLoader):
            def __iter__(self):
                for batch in super().__iter__():
                    yield batch
        class Adam(torch.optim.Adam):
            def step(self, closure=None):
                return super().step(closure)
        class Own(torch.optim.Optimizer):
            def __init__(self, params):
                super().__init__(params, {"lr": 0.1})
            @torch.no_grad()
            def step(self, closure=None):
                for group in self.param_groups:
                    for p in group["params"]:
                        p.sub_(p.grad, alpha=group["lr"])
        torch.utils.data.DataLoader, torch.optim.Adam = Loader, Adam
        net = model()
        for optimizer in torch.optim.Adam(net.parameters()), Own(net.parameters()):
            for batch in loader(8):
                own("B")
                loss_of(net, batch).backward()
                optimizer.step()
                own("U")
            own("E")
        original = torch.optim.SGD.step
        torch.optim.SGD.step = lambda self, closure=None: original(self, closure)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        assert optimizer.step() is None
        own("U")
        """,
    )
    check(seen)


def test_optimizers_that_were_sent_to_a_process(tmp_path):
    seen = run_auto(
        tmp_path,
        """
        import pickle
        net = model()
        optimizer = pickle.loads(pickle.dumps(torch.optim.SGD(net.parameters(), lr=0.1)))
        optimizer.step()
        own("U")
        """,
    )
    check(seen)


def test_what_is_recorded_beside_the_steps(tmp_path):
    import json

    seen = run_auto(
        tmp_path,
        """
        import gc
        def collate(samples):
            return torch.stack([x for x, _ in samples])
        for batch in loader(4, collate_fn=collate, num_workers=0):
            own("B")
        own("E")
        everything = [[] for _ in range(300_000)]
        gc.collect()
        from torch.utils.tensorboard import SummaryWriter
        writer = SummaryWriter("logs")
        writer.add_scalar("loss", 1.0, 0)
        """,
    )
    check(seen)
    marks = {name: json.loads(payload) for name, payload in seen.marks}
    collections = [json.loads(payload) for name, payload in seen.marks if name == "gc"]
    assert 2 in [each["generation"] for each in collections]
    assert all(each["pause_ns"] >= 100_000 for each in collections)
    made = marks["DataLoader"]
    assert made["num_workers"] == 0
    assert made["batch_size"] == 4
    assert made["dataset"] == "__main__.Data"
    assert made["collate"] == "__main__.collate"
    assert made["collate_at"].startswith(str(tmp_path / "program.py"))
    assert made["at"].startswith(str(tmp_path / "program.py"))
    assert "logging" in seen.spans


@pytest.mark.parametrize("text", ["raise ImportError('no CUDA')", "import nothing_of_this_name"])
def test_a_torch_that_fails_to_import(tmp_path, text):
    folder = tmp_path / "torch"
    (folder / "optim").mkdir(parents=True)
    (folder / "optim" / "__init__.py").write_text("from . import optimizer\n")
    (folder / "optim" / "optimizer.py").write_text("class Optimizer: pass\n")
    (folder / "__init__.py").write_text(f"from . import optim\n{text}\n")
    seen = run_auto(
        tmp_path,
        """
        for _ in range(2):
            try:
                import torch
            except ImportError as error:
                print(error)
            else:
                raise AssertionError
        """,
        torch=False,
        env={"PYTHONPATH": f"{_boot()}:{tmp_path}"},
    )
    assert seen.hints == ""
    assert len(seen.output.splitlines()) == 2


def _boot() -> str:
    from pathlib import Path

    import marey

    return str(Path(marey.__file__).parent / "boot")
