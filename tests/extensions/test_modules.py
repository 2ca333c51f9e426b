"""Code of extensions is imported apart from everything else."""

import hashlib
import logging
import sys
from pathlib import Path

import pytest

from agent_core.extensions.discovery import PREFIX, forget, import_apart, read_pinned
from agent_core.kernel.errors import ExtensionBroken
from tests.support.hooks.extensions import Home

NAME = f"{PREFIX}test"


def anything(_: Path) -> None:
    return None


@pytest.fixture(autouse=True)
def clean():
    paths, finders, others = list(sys.path), list(sys.meta_path), _loaded()
    yield
    forget(NAME)
    assert sys.path == paths, "no path of ours leads to an extension"
    assert sys.meta_path == finders
    assert _loaded() <= others


def _loaded() -> set[str]:
    return {name for name in sys.modules if name.startswith(PREFIX)}


def test_a_file_is_a_module_of_its_own_each_time(home: Home) -> None:
    path = home.write("x.py", "state = []\n")
    one = import_apart(path, name=NAME, expected=anything)
    forget(NAME)
    two = import_apart(path, name=NAME, expected=anything)
    assert one.state is not two.state
    assert one.__file__ == str(path)


def test_nothing_is_written_beside_it(home: Home) -> None:
    path = home.write("kit/__init__.py", "from .part import X\n")
    home.write("kit/part.py", "X = 1\n")
    import_apart(path, name=NAME, expected=anything)
    assert sorted(one.name for one in path.parent.iterdir()) == ["__init__.py", "part.py"]


def test_a_package_reaches_its_own_parts_and_nothing_else_of_the_folder(home: Home) -> None:
    path = home.write("kit/__init__.py", "from .deep.part import X\nfrom . import other\n")
    home.write("kit/deep/__init__.py", "")
    home.write("kit/deep/part.py", "from ..other import Y\nX = Y + 1\n")
    home.write("kit/other.py", "Y = 1\n")
    home.write("stranger.py", "Z = 1\n")
    assert import_apart(path, name=NAME, expected=anything).X == 2
    forget(NAME)
    path.write_text("import stranger\n")
    with pytest.raises(ModuleNotFoundError):
        import_apart(path, name=NAME, expected=anything)


def test_a_package_may_import_its_parts_later(home: Home) -> None:
    path = home.write("kit/__init__.py", "def late():\n    from .part import X\n    return X\n")
    home.write("kit/part.py", "X = 7\n")
    assert import_apart(path, name=NAME, expected=anything).late() == 7


def test_only_what_was_trusted_runs(home: Home, tmp_path: Path) -> None:
    path = home.write("kit/__init__.py", "from . import part\n")
    part = home.write("kit/part.py", "X = 1\n")
    pinned = {one: hashlib.sha256(one.read_bytes()).hexdigest() for one in (path, part)}
    import_apart(path, name=NAME, expected=lambda one: pinned.get(one, ""))
    forget(NAME)
    witness = tmp_path / "ran"
    part.write_text(f"open({str(witness)!r}, 'w').close()\n")
    with pytest.raises(ExtensionBroken, match="not what was trusted"):
        import_apart(path, name=NAME, expected=lambda one: pinned.get(one, ""))
    assert not witness.exists()


def test_a_file_that_nobody_saw_does_not_run(home: Home) -> None:
    path = home.write("x.py", "")
    with pytest.raises(ExtensionBroken, match="not what was trusted"):
        read_pinned(path, lambda _: "")


def test_a_huge_file_is_no_source_code(home: Home) -> None:
    path = home.user / "x.py"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    with pytest.raises(ExtensionBroken, match="no source code"):
        read_pinned(path, anything)


def test_what_it_prints_goes_to_the_log(home: Home, capsys, caplog) -> None:
    path = home.write("x.py", "import sys\nprint('a', 1, sep='-')\nprint('b', file=sys.stderr)\n")
    with caplog.at_level(logging.INFO, logger="tiller.extensions"):
        import_apart(path, name=NAME, expected=anything)
    out = capsys.readouterr()
    assert (out.out, out.err) == ("", "b\n")
    assert [record.message for record in caplog.records] == [f"{NAME}: a-1"]


def test_a_failed_import_leaves_nothing_behind(home: Home) -> None:
    path = home.write("kit/__init__.py", "from . import part\nraise ValueError('no')\n")
    home.write("kit/part.py", "")
    with pytest.raises(ValueError, match="no"):
        import_apart(path, name=NAME, expected=anything)
