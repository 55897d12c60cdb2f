"""The programs of the gauntlet: what is planted in which file, the fix, and the pairs of program and configuration.

A slow program has its cause on the line marked `# planted: ID`. Its fix is what the finding's action says, as pairs of
old and new text, so that the twin differs in nothing else. Paths are below `programs/`.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

Fix = tuple[tuple[str, str], ...]


class Slow(NamedTuple):
    """A program with one planted cause."""

    file: str
    fix: Fix
    arguments: str = ""
    needs: tuple[str, ...] = ("torch",)
    threads: int = 1
    is_gpu: bool = False
    is_whole_run: bool = False  # the gain is that of the whole run, not of a step


class Healthy(NamedTuple):
    """A program and one configuration, with nothing to find."""

    file: str
    arguments: str = ""
    needs: tuple[str, ...] = ("torch",)
    threads: int = 1
    python: Optional[str] = None  # a version other than that of the tests
    is_fixed: bool = False  # a slow program with its fix applied
    is_gpu: bool = False


_PIXELS = """        out = np.empty(image.shape, np.uint8)
        for y in range(image.shape[0]):
            for x in range(image.shape[1]):
                out[y, x] = np.clip((image[y, x] * brightness - 128) * contrast + 128, 0, 255)  # planted: input-bound
        return out
