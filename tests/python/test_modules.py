"""Independent modules, in Python and in C, share one switchboard."""

from __future__ import annotations

import textwrap

import pytest

import marey

C_SOURCE = """
    #define PY_SSIZE_T_CLEAN
    #include <Python.h>
    #include <marey/range.h>

    static PyObject *work(PyObject *self, PyObject *args)
    {
        (void)self, (void)args;
        MAREY_SCOPE("c work");
        Py_RETURN_NONE;
    }
    static PyObject *begin(PyObject *self, PyObject *args)
    {
        (void)self, (void)args;
        marey_begin(MAREY_ID("begun in C"));
        Py_RETURN_NONE;
    }
    static PyObject *end(PyObject *self, PyObject *args)
    {
        (void)self, (void)args;
        marey_pop();
        Py_RETURN_NONE;
    }
    static PyObject *library(PyObject *self, PyObject *args)
    {
        (void)self, (void)args;
        return PyUnicode_FromString(marey_library_path());
    }
    static PyMethodDef methods[] = {
        {"work", work, METH_NOARGS, ""},
        {"begin", begin, METH_NOARGS, ""},
        {"end", end, METH_NOARGS, ""},
        {"library", library, METH_NOARGS, ""},
        {NULL, NULL, 0, NULL},
    };
    static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "in_c", .m_methods = methods};
    PyMODINIT_FUNC PyInit_in_c(void) { return PyModule_Create(&module); }
"""


@pytest.fixture
def in_c(build_extension, tmp_path, monkeypatch):
    """The extension above, built by the headers and the library the package names."""
    build_extension("in_c", C_SOURCE)
    return tmp_path


def test_three_modules_and_an_extension_give_one_summary(in_c, run_python, tmp_path):
    for name, use in {
        "loader": 'with marey.range("load"): pass',
        "model": 'marey.push("forward"); marey.pop()',
        "optimizer": '(marey.range("optimize")(lambda: None))()',
    }.items():
        (tmp_path / f"{name}.py").write_text(
            textwrap.dedent(f"""
                import marey

                def run():
                    {use}
            """)
        )
    run_python("""
        import in_c, loader, model, optimizer   # before anything is switched on, and without knowing of it
        import marey

        marey.start("run.marey")
        for _ in range(5):
            loader.run(), model.run(), optimizer.run(), in_c.work()
        marey.stop()
        loader.run(), in_c.work()               # off again for all of them
    """)
    table = marey.load(tmp_path / "run.marey").ranges
    assert dict(zip(table["name"], table["count"])) == {"load": 5, "forward": 5, "optimize": 5, "c work": 5}


def test_an_extension_alone_uses_the_packages_library(in_c, run_python):
    run_python("""
        import in_c                             # loads libmarey before the package does
        import marey, os
        assert os.path.samefile(in_c.library(), marey._native.library_path())
    """)


@pytest.mark.parametrize("check", [False, True])
def test_a_range_begun_in_c_ends_in_python_and_the_other_way(in_c, run_python, tmp_path, check):
    run_python(f"""
        import in_c, marey
        marey.start("run.marey", check={check})
        for _ in range(3):
            in_c.begin()
            with marey.range("inside"):
                pass
            marey.pop("begun in C")
            marey.push("begun in Python")
            in_c.work()
            in_c.end()
        marey.stop()
    """)
    recording = marey.load(tmp_path / "run.marey")
    tree = recording.tree
    assert sorted(zip(tree["depth"], tree["name"], tree["count"])) == [
        (0, "begun in C", 3),
        (0, "begun in Python", 3),
        (1, "c work", 3),
        (1, "inside", 3),
    ]
    assert len(recording.open) == 0


def test_a_wrong_pop_names_the_place_in_c(in_c, run_python):
    run_python("""
        import in_c, marey
        marey.start("run.marey", check=True)
        in_c.begin()
        try:
            marey.pop("something else")
        except marey.RangeError as error:
            assert "begun in C" in str(error) and "in_c.c:" in str(error), error
        else:
            raise AssertionError
        marey.pop()
    """)
