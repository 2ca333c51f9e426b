"""What words of a model mean as a path: every spelling of a name, and nothing outside however it is written."""

import os
import unicodedata
from pathlib import Path

import pytest

from agent_core.kernel.errors import NotAFile, PathRefused, WorkspaceError
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.files.paths import meanings, name_variants
from tests.support.workspace.memory_files import MemoryFiles

ROOT, HOME = Path("/ws"), Path("/home/me")
NFD = unicodedata.normalize("NFD", "é")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = Path(os.path.realpath(tmp_path))
    (base / "ws").mkdir()
    return base


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("a.txt", "/ws/a.txt"),
        ("/etc/a", "/etc/a"),
        ("~", "/home/me"),
        ("~/a b", "/home/me/a b"),
        ("@~/a", "/home/me/a"),
        ("@a.txt", "/ws/a.txt"),
        ("@/ws/a.txt", "/ws/a.txt"),
        ("file:///ws/a%20b", "/ws/a b"),
        ("FILE://localhost/ws/a", "/ws/a"),
        ("@file:///ws/a", "/ws/a"),
        ("a\u00a0b\u2003c\u202fd\u205fe\u3000f", "/ws/a b c d e f"),
        ("  a.txt\n", "/ws/a.txt"),
        ("a/../b", "/ws/a/../b"),
    ],
)
def test_the_last_meaning_is_the_usual_one(words: str, meant: str) -> None:
    assert meanings(words, root=ROOT, home=HOME)[-1] == Path(meant)


def test_the_first_meaning_is_the_literal_one() -> None:
    assert meanings("@a\u00a0b ", root=ROOT, home=HOME) == (
        ROOT / "@a\u00a0b ",
        ROOT / "a\u00a0b ",
        ROOT / "a b",
    )


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("at 3.42.01 PM.png", "at 3.42.01\u202fPM.png"),
        ("at 3.42 am.png", "at 3.42\u202fam.png"),
        ("café", f"caf{NFD}"),
        (f"caf{NFD}", "café"),
        ("l'eau", "l\u2019eau"),
        ("Capture d'écran", f"Capture d\u2019{NFD}cran"),
        ("Capture d'écran 10.00 AM", f"Capture d\u2019{NFD}cran 10.00\u202fAM"),
        ("Capture d'écran 10.00 AM", "Capture d\u2019écran 10.00\u202fAM"),
        ("é/it's 1 PM/é", f"{NFD}/it\u2019s 1\u202fPM/{NFD}"),
    ],
)
def test_every_spelling_of_macos_is_among_the_variants(words: str, name: str) -> None:
    variants = list(name_variants(Path(words)))
    assert Path(name) in variants
    assert Path(words) not in variants
    assert len(set(variants)) == len(variants)


def test_a_plain_name_has_no_variants() -> None:
    assert list(name_variants(Path("src/main.py"))) == []


