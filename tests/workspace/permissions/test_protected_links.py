"""What a protected link leads to is changed only after a yes, whatever it is called."""

from pathlib import Path

import pytest

from agent_core.workspace.permissions.protected_links import MOST_FOLDERS, protected_by_link


@pytest.mark.parametrize(
    ("link", "to", "path"),
    [
        ("AGENTS.md", "docs/guide.md", "docs/guide.md"),
        ("src/CLAUDE.md", "../README.md", "src/../README.md"),
        ("src/CLAUDE.md", "notes.md", "src/notes.md"),
        (".claude", "config/claude", "config/claude/settings.json"),
        (".cursor/rules", "../docs/rules", "docs/rules/new/a.md"),
        (".github/workflows/ci.yml", "../../ci.yml", "ci.yml"),
        (".claude/skills/one/text", "../../../docs", "docs/guide.md"),
        ("AGENTS.md", "not/there.md", "not/there.md"),
    ],
)
def test_where_a_protected_link_leads_is_asked_about(
    tmp_path: Path, link: str, to: str, path: str
) -> None:
    root = tmp_path.resolve()
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    (root / link).symlink_to(to)
    real = (root / path).resolve()
    # The one from which a file at the top is not found: only folders around a file are looked at.
    expected = link != "src/CLAUDE.md" or real.parent.name == "src"
    assert (protected_by_link(real, roots=(root,)) is not None) is expected


def test_what_no_protected_link_leads_to_is_not(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "docs").mkdir()
    (root / "guide").symlink_to("docs")
    (root / "AGENTS.md").write_text("steer", "utf-8")
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    (root / "loop").symlink_to("loop")
    (root / ".git").mkdir()
    (root / ".git" / "x").symlink_to("../docs")
    assert protected_by_link(root / "docs/guide.md", roots=(root,)) is None
    assert protected_by_link(tmp_path.parent / "x", roots=(root,)) is None


def test_where_not_all_links_were_looked_at_it_is_asked(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for number in range(MOST_FOLDERS):
        (root / ".hidden" / f".{number}").mkdir(parents=True)
    why = protected_by_link(root / "a.md", roots=(root,))
    assert why is not None
    assert "not all were looked at" in why


def test_hidden_files_are_no_folders_to_look_into(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for number in range(MOST_FOLDERS):
        (root / f".{number}").touch()
    assert protected_by_link(root / "a.md", roots=(root,)) is None
