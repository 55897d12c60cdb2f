"""Signatures: the string of each kind of value, levels, widening, formatters."""

from __future__ import annotations

import gc
import os
import sys
import weakref
from typing import Any

import pytest

from marey import _native
from marey._signatures import LEVELS, level_of
from marey.profiler import register, signature


def one(value):
    """A function of one parameter, whose signature is that of its value."""


def text(value: Any, level: Any = True) -> str:
    shown = signature(one, value, signature_level=level)
    assert shown.startswith("one(value:") and shown.endswith(")")
    return shown[len("one(value:") : -1]


class Calls:
    """A signer, called as a hook would call it."""

    def __init__(self, level: str = "shape", depth: int = 0, most: int = 0, requires_grad: bool = False) -> None:
        self.signer = _native.Signer(LEVELS[level], depth, most, requires_grad)

    def __call__(self, function: Any, number: int = 1, **values: Any) -> str:
        got = self.number(function, number, **values)
        return self.signer.texts()[got - 1][0]

    def number(self, function: Any, number: int = 1, **values: Any) -> int:
        return self.signer.sign(number, function.__code__, values)

    def elements(self) -> float:
        return self.signer.texts()[-1][1]


# ---- plain values and containers ----


class Plain:
    pass


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, "int"),
        (10**100, "int"),
        (True, "bool"),
        (1.5, "float"),
        (1j, "complex"),
        ("text", "str"),
        (b"", "bytes"),
        (None, "None"),
        (Ellipsis, "ellipsis"),
        (range(3), "range"),
        (sys, "module"),
        (Plain(), "Plain"),
        (Plain, "type[Plain]"),
        (int, "type[int]"),
        (len, "builtin_function_or_method(len)"),
        (one, "function(one)"),
        (Calls.elements, "function(Calls.elements)"),
        ([], "list(len=0)"),
        ([1, 2], "list[int](len=2)"),
        ([1, "a"], "list[int | str](len=2)"),
        ([1, "a", None, 2.0], "list[int | str | None | ...](len=4)"),
        (list(range(1000)), "list[int](len=1000)"),
        ([[1], [2]], "list[list[int](len=1)](len=2)"),
        ([[[1]]], "list[list[list](len=1)](len=1)"),
        ((), "tuple()"),
        ((1, "a"), "tuple(int, str)"),
        (tuple(range(9)), "tuple[int](len=9)"),
        ({}, "dict(len=0)"),
        ({"a": 1}, "dict[str, int](len=1)"),
        ({"a": 1, 2: None}, "dict[str | int, int | None](len=2)"),
        ({"a": [1]}, "dict[str, list[int](len=1)](len=1)"),
        (set(), "set(len=0)"),
        ({1, 2, 3}, "set[int](len=3)"),
        (frozenset("a"), "frozenset[str](len=1)"),
    ],
)
def test_a_value_is_described_by_its_type_and_what_is_in_it(value, expected):
    assert text(value) == expected


def test_a_bound_method_has_the_name_of_its_function():
    assert text(Calls().elements) == "method(Calls.elements)"


def test_a_subclass_of_a_container_is_not_looked_into():
    class Mine(list):
        def __iter__(self):
            raise AssertionError("asked")

        __len__ = __getitem__ = __iter__

    assert text(Mine([1])) == "Mine"
    assert text([Mine([1])]) == "list[Mine](len=1)"


def test_a_set_whose_elements_were_removed():
    values = set(range(100))
    for i in range(99):
        values.discard(i)
    assert text(values) in ("set[int](len=1)", "set(len=1)")  # only the first slots are looked at
    assert text({1, 2} - {1, 2}) == "set(len=0)"


