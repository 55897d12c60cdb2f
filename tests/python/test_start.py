"""The switchboard: start, stop, options, the environment, children."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import marey


def test_off_at_first_on_after_start_off_after_stop(tmp_path):
    assert marey.enabled() is False
    marey.start(tmp_path / "run.marey")
    assert marey.enabled() is True
    marey.stop()
    assert marey.enabled() is False


def test_the_path_may_be_text_path_or_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given, made in (("text.marey", "text.marey"), (Path("path.marey"), "path.marey"), (None, "run.marey")):
        marey.start(given)
        marey.mark("here")
        marey.stop()
        assert (tmp_path / made / "meta.json").exists()
    marey.start(path="keyword.marey")
    assert marey.recording_path() == str(tmp_path / "keyword.marey")


def test_a_path_that_is_not_unicode(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"caf\xe9.marey")
    marey.start(os.fsdecode(path))
    marey.mark("here")
    marey.stop()
    assert os.path.isdir(path)
    assert marey.load(os.fsdecode(path)).marks["count"] == [1]


def test_stop_twice_and_without_start_is_fine():
    marey.stop()
    marey.stop()
    marey.reset()


def test_two_recordings_in_a_row(record):
    r = marey.range("both")
    for name in ("a.marey", "b.marey"):
        with record(name) as path, r:
            pass
        assert marey.load(path).ranges["count"] == [1]


def test_a_second_start_is_an_error_that_names_the_first(record, tmp_path):
    with record() as path:
        with pytest.raises(marey.MareyError, match=str(path)):
            marey.start(tmp_path / "other.marey")
        assert marey.enabled()
        assert os.environ["MAREY"] == str(path)


def test_an_unknown_option_lists_those_there_are(tmp_path):
    with pytest.raises(ValueError, match=r"poool.*pool.*disk.*policy.*clock.*check"):
        marey.start(tmp_path / "run.marey", poool=1)
    assert not marey.enabled()
    assert "MAREY" not in os.environ


@pytest.mark.parametrize(
    "options",
    [{"pool": "lots"}, {"policy": "keep-all"}, {"clock": 3}, {"check": "perhaps"}, {"pool": -1}, {"pool": "1,disk=2"}],
)
def test_an_option_that_does_not_fit_is_a_value_error(tmp_path, options):
    with pytest.raises(ValueError):
        marey.start(tmp_path / "run.marey", **options)
    assert not marey.enabled()


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
    with record(**options) as path, marey.range("fine"):
        pass
    assert marey.load(path).ranges["count"] == [1]


def test_every_option_is_in_the_help():
    with pytest.raises(ValueError) as caught:
        marey.start("never.marey", nothing=1)
    listed = str(caught.value).split(" are ")[-1].split(", ")
    assert [line.split("=")[0] for line in marey.options_help().splitlines()] == listed
    page = (Path(__file__).parents[2] / "docs/reference/options.md").read_text()
    assert [key for key in listed if f"`{key}`" not in page] == []


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(marey.MareyError, match="file"):
        marey.start(tmp_path / "file" / "run.marey")
    assert not marey.enabled()


def test_rank_by_option_and_by_call(record):
    with record("a.marey", rank=3) as path:
        marey.mark("here")
    assert marey.load(path).processes["rank"] == [3]
    with record("b.marey") as path:
        marey.set_rank(5, world_size=8)
        marey.mark("here")
    assert marey.load(path).processes["rank"] == [5]
    for wrong in (-1, "one", 2**40):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            marey.set_rank(wrong)


def test_counts_tell_what_was_taken(record):
    with record():
        for _ in range(100):
            with marey.range("counted"):
                pass
        counts = marey.counts()
    assert counts["events"] >= 200
    assert counts["lost_events"] == 0
    assert counts["n_threads"] == 1
    assert counts["pool_bytes"] > 0


def test_the_environment_is_set_for_children_and_put_back(tmp_path, monkeypatch):
    monkeypatch.setenv("MAREY_OPTIONS", "pool=2MiB")
    marey.start(tmp_path / "run.marey", check=True)
    assert os.environ["MAREY"] == str(tmp_path / "run.marey")
    assert os.environ["MAREY_OPTIONS"] == "check=1"
    marey.stop()
    assert "MAREY" not in os.environ
    assert os.environ["MAREY_OPTIONS"] == "pool=2MiB"


def test_a_child_records_into_the_same_directory(record):
    child = "import marey\nwith marey.range('in the child'): pass"
    with record() as path:
        with marey.range("in the parent"):
            subprocess.run([sys.executable, "-c", child], check=True, timeout=60)
    recording = marey.load(path)
    assert sorted(recording.ranges["name"]) == ["in the child", "in the parent"]
    assert len(recording.processes) == 2


def test_the_environment_alone_starts_a_recording(run_python, tmp_path):
    run_python(
        """
        import marey
        assert marey.enabled()
        with marey.range("by environment"):
            pass
        """,
        env={"MAREY": str(tmp_path / "env.marey"), "MAREY_OPTIONS": "pool=2MiB"},
    )
    assert marey.load(tmp_path / "env.marey").ranges["name"] == ["by environment"]


def test_the_first_start_joins_what_the_environment_began(run_python, tmp_path):
    done = run_python(
        """
        import os, marey
        marey.start("mine.marey", check=True)
        with marey.range("joined"):
            pass
        print(os.environ["MAREY_OPTIONS"], os.path.basename(marey.recording_path()))
        try:
            marey.start()
        except marey.MareyError:
            print("the second is refused")
        """,
        env={"MAREY": str(tmp_path / "given.marey"), "MAREY_OPTIONS": "pool=8MiB"},
    )
    assert done.stdout == "pool=8MiB given.marey\nthe second is refused\n"
    assert "recording into" in done.stderr and "mine.marey" in done.stderr
    assert marey.load(tmp_path / "given.marey").ranges["name"] == ["joined"]
    assert not (tmp_path / "mine.marey").exists()


def test_a_bad_environment_is_reported_and_the_program_goes_on(run_python, tmp_path):
    done = run_python(
        "import marey; assert not marey.enabled(); print('fine')",
        env={"MAREY": str(tmp_path / "env.marey"), "MAREY_OPTIONS": "poool=1"},
    )
    assert done.stdout == "fine\n"
    assert "poool" in done.stderr


def test_a_program_that_forgets_to_stop_keeps_its_events(run_python, tmp_path):
    run_python("""
        import marey
        marey.start("run.marey")
        for _ in range(1000):
            with marey.range("forgotten"):
                pass
    """)
    recording = marey.load(tmp_path / "run.marey")
    assert recording.ranges["count"] == [1000]
    assert recording.processes["end"] == ["exit"]


def test_an_uncaught_exception_keeps_events_too(run_python, tmp_path):
    done = run_python(
        """
        import marey
        marey.start("run.marey")
        with marey.range("fails"):
            raise SystemExit("on purpose")
        """,
        check=False,
    )
    assert done.returncode == 1
    assert marey.load(tmp_path / "run.marey").ranges["count"] == [1]


def test_start_and_stop_many_times(tmp_path):
    for _ in range(20):
        marey.start(tmp_path / "run.marey")
        with marey.range("again"):
            pass
        marey.stop()
    assert marey.load(tmp_path / "run.marey").ranges["count"] == [20]


def test_a_subinterpreter_can_import_it(run_python):
    run_python("""
        import marey
        marey.start("run.marey")
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        other = interpreters.create()
        interpreters.run_string(other, "import marey\\nwith marey.range('in the other'): pass")
        interpreters.destroy(other)
        with marey.range("in the first"):
            pass
        marey.stop()
        assert sorted(marey.load("run.marey").ranges["name"]) == ["in the first", "in the other"]
    """)


def test_the_recording_tells_versions_of_what_is_loaded_by_the_end(run_python, tmp_path):
    run_python("""
        import sys, types
        import marey
        marey.start("run.marey")
        with marey.range("x"):
            sys.modules["torch"] = types.SimpleNamespace(__version__="9.9.9")
    """)  # fmt: skip
    (log,) = (tmp_path / "run.marey").glob("*.klog")
    python = ".".join(map(str, sys.version_info[:3]))
    assert f"Python {python}, torch 9.9.9".encode() in log.read_bytes()
