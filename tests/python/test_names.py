"""Names of every kind come back as they went in."""

from __future__ import annotations

import pytest

import kymo
from kymo import _tools

ODD = {
    "quotes": "a \"b\" 'c'",
    "newline": "two\nlines\r\n",
    "NUL": "a\0b",
    "only NUL": "\0",
    "tab and bell": "\t\a",
    "angle brackets": "<script>alert(1)</script>",
    "comma": "a,b;c",
    "unicode": "прямой ход → 前进 🚀",
    "lone surrogate": "a\udc80b",
    "backslash": "C:\\temp\\n",
    "percent": "100 % %s %n",
    "spaces": "  around  ",
}


@pytest.mark.parametrize("name", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("form", ["with", "push", "decorator"])
def test_it_comes_back(record, name, form):
    with record() as path:
        if form == "with":
            with kymo.range(name):
                pass
        elif form == "push":
            kymo.push(name)
            kymo.pop()
        else:
            kymo.range(name)(lambda: None)()
    assert kymo.load(path).ranges["name"] == [name]


@pytest.mark.parametrize("name", ODD.values(), ids=ODD.keys())
def test_marks_and_counters_too(record, name):
    with record() as path:
        kymo.mark(name, payload=name)
        kymo.counter(name, 1)
    recording = kymo.load(path)
    assert recording.marks["name"] == [name]
    assert recording.counters["name"] == [name]


@pytest.mark.parametrize("name", ODD.values(), ids=ODD.keys())
def test_all_presenters_and_exports_take_it(record, tmp_path, name):
    with record() as path, kymo.range(name, category=name.replace("\0", "")):
        kymo.mark(name, payload=name)
    recording = kymo.load(path)
    assert recording.report()
    assert recording.ranges.to_csv()
    assert recording.ranges.to_json()
    assert "<script>" not in recording.ranges._repr_html_()
    for form in _tools.export_formats.split(","):
        if form == "pyspy":  # of samples alone, which this recording has none of
            continue
        recording.export(form, tmp_path / form)
        assert (tmp_path / form).stat().st_size > 0


def test_no_name_at_all_is_shown_as_such(record):
    with record() as path, kymo.range(""):
        pass
    assert kymo.load(path).ranges["name"] == ["(unnamed)"]


def test_a_megabyte_of_name(record):
    name = "x" * (1 << 20)
    with record() as path:
        for _ in range(3):
            with kymo.range(name):
                pass
    row = kymo.load(path).ranges
    assert row["count"] == [3]
    assert name.startswith(row["name"][0][:1000])


def test_bytes_are_the_same_name_as_their_text(record):
    with record() as path:
        with kymo.range("Größe".encode()):
            pass
        with kymo.range("Größe"):
            pass
    table = kymo.load(path).ranges
    assert (table["name"], table["count"]) == (["Größe"], [2])


def test_bytes_that_are_no_text_can_be_told(record):
    with record() as path, kymo.range(b"\xff\xfe"):
        pass
    assert kymo.load(path).ranges["name"] == ["\\xff\\xfe"]


def test_a_str_of_ones_own(record):
    class Name(str):
        __slots__ = ()

        def __hash__(self):
            return 1

        def __eq__(self, other):
            return True

    with record() as path:
        with kymo.range(Name("mine")):
            pass
        kymo.push(Name("other"))
        kymo.pop()
    assert sorted(kymo.load(path).ranges["name"]) == ["mine", "other"]


def test_names_made_anew_each_time_are_one_name(record):
    with record() as path:
        for i in range(1000):
            with kymo.range("made " + str(i % 2)):
                pass
            kymo.push("pushed " + str(i % 2))
            kymo.pop()
    table = kymo.load(path).ranges
    assert dict(zip(table["name"], table["count"])) == dict.fromkeys(("made 0", "made 1", "pushed 0", "pushed 1"), 500)


def test_a_hundred_thousand_names(record):
    with record() as path:
        for i in range(100_000):
            kymo.push(f"name {i}")
            kymo.pop()
            if i % 4 == 0:
                with kymo.range(f"range {i}"):
                    pass
    assert len(kymo.load(path).ranges) == 125_000
