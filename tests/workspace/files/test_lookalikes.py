"""Names that look like others are noticed, ordinary ones of any language are not."""

from pathlib import Path

import pytest

from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.files.lookalikes import name_warning

ODD = {
    "src/\u0430.py": "letters of another script",
    "p\u0430ypal.py": "mixes letters",
    "\u0455rc/new.py": "mixes letters",
    "src/a.py ": "ends in a blank",
    "src/a.py.": "ends in a blank or a dot",
    "src /b.py": "ends in a blank",
    " b.py": "begins with a blank",
    "b\u200b.py": "cannot be seen",
    "b\u202eyp.exe": "cannot be seen",
    "b\ufe0f.py": "cannot be seen",
    "b\u00a0c.py": "no ordinary one",
    "src/\uff41.py": "looks like 'a.py'",
    "\u03bf.py": "letters of another script",
    "\u00e4 README.md ": "ends in a blank",
    "other/a.py": "looks like '\u0430<U+0430>.py'",
}
ORDINARY = (
    *("src/a.py", "src/b.py", "new/folder/c.py", "a b/c d.txt", "...", "..data/x.txt", ".env", "-rf", "na\u00efve.txt"),
    *("\u043f\u0440\u0438\u0432\u0435\u0442.py", "\u65e5\u672c\u8a9e.md", "\u05e9\u05dc\u05d5\u05dd.txt", "gr\u00fc\u00dfe.md"),
    *("\u03b1\u03b2\u03b3.txt", "\u041c\u043e\u0439 \u0444\u0430\u0439\u043b 2.txt", "readme.md", "l1.py", "Makefile", "caf\u00e9.py"),
)  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("src/a.py", "README.md", "na\u00efve.txt", "other/\u0430.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize("name", ODD)
async def test_a_name_that_looks_like_another_is_told(root: Path, name: str) -> None:
    files = DiskFiles((root,), root)
    warning = await name_warning(root / name, asked=name, roots=(root,), files=files)
    assert warning is not None
    assert ODD[name] in warning
    assert warning.replace("\u0430", "").isprintable()


@pytest.mark.parametrize("name", ORDINARY)
async def test_an_ordinary_name_is_not(root: Path, name: str) -> None:
    files = DiskFiles((root,), root)
    assert await name_warning(root / name, asked=name, roots=(root,), files=files) is None


@pytest.mark.parametrize("asked", ["src/a.py ", "src/a.py.", "src/a\u200b.py"])
async def test_another_spelling_than_what_is_written_is_told(root: Path, asked: str) -> None:
    files = DiskFiles((root,), root)
    warning = await name_warning(root / "src/a.py", asked=asked, roots=(root,), files=files)
    assert warning is not None
    assert "'a.py' is what it changes" in warning
