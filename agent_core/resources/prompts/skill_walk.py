"""Search for the files of skills in a folder; ignored files are skipped, and link cycles are safe. Blocking."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from agent_core.resources.load_result import LoadProblem
from agent_core.resources.prompts.skills import SKILL_FILE
from agent_core.workspace.files.ignore_rules import Rules, read_rules

IGNORE_FILES: Final = (".gitignore", ".ignore", ".fdignore")
IGNORE_BYTES: Final = 64 * 1024
SKIPPED: Final = "node_modules"
MOST_FOLDERS: Final = 2_000
DEEPEST: Final = 12


class SkillFileWalk(Struct, kw_only=True):
    """One walk through some places; a folder that two links lead to is looked into once."""

    problems: list[LoadProblem] = msgspec.field(default_factory=list[LoadProblem])
    _seen: set[tuple[int, int]] = msgspec.field(default_factory=set[tuple[int, int]])

    def skill_files(self, place: Path) -> Iterator[Path]:
        """Return the files of a place in the order of their names.

        A folder with a SKILL.md is a skill, and nothing below it is another. At the top any other Markdown file may be
        one, as it says itself. A place that is not there has none.
        """
        if place.is_file():
            yield place
        else:
            yield from self._below(place, (), top=place, depth=0)

    def _below(
        self, folder: Path, rules: tuple[tuple[Path, Rules], ...], *, top: Path, depth: int
    ) -> Iterator[Path]:
        if not self._is_new(folder, top):
            return
        try:
            with os.scandir(folder) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if depth or not isinstance(error, FileNotFoundError | NotADirectoryError):
                why = f"it cannot be listed ({error.strerror}); skills in it are left out"
                self.problems.append(LoadProblem(message=why, path=folder, level="error"))
            return
        rules = (*rules, *_rules_of(folder, {entry.name for entry in inside}))
        shown = (entry for entry in inside if not entry.name.startswith("."))
        names = [entry for entry in shown if not _is_ignored(entry, folder, rules)]
        skill = next((entry for entry in names if entry.name == SKILL_FILE), None)
        if skill is not None:
            yield Path(skill.path)
            return
        if depth == 0:
            yield from (Path(entry.path) for entry in names if _is_page(entry))
        for entry in names:
            if depth < DEEPEST and _is_folder(entry):
                yield from self._below(Path(entry.path), rules, top=top, depth=depth + 1)

    def _is_new(self, folder: Path, top: Path) -> bool:
        try:
            facts = folder.stat()
        except OSError:
            return folder == top
        identity = (facts.st_dev, facts.st_ino)
        if identity in self._seen:
            return False
        if len(self._seen) == MOST_FOLDERS:
            why = f"more than {MOST_FOLDERS} folders are looked through for skills; the rest is left out"
            self.problems.append(LoadProblem(message=why, path=top, level="error"))
        self._seen.add(identity)
        return len(self._seen) <= MOST_FOLDERS


def _rules_of(folder: Path, names: set[str]) -> Iterator[tuple[Path, Rules]]:
    for name in IGNORE_FILES:
        if name not in names:
            continue
        try:
            if (folder / name).is_file():
                with (folder / name).open("rb") as file:
                    yield folder, read_rules(file.read(IGNORE_BYTES).decode("utf-8", "replace"))
        except OSError:
            continue


def _is_ignored(
    entry: "os.DirEntry[str]", folder: Path, rules: tuple[tuple[Path, Rules], ...]
) -> bool:
    if entry.name == SKIPPED:
        return True
    end = "/" if _is_folder(entry) else ""
    for base, lines in reversed(rules):
        verdict = lines.verdict(f"{(folder / entry.name).relative_to(base).as_posix()}{end}")
        if verdict is not None:
            return verdict
    return False


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_page(entry: "os.DirEntry[str]") -> bool:
    return entry.name.endswith(".md") and not _is_folder(entry)
