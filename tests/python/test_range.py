"""Ranges by `with`, push and pop; marks and counters."""

from __future__ import annotations

import json
import threading
import types

import pytest

import kymo


def counts_by_name(path):
    return dict(zip(kymo.load(path).ranges["name"], kymo.load(path).ranges["count"]))


def test_a_with_block_is_one_range(record):
    with record() as path:
        for _ in range(3):
            with kymo.range("outer"), kymo.range("inner"):
                pass
    ranges = kymo.load(path).ranges
    assert counts_by_name(path) == {"outer": 3, "inner": 3}
    outer, inner = ranges.row(name="outer"), ranges.row(name="inner")
    assert outer["total_ns"] >= inner["total_ns"]
    assert outer["self_ns"] == outer["total_ns"] - inner["total_ns"]


def test_nesting_is_kept(record):
    with record() as path, kymo.range("a"), kymo.range("b"):
        kymo.push("c")
        kymo.pop()
    tree = kymo.load(path).tree
    assert list(zip(tree["depth"], tree["name"])) == [(0, "a"), (1, "b"), (2, "c")]


def test_as_gives_none():
    with kymo.range("nothing") as given:
        assert given is None


def test_the_same_name_gives_the_same_object():
    name = "".join(["sa", "me"])
    assert kymo.range("same") is kymo.range(name)
    assert kymo.range("same") is not kymo.range("same", category="c")
    assert kymo.range("same", category="c") is kymo.range("same", category="c")
    assert kymo.range("same", "c", "red") is kymo.range("same", color="red", category="c")


def test_what_a_range_says_of_itself():
    r = kymo.range("told", category="io", color="#102030", payload=7)
    assert isinstance(r, kymo.Range)
    assert (r.name, r.category, r.color, r.payload) == ("told", "io", 0xFF102030, 7)
    assert "told" in repr(r)
    plain = kymo.range("plain")
    assert (plain.category, plain.color, plain.payload) == (None, None, None)


def test_an_exception_ends_the_range_and_passes(record):
    with record() as path:
        with pytest.raises(ZeroDivisionError), kymo.range("fails"):
            1 / 0  # noqa: B018
        with kymo.range("after"):
            pass
    recording = kymo.load(path)
    assert list(recording.tree["depth"]) == [0, 0]
    assert len(recording.open) == 0


def test_a_range_taken_before_start_works_after(record):
    r = kymo.range("early")
    with r:
        pass
    with record() as path, r:
        pass
    assert counts_by_name(path) == {"early": 1}


def test_switching_on_inside_a_block_is_harmless(record):
    with kymo.range("around"):
        with record() as path, kymo.range("within"):
            pass
    assert counts_by_name(path) == {"within": 1}


def test_starting_inside_a_block_that_ends_while_on(tmp_path):
    with kymo.range("around"):
        kymo.start(tmp_path / "run.kymo")
    with kymo.range("after"):
        pass
    kymo.stop()
    recording = kymo.load(tmp_path / "run.kymo")
    assert recording.ranges["name"] == ["after"]
    assert len(recording.open) == 0


def test_starting_with_checks_inside_a_block_does_not_raise(tmp_path):
    with kymo.range("around"):
        kymo.start(tmp_path / "run.kymo", check=True)
    with kymo.range("after"):
        pass
    kymo.stop()
    assert kymo.load(tmp_path / "run.kymo").ranges["name"] == ["after"]


def test_stopping_inside_a_block_leaves_it_open(tmp_path):
    kymo.start(tmp_path / "run.kymo")
    with kymo.range("cut"):
        kymo.stop()
    assert kymo.load(tmp_path / "run.kymo").open["name"] == ["cut"]


def test_the_place_of_the_first_use_is_kept(record):
    with record() as path, kymo.range("placed"):
        pass
    site = kymo.load(path).sites.row(name="placed")
    assert site["file"] == __file__
    with open(__file__) as source:
        assert 'kymo.range("placed")' in source.readlines()[site["line"] - 1]