def test_levels_say_more_and_more():
    np = pytest.importorskip("numpy")
    array = np.zeros((2, 3), dtype="f4", order="F")
    assert [text(array, level) for level in ("types", "dtype", "shape", "layout")] == [
        "ndarray",
        "ndarray(dtype=float32)",
        "ndarray(dtype=float32, shape=(2, 3))",
        "ndarray(dtype=float32, shape=(2, 3), order=F)",
    ]
    assert [text([1], level) for level in ("types", "dtype", "shape")] == ["list", "list[int]", "list[int](len=1)"]
    assert [text(one, level) for level in ("types", "dtype")] == ["function", "function(one)"]
    assert text((1, 2), "dtype") == "tuple(int, int)"
    assert signature(one, 1, signature_level="none") == signature(one, 1, signature_level=False) == "one"
    assert level_of(True) == LEVELS["shape"]
    with pytest.raises(ValueError, match="must be one of True, False, 'none', 'types'"):
        level_of("all")


def test_depth_is_how_far_containers_are_looked_into():
    assert Calls(depth=1)(one, value=[[1]]) == "value:list[list](len=1)"
    assert Calls(depth=3)(one, value=[[[1]]]) == "value:list[list[list[int](len=1)](len=1)](len=1)"


def test_a_list_within_itself_ends():
    endless: list[Any] = []
    endless.append(endless)
    assert text(endless) == "list[list[list](len=1)](len=1)"


# ---- parameters ----


def test_all_kinds_of_parameters():
    def f(a, /, b, *args, c, d=None, **kwargs):
        """Positions, then keywords, then the rest."""

    assert signature(f, 1, 2.0, "x", "y", c=b"", z=1) == (
        "f(a:int, b:float, c:bytes, d:None, *args:tuple(str, str), **kwargs:dict[str, int](len=1))"
    )
    assert signature(f, 1, 2, c=3) == "f(a:int, b:int, c:int, d:None, *args:tuple(), **kwargs:dict(len=0))"


def test_methods_are_shown_by_their_class():
    class Model:
        def __init__(self, n):
            self.n = n

        def forward(self, x):
            """A method."""

        def no_arguments(self):
            """A method."""

        @classmethod
        def make(cls, n):
            """A method of the class."""

    model = Model(1)
    assert signature(model.forward, 1.0) == "Model.forward(x:float)"
    assert signature(model.no_arguments) == "Model.no_arguments()"
    assert signature(Model.__init__, model, 1) == "Model(n:int)"
    assert signature(Model.make, 1) == "make(cls:type[Model], n:int)"


def test_what_is_called_self_and_is_none():
    def f(*self):
        """No method."""

    def g(self):
        """No method either, but who would call it so."""

    assert signature(f, 1) == "f(*self:tuple(int))"
    assert signature(g, [1]) == "list.g()"
    assert signature(one, 1) == "one(value:int)"


def test_display_of_texts():
    assert _native.signature_display("f", "") == "f()"
    assert _native.signature_display("__init__", "self:Model, n:int") == "Model(n:int)"
    assert _native.signature_display("__init__", "self:Model") == "Model()"
    assert _native.signature_display("f", "selfish:int") == "f(selfish:int)"


def test_many_parameters_are_cut():
    names = [f"p{i}" for i in range(300)]
    space: dict[str, Any] = {}
    exec(f"def many({', '.join(names)}): pass", space)
    shown = signature(space["many"], *range(300))
    assert shown.startswith("many(p0:int, p1:int, ")
    assert shown.endswith(", p62:int, ...)")


def test_a_long_text_is_cut():
    long = type("A" * 300, (), {})
    shown = Calls()(lambda a, b, c, d, e: None, a=long(), b=long(), c=long(), d=long(), e=long())
    assert len(shown) < 1100
    assert shown.endswith("...")


def test_names_with_control_characters_and_beyond_ascii():
    assert text(type("a\nb\x7f", (), {})()) == "a?b?"
    assert text(type("Größe", (), {})()) == "Größe"
    assert text(type("a.b", (), {})()) == "a.b"


# ---- arrays ----


