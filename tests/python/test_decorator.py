"""Ranges as decorators of functions, methods and generators."""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import inspect
import pickle
import weakref

import pytest

import marey


@marey.range("module level")
def module_level(a, b=2, *rest, key=None, **more):
    """Return its arguments."""
    return a, b, rest, key, more


def counts_by_name(path):
    ranges = marey.load(path).ranges
    return dict(zip(ranges["name"], ranges["count"]))


def test_arguments_and_results_pass(record):
    with record() as path:
        assert module_level(1) == (1, 2, (), None, {})
        assert module_level(1, 3, 4, key=5, other=6) == (1, 3, (4,), 5, {"other": 6})
        assert module_level(*[1, 2, 3], **{"key": 4}) == (1, 2, (3,), 4, {})
    assert counts_by_name(path) == {"module level": 3}


def test_it_looks_like_the_function():
    assert module_level.__name__ == module_level.__qualname__ == "module_level"
    assert module_level.__doc__ == "Return its arguments."
    assert module_level.__module__ == __name__
    assert str(inspect.signature(module_level)) == "(a, b=2, *rest, key=None, **more)"
    assert inspect.isfunction(module_level.__wrapped__)
    assert inspect.isroutine(module_level)
    assert "module_level" in repr(module_level)


def test_it_pickles_and_copies_as_functions_do():
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    assert copy.copy(module_level) is module_level
    assert copy.deepcopy([module_level])[0] is module_level


def test_it_takes_attributes_and_weak_references():
    @marey.range("temporary")
    def function():
        pass

    function.note = 3
    assert function.note == 3
    reference = weakref.ref(function)
    del function
    gc.collect()
    assert reference() is None


def test_cycles_through_a_wrapper_are_collected():
    def make():
        @marey.range("cyclic")
        def function():
            return function

        return weakref.ref(function)

    reference = make()
    gc.collect()
    assert reference() is None


def test_without_parentheses_the_qualified_name_is_taken(record):
    class Model:
        @marey.range
        def forward(self):
            return self

    @marey.range
    def local():
        pass

    with record() as path:
        model = Model()
        assert model.forward() is model
        local()
    prefix = "test_without_parentheses_the_qualified_name_is_taken.<locals>."
    assert counts_by_name(path) == {f"{prefix}Model.forward": 1, f"{prefix}local": 1}
    assert marey.load(path).sites.row(name=f"{prefix}local")["file"] == __file__


def test_methods_of_all_kinds(record):
    class Thing:
        @marey.range("method")
        def method(self, x):
            return self, x

        @marey.range("class inside")
        @classmethod
        def class_inside(cls):
            return cls

        @classmethod
        @marey.range("class outside")
        def class_outside(cls):
            return cls

        @marey.range("static inside")
        @staticmethod
        def static_inside(x):
            return x

        @staticmethod
        @marey.range("static outside")
        def static_outside(x):
            return x

        @property
        @marey.range("property")
        def value(self):
            return 42

    class Child(Thing):
        def method(self, x):
            return super().method(x + 1)

    with record() as path:
        thing = Thing()
        assert thing.method(1) == (thing, 1)
        assert Thing.method(thing, 2) == (thing, 2)
        bound = thing.method
        assert bound(3) == (thing, 3)
        child = Child()
        assert child.method(1) == (child, 2)
        assert Thing.class_inside() is Thing and thing.class_inside() is Thing and Child.class_inside() is Child
        assert Thing.class_outside() is Thing and child.class_outside() is Child
        assert Thing.static_inside(5) == thing.static_inside(5) == 5
        assert Thing.static_outside(6) == thing.static_outside(6) == 6
        assert thing.value == 42
    assert counts_by_name(path) == {
        "method": 4,
        "class inside": 3,
        "class outside": 2,
        "static inside": 2,
        "static outside": 2,
        "property": 1,
    }


def test_an_exception_ends_the_range(record):
    @marey.range("raises")
    def raises():
        raise ValueError("as it should")

    with record() as path:
        for _ in range(3):
            with pytest.raises(ValueError, match="as it should"):
                raises()
        with marey.range("after"):
            pass
    recording = marey.load(path)
    assert counts_by_name(path) == {"raises": 3, "after": 1}
    assert set(recording.tree["depth"]) == {0}


