"""Names of all kinds are preserved."""

from __future__ import annotations

import pytest

import marey

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
            with marey.range(name):
                pass
        elif form == "push":
            marey.push(name)
            marey.pop()
        else:
            marey.range(name)(lambda: None)()
    assert marey.load(path).ranges["name"] == [name]


@pytest.mark.parametrize("name", ODD.values(), ids=ODD.keys())
def test_marks_and_counters_too(record, name):
    with record() as path:
        marey.mark(name, payload=name)
        marey.counter(name, 1)
    recording = marey.load(path)
    assert recording.marks["name"] == [name]
    assert recording.counters["name"] == [name]


@pytest.mark.parametrize("name", ODD.values(), ids=ODD.keys())
def test_all_presenters_and_exports_take_it(record, tmp_path, name):
    with record() as path, marey.range(name, category=name.replace("\0", "")):
        marey.mark(name, payload=name)
    recording = marey.load(path)
    assert recording.report()
    assert recording.ranges.to_csv()
    assert recording.ranges.to_json()
    assert "<script>" not in recording.ranges._repr_html_()
    for form in marey.export_formats():
        if form == "pyspy":  # of samples alone, which this recording has none of
            continue
        recording.export(form, tmp_path / form)
        assert (tmp_path / form).stat().st_size > 0


def test_no_name_at_all_is_shown_as_such(record):
    with record() as path, marey.range(""):
        pass
    assert marey.load(path).ranges["name"] == ["(unnamed)"]


def test_a_megabyte_of_name(record):
    name = "x" * (1 << 20)
    with record() as path:
        for _ in range(3):
            with marey.range(name):
                pass
    row = marey.load(path).ranges
    assert row["count"] == [3]
    assert name.startswith(row["name"][0][:1000])


def test_bytes_are_the_same_name_as_their_text(record):
    with record() as path:
        with marey.range("Größe".encode()):
            pass
        with marey.range("Größe"):
            pass
    table = marey.load(path).ranges
    assert (table["name"], table["count"]) == (["Größe"], [2])


def test_bytes_that_are_no_text_can_be_told(record):
    with record() as path, marey.range(b"\xff\xfe"):
        pass
    assert marey.load(path).ranges["name"] == ["\\xff\\xfe"]


def test_a_str_of_ones_own(record):
    class Name(str):
        __slots__ = ()

        def __hash__(self):
            return 1

        def __eq__(self, other):
            return True

    with record() as path:
        with marey.range(Name("mine")):
            pass
        marey.push(Name("other"))
        marey.pop()
    assert sorted(marey.load(path).ranges["name"]) == ["mine", "other"]


def test_names_made_anew_each_time_are_one_name(record):
    with record() as path:
        for i in range(1000):
            with marey.range("made " + str(i % 2)):
                pass
            marey.push("pushed " + str(i % 2))
            marey.pop()
    table = marey.load(path).ranges
    assert dict(zip(table["name"], table["count"])) == dict.fromkeys(("made 0", "made 1", "pushed 0", "pushed 1"), 500)


def test_a_hundred_thousand_names(record):
    with record() as path:
        for i in range(100_000):
            marey.push(f"name {i}")
            marey.pop()
            if i % 4 == 0:
                with marey.range(f"range {i}"):
                    pass
    assert len(marey.load(path).ranges) == 125_000