def test_arrays_of_numpy():
    np = pytest.importorskip("numpy")
    assert signature(lambda a, b: None, np.arange(16, dtype="f4"), np.arange(16, dtype="f4")) == (
        "<lambda>(a:ndarray(dtype=float32, shape=(16,)), b:ndarray(dtype=float32, shape=(16,)))"
    )
    assert text(np.zeros(())) == "ndarray(dtype=float64, shape=())"
    assert text(np.zeros((0, 3))) == "ndarray(dtype=float64, shape=(0, 3))"
    assert text(np.float64(1)) == "float64"
    assert text(np.int32(1)) == "int32"
    assert text(np.zeros((1, 1), int).view(np.matrix)) == "matrix(dtype=int64, shape=(1, 1))"
    assert text(np.ma.zeros(3)) == "MaskedArray(dtype=float64, shape=(3,))"
    assert text([np.zeros(2)] * 3) == "list[ndarray(dtype=float64, shape=(2,))](len=3)"


def test_a_memmap_has_its_class_in_front(tmp_path):
    np = pytest.importorskip("numpy")
    mapped = np.memmap(tmp_path / "a", dtype="i2", mode="w+", shape=(2, 5))
    assert text(mapped) == "memmap(dtype=int16, shape=(2, 5))"


def test_each_dtype_of_numpy_has_the_name_that_numpy_gives_it():
    np = pytest.importorskip("numpy")
    for dtype in [*np.typecodes["All"], ">f4", ">i2", "S5", "U5", ">U3", "V8", "M8[ns]", "m8[3D]", ">M8[s]", "M8"]:
        array = np.zeros(2, dtype)
        assert text(array) == f"ndarray(dtype={array.dtype}, shape=(2,))"
    record = np.zeros(2, [("x", "f4"), ("größe", ">i8"), ("s", "S3"), ("b", "?"), ("o", "O")])
    assert text(record) == f"ndarray(dtype={record.dtype}, shape=(2,))"


def test_layouts_of_numpy():
    np = pytest.importorskip("numpy")
    a = np.zeros((4, 4))
    assert text(a, "layout").endswith("order=C)")
    assert text(a.T[:2], "layout").endswith("order=strided)")
    a.flags.writeable = False
    assert text(a, "layout").endswith("order=C, readonly)")


@pytest.mark.needs_torch
def test_tensors_of_torch():
    import torch

    assert text(torch.zeros(2, 3)) == "Tensor(dtype=float32, shape=(2, 3))"
    assert text(torch.tensor(1)) == "Tensor(dtype=int64, shape=())"
    assert text(torch.nn.Parameter(torch.zeros(2))) == "Parameter(dtype=float32, shape=(2,))"
    assert text(torch.zeros(2, dtype=torch.bfloat16)) == "Tensor(dtype=bfloat16, shape=(2,))"
    assert text(torch.zeros(2, 3).T, "layout") == "Tensor(dtype=float32, shape=(3, 2), order=strided, device=cpu)"
    assert text(torch.zeros(2, device="meta"), "layout") == "Tensor(dtype=float32, shape=(2,), order=C, device=meta)"
    grad = Calls(requires_grad=True)
    assert (
        grad(one, value=torch.zeros(1, requires_grad=True)) == "value:Tensor(dtype=float32, shape=(1,), requires_grad)"
    )
    assert grad(one, value=torch.zeros(1)) == "value:Tensor(dtype=float32, shape=(1,))"


@pytest.mark.needs_torch
def test_a_mode_of_torch_is_not_asked():
    import torch
    from torch.overrides import TorchFunctionMode

    asked = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            asked.append(func)
            return func(*args, **(kwargs or {}))

    tensor = torch.zeros(2)
    with Mode():
        assert text(tensor, "layout") == "Tensor(dtype=float32, shape=(2,), order=C, device=cpu)"
        assert asked == []
        assert tensor.shape == (2,)  # the mode is still on
        assert len(asked) == 1