"""

SLOW = (
    # ---- input-bound ----
    Slow(
        "cifar_transforms.py",
        ((_PIXELS, "        return np.clip((image * brightness - 128) * contrast + 128, 0, 255).astype(np.uint8)\n"),),
    ),
    Slow(
        "text_collator.py",
        (
            ('torch.tensor(self.tokenizer(example["text"]))', 'example["tokens"]'),
            (
                "    loader = DataLoader(",
                """    for example in examples:
        example["tokens"] = torch.tensor(tokenizer(example["text"]))
    loader = DataLoader(""",
            ),
        ),
    ),
    Slow(
        "csv_accelerate.py",
        (
            (
                "        self.lines = path.read_text().splitlines()",
                "        self.lines = torch.from_numpy(np.loadtxt(path, delimiter=',', dtype=np.float32))",
            ),
            ('        values = [float(value) for value in self.lines[i].split(",")]', "        values = self.lines[i]"),
            ("torch.tensor(values[:-1]), torch.tensor(values[-1])", "values[:-1], values[-1]"),
            ("import torch\n", "import numpy as np\nimport torch\n"),
        ),
        needs=("torch", "accelerate"),
    ),
    Slow(
        "hf_collator.py",
        (
            (
                "        rarity = sum(token != other for other in ids) / len(ids)  # planted: input-bound\n",
                "        rarity = 1 - counts[token] / len(ids)\n",
            ),
            ("    inputs, labels = [], []\n", "    inputs, labels, counts = [], [], collections.Counter(ids)\n"),
            ("import random\n", "import collections\nimport random\n"),
        ),
        needs=("torch", "transformers"),
    ),
    Slow(
        "lightning_features.py",
        (
            (
                "        spectrum = self.basis @ signal  # planted: input-bound\n",
                "        spectrum = np.fft.rfft(signal)[: SAMPLES // 2]\n",
            ),
        ),
        needs=("torch", "pytorch_lightning"),
    ),
    Slow(
        "segmentation_workers.py",
        (
            (
                """        rows = []
        for y in range(SIZE):
            rows.append([float((x - x0) ** 2 + (y - y0) ** 2 < radius**2) for x in range(SIZE)])  # planted: input-bound
        return torch.tensor(rows)
""",
                """        x, y = torch.arange(SIZE)[None, :], torch.arange(SIZE)[:, None]
        return ((x - x0) ** 2 + (y - y0) ** 2 < radius**2).float()
""",
            ),
        ),
    ),
    Slow(
        "jpeg_gpu.py",
        (("num_workers=0, ", "num_workers=8, persistent_workers=True, "),),
        needs=("torch", "PIL"),
        is_gpu=True,
    ),
    # ---- hot-function ----
    Slow(
        "nanogpt_chars.py",
        (
            ("        data = [stoi[c] for c in text]  # planted: hot-function\n", ""),
            ("    def get_batch()", "    data = [stoi[c] for c in text]\n\n    def get_batch()"),
        ),
    ),
    Slow(
        "spelling.py",
        (
            ("def correct(word, dictionary):", "@functools.cache\ndef correct(word, dictionary):"),
            ("    typos = [", "    dictionary = tuple(dictionary)\n    typos = ["),
            ("import random\n", "import functools\nimport random\n"),
        ),
        needs=(),
    ),
    Slow(
        "kmeans_numpy.py",
        (
            (
                """    labels = np.empty(len(points), dtype=np.int64)
    for i in range(len(points)):
        labels[i] = np.argmin(((points[i] - centers) ** 2).sum(axis=1))  # planted: hot-function
    return labels
""",
                "    return ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)\n",
            ),
        ),
        needs=("numpy",),
    ),
    Slow(
        "rl_returns.py",
        (
            (
                """    for e in range(rewards.shape[1]):
        total = 0.0
        for t in range(rewards.shape[0] - 1, -1, -1):
            total = rewards[t, e] + GAMMA * total  # planted: hot-function
            returns[t, e] = total
""",
                """    ages = torch.arange(len(rewards))[None, :] - torch.arange(len(rewards))[:, None]
    returns = torch.where(ages >= 0, GAMMA ** ages.clamp(min=0), 0.0) @ rewards.float()
""",
            ),
        ),
    ),
    Slow("vocabulary_list.py", (("self.words = list(words)", "self.words = set(words)"),), needs=()),
    Slow(
        "quantiles_numpy.py",
        (
            (
                "    return np.array([(column < value).mean() for value in column])  # planted: hot-function\n",
                "    return np.searchsorted(np.sort(column), column) / len(column)\n",
            ),
        ),
        needs=("numpy",),
    ),
    # ---- lock-contention ----
    Slow(
        "transactions.c",
        (
            ("return &locks[0];", "return &locks[account % STRIPES];"),
            (
                """    pthread_mutex_lock(lock); /* planted: lock-contention */
    balance[account] += amount + checksum((unsigned)amount, 400) % 2;
""",
                """    const long fee = checksum((unsigned)amount, 400) % 2;
    pthread_mutex_lock(lock);
    balance[account] += amount + fee;
""",
            ),
        ),
        needs=(),
    ),
    Slow(
        "histogram.c",
        (
            ("histogram *h = &all;", "histogram own = {.lock = PTHREAD_MUTEX_INITIALIZER}, *h = &own;"),
            (
                "        count(h, next_value(&state));\n",
                """        count(h, next_value(&state));
    for (int i = 0; i < BINS; i++)
        __atomic_fetch_add(&all.counts[i], own.counts[i], __ATOMIC_RELAXED);
""",
            ),
        ),
        needs=(),
    ),
    # ---- slow-steps ----
    Slow("vae_checkpoints.py", (("SAVE_EVERY = 5", "SAVE_EVERY = 200"),)),
    Slow("lm_evaluation.py", (("EVAL_EVERY = 12", "EVAL_EVERY = 720"),)),
    # ---- gc-pauses ----
    Slow("graph_nets_gc.py", (("        gc.collect()  # planted: gc-pauses\n", ""), ("import gc\n", ""))),
    Slow(
        "trainer_gc.py",
        (("        gc.collect()  # planted: gc-pauses\n", "        pass\n"), ("import gc\n", "")),
        needs=("torch", "transformers"),
    ),
    # ---- logging-in-step ----
    Slow(
        "tensorboard_histograms.py",
        (("BATCH, LOG_EVERY = 150, 64, 1", "BATCH, LOG_EVERY = 150, 64, 100"),),
        needs=("torch", "tensorboard"),
    ),
    Slow("json_metrics.py", (("LENGTH, EVERY = 200, 32, 32, 1", "LENGTH, EVERY = 200, 32, 32, 100"),)),
    # ---- gil-contention ----
    Slow(
        "prefetch_thread.py",
        (
            (
                """    phase = chance.random()
    values = []
    for i in range(SENSORS):
        values.append(math.sin(i / 5 + phase) + 0.1 * chance.gauss(0, 1))  # planted: gil-contention
    return values
""",
                """    values = torch.sin(torch.arange(SENSORS) / 5 + chance.random())
    return (values + 0.1 * torch.randn(SENSORS)).tolist()
""",
            ),
        ),
    ),
    Slow("monitor_thread.py", (("self.done.is_set():", "self.done.wait(0.5):"),)),
    # ---- cpu-oversubscribed ----
    Slow("threads_many.py", (("torch.set_num_threads(32)", "torch.set_num_threads(1)"),)),
    Slow("ddp_threads.py", (("THREADS = 16", "THREADS = 1"),)),
    # ---- memory-leak ----
    Slow("leak_losses.py", (("curve.append(loss)  # planted: memory-leak", "curve.append(loss.item())"),)),
    Slow("leak_cache.py", (("@functools.cache  # planted: memory-leak", "@functools.lru_cache(maxsize=64)"),)),
    # ---- straggler ----
    Slow("ddp_metrics.py", (('"--every", type=int, default=1', '"--every", type=int, default=100'),)),
    Slow("ddp_documents.py", (("lengths[rank * DOCUMENTS // 2 : (rank + 1) * DOCUMENTS // 2]", "lengths[rank::2]"),)),
    # ---- exposed-communication ----
    Slow("ddp_small_batches.py", (("BATCHES, ACCUMULATE = 4, 1400, 240, 1", "BATCHES, ACCUMULATE = 4, 1400, 240, 8"),)),
    Slow(
        "gloo_norms.py",
        (
            (
                """    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)  # planted: exposed-communication
        parameter.grad /= dist.get_world_size()