def test_category_and_colour_are_kept(record):
    with record() as path, kymo.range("dressed", category="io", color=0xFF00FF00):
        pass
    site = kymo.load(path).sites.row(name="dressed")
    assert site["category"] == "io"
    assert site["color"] in (0xFF00FF00, "#ff00ff00", "#00ff00")


@pytest.mark.parametrize("color", ["red", "grey", "#a0B0c0", "#80a0b0c0", 0, 0xFFFFFFFF, None])
def test_colours_that_are(color):
    kymo.range("coloured", color=color)


@pytest.mark.parametrize("color", ["reddish", "#12345", "#gggggg", "", "#1234567"])
def test_colours_that_are_none(color):
    with pytest.raises(ValueError, match="no colour"):
        kymo.range("coloured", color=color)


@pytest.mark.parametrize("payload", [0, -1, 2**63 - 1, 2**64 - 1, 2**80, 1.5, "text", "", True, b"bytes", [1, 2]])
def test_payloads_travel_with_the_range(record, payload):
    with record() as path:
        with kymo.range("loaded", payload=payload):
            pass
        kymo.mark("loaded mark", payload=payload)
    recording = kymo.load(path)
    assert recording.ranges.row(name="loaded")["count"] == 1
    assert recording.marks.row(name="loaded mark")["count"] == 1


def test_a_payload_is_seen_by_exports(record, tmp_path):
    with record() as path, kymo.range("loaded", payload="needle in the payload"):
        pass
    kymo.load(path).export("chrome", tmp_path / "trace.json")
    assert "needle in the payload" in (tmp_path / "trace.json").read_text()