@pytest.mark.needs_torch
def test_a_subclass_of_a_tensor_is_not_asked():
    import torch

    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("asked")

    assert text(torch.zeros(2).as_subclass(Mine)) == "Mine"


@pytest.mark.needs_torch
@pytest.mark.filterwarnings("ignore")
def test_a_trace_of_torch_is_not_written_into():
    import torch

    shown = []

    def traced(x):
        shown.append(text(x))
        return x + 1

    graph = torch.jit.trace(traced, torch.zeros(2), check_trace=False).graph
    assert shown == ["Tensor"]
    assert "aten::size" not in str(graph)


@pytest.mark.needs_pandas
def test_tables_of_pandas():
    import pandas as pd

    frame = pd.DataFrame({"a": [1, 2], "b": [1.0, 2.0], "c": ["x", "y"], "d": [3, 4]})
    dtypes = "float64, int64*2, object"
    if int(pd.__version__.split(".")[0]) >= 3:  # which has another order, and a type for texts
        dtypes = f"int64*2, float64, {type(frame.c.array).__name__}"
    assert text(frame) == f"DataFrame(dtypes=[{dtypes}], rows=2)"
    assert text(frame, "dtype") == f"DataFrame(dtypes=[{dtypes}])"
    assert text(frame.a) == "Series(dtype=int64, rows=2)"
    assert text(pd.Series(pd.Categorical(["a", "b"]))) == "Series(dtype=Categorical, rows=2)"
    assert text(pd.DataFrame({"a": pd.array([1, None])})) == "DataFrame(dtypes=[IntegerArray], rows=2)"
    assert text(pd.DataFrame()) == "DataFrame(dtypes=[])"

    class Mine(pd.DataFrame):
        def __getattr__(self, name):
            raise AssertionError("asked")

    assert text(Mine({"a": [1]})) == "Mine(dtypes=[int64], rows=1)"


@pytest.mark.needs_numba
def test_arrays_on_a_device_of_numba():
    np = pytest.importorskip("numpy")
    devicearray = pytest.importorskip("numba.cuda.cudadrv.devicearray")
    array = devicearray.DeviceNDArray.__new__(devicearray.DeviceNDArray)
    array.shape, array.dtype = (3, 4), np.dtype("f8")
    try:
        assert text(array) == "DeviceNDArray(dtype=float64, shape=(3, 4))"
        assert text(array, "layout") == "DeviceNDArray(dtype=float64, shape=(3, 4), device=cuda)"
    finally:
        array.shape = ()


@pytest.mark.needs_numba
def test_a_function_that_numba_compiles():
    np = pytest.importorskip("numpy")
    import numba

    @numba.njit
    def dot(a, b):
        return (a * b).sum()

    assert signature(dot, np.zeros(2, "f4"), 1) == "dot(a:ndarray(dtype=float32, shape=(2,)), b:int)"


def test_elements_are_those_of_arrays():
    np = pytest.importorskip("numpy")
    calls = Calls()
    calls(one, value=np.zeros((4, 5)))
    assert calls.elements() == 20
    calls(one, value=[np.zeros(4)] * 3)
    assert calls.elements() == 12
    calls(one, value=[1] * 7)
    assert calls.elements() == 7
    calls(one, value=1)
    assert calls.elements() == 0
    calls(lambda a, b: None, number=2, a=np.zeros(3), b=[1, 2])
    assert calls.elements() == 3


# ---- widening ----


