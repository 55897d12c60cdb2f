"""itwinai's computation_fraction: from public traces against a slow count, its files against pandas."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest
import slow_why

TRACES = Path(__file__).parent.parent / "data" / "kineto"
RANKS = [TRACES / f"sampled_rank-{rank}.json.gz" for rank in (0, 1)]
COLUMNS = [
    "name",
    "node_id",
    "self_cuda_time_total",
    "cuda_time_total",
    "cuda_time_total_str",
    "calls",
    "strategy",
    "num_gpus",
    "global_rank",
]
WARNING = "ignores overlap, counts time two or three times, and cannot be compared across frameworks"


def write_averages(path, rows, index=False):
    """As pandas' to_csv does."""
    with path.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([""] * index + COLUMNS)
        for i, row in enumerate(rows):
            writer.writerow([i] * index + row)


def row_of(name, us, strategy="torch-ddp", num_gpus=2, rank=0):
    return [name, -1, us, us, f"{us:.3f}us", 1, strategy, num_gpus, rank]


@pytest.mark.parametrize("paths", [RANKS[:1], RANKS, [TRACES / "mi250_minitoy_train_ROCm6_2_kineto.json.gz"]], ids=len)
def test_averages_and_fractions_of_traces_are_those_of_a_slow_count(marey, tmp_path, paths):
    done = marey(
        "breakdown", *paths, "--legacy", "--json", "--write-averages", "averages.csv", "--strategy", "torch-ddp"
    )
    assert done.returncode == 0, done.stderr
    traces = [slow_why.Trace(path) for path in paths]
    want, pooled = {}, []
    for trace in traces:
        rows = slow_why.averages(trace)
        for (name, _), (calls, own, total) in rows.items():
            want.setdefault((name, trace.rank or 0), []).append((own / 1000, total / 1000, calls))
        pooled += [(name, own / 1000) for (name, _), (_, own, _) in rows.items()]
    got = {}
    with (tmp_path / "averages.csv").open(newline="") as file:
        reader = csv.DictReader(file)
        assert reader.fieldnames == COLUMNS
        for row in reader:
            numbers = (float(row["self_cuda_time_total"]), float(row["cuda_time_total"]), int(row["calls"]))
            got.setdefault((row["name"], int(row["global_rank"])), []).append(numbers)
            assert (row["strategy"], row["num_gpus"]) == ("torch-ddp", str(traces[0].world_size))
    assert {key: sorted(rows) for key, rows in got.items()} == {key: sorted(rows) for key, rows in want.items()}
    computation, against = slow_why.fraction(pooled)
    legacy = json.loads(done.stdout)["legacy"]
    assert legacy["rows"][0]["rank"] is None
    assert legacy["rows"][0]["computation_fraction"] == pytest.approx(computation)
    assert legacy["rows"][0]["computation_vs_communication"] == pytest.approx(against)
    assert WARNING in legacy["warnings"][0]
    # What was written is read back, and gives the same.
    again = json.loads(marey("breakdown", "--legacy", "--json", "averages.csv").stdout)["legacy"]
    assert again["rows"][0]["computation_fraction"] == pytest.approx(computation)
    assert again["rows"][0]["strategy"] == "torch-ddp"


def test_fractions_of_files_are_those_of_pandas(marey, tmp_path):
    import pandas

    names = [
        "aten::mm",
        "void at::native::f<4, g>",
        "sgemm",
        "nccl:all_reduce",
        "ProfilerStep*",
        "cudaStreamSynchronize",
    ]
    folder = tmp_path / "runs" / "computation-data"
    folder.mkdir(parents=True)
    frames = []
    for strategy, num_gpus in (("torch-ddp", 4), ("torch-ddp", 8), ("horovod", 4)):
        for rank in range(2):
            rows = [
                row_of(name, 10.5 * i + num_gpus + rank + len(strategy), strategy, num_gpus, rank)
                for i, name in enumerate(names)
            ]
            path = folder / f"{strategy}_{num_gpus}_{rank}.csv"
            write_averages(path, rows, index=True)
            frames.append(pandas.read_csv(path))
    (tmp_path / "runs" / "epochtime_torch-ddp_1N.csv").write_text("epoch_id,time,name,nodes\n0,1.5,torch-ddp,1\n")
    table = pandas.concat(frames)
    times, name = table["self_cuda_time_total"], table["name"]
    table["computation"] = times.where(name.str.contains(r"aten::|\sat::|c10::|autograd::"), 0)
    table["profiler"] = times.where(name == "ProfilerStep*", 0)
    sums = table.groupby(["strategy", "num_gpus"])[["self_cuda_time_total", "computation", "profiler"]].sum()
    want = sums["computation"] / (sums["self_cuda_time_total"] - sums["profiler"] + 1e-10)
    answer = json.loads(marey("breakdown", "--legacy", "--json", "runs").stdout)["legacy"]
    pooled = {(r["strategy"], r["num_gpus"]): r["computation_fraction"] for r in answer["rows"] if r["rank"] is None}
    assert pooled == pytest.approx(want.to_dict()), "and strategy and number are not the wrong way round"
    assert "without the trace" in answer["warnings"][1], "such files cannot be corrected, and that is said"


def test_the_old_measure_is_labelled_and_never_shown_unasked(marey, tmp_path):
    write_averages(tmp_path / "a.csv", [row_of("aten::mm", 3.0), row_of("sgemm", 1.0)])
    text = marey("breakdown", "--legacy", "a.csv").stdout
    assert text.startswith("legacy\n")
    assert "75.0 %" in text
    assert WARNING in text
    assert "computation_fraction" not in marey("breakdown", RANKS[0]).stdout
    assert "legacy" not in json.loads(marey("breakdown", RANKS[0], "--json").stdout)
    asked = marey("breakdown", RANKS[0], "--legacy").stdout
    assert asked.startswith("computation "), "the true answer comes first"
    assert WARNING in asked


def test_files_may_be_packed_and_rows_be_torn(marey, tmp_path):
    write_averages(tmp_path / "a.csv", [row_of("aten::mm", 3.0), row_of("sgemm", 1.0), ["torn", -1]])
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    done = marey("breakdown", "--legacy", "a.csv.gz")
    assert done.returncode == 0
    assert "1 rows without a strategy, a number of GPUs or a time are ignored" in done.stdout


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it is empty"),
        ("epoch_id,time\n1,2\n", "its first line has no column name"),
        ('name,self_cuda_time_total,strategy,num_gpus\n"x', "it ends within quotes"),
    ],
)
def test_other_files_are_refused_with_a_sentence(marey, tmp_path, text, sentence):
    (tmp_path / "a.csv").write_text(text)
    done = marey("breakdown", "--legacy", "a.csv")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "a.csv is not a file of averages written by itwinai" in done.stderr
    assert sentence in done.stderr


def test_files_and_traces_are_not_mixed(marey, tmp_path):
    write_averages(tmp_path / "a.csv", [row_of("aten::mm", 3.0)])
    done = marey("breakdown", "--legacy", "a.csv", RANKS[0])
    assert done.returncode == 2
    assert "either files of averages or recordings" in done.stderr