""",
                """    gradients = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    dist.all_reduce(gradients)
    gradients /= dist.get_world_size()
    for parameter in model.parameters():
        parameter.grad.copy_(gradients[: parameter.numel()].view_as(parameter))
        gradients = gradients[parameter.numel() :]
""",
            ),
        ),
    ),
    # ---- io-bound ----
    Slow("journal_fsync.py", (("        os.fsync(self.file.fileno())  # planted: io-bound\n", ""),)),
    Slow("sqlite_results.py", (("    connection.commit()  # planted: io-bound\n", ""),), needs=()),
    # ---- startup-dominates ----
    Slow(
        "startup_vocabulary.py",
        (
            (
                """    pairs = []
    for i in range(len(text)):
        for j in range(max(0, i - WINDOW), min(len(text), i + WINDOW + 1)):
            if i != j and (31 * text[i] + 17 * text[j] + text[i] * text[j]) % 64 == 0:  # planted: startup-dominates
                pairs.append((text[i], text[j]))  # every word has its own context words
    return pairs
""",
                """    words = torch.tensor(text)
    pairs = [torch.stack([words[:-n], words[n:]], dim=1) for n in range(1, WINDOW + 1)]
    pairs = torch.cat([*pairs, *(pair.flip(1) for pair in pairs)])
    first, second = pairs.unbind(1)
    return pairs[(31 * first + 17 * second + first * second) % 64 == 0]
""",
            ),
            ("torch.tensor(make_pairs(generate()))", "make_pairs(generate())"),
            ("-> list[tuple[int, int]]:", "-> torch.Tensor:"),
        ),
        is_whole_run=True,
    ),
    # ---- recompilation ----
    Slow("compile_lengths.py", (("dynamic=False", "dynamic=True"),)),
    Slow("compile_schedule.py", (("compiled(inputs[rows], noise)", "compiled(inputs[rows], torch.tensor(noise))"),)),
    # ---- sync-bound, host-bound: on a GPU ----
    Slow(
        "gan_items_gpu.py",
        (
            (
                "        self.total += value.item()  # planted: sync-bound\n",
                "        self.total += value.detach()\n",
            ),
        ),
        is_gpu=True,
    ),
    Slow(
        "gradient_norms_gpu.py",
        (
            (
                """        if (norm > largest).item():  # planted: sync-bound
            largest = norm
""",
                "        largest = torch.maximum(largest, norm)\n",
            ),
        ),
        is_gpu=True,
    ),
    Slow(
        "tiny_kernels_gpu.py",
        (
            (
                "    for _ in range(5):\n        train_step()\n",
                """    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(5):
            train_step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train_step()
    train_step = graph.replay
""",
            ),
        ),
        is_gpu=True,
    ),
    Slow(
        "negatives_gpu.py",
        (
            ("        negatives = choose_negatives(positives, chance)\n", "        negatives = chosen[step]\n"),
            (
                "    start = time.perf_counter()\n",
                """    chosen = [choose_negatives(positives, chance) for positives in every]
    start = time.perf_counter()
