"""marey.itwinai: its rule of names, its older files as fractions, joules and measurements, and its tables."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import marey
from marey import _tools
from marey.itwinai import Failure, _averages, _energy, _report, energy_of_files, fractions_of_files, write_measurements

TRACES = Path(__file__).parent.parent / "data" / "kineto"
COMPUTES, COMMUNICATES = "computes", "communicates"
NAMES = {
    "aten::mm": COMPUTES,
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >": COMPUTES,
    "autograd::engine::evaluate_function: AddmmBackward0": COMPUTES,
    "torch::autograd::AccumulateGrad": COMPUTES,
    "void c10::x": COMPUTES,
    "ampere_sgemm_128x64_nn": "",
    "cutlass::Kernel2<x>": "",
    "void cub::DeviceReduceKernel<x>": "",
    "void cub::DeviceReduceKernel<x, at::y>": COMPUTES,  # an argument happens to have it
    "void (anonymous namespace)::softmax_warp_forward<float>": "",
    "at::native::x": "",  # no blank before it
    "xat::y": "",
    "x\tat::y": COMPUTES,
    "x at:": "",
    "triton_poi_fused_add_0": "",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)": "",
    "nccl:all_reduce": COMMUNICATES,
    "nccl:broadcast": COMMUNICATES,
    "nccl:reduce_scatter": COMMUNICATES,
    "nccl:_reduce_scatter_base": "",
    "nccl:_all_gather_base": "",
    "nccl:gather": COMMUNICATES,
    "nccl:all_to_all": "",
    "c10d::allreduce_": "",
    "cudaStreamSynchronize": COMMUNICATES,
    "cudaStreamWaitEvent": COMMUNICATES,
    "Memcpy HtoD (Pageable -> Device)": "",
    "Optimizer.step#SGD.step": "",
    "cudaLaunchKernel": "",
    "": "",
}
COLUMNS = "name,node_id,self_cuda_time_total,cuda_time_total,cuda_time_total_str,calls,strategy,num_gpus,global_rank\n"
AVERAGES = (
    COLUMNS + "aten::mm,-1,60.0,60.0,60.000us,3,torch-ddp,2,0\n"
    '"void at::native::f<4, ""x"">",-1,20.5,20.5,20.500us,3,torch-ddp,2,0\n'
    "sgemm,-1,19.5,19.5,19.500us,3,torch-ddp,2,1\n"
    "ProfilerStep*,-1,900.0,900.0,900.000us,1,torch-ddp,2,1\n"
    "nccl:all_reduce,-1,100.0,100.0,100.000us,1,torch-ddp,2,1\n"
    "aten::mm,-1,5,5,5us,1,horovod,4,0\r\n"
)
POWER = "sample_idx,utilization,power,local_rank,node_idx,num_global_gpus,strategy,probing_interval\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, newline="")
    return path


# ---- averages ----


@pytest.mark.parametrize("name", NAMES)
def test_names_are_called_what_itwinai_calls_them(name):
    assert _averages.is_computation(name) == (NAMES[name] == COMPUTES)
    assert _averages.is_communication(name) == (NAMES[name] == COMMUNICATES)


@pytest.mark.parametrize("trace", sorted(TRACES.glob("*.json.gz")), ids=lambda path: path.name)
def test_averages_are_the_same_without_sqlite(trace, monkeypatch):
    want = _averages.averages([trace]).to_csv()
    formats = [known for known in _tools.export_formats if known["name"] != "sqlite"]
    monkeypatch.setattr(_tools, "export_formats", formats)
    assert _averages.averages([trace]).to_csv() == want


def test_fractions_are_those_of_the_formula(tmp_path):
    table, n_dropped = fractions_of_files([write(tmp_path / "a.csv", AVERAGES)])
    assert n_dropped == 0
    keys = list(zip(table["strategy"], table["num_gpus"], table["rank"]))
    assert keys[:2] == [("torch-ddp", 2, None), ("horovod", 4, None)]
    assert sorted(keys[2:]) == [("horovod", 4, 0), ("torch-ddp", 2, 0), ("torch-ddp", 2, 1)]
    first = next(iter(table))
    assert first["computation_fraction"] == pytest.approx(80.5 / 200)
    assert first["computation_vs_communication"] == pytest.approx(80.5 / 180.5)
    assert first["rows"] == 5
    by_key = dict(zip(keys, table["computation_fraction"]))
    assert [by_key["horovod", 4, None], by_key["torch-ddp", 2, 0]] == pytest.approx([1, 1])
    assert by_key["torch-ddp", 2, 1] == pytest.approx(0)


def test_a_leading_column_without_a_name_is_left_out(tmp_path):
    text = ",name,node_id,self_cuda_time_total,strategy,num_gpus\n"
    text += "0,aten::mm,-1,3.0,deepspeed,8.0\n1,sgemm,-1,1.0,deepspeed,8.0"
    ((row),) = fractions_of_files([write(tmp_path / "old.csv", text)])[0]
    assert (row["num_gpus"], row["rank"]) == (8, None)
    assert row["computation_fraction"] == pytest.approx(0.75)


def test_rows_that_lack_a_value_are_counted_and_left_out(tmp_path):
    text = (
        COLUMNS + "aten::mm,-1,60.0,60.0,x,3,torch-ddp,2,0\n"
        "torn,-1,1\n"
        "no strategy,-1,1.0,1.0,x,3,,2,0\n"
        "no number,-1,1.0,1.0,x,3,torch-ddp,,0\n"
        "half a GPU,-1,1.0,1.0,x,3,torch-ddp,1.5,0\n"
        "no time,-1,nan,1.0,x,3,torch-ddp,2,0\n"
        "for ever,-1,inf,1.0,x,3,torch-ddp,2,0\n"
        "a word,-1,long,1.0,x,3,torch-ddp,2,0\n"
        "\n" + COLUMNS + '"over\nlines",-1,20.0,1.0,x,3,torch-ddp,2,0\n'
    )
    table, n_dropped = fractions_of_files([write(tmp_path / "a.csv", text)])
    assert n_dropped == 8
    assert table["rows"][0] == 2
    assert table["computation_fraction"][0] == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it is empty"),
        ("\n\n", "no column name"),
        ("name,calls\nx,1\n", "has no column self_cuda_time_total"),
        ("name,self_cuda_time_total,num_gpus\nx,1,1\n", "has no column strategy"),
        (COLUMNS + '"x,-1,1\n', "ends within quotes"),
        (COLUMNS + "x" * 200_000, "field larger than field limit"),
    ],
)
def test_files_that_are_something_else_are_named(tmp_path, text, sentence):
    path = write(tmp_path / "bad.csv", text)
    with pytest.raises(Failure, match=sentence) as raised:
        fractions_of_files([path])
    assert str(path) in str(raised.value)
    with pytest.raises(Failure, match="No such file"):
        fractions_of_files([tmp_path / "missing.csv"])


def test_folders_are_searched(tmp_path):
    with pytest.raises(Failure, match="has no averages"):
        fractions_of_files([tmp_path])
    write(tmp_path / "run" / "averages.csv", AVERAGES)
    write(tmp_path / "epochtime_ddp_1N.csv", "epoch_id,time,name,nodes\n1,2,3,4\n")
    write(tmp_path / "note.txt", "nothing")
    (tmp_path / "run" / "link.csv").symlink_to(tmp_path / "run" / "averages.csv")
    assert fractions_of_files([tmp_path])[0]["rows"][0] == 5
    write(tmp_path / "run" / "broken.csv", COLUMNS + '"x')
    with pytest.raises(Failure, match=r"broken\.csv"):
        fractions_of_files([tmp_path])


# ---- energy ----


def test_power_is_integrated_and_never_added_over_repeats(tmp_path):
    text = POWER + "0,50,100,0,0,1,torch-ddp,2\n1,50,300,0,0,1,torch-ddp,2\n0,50,200,0,0,1,torch-ddp,2\n"
    runs, repeats, n_dropped = energy_of_files([write(tmp_path / "power.csv", text)])
    assert n_dropped == 0
    assert runs["joules"] == [800, 400]
    assert repeats["mean_j"] == [600]


@pytest.mark.parametrize(("freedom", "t"), [(1, 12.7062), (2, 4.3027), (5, 2.5706), (30, 2.0423), (99, 1.9842)])
def test_intervals_are_by_students_distribution(freedom, t):
    assert _energy._t_quantile(freedom) == pytest.approx(t, abs=1e-4)


# ---- measurements ----


@pytest.fixture
def older(tmp_path: Path) -> Path:
    root = tmp_path / "older"
    rows = "".join(f"{i},{use},100,{gpu},0,2,torch-ddp,1\n" for i in range(2) for gpu, use in ((0, 50), (1, 70)))
    write(root / "run1/gpu-energy-data/torch-ddp_2.csv", POWER + rows)
    epochs = "epoch_id,time,name,nodes\n"
    write(root / "run1/epoch-time/epochtime_torch-ddp_1N.csv", epochs + "1,1.5,torch-ddp,1\n2,0.5,torch-ddp,1\n")
    write(root / "run2/epoch-time/epochtime_torch-ddp_1N.csv", epochs + "1,1.25,torch-ddp,1\n2,0.75,torch-ddp,1\n")
    write(root / "run1/epoch-time/epochtime_horovod_2N.csv", epochs + "1,1,horovod,2\n")
    averages = ",name,self_cuda_time_total,strategy,num_gpus,global_rank\n"
    averages += "0,aten::mm,75,torch-ddp,2,0\n1,ncclKernel,25,torch-ddp,2,0\n2,aten::mm,1,fsdp,8,0\n"
    write(root / "run1/computation-data/torch-ddp_2_0.csv", averages)
    return root


def test_older_files_are_runs_of_a_scaling_report(older):
    scaling = marey.scale(older, with_first=True)
    runs = {row["run"]: row for row in scaling.runs}
    assert set(runs) == {
        f"{older}: {name}" for name in ("run1, torch-ddp", "run2, torch-ddp", "run1, horovod", "averages, fsdp")
    }
    assert runs[f"{older}: run1, torch-ddp"]["joules"] == pytest.approx(400)  # two GPUs, 100 W, two seconds
    # One node has two GPUs, as the other run says.
    assert runs[f"{older}: run2, torch-ddp"]["workers"] == 2
    assert runs[f"{older}: run1, horovod"]["workers"] == 2
    assert any(
        "no file says how many GPUs 2 nodes of horovod have, so nodes count as workers" in note
        for note in scaling.notes
    )
    point = next(row for row in scaling.points if row["strategy"] == "torch-ddp")
    assert (point["runs"], point["nodes"], point["time_s"]) == (2, 1, pytest.approx(1.0))
    assert point["utilization"] == pytest.approx(0.6)
    assert point["computation_fraction"] == pytest.approx(0.75)


def test_a_file_or_other_runs_beside_them(older):
    write(older / "more.csv", "strategy,workers,epoch_time_s\ntorch-ddp,4,0.3\n")
    points = {(row["strategy"], row["workers"]): row for row in marey.scale(older).points}
    assert points["torch-ddp", 4]["time_s"] == pytest.approx(0.3)
    (run,) = marey.scale(("mine", older / "run1/epoch-time/epochtime_torch-ddp_1N.csv")).runs
    assert (run["strategy"], run["workers"], run["epochs"]) == ("mine", 1, 1)  # the first one warms up


def test_what_cannot_be_read_is_a_note(older, tmp_path):
    with (older / "run1/gpu-energy-data/torch-ddp_2.csv").open("a") as file:
        file.write('2,50,nan,0,0,2,torch-ddp,1\n"2')
    notes = marey.scale(older).notes
    assert any("1 rows of itwinai's files lack a value and are ignored." in note for note in notes)
    assert any(note.startswith("Read in part: ") and "it ends within quotes" in note for note in notes)
    # Power of one of the two GPUs does not say what the run took.
    path = write(tmp_path / "half.csv", POWER + "0,50,100,0,0,2,torch-ddp,1\n")
    assert write_measurements(path, tmp_path / "out.csv") > 0
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row["value"] for row in csv.DictReader(file) if row["measure"] == "gpu_power_W"] == ["100.0"]


# ---- tables ----


@pytest.fixture
def scaling(tmp_path: Path) -> marey.Scaling:
    """One worker twice, two twice, and another strategy."""
    lines = ["experiment,strategy,workers,run,measure,step,value"]
    for i, (strategy, workers, seconds, joules) in enumerate(
        [
            ("torch-ddp", 1, 8, 1000),
            ("torch-ddp", 1, 8, 1000),
            ("torch-ddp", 2, 5, 3600),
            ("torch-ddp", 2, 5, 7200),
            ("horovod", 2, 6, None),
        ]
    ):
        about = f"e,{strategy},{workers},job {i}"
        lines += [f"{about},epoch_time_s,{step},{value}" for step, value in enumerate((3 * seconds, seconds, seconds))]
        lines += [f"{about},computation_fraction,,0.625"] if workers == 2 else []
        lines += [f"{about},energy_j,,{joules}", f"{about},gpu_utilization_percent,0,80"] if joules is not None else []
    return marey.scale(write(tmp_path / "runs.csv", "\n".join(lines)))


def rows_of(scaling: marey.Scaling, title: str) -> list[list[object]]:
    (section,) = (each for each in _report.SECTIONS if each.title == title)
    found = [(point, section.row(scaling, point)) for point in scaling.points]
    return [[point["strategy"], point["workers"], *cells] for point, cells in found if cells is not None]


def test_epochs_have_a_baseline_for_each_strategy(scaling):
    columns = ("strategy", *_report.SECTIONS[0].columns)
    assert _report.draw(columns, rows_of(scaling, "Epoch Time")) == (
        " strategy   |   global_world_size | avg_epoch_time   | interval       | speedup   | efficiency   |   runs\n"
        "------------+---------------------+------------------+----------------+-----------+--------------+--------\n"
        " torch-ddp  |                   1 | 8.00 s           | 8.00 .. 8.00 s | 1.00      | 100.0 %      |      2\n"
        " torch-ddp  |                   2 | 5.00 s           | 5.00 .. 5.00 s | 1.60      | 80.0 %       |      2\n"
        " horovod    |                   2 | 6.00 s           |                | 1.00      | 100.0 %      |      1\n"
    )


def test_energy_of_repeats_is_not_added_up(scaling):
    assert [row[2:4] for row in rows_of(scaling, "GPU")] == [["0.28 Wh", "80.00 %"], ["1.50 Wh", "80.00 %"]]


def test_fractions_are_under_their_titles(scaling):
    assert rows_of(scaling, "Computation")[0] == ["torch-ddp", 2, "62.50 %"]
    assert len(rows_of(scaling, "Computation")) == 2
    assert rows_of(scaling, "Communication") == []
