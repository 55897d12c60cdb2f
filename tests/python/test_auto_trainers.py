"""Steps in unmodified trainers: Lightning, accelerate, transformers."""

from __future__ import annotations

import pytest
from auto_hints import check, run_auto

pytest.importorskip("torch")


LIGHTNING = """
    import logging, warnings
    warnings.simplefilter("ignore")
    import lightning
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    def trainer(**options):
        quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
        return lightning.Trainer(accelerator="cpu", devices=1, **quiet, **options)
"""


def test_lightning_with_automatic_optimization(tmp_path):
    pytest.importorskip("lightning")
    seen = run_auto(
        tmp_path,
        LIGHTNING
        + """
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = model()
        def training_step(self, batch, i):
            own("B")
            return loss_of(self.net, batch)
        def on_before_zero_grad(self, optimizer):
            own("U")  # the closure has run: the update follows
        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    trainer(max_epochs=2, accumulate_grad_batches=2).fit(Module(), loader(24))
    """,
    )
    # zero_grad() of the next step comes before the update of this one is over; what counts is how many there are
    assert seen.steps.replace("E", "") == "BBUBBUBBU" * 2
    assert seen.own.count("U") == seen.steps.count("U")
    assert seen.own.count("B") == seen.steps.count("B")
    assert seen.depth == 0
    assert "optimizer/forward" in seen.spans
    assert "optimizer/backward" in seen.spans
    assert not any("evaluate" in span for span in seen.spans)


@pytest.mark.slow
def test_lightning_with_manual_optimization(tmp_path):
    pytest.importorskip("lightning")
    seen = run_auto(
        tmp_path,
        LIGHTNING
        + """
    class Stream(torch.utils.data.IterableDataset):  # without a length, so that Lightning looks ahead
        def __iter__(self):
            return ((torch.ones(4) * i, torch.ones(1)) for i in range(8))

    class Module(lightning.LightningModule):
        automatic_optimization = False
        def __init__(self):
            super().__init__()
            self.g, self.d = model(), model()
        def training_step(self, batch, i):
            own("B")
            for optimizer, net in zip(self.optimizers(), (self.g, self.d)):
                optimizer.zero_grad()
                self.manual_backward(loss_of(net, batch))
                optimizer.step()
                own("U")
        def validation_step(self, batch, i):
            own("B")
            loss_of(self.g, batch)
        def configure_optimizers(self):
            return torch.optim.Adam(self.g.parameters()), torch.optim.Adam(self.d.parameters())

    training = torch.utils.data.DataLoader(Stream(), batch_size=4)
    trainer(max_epochs=1, num_sanity_val_steps=0).fit(Module(), training, loader(4))
    """,
    )
    assert seen.steps.replace("E", "") == seen.own == "BUUBUUB"
    assert seen.depth == 0
    assert "forward/backward" in seen.spans
    assert "evaluate" in seen.spans


def test_accelerate_with_accumulation_and_look_ahead(tmp_path):
    pytest.importorskip("accelerate")
    seen = run_auto(
        tmp_path,
        """
        from accelerate import Accelerator
        accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)
        net = model()
        net, optimizer, data = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1), loader(20))
        for epoch in range(2):
            for batch in data:
                own("B")
                with accelerator.accumulate(net):
                    accelerator.backward(loss_of(net, batch))
                    optimizer.step()
                    own("U" if accelerator.sync_gradients else "")
                    optimizer.zero_grad()
            own("E")
        for batch in data:
            own("B")
            break
        """,
    )
    check(seen)
    assert seen.own == "BBUBBUBUE" * 2 + "B"
    assert seen.spans[-1] == "data"
    assert seen.spans.count("forward") == 10


def test_transformers_with_accumulation(tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    seen = run_auto(
        tmp_path,
        """
        import os
        os.environ["HF_HUB_OFFLINE"] = "1"
        import transformers
        from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

        class Tokens(torch.utils.data.Dataset):
            def __len__(self):
                return 12
            def __getitem__(self, i):
                ids = torch.arange(8) + i
                return {"input_ids": ids, "labels": ids}

        class Counts(TrainerCallback):
            def on_optimizer_step(self, *_, **__):
                own("U")
            def on_evaluate(self, *_, **__):
                own("V")

        sizes = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2)
        net = LlamaForCausalLM(LlamaConfig(vocab_size=64, num_key_value_heads=2, **sizes))
        inner = net.forward
        def forward(*args, **kwargs):
            own("B")
            return inner(*args, **kwargs)
        net.forward = forward
        arguments = TrainingArguments(
            output_dir="out", per_device_train_batch_size=2, gradient_accumulation_steps=2, num_train_epochs=2,
            report_to=[], use_cpu=True, disable_tqdm=True, save_strategy="epoch", eval_strategy="epoch",
            per_device_eval_batch_size=12, remove_unused_columns=False, logging_strategy="no",
            gradient_checkpointing=True,
        )
        trainer = Trainer(net, arguments, train_dataset=Tokens(), eval_dataset=Tokens(), callbacks=[Counts()])
        trainer.train()
        assert trainer.state.global_step == 6
        """,
    )
    # Trainer takes the batches of an update from the loader before it works on them
    assert seen.steps.replace("E", "") == seen.own.replace("V", "") == "BBUBBUBBUB" * 2
    assert seen.depth == 0
    assert seen.spans.count("forward") == 12
    assert seen.spans.count("backward/recompute") == 24
    assert seen.spans.count("evaluate") == 2
    assert "checkpoint" in seen.spans