def test_recursion_counts_every_call_and_totals_the_outermost(record):
    @marey.range("fib")
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    with record() as path:
        assert fib(10) == 55
    row = marey.load(path).ranges.row(name="fib")
    assert row["count"] == 177
    assert row["max_ns"] <= row["total_ns"] <= row["max_ns"] * 2


def test_endless_recursion_ends_as_without(record):
    @marey.range("endless")
    def endless():
        return endless()

    with record() as path, pytest.raises(RecursionError):
        endless()
    assert len(marey.load(path).open) == 0


def test_other_callables(record):
    class Callable:
        def __call__(self, x):
            return x * 2

    double = marey.range("object")(Callable())
    partial = marey.range("partial")(functools.partial(max, 3))
    builtin = marey.range("builtin")(len)
    with record() as path:
        assert (double(2), partial(5), builtin("abc")) == (4, 5, 3)
    assert counts_by_name(path) == {"object": 1, "partial": 1, "builtin": 1}


def test_what_cannot_be_decorated():
    class Plain:
        pass

    for wrong in (3, None, [], Plain):
        with pytest.raises(TypeError):
            marey.range("x")(wrong)
    with pytest.raises(TypeError):
        marey.range("x")()
    with pytest.raises(TypeError, match="class"):
        marey.range(Plain)


def test_switching_on_inside_a_function(tmp_path):
    @marey.range("function")
    def starts():
        marey.start(tmp_path / "run.marey")

    starts()
    with marey.range("after"):
        pass
    marey.stop()
    assert marey.load(tmp_path / "run.marey").ranges["name"] == ["after"]


class TestGenerators:
    """Each resume is one range."""

    def test_each_resume_is_counted(self, record):
        @marey.range("generator")
        def three():
            yield from range(3)

        with record() as path:
            assert list(three()) == [0, 1, 2]
        assert counts_by_name(path) == {"generator": 4}

    def test_what_is_done_between_resumes_is_outside(self, record):
        @marey.range("generator")
        def two():
            yield 1
            yield 2

        with record() as path:
            for _ in two():
                with marey.range("consumer"):
                    pass
        assert set(marey.load(path).tree["depth"]) == {0}

    def test_it_is_still_a_generator_function(self):
        @marey.range
        def generator():
            """Give one."""
            yield 1

        assert inspect.isgeneratorfunction(generator)
        assert inspect.isgenerator(generator())
        assert generator.__doc__ == "Give one."

    @pytest.mark.parametrize("on", [False, True])
    def test_send_throw_close_and_return_pass(self, tmp_path, on):
        seen = []

        @marey.range("generator")
        def talks():
            try:
                got = yield "first"
                seen.append(got)
                try:
                    yield "second"
                except KeyError as error:
                    seen.append(error)
                    yield "caught"
                return "returned"
            finally:
                seen.append("closed")

        def outer():
            return (yield from talks())

        if on:
            marey.start(tmp_path / "run.marey")
        generator = outer()
        assert next(generator) == "first"
        assert generator.send("sent") == "second"
        error = KeyError("thrown")
        assert generator.throw(error) == "caught"
        with pytest.raises(StopIteration) as stop:
            next(generator)
        assert stop.value.value == "returned"
        assert seen == ["sent", error, "closed"]

        abandoned = talks()
        next(abandoned)
        abandoned.close()
        assert seen[-1] == "closed" and len(seen) == 4

    def test_an_exception_that_is_not_caught_leaves(self, record):
        @marey.range("generator")
        def fails():
            yield 1
            raise ValueError("inside")

        with record() as path:
            generator = fails()
            next(generator)
            with pytest.raises(ValueError, match="inside"):
                next(generator)
            stubborn = fails()
            next(stubborn)
            with pytest.raises(LookupError):
                stubborn.throw(LookupError())
        assert len(marey.load(path).open) == 0

    def test_one_that_ignores_close_is_reported_so(self):
        @marey.range("generator")
        def stubborn():
            try:
                yield
            except GeneratorExit:
                yield

        generator = stubborn()
        next(generator)
        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            generator.close()

    def test_a_thrown_exception_is_not_kept_alive(self):
        @marey.range("generator")
        def forgives():
            while True:
                with contextlib.suppress(ValueError):
                    yield

        class Mine(ValueError):
            pass

        generator = forgives()
        next(generator)
        error = Mine()
        reference = weakref.ref(error)
        generator.throw(error)
        del error
        gc.collect()
        assert reference() is None