""",
            ),
        ),
        is_gpu=True,
    ),
)

_NUMPY, _HF, _PL, _ACC = ("numpy",), ("torch", "transformers"), ("torch", "pytorch_lightning"), ("torch", "accelerate")

HEALTHY = (
    *(
        Healthy("cifar_transforms.py", args, is_fixed=True)
        for args in ("--images 480 --width 96", "--batch-size 16 --width 96")
    ),
    *(Healthy("text_collator.py", is_fixed=True, threads=threads) for threads in (1, 2)),
    *(
        Healthy("nanogpt_chars.py", args, is_fixed=True, threads=threads)
        for args, threads in (
            ("--max_iters 200", 1),
            ("--max_iters 200", 2),
            ("--max_iters 80 --n_embd 128 --n_layer 3", 1),
            ("--max_iters 80 --batch_size 32", 1),
            ("--max_iters 60 --block_size 128 --n_embd 96", 1),
        )
    ),
    Healthy("lm_evaluation.py", is_fixed=True),
    Healthy("vae_checkpoints.py", "--steps 150", is_fixed=True),
    Healthy("vae_checkpoints.py", "--steps 100 --hidden 2000", is_fixed=True),
    *(
        Healthy("gan_healthy.py", args, threads=threads)
        for args, threads in (
            ("", 1),
            ("", 2),
            ("--width 512 --steps 80", 1),
            ("--batch 256 --steps 60", 1),
            ("--critics 5 --steps 40", 1),
        )
    ),
    *(
        Healthy("trainer_healthy.py", args, _HF, threads)
        for args, threads in (
            ("", 1),
            ("", 2),
            ("--width 192 --layers 3 --steps 30", 1),
            ("--batch 4 --accumulate 4 --steps 40", 1),
            ("--checkpointing --steps 40", 1),
        )
    ),
    *(
        Healthy("lightning_healthy.py", args, _PL, threads)
        for args, threads in (
            ("", 1),
            ("", 2),
            ("--width 1024 --steps 60", 1),
            ("--manual", 1),
            ("--batch 256 --steps 50", 1),
        )
    ),
    *(
        Healthy("accelerate_healthy.py", args, _ACC, threads)
        for args, threads in (("", 1), ("", 2), ("--accumulate 1 --width 1024", 1), ("--batch 256 --steps 80", 1))
    ),
    *(
        Healthy("conv_healthy.py", args, threads=threads)
        for args, threads in (
            ("", 1),
            ("", 2),
            ("--workers 1", 1),
            ("--workers 2 --width 48", 1),
            ("--bf16 --steps 30", 1),
            ("--batch 64 --steps 20", 1),
        )
    ),
    *(
        Healthy("rnn_healthy.py", args, threads=threads)
        for args, threads in (
            ("", 1),
            ("--kind GRU", 1),
            ("--kind RNN --width 256", 2),
            ("--optimizer SGD --length 100", 1),
            ("--optimizer AdamW --width 256 --steps 50", 1),
        )
    ),
    *(
        Healthy("inference_healthy.py", args, threads=threads)
        for args, threads in (("", 1), ("", 2), ("--batch 128 --batches 30", 1), ("--width 512 --batches 30", 1))
    ),
    *(Healthy("lbfgs_healthy.py", args) for args in ("8", "20")),
    *(Healthy("svd_healthy.py", "12 500", _NUMPY, threads) for threads in (1, 2)),
    Healthy("svd_healthy.py", "60 250", _NUMPY),
    Healthy("hash_healthy.py", "250 sha256", ()),
    *(Healthy("heat_healthy.py", args, _NUMPY) for args in ("1500 500", "300 1000", "6000 200")),
    *(
        Healthy("compress_healthy.py", args, (), python=python)
        for args in ("120 1", "160 2")
        for python in (None, "3.12")
    ),
    *(Healthy("compress_healthy.py", "120 1", (), python=python) for python in ("3.10", "3.13")),
    *(
        Healthy("hash_healthy.py", args, (), python=python)
        for args, python in (
            ("250 sha256", "3.10"),
            ("250 blake2b", "3.12"),
            ("400 sha1", "3.13"),
        )
    ),
    *(Healthy("nbody_healthy.c", args, ()) for args in ("150 1", "250 2")),
    *(Healthy("pipeline_healthy.py", "100", (), python=python) for python in (None, "3.13")),
    *(Healthy("stages_healthy.py", "80", (), python=python) for python in (None, "3.12")),
    Healthy("memmap_healthy.py"),
    *(Healthy("commands_healthy.py", "30", (), python=python) for python in (None, "3.12")),
    *(Healthy("ddp_healthy.py", args) for args in ("150 512", "80 1024")),
    *(Healthy("ppo_healthy.py", args) for args in ("", "--updates 12 --width 512")),
    Healthy("gan_items_gpu.py", is_fixed=True, is_gpu=True),
    Healthy("gradient_norms_gpu.py", is_fixed=True, is_gpu=True),
    Healthy("negatives_gpu.py", is_fixed=True, is_gpu=True),
)