def test_ten_thousand_shapes_are_a_bounded_group():
    np = pytest.importorskip("numpy")
    calls = Calls()
    for n in range(10_000):
        calls.number(one, value=np.zeros((n, 3), "i1"))
    texts = [shown for shown, _ in calls.signer.texts()]
    assert len(texts) == len(set(texts)) <= 64 + 17 + 1
    assert texts[63] == "value:ndarray(dtype=int8, shape=(63, 3))"
    assert texts[64:] == [f"value:ndarray(dtype=int8, shape=({2**k}..{2 ** (k + 1) - 1}, 3))" for k in range(6, 14)]
    assert calls.signer.widened() == 10_000 - 64
    assert calls(one, value=np.zeros((5, 3), "i1")) == "value:ndarray(dtype=int8, shape=(5, 3))"


def test_what_is_left_is_other_shapes():
    np = pytest.importorskip("numpy")
    calls = Calls(most=4)
    for a in range(10):
        for b in range(10):
            for c in range(10):
                calls(one, value=np.zeros((2**a, 2**b, c), "i1") if a + b < 12 else [1] * (a * b * c))
    texts = [shown for shown, _ in calls.signer.texts()]
    assert len(texts) <= 4 + 2 + 1
    assert texts[-1] == "other shapes"


def test_lengths_are_widened_as_well():
    calls = Calls(most=2)
    for n in (1, 2, 3, 4, 5, 100):
        calls(one, value=[0] * n)
    assert [shown for shown, _ in calls.signer.texts()] == [
        "value:list[int](len=1)",
        "value:list[int](len=2)",
        "value:list[int](len=2..3)",
        "other shapes",
    ]


def test_more_types_than_the_cap():
    calls = Calls(most=3)
    for i in range(50):
        calls(one, value=type(f"T{i}", (), {})())
    assert [shown for shown, _ in calls.signer.texts()] == ["value:T0", "value:T1", "value:T2", "other shapes"]


def test_functions_are_apart():
    calls = Calls(most=1)
    assert calls(one, number=1, value=1) == calls(one, number=2, value=1) == "value:int"
    assert len(calls.signer.texts()) == 2


def test_a_number_that_comes_with_other_parameters():
    """As when a function is defined again under the same name and line."""
    calls = Calls()
    space: dict[str, Any] = {}
    exec("def f(a): pass", space)
    assert calls(space["f"], a=1) == "a:int"
    exec("def f(b): pass", space)
    assert calls(space["f"], b=1) == "b:int"
    exec("def f(*b): pass", space)
    assert calls(space["f"], b=1) == "*b:int"


# ---- identity ----


def test_types_that_come_and_go_are_never_taken_for_another():
    calls = Calls()
    seen = set()
    for i in range(2000):
        kind = type(f"T{i % 50}", (), {})
        seen.add(id(kind))
        assert calls(one, value=kind()) == f"value:T{i % 50}"
        assert calls(one, number=2, value=kind) == f"value:type[T{i % 50}]"
        del kind
        gc.collect(0)
    assert len(seen) < 2000, "no address came twice: the test has shown nothing"
    assert len(calls.signer.texts()) == 100


def test_nothing_is_kept_alive():
    class Mine:
        pass

    calls = Calls()
    value = Mine()
    calls(one, value=value)
    calls(one, value=[value])
    calls(one, value=Mine)
    kind, instance = weakref.ref(Mine), weakref.ref(value)
    del Mine, value
    gc.collect()
    assert instance() is None
    assert kind() is None


def test_memory_stays_where_it_is():
    """A hundred thousand types, functions and texts; what is kept is counted in the process itself."""
    np = pytest.importorskip("numpy")
    calls = Calls()

    def rounds(n: int) -> None:
        for i in range(n):
            calls.number(one, value=type("T", (), {})())
            calls.number(one, number=2, value=np.zeros(i % 1000, "i1"))
            calls.number(one, number=3, value=np.zeros(1, [(f"f{i}", "i1")]))
            calls.number(one, number=4, value=eval(f"lambda: {i}"))
        gc.collect()

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    rounds(5000)
    before = resident()
    rounds(10000)
    assert resident() - before < 4 << 20
    assert len(calls.signer.texts()) < 400