def test_a_color_is_seen_by_chrome(record, tmp_path):
    with record() as path, kymo.range("colored", color="blue"), kymo.range("plain"):
        pass
    kymo.load(path).export("chrome", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    colors = {e["name"]: e.get("cname") for e in events if e["ph"] == "X"}
    assert colors == {"colored": "rail_response", "plain": None}


@pytest.mark.parametrize("name", [None, 3, 1.5, [], object(), ("a",)])
def test_a_wrong_name_is_a_type_error(name):
    for call in (kymo.range, kymo.push, kymo.mark):
        with pytest.raises(TypeError):
            call(name)
    with pytest.raises(TypeError):
        kymo.counter(name, 1)


def test_wrong_arguments_are_type_errors():
    for wrong in (
        lambda: kymo.range(),
        lambda: kymo.range("a", "b", 1, 2, 3),
        lambda: kymo.range("a", colour=1),
        lambda: kymo.range("a", name="b"),
        lambda: kymo.range("a", category=3),
        lambda: kymo.range("a", color=1.5),
        lambda: kymo.pop(3),
        lambda: kymo.mark(),
        lambda: kymo.counter("a"),
        lambda: kymo.Range(),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_the_first_ranges_have_functions_bound_in_their_own_type(run_python):
    run_python("""
        import kymo, types
        ranges = [kymo.range(f"r{i}") for i in range(300)]
        own = [r for r in ranges if type(r) is not kymo.Range]
        assert len(own) == 256 and len({type(r) for r in own}) == 256
        for r in own:
            for name in ("__enter__", "__exit__"):
                bound = vars(type(r))[name]
                assert isinstance(bound, types.BuiltinFunctionType) and bound.__self__ is r
        assert all(isinstance(r, kymo.Range) for r in ranges)
        for r in ranges:
            with r:
                pass
    """)


def test_many_names_are_all_counted(record):
    with record() as path:
        for i in range(1000):
            with kymo.range(f"many {i}"):
                pass
    assert counts_by_name(path) == {f"many {i}": 1 for i in range(1000)}


def test_range_is_a_builtin_function():
    assert isinstance(kymo.range, types.BuiltinFunctionType)
    assert "payload" in kymo.range.__doc__


def test_threads_share_a_range(record):
    r = kymo.range("shared")

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
    row = kymo.load(path).ranges.row(name="shared")
    assert (row["count"], row["threads"]) == (800, 8)


def test_push_and_pop_are_a_range(record):
    with record() as path:
        for _ in range(5):
            assert kymo.push("pushed") is None
            kymo.push(b"bytes")
            kymo.pop("bytes")
            assert kymo.pop() is None
    assert counts_by_name(path) == {"pushed": 5, "bytes": 5}


def test_pop_without_push_is_harmless(record):
    kymo.pop()
    with record() as path:
        kymo.pop()
        with kymo.range("fine"):
            pass
    assert counts_by_name(path) == {"fine": 1}


def test_marks_and_counters(record):
    with record() as path:
        for value in (1, 2.5, -3):
            kymo.counter("loss", value)
        kymo.mark("epoch")
        kymo.mark(name="epoch", payload=3)
    recording = kymo.load(path)
    assert recording.marks.row(name="epoch")["count"] == 2
    loss = recording.counters.row(name="loss")
    assert (loss["count"], loss["min"], loss["max"], loss["last"]) == (3, -3, 2.5, -3)


def test_a_counter_takes_what_has_a_float(record):
    class Number:
        def __float__(self):
            return 4.0

    with record() as path:
        kymo.counter("odd", Number())
        with pytest.raises(TypeError):
            kymo.counter("odd", "four")
    assert kymo.load(path).counters.row(name="odd")["last"] == 4.0


class TestNestingCheck:
    """What kymo.start(check=True) adds."""

    def test_a_wrong_pop_raises_and_pops_nothing(self, record):
        with record(check=True) as path:
            kymo.push("outer")
            kymo.push("inner")
            with pytest.raises(kymo.RangeError) as caught:
                kymo.pop("outer")
            assert "outer" in str(caught.value) and "inner" in str(caught.value)
            kymo.pop("inner")
            kymo.pop("outer")
        assert counts_by_name(path) == {"outer": 1, "inner": 1}

    def test_a_pop_too_many_raises(self, record):
        with record(check=True), pytest.raises(kymo.RangeError):
            kymo.pop()

    def test_a_with_block_notices_what_was_left_open_in_it(self, record):
        with record(check=True):
            with pytest.raises(kymo.RangeError, match="forgotten"), kymo.range("block"):
                kymo.push("forgotten")

    def test_a_function_notices_too(self, record):
        @kymo.range("function")
        def leaves_one_open():
            kymo.push("forgotten")
            return 1

        with record(check=True), pytest.raises(kymo.RangeError, match="forgotten"):
            leaves_one_open()

    def test_an_exception_on_its_way_is_not_replaced(self, record):
        @kymo.range("function")
        def fails():
            kymo.push("forgotten")
            raise KeyError("the real one")

        with record(check=True), pytest.raises(KeyError), kymo.range("block"):
            fails()

    def test_balanced_code_is_left_alone(self, record):
        with record(check=True) as path:
            for _ in range(100):
                with kymo.range("a"):
                    kymo.push("b")
                    kymo.pop("b")
        assert counts_by_name(path) == {"a": 100, "b": 100}

    def test_range_error_is_an_error_of_ours(self):
        assert issubclass(kymo.RangeError, kymo.KymoError)
        assert issubclass(kymo.RangeError, RuntimeError)
        assert kymo.RangeError.__module__ == "kymo"


@pytest.mark.parametrize("call", ['kymo.range("x")', 'kymo.range("x", "loop")', 'kymo.range("x", payload=1)'])
def test_a_range_that_is_a_statement_warns_once(run_python, call):
    """It records nothing: only `with` and decorators begin a range."""
    done = run_python(
        f"""
        import kymo
        for _ in range(3):
            {call}
        kymo.range("other")
        """
    )
    assert done.stderr.count("RuntimeWarning: kymo.range() without 'with' records nothing") == 1
    assert f"  {call}" in done.stderr


def test_a_range_that_is_used_does_not_warn(run_python):
    done = run_python(
        """
        import kymo
        kept = kymo.range("kept")
        with kymo.range("block", payload=3):
            pass
        @kymo.range("decorated")
        def f():
            return kymo.range("returned")
        f()
        print(kymo.range("argument").name, [kymo.range(name) for name in "ab"][0].name)
        kymo.range("kept").__enter__()
        kymo.range("kept").__exit__(None, None, None)
        """
    )
    assert done.stderr == ""
