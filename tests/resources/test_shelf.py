"""Skills and templates are found where people put them, the project's only as they were trusted, each name once."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_core.resources.load_result import LoadProblem
from agent_core.resources.prompts import (
    MOST,
    PromptResourcePaths,
    PromptResourceReader,
    PromptResources,
    read_path_list,
)

SKILL = "---\ndescription: about {0}\n---\nDo {0}.\n"


class Ground:
    """A home, a configuration, and a workspace inside a repository."""

    def __init__(self, top: Path) -> None:
        self.home = top / "home"
        self.config = top / "config"
        self.repository = top / "repo"
        self.root = self.repository / "deep" / "project"
        for folder in (self.home, self.config, self.root, self.repository / ".git"):
            folder.mkdir(parents=True)

    def write(self, path: Path, text: str | None = None) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SKILL.format(path.parent.name) if text is None else text, "utf-8")
        return path

    def places(
        self,
        *,
        trusted: bool = True,
        skills: Sequence[str] = (),
        prompts: Sequence[str] = (),
        **more: Any,
    ) -> PromptResourcePaths:
        return PromptResourcePaths(
            config=self.config,
            home=self.home,
            root=self.root,
            project_trusted=trusted,
            skills=read_path_list(skills, home=self.home, root=self.root),
            prompts=read_path_list(prompts, home=self.home, root=self.root),
            **more,
        )

    def read(self, **given: Any) -> PromptResources:
        return PromptResourceReader().read(self.places(**given))


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def names(shelf: PromptResources) -> list[str]:
    return [skill.name for skill in shelf.skills]


def said(problems: Sequence[LoadProblem]) -> str:
    return "\n".join(str(problem) for problem in problems)


def test_skills_are_found_in_every_place_the_projects_first(ground: Ground) -> None:
    ground.write(ground.home / ".agents/skills/home/SKILL.md")
    ground.write(ground.config / "skills/own/SKILL.md")
    ground.write(ground.repository / ".agents/skills/top/SKILL.md")
    ground.write(ground.root / ".agents/skills/near/SKILL.md")
    ground.write(ground.root / ".tiller/skills/ours/SKILL.md")
    ground.write(ground.repository.parent / ".agents/skills/beyond/SKILL.md")
    shelf = ground.read()
    assert names(shelf) == ["ours", "near", "top", "own", "home"]
    assert shelf.problems == ()
    assert names(ground.read(trusted=False)) == ["own", "home"]


def test_a_folder_with_a_skill_is_one_and_holds_no_others(ground: Ground) -> None:
    top = ground.config / "skills"
    ground.write(top / "a/SKILL.md")
    ground.write(top / "a/inner/SKILL.md")
    ground.write(top / "group/b/SKILL.md")
    ground.write(top / ".hidden/SKILL.md")
    ground.write(top / "node_modules/c/SKILL.md")
    ground.write(top / "d.md", SKILL.format("d"))
    ground.write(top / "group/e.md", SKILL.format("e"))
    ground.write(top / "README.md", "# Skills\n")
    shelf = ground.read()
    assert sorted(names(shelf)) == ["a", "b", "d"]
    assert shelf.problems == ()


@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".fdignore"])
def test_what_is_ignored_is_no_skill(ground: Ground, name: str) -> None:
    top = ground.config / "skills"
    ground.write(top / name, "old*\n!older\n")
    for skill in ("old-a", "older", "new/old-b", "new/c"):
        ground.write(top / skill / "SKILL.md")
    ground.write(top / "new" / name, "c/\n")
    assert sorted(names(ground.read())) == ["older"]


def test_links_are_followed_once_and_never_in_a_circle(ground: Ground, tmp_path: Path) -> None:
    top = ground.config / "skills"
    shared = ground.write(tmp_path / "shared/x/SKILL.md")
    top.mkdir()
    (top / "again").symlink_to(shared.parent)
    (top / "circle").symlink_to(top)
    (top / "nowhere").symlink_to(tmp_path / "none")
    ground.write(top / "z/notes.md", "")
    (ground.home / ".agents/skills/same").mkdir(parents=True)
    (ground.home / ".agents/skills/same/SKILL.md").symlink_to(shared)
    shelf = ground.read()
    assert names(shelf) == ["again"]
    assert shelf.problems == ()


def test_of_one_name_the_first_is_used_and_the_other_is_told(ground: Ground) -> None:
    first = ground.write(ground.root / ".tiller/skills/x/SKILL.md")
    second = ground.write(ground.config / "skills/x/SKILL.md", SKILL.format("another"))
    shelf = ground.read()
    assert [one.path for one in shelf.skills] == [first]
    assert [one.path for one in shelf.problems] == [second]
    assert str(first) in shelf.problems[0].message


def test_a_project_is_used_only_as_it_was_trusted(ground: Ground) -> None:
    import hashlib  # noqa: PLC0415 - here alone

    pinned = ground.write(ground.root / ".agents/skills/a/SKILL.md")
    ground.write(ground.root / ".agents/skills/b/SKILL.md")
    ground.write(ground.root / ".tiller/prompts/p.md", "Do p.")
    ground.write(ground.config / "skills/own/SKILL.md")
    known = {pinned: hashlib.sha256(pinned.read_bytes()).hexdigest()}
    shelf = ground.read(expected=lambda path: known.get(path, ""))
    assert names(shelf) == ["a", "own"]
    assert shelf.templates == ()
    assert said(shelf.problems).count("is not what was trusted") == 2


def test_a_link_of_the_project_leads_to_no_other_file_of_the_user(
    ground: Ground, tmp_path: Path
) -> None:
    secret = ground.write(tmp_path / "secret", SKILL.format("secret"))
    folder = ground.root / ".agents/skills/a"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").symlink_to(secret)
    prompts = ground.root / ".tiller/prompts"
    prompts.mkdir(parents=True)
    (prompts / "p.md").symlink_to(secret)
    shelf = ground.read()
    assert (shelf.skills, shelf.templates) == ((), ())
    assert said(shelf.problems).count("outside of") == 2


def test_templates_are_the_files_of_a_folder_and_no_deeper(ground: Ground) -> None:
    ground.write(ground.config / "prompts/b.md", "Do b.")
    ground.write(ground.config / "prompts/a.md", "Do a of yours.")
    ground.write(ground.config / "prompts/deep/c.md", "Do c.")
    ground.write(ground.config / "prompts/d.txt", "Do d.")
    ours = ground.write(ground.root / ".tiller/prompts/a.md", "Do a.")
    shelf = ground.read()
    assert [(one.name, one.description) for one in shelf.templates] == [
        ("a", "Do a."),
        ("b", "Do b."),
    ]
    assert shelf.texts[ours] == "Do a."
    assert len(shelf.problems) == 1
    assert [one.name for one in ground.read(trusted=False).templates] == ["a", "b"]


def test_settings_name_more_and_leave_some_out(ground: Ground, tmp_path: Path) -> None:
    more = tmp_path / "more"
    for name in ("a", "b", "legacy-c", "legacy-d"):
        ground.write(more / name / "SKILL.md")
    page = ground.write(tmp_path / "page.md", SKILL.format("page"))
    ground.write(ground.home / "mine/e/SKILL.md")
    ground.write(ground.config / "skills/own/SKILL.md")
    listed = (
        str(more),
        "~/mine",
        str(page),
        f"-{more}/b",
        "!legacy-*",
        f"+{more}/legacy-d",
        "*.x",
        "-",
    )
    shelf = ground.read(skills=listed)
    assert names(shelf) == ["own", "a", "legacy-d", "e", "page"]
    assert [one.message.split(" ")[0] for one in shelf.problems] == ["'*.x'", "'-'"]


def test_what_the_project_holds_is_left_alone_until_it_is_trusted_whoever_names_it(
    ground: Ground,
) -> None:
    ground.write(ground.root / "tools/a/SKILL.md")
    named = {"skills": ("tools",), "added_skills": (ground.root / "tools",)}
    assert names(ground.read(trusted=False, **named)) == []
    assert names(ground.read(trusted=True, **named)) == ["a"]


def test_odd_files_are_told_and_the_rest_is_read(ground: Ground) -> None:
    top = ground.config / "skills"
    ground.write(top / "a/SKILL.md")
    ground.write(top / "b/SKILL.md", "---\ndescription: a: b\n---\n")
    ground.write(top / "c/SKILL.md", "no description")
    (top / "d").mkdir()
    (top / "d/SKILL.md").write_bytes(b"\0\1")
    (top / "e/SKILL.md").mkdir(parents=True)
    (top / "f").mkdir()
    os.mkfifo(top / "f/SKILL.md")
    shelf = ground.read()
    assert names(shelf) == ["a"]
    assert [one.level for one in shelf.problems] == ["error"] * 5
    assert {one.path.parent.name for one in shelf.problems if one.path} == set("bcdef")


def test_too_many_are_cut_and_that_is_told(ground: Ground) -> None:
    for number in range(MOST + 1):
        ground.write(ground.config / f"skills/s{number:03}/SKILL.md")
    shelf = ground.read()
    assert len(shelf.skills) == MOST
    assert "more than 200" in said(shelf.problems)


def test_a_file_is_understood_anew_only_when_it_holds_something_else(ground: Ground) -> None:
    path = ground.write(ground.config / "skills/a/SKILL.md")
    reader = PromptResourceReader()
    (before,) = reader.read(ground.places()).skills
    (same,) = reader.read(ground.places()).skills
    assert same is before
    ground.write(path, SKILL.format("other"))
    (after,) = reader.read(ground.places()).skills
    assert after.description == "about other"
    path.unlink()
    assert reader.read(ground.places()).skills == ()


def test_what_was_found_is_listed_for_people(ground: Ground) -> None:
    skill = ground.write(ground.config / "skills/a/SKILL.md")
    page = ground.write(ground.config / "prompts/p.md", "---\nargument-hint: <x>\n---\nDo p.")
    shelf = ground.read()
    listed = [(one.name, one.source, one.argument_hint) for one in shelf.commands(skills=True)]
    assert listed == [("skill:a", "skill", ""), ("p", "prompt", "<x>")]
    assert [one.name for one in shelf.commands(skills=False)] == ["p"]
    loaded = [(one.kind, one.name, one.path) for one in shelf.loaded.resources]
    assert loaded == [("skill", "a", skill), ("prompt", "p", page)]