def test_equal_dtypes_that_are_different_objects_are_one_signature():
    np = pytest.importorskip("numpy")
    calls = Calls()
    for _ in range(2000):
        assert calls(one, value=np.zeros(2, [("x", "f4")])) == "value:ndarray(dtype=[('x', '<f4')], shape=(2,))"
        assert calls(one, number=2, value=np.array(["ab"])) == "value:ndarray(dtype=<U2, shape=(1,))"
    assert len(calls.signer.texts()) == 2


# ---- code that must never run ----


def raising(*_):
    raise AssertionError("an object's code has run")


class Meta(type):
    __hash__ = __eq__ = __repr__ = __str__ = __instancecheck__ = __subclasscheck__ = __len__ = raising
    __name__ = property(raising)  # type: ignore[assignment]

    def __getattribute__(cls, name):
        raising()


SPECIAL = "getattr getattribute repr str hash eq len iter bool call array array_interface dlpack index contains getitem"
NEVER = dict.fromkeys([f"__{name}__" for name in SPECIAL.split()], raising)


def test_hostile_objects_are_not_asked_anything():
    hostile = dict(NEVER, __class__=property(raising), dtype=property(raising), shape=property(raising))
    Hostile = type.__new__(Meta, "Hostile", (), hostile)
    value = type.__call__(Hostile)
    for level in ("types", "dtype", "shape", "layout"):
        calls = Calls(level)
        assert calls(one, value=value) == "value:Hostile"
        calls(one, value=[value, (value,), {1: value}])
        calls(one, value=Hostile)
    assert Calls()(one, value=Hostile) == "value:Meta[Hostile]"


def test_an_object_that_lies_about_its_class():
    np = pytest.importorskip("numpy")

    class Liar:
        @property
        def __class__(self):
            return np.ndarray

        shape = (1 << 60,)
        dtype = np.dtype("f4")

    assert isinstance(Liar(), np.ndarray)
    assert text(Liar()) == "Liar"


def test_a_class_with_the_name_of_numpys():
    Fake = type("numpy.ndarray", (), {"__module__": "numpy"})
    assert text(Fake()) == "numpy.ndarray"
    torch = type("Tensor", (), {"__module__": "torch"})
    assert text(torch()) == "Tensor"
    assert text(type("DataFrame", (), {})()) == "DataFrame"


def test_a_subclass_of_ndarray_that_overrides_everything():
    np = pytest.importorskip("numpy")
    hostile = {name: function for name, function in NEVER.items() if name != "__getattribute__"}
    hostile.update(dtype=property(raising), shape=property(raising), strides=property(raising))
    Hostile = type("Hostile", (np.ndarray,), hostile)
    value = np.zeros((2, 3), "i2").view(Hostile)
    assert text(value) == "Hostile(dtype=int16, shape=(2, 3))"
    assert text(value, "layout") == "Hostile(dtype=int16, shape=(2, 3), order=C)"


def test_hostile_keys_of_dicts_and_sets():
    class Key:
        count = 0

        def __hash__(self):
            return 1

        def __eq__(self, other):
            Key.count += 1
            return self is other

    values = {Key(): 1, Key(): 2}
    keys = set(values)
    before = Key.count
    assert text(values) == "dict[Key, int](len=2)"
    assert text(keys) == "set[Key](len=2)"
    assert Key.count == before


def test_an_exception_that_is_being_handled_stays():
    try:
        raise KeyError("mine")
    except KeyError:
        text(type("New", (), {})())
        assert sys.exc_info()[0] is KeyError


# ---- formatters ----


@pytest.fixture
def registered():
    added = []

    def add(kind, formatter):
        added.append(kind)
        register(kind, formatter)

    yield add
    for kind in added:
        register(kind, None)


