"""Whatever could configure us and changes after the word of the user is one question, with the difference; nothing else is one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.assembly.test_trust import Office
from tests.support.provider import LoopbackProvider
from tests.support.session.folders import Folder

Swap = Callable[[Path], object]


def write(name: str, text: str) -> Swap:
    def swap(root: Path) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    return swap


def relink(name: str, target: str, *, text: str | None = None) -> Swap:
    def swap(root: Path) -> None:
        if text is not None:
            (root / target).write_text(text, "utf-8")
        (root / name).unlink()
        (root / name).symlink_to(target)

    return swap


def exchange(root: Path) -> None:
    """Put another folder in the place of the skills, as a checkout does."""
    (root / ".tiller/skills").rename(root / "old")
    write(".tiller/skills/one/SKILL.md", "swapped")(root)


def link_folder(root: Path) -> None:
    (root / ".tiller/skills").rename(root / "elsewhere")
    (root / ".tiller/skills").symlink_to(root / "elsewhere")


def become_worktree(root: Path) -> None:
    """Belong to a repository that begins above, whose instructions then are the project's."""
    (root.parent / "AGENTS.md").write_text("swapped", "utf-8")
    (root.parent / ".git").write_text("gitdir: /nowhere/.git/worktrees/x\n", "utf-8")


def swap_above(root: Path) -> None:
    """Get a skill from the top of a repository, as a pull brings it."""
    (root.parent / ".git").mkdir()
    write("../.agents/skills/above/SKILL.md", "swapped")(root)


SWAPS: dict[str, tuple[Swap, str]] = {
    "instructions edited": (write("AGENTS.md", "swapped"), "+swapped"),
    "instructions that win": (write("AGENTS.override.md", "swapped"), "+swapped"),
    "instructions in another case": (write("AGENTS.MD", "swapped"), "+swapped"),
    "instructions by another name": (write("CLAUDE.md", "swapped"), "+swapped"),
    "instructions gone": (lambda root: (root / "AGENTS.md").unlink(), "-Speak in verse."),
    "a link to other bytes": (relink("AGENTS.md", "other.md", text="swapped"), "+swapped"),
    "a link to the same bytes": (
        relink("AGENTS.md", "other.md", text="Speak in verse.\n"),
        "AGENTS.md",
    ),
    "a link out of it": (relink("AGENTS.md", "/etc/hostname"), "AGENTS.md"),
    "settings edited": (write(".tiller/settings.json", '{"sandbox": "off"}'), '+{"sandbox"'),
    "rules": (write(".tiller/policy.json", '{"rules": []}'), "+{"),
    "servers": (write(".mcp.json", '{"mcpServers": {}}'), "+{"),
    "an extension": (write(".tiller/extensions/x.py", "swapped"), "+swapped"),
    "a skill in another folder": (write(".agents/skills/x/SKILL.md", "swapped"), "+swapped"),
    "a template": (write(".tiller/prompts/fix.md", "swapped"), "+swapped"),
    "a skill of the repository above": (swap_above, "+swapped"),
    "a folder exchanged": (exchange, "+swapped"),
    "a folder moved": (
        lambda root: (root / ".tiller/skills/one").rename(root / ".tiller/skills/two"),
        "two/SKILL.md",
    ),
    "a folder as a link": (link_folder, ".tiller/skills"),
    "part of a repository above": (become_worktree, "+swapped"),
}
SAME: dict[str, Swap] = {
    "code": write("src/a.py", "swapped"),
    "the same bytes again": write("AGENTS.md", "Speak in verse.\n"),
    "another mode": lambda root: (root / "AGENTS.md").chmod(0o755),
    "what we write ourselves": write(".tiller/chat.md", "swapped"),
}


@pytest.fixture
def office(tmp_path: Path, folder: Folder, lab: LoopbackProvider) -> Office:
    office = Office(folder, lab)
    office.configure()
    write(".tiller/skills/one/SKILL.md", "do")(folder.root)
    return office


@pytest.mark.parametrize("swap", SWAPS)
async def test_a_swap_is_one_question_with_the_difference(office: Office, swap: str) -> None:
    change, shown = SWAPS[swap]
    async with office.session() as session:
        await office.run(session, "allowProject")
        await office.run(session)
        assert len(office.asked()) == 1
        change(office.folder.root)
        await office.run(session, "allowProject")
        await office.run(session)
        assert session.permissions.trust.trusted
    first, second = office.asked()
    assert not (first.added)
    assert not (first.removed)
    assert not (first.changed)
    names = (*second.added, *second.removed, *second.changed)
    assert names
    assert shown in "\n".join((second.difference, *names))
    async with office.session() as session:
        await office.run(session)
    assert len(office.asked()) == len((first, second))


@pytest.mark.parametrize("change", SAME)
async def test_what_configures_nothing_is_no_question(office: Office, change: str) -> None:
    async with office.session() as session:
        await office.run(session, "allowProject")
        SAME[change](office.folder.root)
        await office.run(session)
        assert session.permissions.trust.trusted
    assert len(office.asked()) == 1


async def test_names_that_are_no_characters_are_asked_about_in_some(office: Office) -> None:
    name = b"\xff\x1b[2J\xe2\x80\xae.py"
    async with office.session() as session:
        await office.run(session, "allowProject")
        below = office.folder.root / ".tiller" / "extensions"
        below.mkdir()
        Path(str(below)).joinpath(name.decode("utf-8", "surrogateescape")).write_text("x")
        await office.run(session, "allowProject")
        assert session.permissions.trust.trusted
    second = office.asked()[1]
    (added,) = second.added
    assert added.isprintable()
    assert second.difference.replace("\n", "").isprintable()
