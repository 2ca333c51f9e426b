"""The documents name commands, files and headings that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.shared import ROOT
from tests.support.sources import repository_files, text_files

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
MAKE = re.compile(r"(?:^|`|&& )make ([a-z][a-z0-9-]*)", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"^([a-z][a-z0-9-]*):(?!=)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
REQUIRED = (
    "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "tests/README.md",
    "agent_core/ARCHITECTURE.md", "server/PROTOCOL.md",
)  # fmt: skip


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