def test_a_formatter_tells_what_it_likes(registered):
    class Batch:
        def __init__(self, n):
            self.n = n

    calls = Calls()
    assert calls(one, value=Batch(1)) == "value:Batch"
    registered(Batch, lambda batch: f"Batch(n={batch.n})")
    assert calls(one, value=Batch(1)) == "value:Batch(n=1)"
    assert calls(one, value=Batch(2)) == "value:Batch(n=2)"
    assert calls(one, value=[Batch(2)]) == "value:list[Batch(n=2)](len=1)"
    assert calls(one, value=type("Small", (Batch,), {})(3)) == "value:Batch(n=3)"
    assert Calls("types")(one, value=Batch(2)) == "value:Batch(n=2)"
    registered(Batch, None)
    assert calls(one, value=Batch(1)) == "value:Batch"


def test_a_formatter_for_a_type_that_is_known(registered):
    np = pytest.importorskip("numpy")
    registered(np.ndarray, lambda array: f"array of {array.ndim}")
    assert text(np.zeros((1, 2))) == "array of 2"


def test_a_formatter_that_raises_is_reported_once(registered, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(args.exc_value))

    class Batch:
        pass

    registered(Batch, lambda batch: 1 / 0)
    calls = Calls()
    assert calls(one, value=Batch()) == calls(one, value=Batch()) == "value:Batch"
    assert [type(error) for error in told] == [ZeroDivisionError]


def test_a_formatter_that_returns_something_else(registered, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(str(args.exc_value)))

    class Batch:
        pass

    registered(Batch, lambda batch: 1)
    assert text(Batch()) == "Batch"
    assert told == ["a formatter of marey.profiler.register() returns a str, not int"]


def test_a_formatter_that_signs_and_registers(registered):
    class Batch:
        pass

    calls = Calls()

    def formatter(batch):
        calls(one, number=7, value=[batch, 1])
        register(type("Other", (), {}), None)
        return "ok"

    registered(Batch, formatter)
    assert calls(one, value=Batch()) == "value:ok"
    assert calls(one, value=Batch()) == "value:ok"


@pytest.mark.parametrize("kind", [list, set, dict.fromkeys])
def test_a_formatter_that_empties_what_is_being_looked_at(registered, kind):
    class Batch:
        pass

    outer = []

    def formatter(batch):
        for container in outer[:]:
            container.clear()
        outer.clear()
        return "ok"

    registered(Batch, formatter)
    calls = Calls()
    for n in (1, 5, 40):
        outer.append(kind(Batch() for _ in range(n)))
        name = type(outer[0]).__name__
        assert calls(one, value=outer).startswith(f"value:list[{name}[ok")
    outer[:] = [[Batch()] + [object() for _ in range(1000)] for _ in range(8)]
    assert calls(one, value=outer) == "value:list[list[ok](len=1001)](len=8)"


def test_a_formatter_with_too_many_texts(registered):
    class Batch:
        pass

    count = iter(range(1 << 30))
    registered(Batch, lambda batch: f"Batch {next(count)}")
    calls = Calls(most=8)
    for _ in range(5000):
        calls(one, value=Batch())
    texts = [shown for shown, _ in calls.signer.texts()]
    assert texts[:8] == [f"value:Batch {i}" for i in range(8)]
    assert texts[8:] == ["other shapes"]


@pytest.mark.parametrize("arguments", [(1, str), (int, 1), (int,)])
def test_what_cannot_be_registered(arguments):
    with pytest.raises(TypeError):
        register(*arguments)


def test_what_is_not_written_in_python_has_no_signature():
    with pytest.raises(TypeError, match="is not written in Python"):
        signature(len, [])


def test_arrays_of_jax():
    jax = pytest.importorskip("jax", reason="jax is not installed; pip install jax, which has a build for processors")
    assert text(jax.numpy.zeros((2, 3))) == "ArrayImpl(dtype=float32, shape=(2, 3))"
    assert text(jax.numpy.zeros(2, dtype=jax.numpy.bfloat16)) == "ArrayImpl(dtype=bfloat16, shape=(2,))"
