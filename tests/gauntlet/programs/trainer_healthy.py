"""A causal language model with the Trainer of transformers."""

import argparse
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, default_data_collator

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--width", type=int, default=128)
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--checkpointing", action="store_true")
args = parser.parse_args()
torch.manual_seed(0)
rows = torch.randint(1000, (args.steps * args.batch * args.accumulate, 64))
dataset = [{"input_ids": row, "labels": row} for row in rows]
config = GPT2Config(vocab_size=1000, n_positions=64, n_embd=args.width, n_layer=args.layers, n_head=4)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=args.batch, gradient_accumulation_steps=args.accumulate,
        gradient_checkpointing=args.checkpointing, max_steps=args.steps, logging_steps=20, save_strategy="no",
        report_to="none", use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = Trainer(GPT2LMHeadModel(config), arguments, train_dataset=dataset, data_collator=default_data_collator)
    trainer.train()
