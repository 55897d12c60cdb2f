"""A small Llama of transformers with batch size one: launch-bound on a GPU."""

import sys

import torch
from alternate import end, step
from transformers import LlamaConfig, LlamaForCausalLM

device = "cuda" if torch.cuda.is_available() else "cpu"
config = LlamaConfig(
    vocab_size=1000, hidden_size=256, intermediate_size=512, num_hidden_layers=16, num_attention_heads=4,
    num_key_value_heads=4,
)  # fmt: skip
model = LlamaForCausalLM(config).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(int(sys.argv[1])):
    step()
    ids = torch.randint(1000, (1, 128), device=device)
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if device == "cuda":
        torch.cuda.synchronize()
end()
