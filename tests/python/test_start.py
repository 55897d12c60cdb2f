"""The switchboard: start, stop, options, the environment, children."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kymo


def test_off_at_first_on_after_start_off_after_stop(tmp_path):
    assert kymo.enabled() is False
    kymo.start(tmp_path / "run.kymo")
    assert kymo.enabled() is True
    kymo.stop()
    assert kymo.enabled() is False


def test_the_path_may_be_text_path_or_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given, made in (("text.kymo", "text.kymo"), (Path("path.kymo"), "path.kymo"), (None, "run.kymo")):
        kymo.start(given)
        kymo.mark("here")
        kymo.stop()
        assert (tmp_path / made / "meta.json").exists()
    kymo.start(path="keyword.kymo")
    assert kymo.recording_path() == str(tmp_path / "keyword.kymo")


def test_a_path_that_is_not_unicode(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"caf\xe9.kymo")
    kymo.start(os.fsdecode(path))
    kymo.mark("here")
    kymo.stop()
    assert os.path.isdir(path)
    assert kymo.load(os.fsdecode(path)).marks["count"] == [1]


def test_stop_twice_and_without_start_is_fine():
    kymo.stop()
    kymo.stop()
    kymo.reset()


def test_two_recordings_in_a_row(record):
    r = kymo.range("both")
    for name in ("a.kymo", "b.kymo"):
        with record(name) as path, r:
            pass
        assert kymo.load(path).ranges["count"] == [1]


def test_a_second_start_is_an_error_that_names_the_first(record, tmp_path):
    with record() as path:
        with pytest.raises(kymo.KymoError, match=str(path)):
            kymo.start(tmp_path / "other.kymo")
        assert kymo.enabled()
        assert os.environ["KYMO"] == str(path)


def test_an_unknown_option_lists_those_there_are(tmp_path):
    with pytest.raises(ValueError, match=r"poool.*pool.*disk.*policy.*clock.*check"):
        kymo.start(tmp_path / "run.kymo", poool=1)
    assert not kymo.enabled()
    assert "KYMO" not in os.environ


@pytest.mark.parametrize(
    "options",
    [{"pool": "lots"}, {"policy": "keep-all"}, {"clock": 3}, {"check": "perhaps"}, {"pool": -1}, {"pool": "1,disk=2"}],
)
def test_an_option_that_does_not_fit_is_a_value_error(tmp_path, options):
    with pytest.raises(ValueError):
        kymo.start(tmp_path / "run.kymo", **options)
    assert not kymo.enabled()


@pytest.mark.parametrize(
    "options",
    [
        {"pool": 1 << 20},
        {"pool": "64MiB", "disk": "1GiB"},
        {"policy": "keep-newest"},
        {"clock": "monotonic"},
        {"check": True},
        {"check": False},
        {"rank": 3, "world_size": 8},
        {"pool_in": "memory"},
    ],
)
def test_options_that_fit(record, options):
    with record(**options) as path, kymo.range("fine"):
        pass
    assert kymo.load(path).ranges["count"] == [1]


def test_every_option_is_in_the_help():
    with pytest.raises(ValueError) as caught:
        kymo.start("never.kymo", nothing=1)
    listed = str(caught.value).split(" are ")[-1].split(", ")
    assert [line.split("=")[0] for line in kymo.options_help().splitlines()] == listed


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(kymo.KymoError, match="file"):
        kymo.start(tmp_path / "file" / "run.kymo")
    assert not kymo.enabled()


def test_rank_by_option_and_by_call(record):
    with record("a.kymo", rank=3) as path:
        kymo.mark("here")
    assert kymo.load(path).processes["rank"] == [3]
    with record("b.kymo") as path:
        kymo.set_rank(5, world_size=8)
        kymo.mark("here")
    assert kymo.load(path).processes["rank"] == [5]
    for wrong in (-1, "one", 2**40):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            kymo.set_rank(wrong)


def test_counts_tell_what_was_taken(record):
    with record():
        for _ in range(100):
            with kymo.range("counted"):
                pass
        counts = kymo.counts()
    assert counts["events"] >= 200
    assert counts["lost_events"] == 0
    assert counts["n_threads"] == 1
    assert counts["pool_bytes"] > 0


def test_the_environment_is_set_for_children_and_put_back(tmp_path, monkeypatch):
    monkeypatch.setenv("KYMO_OPTIONS", "pool=2MiB")
    kymo.start(tmp_path / "run.kymo", check=True)
    assert os.environ["KYMO"] == str(tmp_path / "run.kymo")
    assert os.environ["KYMO_OPTIONS"] == "check=1"
    kymo.stop()
    assert "KYMO" not in os.environ
    assert os.environ["KYMO_OPTIONS"] == "pool=2MiB"


def test_a_child_records_into_the_same_directory(record):
    child = "import kymo\nwith kymo.range('in the child'): pass"
    with record() as path:
        with kymo.range("in the parent"):
            subprocess.run([sys.executable, "-c", child], check=True, timeout=60)
    recording = kymo.load(path)
    assert sorted(recording.ranges["name"]) == ["in the child", "in the parent"]
    assert len(recording.processes) == 2


def test_the_environment_alone_starts_a_recording(run_python, tmp_path):
    run_python(
        """
        import kymo
        assert kymo.enabled()
        with kymo.range("by environment"):
            pass
        """,
        env={"KYMO": str(tmp_path / "env.kymo"), "KYMO_OPTIONS": "pool=2MiB"},
    )
    assert kymo.load(tmp_path / "env.kymo").ranges["name"] == ["by environment"]


def test_the_first_start_joins_what_the_environment_began(run_python, tmp_path):
    done = run_python(
        """
        import os, kymo
        kymo.start("mine.kymo", check=True)
        with kymo.range("joined"):
            pass
        print(os.environ["KYMO_OPTIONS"], os.path.basename(kymo.recording_path()))
        try:
            kymo.start()
        except kymo.KymoError:
            print("the second is refused")
        """,
        env={"KYMO": str(tmp_path / "given.kymo"), "KYMO_OPTIONS": "pool=8MiB"},
    )
    assert done.stdout == "pool=8MiB given.kymo\nthe second is refused\n"
    assert "recording into" in done.stderr and "mine.kymo" in done.stderr
    assert kymo.load(tmp_path / "given.kymo").ranges["name"] == ["joined"]
    assert not (tmp_path / "mine.kymo").exists()


def test_a_bad_environment_is_told_and_the_program_goes_on(run_python, tmp_path):
    done = run_python(
        "import kymo; assert not kymo.enabled(); print('fine')",
        env={"KYMO": str(tmp_path / "env.kymo"), "KYMO_OPTIONS": "poool=1"},
    )
    assert done.stdout == "fine\n"
    assert "poool" in done.stderr


def test_a_program_that_forgets_to_stop_keeps_its_events(run_python, tmp_path):
    run_python("""
        import kymo
        kymo.start("run.kymo")
        for _ in range(1000):
            with kymo.range("forgotten"):
                pass
    """)
    recording = kymo.load(tmp_path / "run.kymo")
    assert recording.ranges["count"] == [1000]
    assert recording.processes["end"] == ["exit"]


def test_an_uncaught_exception_keeps_events_too(run_python, tmp_path):
    done = run_python(
        """
        import kymo
        kymo.start("run.kymo")
        with kymo.range("fails"):
            raise SystemExit("on purpose")
        """,
        check=False,
    )
    assert done.returncode == 1
    assert kymo.load(tmp_path / "run.kymo").ranges["count"] == [1]


def test_start_and_stop_many_times(tmp_path):
    for _ in range(20):
        kymo.start(tmp_path / "run.kymo")
        with kymo.range("again"):
            pass
        kymo.stop()
    assert kymo.load(tmp_path / "run.kymo").ranges["count"] == [20]


def test_a_subinterpreter_can_import_it(run_python):
    run_python("""
        import kymo
        kymo.start("run.kymo")
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        other = interpreters.create()
        interpreters.run_string(other, "import kymo\\nwith kymo.range('in the other'): pass")
        interpreters.destroy(other)
        with kymo.range("in the first"):
            pass
        kymo.stop()
        assert sorted(kymo.load("run.kymo").ranges["name"]) == ["in the first", "in the other"]
    """)


def test_the_recording_tells_versions_of_what_is_loaded_by_the_end(run_python, tmp_path):
    run_python("""
        import sys, types
        import kymo
        kymo.start("run.kymo")
        with kymo.range("x"):
            sys.modules["torch"] = types.SimpleNamespace(__version__="9.9.9")
    """)  # fmt: skip
    (log,) = (tmp_path / "run.kymo").glob("*.klog")
    python = ".".join(map(str, sys.version_info[:3]))
    assert f"Python {python}, torch 9.9.9".encode() in log.read_bytes()
