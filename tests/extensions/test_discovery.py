"""Where extensions are found, and in which order."""

import sys
from pathlib import Path
from typing import Any

import pytest

from agent_core.extensions.discovery import DiscoveryResult, ExtensionSearchPaths, discover
from tests.support.hooks.extensions import Home

EMPTY = "def extension(api):\n    pass\n"


def found(home: Home, **places: Any) -> DiscoveryResult:
    given: dict[str, Any] = {"user": home.user, "project": home.project, "home": home.dirs.home}
    given |= {"with_installed": False} | places
    return discover(ExtensionSearchPaths(**given))


def names(discovered: DiscoveryResult) -> list[tuple[str, str]]:
    return [(one.name, one.origin) for one in discovered.found]


def test_folders_that_are_not_there_hold_nothing(home: Home) -> None:
    assert found(home) == DiscoveryResult()


def test_the_order_is_user_project_settings_and_command_line(home: Home, tmp_path: Path) -> None:
    home.write("b.py", EMPTY)
    home.write("a.py", EMPTY)
    home.write("p.py", EMPTY, into=home.project)
    s = home.write("s.py", EMPTY, into=tmp_path / "elsewhere")
    c = home.write("c.py", EMPTY, into=tmp_path / "named")
    assert names(found(home, settings=[str(s)], named=[c])) == [
        ("a", "user"),
        ("b", "user"),
        ("p", "project"),
        ("s", "settings"),
        ("c", "command line"),
    ]


def test_a_package_is_one_extension_and_its_parts_are_none(home: Home) -> None:
    home.write("kit/__init__.py", EMPTY)
    home.write("kit/parts.py", "X = 1\n")
    home.write("_hidden.py", EMPTY)
    home.write(".also/__init__.py", EMPTY)
    home.write("notes.txt", "no code")
    home.write("empty/readme.md", "no code")
    assert names(found(home)) == [("kit", "user")]


def test_a_manifest_says_what_a_folder_offers(home: Home) -> None:
    home.write(
        "kit/pyproject.toml",
        """
        [tool.tiller]
        name = "Kit"
        extensions = ["src/one.py", "two"]
        skills = ["skills"]
        prompts = ["prompts"]
        """,
    )
    home.write("kit/src/one.py", EMPTY)
    home.write("kit/two/__init__.py", EMPTY)
    discovered = found(home)
    assert names(discovered) == [("Kit", "user"), ("Kit-two", "user")]
    assert discovered.skills == [home.user / "kit" / "skills"]
    assert discovered.prompts == [home.user / "kit" / "prompts"]


def test_a_manifest_without_a_list_stands_for_the_package_beside_it(home: Home) -> None:
    home.write("kit/pyproject.toml", "[tool.tiller]\nname = 'Kit'\n")
    home.write("kit/__init__.py", EMPTY)
    assert names(found(home)) == [("Kit", "user")]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("[tool.tiller\n", "cannot be read", id="no-toml"),
        pytest.param("[tool.tiller]\nname = 3\n", "tool.tiller.name is 3", id="no-name"),
        pytest.param("[tool.tiller]\nextensions = [4]\n", "list of paths", id="no-path"),
        pytest.param("[tool.tiller]\nextensions = ['../x.py']\n", "does not lie below", id="above"),
        pytest.param("[tool.tiller]\nextensions = ['/etc/x.py']\n", "does not lie", id="absolute"),
        pytest.param("[tool.tiller]\nextensions = ['gone.py']\n", "is not there", id="missing"),
    ],
)
def test_a_broken_manifest_is_told_and_the_rest_is_found(home: Home, text: str, why: str) -> None:
    home.write("kit/pyproject.toml", text)
    home.write("other.py", EMPTY)
    discovered = found(home)
    assert names(discovered) == [("other", "user")]
    assert [why in str(problem) for problem in discovered.problems] == [True]


def test_what_is_named_twice_is_found_once(home: Home) -> None:
    path = home.write("a.py", EMPTY)
    link = home.user / "z.py"
    link.symlink_to(path)
    assert names(found(home, settings=[str(path)], named=[path])) == [("a", "user")]


def test_names_are_made_different(home: Home) -> None:
    home.write("a.py", EMPTY)
    home.write("a.py", EMPTY, into=home.project)
    assert names(found(home)) == [("a", "user"), ("a-2", "project")]


def test_a_named_folder_may_be_an_extension_or_hold_some(home: Home, tmp_path: Path) -> None:
    home.write("kit/__init__.py", EMPTY, into=tmp_path)
    home.write("many/x.py", EMPTY, into=tmp_path)
    home.write("many/y.py", EMPTY, into=tmp_path)
    named = [tmp_path / "kit", tmp_path / "many"]
    assert [name for name, _ in names(found(home, named=named))] == ["kit", "x", "y"]


def test_what_is_named_and_not_there_is_told(home: Home) -> None:
    discovered = found(home, named=[home.root / "gone.py"], settings=["~/gone"])
    assert discovered.found == []
    assert [problem.path for problem in discovered.problems] == [
        home.dirs.home / "gone",
        home.root / "gone.py",
    ]


def test_settings_leave_out_and_keep(home: Home) -> None:
    for name in ("one.py", "two.py", "old_a.py", "old_b.py"):
        home.write(name, EMPTY)
    home.write("kit/__init__.py", EMPTY)
    settings = ["!old_*", f"-{home.user}/two.py", f"-{home.user}/kit", f"+{home.user}/old_b.py"]
    assert [name for name, _ in names(found(home, settings=settings))] == ["old_b", "one"]


def test_a_folder_that_cannot_be_listed_is_told(home: Home) -> None:
    home.user.parent.mkdir(parents=True, exist_ok=True)
    home.user.write_text("no folder")
    assert "cannot be listed" in str(found(home).problems[0])


def test_installed_packages_offer_extensions_by_entry_points(home: Home, tmp_path: Path) -> None:
    info = tmp_path / "site" / "demo-1.0.dist-info"
    home.write("METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n", into=info)
    home.write(
        "entry_points.txt", "[tiller.extensions]\ndemo = demo_extension:extension\n", into=info
    )
    home.write("demo_extension.py", EMPTY, into=info.parent)
    sys.path.insert(0, str(info.parent))
    try:
        discovered = found(home, with_installed=True)
        entry = next(one for one in discovered.found if one.origin == "installed")
        assert (entry.name, entry.where) == ("demo", "demo_extension:extension")
        left_out = found(home, with_installed=True, settings=["-demo"])
        assert "demo" not in [name for name, _ in names(left_out)]
    finally:
        sys.path.remove(str(info.parent))
