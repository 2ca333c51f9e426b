"""The documents name commands, files, functions and headings that exist."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

import agent_core
from tests.support.harness.shared import ROOT
from tests.support.harness.sources import repository_files, text_files

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
MAKE = re.compile(r"(?:^|`|&& )make ([a-z][a-z0-9-]*)", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"^([a-z][a-z0-9-]*):(?!=)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
REQUIRED = (
    "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "tests/README.md",
    "agent_core/ARCHITECTURE.md", "server/ARCHITECTURE.md", "server/PROTOCOL.md", "docs/debugging.md",
)  # fmt: skip
SERVER = "server/tiller_server"
GUIDES = {"CONTRIBUTING.md": "", "docs/debugging.md": "", "server/ARCHITECTURE.md": SERVER}
"""Pages whose paths are checked, with the folder that paths may be relative to besides the root."""
WALKS = "server/ARCHITECTURE.md"
LOOPS = {"setup", "quick", "test", "full", "campaign", "durations"}
SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.*-]+(/[\w.*-]+)*/?")
SUFFIXES = {
    ".json",
    ".jsonl",
    ".log",
    ".md",
    ".mjs",
    ".py",
    ".toml",
    ".ts",
    ".txt",
    ".yaml",
    ".yml",
}
ELSEWHERE = {"*.events.jsonl", "daemon.log", "models.json", "policy.json"}
"""Files of users, not of the repository."""
FRAME = re.compile(r"^([\w./-]+\.(?:py|ts)) +([\w.]+(?:, [\w.]+)*)", re.MULTILINE)


def test_the_promised_pages_are_there() -> None:
    here = {path.relative_to(ROOT).as_posix() for path in repository_files()}
    assert [page for page in REQUIRED if page not in here] == []


def test_every_make_command_that_a_page_names_is_a_target() -> None:
    targets = _targets()
    unknown = [
        f"{page}: make {name}"
        for page, text in _pages()
        for name in MAKE.findall(text)
        if name not in targets
    ]
    assert unknown == []
    assert {"demo", "test"} <= set(MAKE.findall(dict(_pages())["README.md"]))


PARTS = ("e2e-setup", "fast", "client-check-or-skip")
"""Parts of other targets."""


def test_every_target_is_told_by_make_help() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    told = re.findall(r"^\t@echo \"make ([a-z0-9-]+)", makefile, re.MULTILINE)
    assert sorted({*told, "help", *PARTS}) == sorted(_targets())


def test_links_lead_to_files_and_headings_that_exist() -> None:
    broken = [f"{page}: {link}" for page, text in _pages() for link in _broken(page, text)]
    assert broken == []


@pytest.mark.parametrize("text", ["[a](nowhere.md)", "[a](README.md#no-such-heading)"])
def test_a_broken_link_is_noticed(text: str) -> None:
    assert len(list(_broken("README.md", text))) == 1


@pytest.mark.parametrize("page", GUIDES)
def test_every_path_of_a_guide_exists(page: str) -> None:
    paths = list(_paths(_read(page), base=GUIDES[page]))
    assert paths
    assert [path for path in paths if not _is_there(path, base=GUIDES[page])] == []


@pytest.mark.parametrize(
    "span", ["agent_core/gone.py", "tests/gone/", "gone.toml", "lsp/gone.py", "docs/*.gone"]
)
def test_a_wrong_path_is_noticed(span: str) -> None:
    (path,) = _paths(f"See `{span}`.", base=SERVER)
    assert not _is_there(path, base=SERVER)


@pytest.mark.parametrize("span", ["agent/prompt", "a > b", "build/e2e-vscode", "models.json"])
def test_what_is_no_path_of_the_repository_is_left_alone(span: str) -> None:
    assert list(_paths(f"See `{span}`.", base=SERVER)) == []


def test_every_function_of_a_walk_exists() -> None:
    frames = list(_frames(_read(WALKS)))
    assert len(frames) > 50
    assert [f"{path}: {name}" for path, name in frames if not _defines(path, name)] == []


@pytest.mark.parametrize(
    "line",
    [
        "lsp/app.py  App.gone",
        "lsp/gone.py  App",
        "vscode-client/src/host/agent/follow.ts  gone",
        "agent_core/events/feed.py  emit",
    ],
)
def test_a_wrong_frame_is_noticed(line: str) -> None:
    ((path, name),) = _frames(f"```\n{line}\n```\n")
    assert not _defines(path, name)


def test_contributors_are_told_of_every_loop() -> None:
    assert set(MAKE.findall(_read("CONTRIBUTING.md"))) >= LOOPS


def test_the_hooks_before_a_commit_run_the_tools_of_make_lint() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    linting = re.findall(r'^\t"\$\(VENV\)/bin/([\w-]+)" ?(\w*)', makefile, re.MULTILINE)
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (repository,) = config["repos"]
    assert repository["repo"] == "local"
    hooks = repository["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}
    run = [(hook["entry"].split()[0], hook["entry"].split()[1]) for hook in hooks]
    known = {(f".venv/bin/{tool}", word) for tool, word in linting}
    known |= {(f".venv/bin/{tool}", "--no-logo") for tool, word in linting if not word}
    assert [one for one in run if one not in known] == []
    assert len(run) == len({hook["id"] for hook in hooks}) == 3


def _read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def _paths(text: str, *, base: str) -> Iterator[str]:
    """Give what in backticks is a path: it begins with a folder of ours, or is the name of a file."""
    folders = _folders("") | (_folders(base) if base else set())
    for span in SPAN.findall(FENCE.sub("", text)):
        if not PATH.fullmatch(span) or span in ELSEWHERE:
            continue
        first, slash, _ = span.partition("/")
        if first in folders if slash else Path(span).suffix in SUFFIXES or span == "Makefile":
            yield span


def _is_there(path: str, *, base: str) -> bool:
    return any([*ROOT.glob(path), *(ROOT / base).glob(path)])


@cache
def _folders(below: str) -> set[str]:
    within = ROOT / below
    files = (path.relative_to(within) for path in repository_files() if within in path.parents)
    return {path.parts[0] for path in files if len(path.parts) > 1}


def _frames(text: str) -> Iterator[tuple[Path, str]]:
    """Give each function of the walks with its file."""
    for fence in FENCE.findall(text):
        for path, names in FRAME.findall(fence):
            below = ROOT / SERVER / path
            for name in names.split(", "):
                yield (below if below.exists() else ROOT / path), name


def _defines(path: Path, name: str) -> bool:
    if not path.is_file():
        return False
    if path.suffix == ".ts":
        return re.search(rf"(?<!\.)#?\b{name}(?:<[^>]*>)?\(", path.read_text("utf-8")) is not None
    return name in _definitions(path)


@cache
def _definitions(path: Path) -> set[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, functions):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, functions)}
    return found


def _pages() -> Iterator[tuple[str, str]]:
    return ((path, text) for path, text in text_files() if path.endswith(".md"))


def _targets() -> set[str]:
    return set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))


def _broken(page: str, text: str) -> Iterator[str]:
    for link in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            yield link


def _anchors(page: Path) -> set[str]:
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_library_page_has_every_public_name() -> None:
    page = (ROOT / "docs/library.md").read_text(encoding="utf-8")
    assert [name for name in agent_core.__all__ if not re.search(rf"\b{name}\b", page)] == []