@pytest.mark.parametrize("folder", ["é", NFD, "it's 1 PM"])
async def test_the_folder_that_is_there_keeps_its_own_spelling(base: Path, folder: str) -> None:
    """The name of the workspace itself may be composed while a name in it is not, and the other way round."""
    root = base / folder
    for name in (f"d{NFD}cran.png", "deep/l\u2019eau.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    disk = DiskFiles((root,), base)
    memory = MemoryFiles(
        (root,), base, files={root / f"d{NFD}cran.png": b"", root / "deep/l\u2019eau.txt": b""}
    )
    for files in (disk, memory):
        assert await files.resolve("décran.png", "read") == root / f"d{NFD}cran.png"
        assert await files.resolve("deep/l'eau.txt", "read") == root / "deep/l\u2019eau.txt"


async def test_each_of_several_roots_may_be_used_and_relative_paths_start_in_the_first(
    base: Path,
) -> None:
    more = base / "more"
    more.mkdir()
    (more / "a.txt").write_text("x")
    files = DiskFiles((base / "ws", more), base)
    for access in ("read", "write"):
        assert await files.resolve(str(more / "a.txt"), access) == more / "a.txt"
        assert await files.resolve("../more/a.txt", access) == more / "a.txt"
        assert await files.resolve("b.txt", access) == base / "ws/b.txt"
        with pytest.raises(PathRefused):
            _ = await files.resolve(str(base / "other.txt"), access)


LINKS = {
    "to_folder": "{base}/outside",
    "to_file": "{base}/outside/secret.txt",
    "to_nothing": "{base}/outside/new.txt",
    "up": "..",
    "twice": "to_folder",
    "round": "../ws/to_folder",
}


@pytest.mark.parametrize("access", ["read", "write"])
@pytest.mark.parametrize(
    "words",
    [
        "to_folder",
        "to_folder/secret.txt",
        "to_folder/new.txt",
        "to_folder/new/deep.txt",
        "to_file",
        "to_nothing",
        "up/outside/secret.txt",
        "up/outside/new.txt",
        "twice/secret.txt",
        "round/new.txt",
        "to_folder/../outside/new.txt",
        "none/../../outside/new.txt",
        "dir/../../outside/secret.txt",
        "@to_folder/new.txt",
        "@to_nothing",
        " to_file ",
        "file://{base}/ws/to_folder/new.txt",
        "file://{base}/ws/%2e%2e/outside/secret.txt",
        "to_folder/\u00a0new.txt",
    ],
)
async def test_what_a_link_or_dots_lead_out_to_is_refused(base: Path, words: str, access) -> None:
    (base / "outside").mkdir()
    (base / "outside/secret.txt").write_text("secret")
    (base / "ws/dir").mkdir()
    for name, target in LINKS.items():
        (base / "ws" / name).symlink_to(target.replace("{base}", str(base)))
    files = DiskFiles((base / "ws",), base / "home")
    with pytest.raises(PathRefused, match="leads outside the workspace"):
        _ = await files.resolve(words.replace("{base}", str(base)), access)


async def test_dots_after_a_link_mean_the_folder_that_the_link_leads_to(base: Path) -> None:
    (base / "ws/deep/er").mkdir(parents=True)
    (base / "ws/link").symlink_to("deep/er")
    files = DiskFiles((base / "ws",), base)
    assert await files.resolve("link/../a.txt", "write") == base / "ws/deep/a.txt"


@pytest.mark.parametrize("access", ["read", "write"])
@pytest.mark.parametrize(
    "words",
    ["x" * 5000, "a/" * 2500, "/" + "a/" * 2500, "é" * 2500, "file:///" + "a/" * 2500],
    ids=["name", "deep", "absolute", "in bytes", "uri"],
)
async def test_a_path_that_is_too_long_is_refused_in_short_words(
    base: Path, words: str, access
) -> None:
    for files in (DiskFiles((base / "ws",), base), MemoryFiles((ROOT,), HOME)):
        with pytest.raises(PathRefused, match=r"too long for a path.*ENAMETOOLONG") as refused:
            _ = await files.resolve(words, access)
        assert len(str(refused.value)) < 500


async def test_a_path_that_is_too_long_only_below_the_root_is_refused_too(base: Path) -> None:
    words = "a/" * 2040 + "b"
    files = DiskFiles((base / "ws",), base)
    with pytest.raises(WorkspaceError, match=r"ENAMETOOLONG|ENOENT"):
        _ = await files.read(await files.resolve(words, "read"))
    with pytest.raises(WorkspaceError, match="ENAMETOOLONG"):
        _ = await files.write(await files.resolve(words, "write"), "x", base=None)
    assert list((base / "ws").iterdir()) == []


@pytest.mark.parametrize(
    "words", ["a.txt/", "a.txt/.", "dir/../a.txt/", " a.txt/ ", "a.txt/../a.txt", "a.txt/..", "to_file/", "a.txt/b"]
)  # fmt: skip
async def test_a_file_is_no_folder_on_the_way(base: Path, words: str) -> None:
    (base / "ws/dir").mkdir()
    (base / "ws/a.txt").write_text("x")
    (base / "ws/to_file").symlink_to("a.txt")
    files = DiskFiles((base / "ws",), base)
    for access in ("read", "write"):
        with pytest.raises(WorkspaceError):
            _ = await files.read(await files.resolve(words, access))


async def test_words_that_mean_a_folder_make_no_file(base: Path) -> None:
    (base / "ws/dir").mkdir()
    files = DiskFiles((base / "ws",), base)
    for words in ("new/", "new/.", "dir/new/"):
        with pytest.raises(NotAFile, match="Is a directory"):
            _ = await files.resolve(words, "write")
    assert await files.resolve("dir/", "read") == base / "ws/dir"
    assert await files.resolve("none/../dir/.", "read") == base / "ws/dir"


HIDDEN = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u180b\u180e\u200b\u200c\u200d\u200e\u2028\u202e\u2060\u2065\u2069\u206f\u3164\ufe0f\ufeff\uffa0\ufff9\U000e0001\U000e0041\U000e0100"  # fmt: skip


@pytest.mark.parametrize("char", HIDDEN, ids=ascii)
async def test_a_new_name_has_no_character_that_nobody_sees(base: Path, char: str) -> None:
    files = DiskFiles((base / "ws",), base)
    for words in (f"a{char}b.py", f"new/{char}b.py", f"a{char}/b.py"):
        with pytest.raises(PathRefused, match="control or invisible characters"):
            _ = await files.resolve(words, "write")
    for words in ("😀.py", "👩\u200d💻.md", "❤\ufe0f.md", "می\u200cروم.txt", "日本.txt"):
        assert await files.resolve(words, "write") == base / "ws" / words


@pytest.mark.parametrize(
    "words", ["data:x", "DATA:x", "javascript:x", "mailto:a@b", "urn:x:y", "about:blank", "untitled:x", "git+ssh://h/x"]
)  # fmt: skip
async def test_an_address_is_no_name_for_a_new_file(base: Path, words: str) -> None:
    with pytest.raises(PathRefused, match="is a URI"):
        _ = await DiskFiles((base / "ws",), base).resolve(words, "write")
