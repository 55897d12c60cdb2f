"""Ranges by `with`, push and pop; marks and counters."""

from __future__ import annotations

import json
import threading
import types

import pytest

import marey


def counts_by_name(path):
    return dict(zip(marey.load(path).ranges["name"], marey.load(path).ranges["count"]))


def test_a_with_block_is_one_range(record):
    with record() as path:
        for _ in range(3):
            with marey.range("outer"), marey.range("inner"):
                pass
    ranges = marey.load(path).ranges
    assert counts_by_name(path) == {"outer": 3, "inner": 3}
    outer, inner = ranges.row(name="outer"), ranges.row(name="inner")
    assert outer["total_ns"] >= inner["total_ns"]
    assert outer["self_ns"] == outer["total_ns"] - inner["total_ns"]


def test_nesting_is_kept(record):
    with record() as path, marey.range("a"), marey.range("b"):
        marey.push("c")
        marey.pop()
    tree = marey.load(path).tree
    assert list(zip(tree["depth"], tree["name"])) == [(0, "a"), (1, "b"), (2, "c")]


def test_as_gives_none():
    with marey.range("nothing") as given:
        assert given is None


def test_the_same_name_gives_the_same_object():
    name = "".join(["sa", "me"])
    assert marey.range("same") is marey.range(name)
    assert marey.range("same") is not marey.range("same", category="c")
    assert marey.range("same", category="c") is marey.range("same", category="c")
    assert marey.range("same", "c", "red") is marey.range("same", color="red", category="c")


def test_what_a_range_says_of_itself():
    r = marey.range("told", category="io", color="#102030", payload=7)
    assert isinstance(r, marey.Range)
    assert (r.name, r.category, r.color, r.payload) == ("told", "io", 0xFF102030, 7)
    assert "told" in repr(r)
    plain = marey.range("plain")
    assert (plain.category, plain.color, plain.payload) == (None, None, None)


def test_an_exception_ends_the_range_and_passes(record):
    with record() as path:
        with pytest.raises(ZeroDivisionError), marey.range("fails"):
            1 / 0  # noqa: B018
        with marey.range("after"):
            pass
    recording = marey.load(path)
    assert list(recording.tree["depth"]) == [0, 0]
    assert len(recording.open) == 0


def test_a_range_taken_before_start_works_after(record):
    r = marey.range("early")
    with r:
        pass
    with record() as path, r:
        pass
    assert counts_by_name(path) == {"early": 1}


def test_switching_on_inside_a_block_is_harmless(record):
    with marey.range("around"):
        with record() as path, marey.range("within"):
            pass
    assert counts_by_name(path) == {"within": 1}


def test_starting_inside_a_block_that_ends_while_on(tmp_path):
    with marey.range("around"):
        marey.start(tmp_path / "run.marey")
    with marey.range("after"):
        pass
    marey.stop()
    recording = marey.load(tmp_path / "run.marey")
    assert recording.ranges["name"] == ["after"]
    assert len(recording.open) == 0


def test_starting_with_checks_inside_a_block_does_not_raise(tmp_path):
    with marey.range("around"):
        marey.start(tmp_path / "run.marey", check=True)
    with marey.range("after"):
        pass
    marey.stop()
    assert marey.load(tmp_path / "run.marey").ranges["name"] == ["after"]


def test_stopping_inside_a_block_leaves_it_open(tmp_path):
    marey.start(tmp_path / "run.marey")
    with marey.range("cut"):
        marey.stop()
    assert marey.load(tmp_path / "run.marey").open["name"] == ["cut"]


def test_the_place_of_the_first_use_is_kept(record):
    with record() as path, marey.range("placed"):
        pass
    site = marey.load(path).sites.row(name="placed")
    assert site["file"] == __file__
    with open(__file__) as source:
        assert 'marey.range("placed")' in source.readlines()[site["line"] - 1]


