"""Files that a user names: an old one stays until the new one is complete."""

from __future__ import annotations

import os
import stat

import pytest

import marey
from marey._printable import printable
from marey._replace import replacing


def test_an_error_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    path = tmp_path / "old.txt"
    path.write_text("old")
    with pytest.raises(ValueError, match="no"), replacing(path) as file:
        file.write("new")
        raise ValueError("no")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["old.txt"]


def test_links_permissions_and_second_names_stay(tmp_path):
    path = tmp_path / "old.txt"
    path.write_text("old")
    path.chmod(0o640)
    (tmp_path / "link").symlink_to(path)
    with replacing(tmp_path / "link") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    os.link(path, tmp_path / "second")
    with replacing(path, "wb") as file:
        file.write(b"n")
    assert (tmp_path / "second").read_bytes() == b"n"
    with replacing("/dev/null") as file:
        file.write("new")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_failing_profile_and_export_leave_the_old_file(tmp_path):
    path = tmp_path / "old.prof"
    path.write_text("old")

    class Broken(marey.Profile):
        def _write(self, out):
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        Broken().save(path)
    assert path.read_text() == "old"
    marey.start(tmp_path / "run.marey")
    with marey.range("a"):
        pass
    marey.stop()
    with pytest.raises(ValueError, match="nothing was sampled"):
        marey.load(tmp_path / "run.marey").export("pyspy", path)
    assert path.read_text() == "old"


def test_sentences_with_names_of_others_are_printable():
    assert printable("größe \U0001f680 'a b'") == "größe \U0001f680 'a b'"
    assert printable("\x1b]0;x\x07\x9b\u202e\u2066\n\udcff") == "\\x1b]0;x\\x07\\x9b\\u202e\\u2066\\n\\udcff"


def test_errors_of_the_library_escape_names(tmp_path):
    with pytest.raises(marey.MareyError, match=r"\\x1b\[2J\\u202e") as raised:
        marey.load(tmp_path / "\x1b[2J\u202e.marey")
    assert str(raised.value).isprintable()