def test_category_and_colour_are_kept(record):
    with record() as path, marey.range("dressed", category="io", color=0xFF00FF00):
        pass
    site = marey.load(path).sites.row(name="dressed")
    assert site["category"] == "io"
    assert site["color"] in (0xFF00FF00, "#ff00ff00", "#00ff00")


@pytest.mark.parametrize("color", ["red", "grey", "#a0B0c0", "#80a0b0c0", 0, 0xFFFFFFFF, None])
def test_colours_that_are(color):
    marey.range("coloured", color=color)


@pytest.mark.parametrize("color", ["reddish", "#12345", "#gggggg", "", "#1234567"])
def test_colours_that_are_none(color):
    with pytest.raises(ValueError, match="not a colour"):
        marey.range("coloured", color=color)


@pytest.mark.parametrize("payload", [0, -1, 2**63 - 1, 2**64 - 1, 2**80, 1.5, "text", "", True, b"bytes", [1, 2]])
def test_payloads_travel_with_the_range(record, payload):
    with record() as path:
        with marey.range("loaded", payload=payload):
            pass
        marey.mark("loaded mark", payload=payload)
    recording = marey.load(path)
    assert recording.ranges.row(name="loaded")["count"] == 1
    assert recording.marks.row(name="loaded mark")["count"] == 1


def test_a_payload_is_seen_by_exports(record, tmp_path):
    with record() as path, marey.range("loaded", payload="needle in the payload"):
        pass
    marey.load(path).export("chrome", tmp_path / "trace.json")
    assert "needle in the payload" in (tmp_path / "trace.json").read_text()


def test_a_color_is_seen_by_chrome(record, tmp_path):
    with record() as path, marey.range("colored", color="blue"), marey.range("plain"):
        pass
    marey.load(path).export("chrome", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    colors = {e["name"]: e.get("cname") for e in events if e["ph"] == "X"}
    assert colors == {"colored": "rail_response", "plain": None}


@pytest.mark.parametrize("name", [None, 3, 1.5, [], object(), ("a",)])
def test_a_wrong_name_is_a_type_error(name):
    for call in (marey.range, marey.push, marey.mark):
        with pytest.raises(TypeError):
            call(name)
    with pytest.raises(TypeError):
        marey.counter(name, 1)


def test_wrong_arguments_are_type_errors():
    for wrong in (
        lambda: marey.range(),
        lambda: marey.range("a", "b", 1, 2, 3),
        lambda: marey.range("a", colour=1),
        lambda: marey.range("a", name="b"),
        lambda: marey.range("a", category=3),
        lambda: marey.range("a", color=1.5),
        lambda: marey.pop(3),
        lambda: marey.mark(),
        lambda: marey.counter("a"),
        lambda: marey.Range(),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_the_first_ranges_have_functions_bound_in_their_own_type(run_python):
    run_python("""
        import marey, types
        ranges = [marey.range(f"r{i}") for i in range(300)]
        own = [r for r in ranges if type(r) is not marey.Range]
        assert len(own) == 256 and len({type(r) for r in own}) == 256
        for r in own:
            for name in ("__enter__", "__exit__"):
                bound = vars(type(r))[name]
                assert isinstance(bound, types.BuiltinFunctionType) and bound.__self__ is r
        assert all(isinstance(r, marey.Range) for r in ranges)
        for r in ranges:
            with r:
                pass
    """)


def test_many_names_are_all_counted(record):
    with record() as path:
        for i in range(1000):
            with marey.range(f"many {i}"):
                pass
    assert counts_by_name(path) == {f"many {i}": 1 for i in range(1000)}


def test_range_is_a_builtin_function():
    assert isinstance(marey.range, types.BuiltinFunctionType)
    assert "payload" in marey.range.__doc__


def test_threads_share_a_range(record):
    r = marey.range("shared")

    def work():
        for _ in range(100):
            with r:
                pass

    with record() as path:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    row = marey.load(path).ranges.row(name="shared")
    assert (row["count"], row["threads"]) == (800, 8)


def test_push_and_pop_are_a_range(record):
    with record() as path:
        for _ in range(5):
            assert marey.push("pushed") is None
            marey.push(b"bytes")
            marey.pop("bytes")
            assert marey.pop() is None
    assert counts_by_name(path) == {"pushed": 5, "bytes": 5}


def test_pop_without_push_is_harmless(record):
    marey.pop()
    with record() as path:
        marey.pop()
        with marey.range("fine"):
            pass
    assert counts_by_name(path) == {"fine": 1}


def test_marks_and_counters(record):
    with record() as path:
        for value in (1, 2.5, -3):
            marey.counter("loss", value)
        marey.mark("epoch")
        marey.mark(name="epoch", payload=3)
    recording = marey.load(path)
    assert recording.marks.row(name="epoch")["count"] == 2
    loss = recording.counters.row(name="loss")
    assert (loss["count"], loss["min"], loss["max"], loss["last"]) == (3, -3, 2.5, -3)


def test_a_counter_takes_what_has_a_float(record):
    class Number:
        def __float__(self):
            return 4.0

    with record() as path:
        marey.counter("odd", Number())
        with pytest.raises(TypeError):
            marey.counter("odd", "four")
    assert marey.load(path).counters.row(name="odd")["last"] == 4.0


class TestNestingCheck:
    """Additional behavior of marey.start(check=True)."""

    def test_a_wrong_pop_raises_and_pops_nothing(self, record):
        with record(check=True) as path:
            marey.push("outer")
            marey.push("inner")
            with pytest.raises(marey.RangeError) as caught:
                marey.pop("outer")
            assert "outer" in str(caught.value) and "inner" in str(caught.value)
            marey.pop("inner")
            marey.pop("outer")
        assert counts_by_name(path) == {"outer": 1, "inner": 1}

    def test_a_pop_too_many_raises(self, record):
        with record(check=True), pytest.raises(marey.RangeError):
            marey.pop()

    def test_a_with_block_notices_what_was_left_open_in_it(self, record):
        with record(check=True):
            with pytest.raises(marey.RangeError, match="forgotten"), marey.range("block"):
                marey.push("forgotten")

    def test_a_function_notices_too(self, record):
        @marey.range("function")
        def leaves_one_open():
            marey.push("forgotten")
            return 1

        with record(check=True), pytest.raises(marey.RangeError, match="forgotten"):
            leaves_one_open()

    def test_an_exception_on_its_way_is_not_replaced(self, record):
        @marey.range("function")
        def fails():
            marey.push("forgotten")
            raise KeyError("the real one")

        with record(check=True), pytest.raises(KeyError), marey.range("block"):
            fails()

    def test_balanced_code_is_left_alone(self, record):
        with record(check=True) as path:
            for _ in range(100):
                with marey.range("a"):
                    marey.push("b")
                    marey.pop("b")
        assert counts_by_name(path) == {"a": 100, "b": 100}

    def test_range_error_is_an_error_of_ours(self):
        assert issubclass(marey.RangeError, marey.MareyError)
        assert issubclass(marey.RangeError, RuntimeError)
        assert marey.RangeError.__module__ == "marey"


@pytest.mark.parametrize("call", ['marey.range("x")', 'marey.range("x", "loop")', 'marey.range("x", payload=1)'])
def test_a_range_that_is_a_statement_warns_once(run_python, call):
    """It records nothing: only `with` and decorators begin a range."""
    done = run_python(
        f"""
        import marey
        for _ in range(3):
            {call}
        marey.range("other")
        """
    )
    assert done.stderr.count("RuntimeWarning: marey.range() without 'with' records nothing") == 1
    assert f"  {call}" in done.stderr


def test_a_range_that_is_used_does_not_warn(run_python):
    done = run_python(
        """
        import marey
        kept = marey.range("kept")
        with marey.range("block", payload=3):
            pass
        @marey.range("decorated")
        def f():
            return marey.range("returned")
        f()
        print(marey.range("argument").name, [marey.range(name) for name in "ab"][0].name)
        marey.range("kept").__enter__()
        marey.range("kept").__exit__(None, None, None)
        """
    )
    assert done.stderr == ""
