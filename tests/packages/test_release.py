"""Checks of a release, and the documents that are written beside it."""

import zipfile
from pathlib import Path

import pytest

from scripts.release import checks
from tests.support.harness.shared import ROOT
from tiller_server import VERSION

pytest.importorskip(
    "cyclonedx", reason="make release-setup installs what a release is checked with"
)
from scripts.release import documents

CHANGELOG = """# Changelog

Text before.

## 0.2.0 (2027-01-02)

### Added

- Two.

## 0.1.0

- One.
"""


def test_notes_are_the_section_of_the_version() -> None:
    notes = documents.release_notes(CHANGELOG, "0.2.0")
    assert notes == "# Tiller 0.2.0\n\n### Added\n\n- Two.\n"
    assert documents.release_notes(CHANGELOG, "0.1.0") == "# Tiller 0.1.0\n\n- One.\n"


def test_a_version_without_a_section_is_named() -> None:
    with pytest.raises(ValueError, match=r"no section for 0\.3\.0: write `## 0\.3\.0`"):
        _ = documents.release_notes(CHANGELOG, "0.3.0")


def test_packages_of_the_page_are_named_with_their_licence() -> None:
    rule = "\n" + "=" * 80 + "\n"
    licences = rule.join(
        ["@lit/element 2.1.2 (BSD-3-Clause)\n\nText (c)", "lit 3.3.3 ((MIT OR ISC))\n\nText"]
    )
    assert documents.page_packages(licences) == [
        ("@lit/element", "2.1.2", "BSD-3-Clause"),
        ("lit", "3.3.3", "(MIT OR ISC)"),
    ]
    assert documents.npm_purl("@lit/element", "2.1.2") == "pkg:npm/%40lit/element@2.1.2"


def test_the_changelog_has_a_section_for_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert documents.release_notes(text, VERSION).startswith(f"# Tiller {VERSION}\n\n###")


def test_every_place_has_the_same_version() -> None:
    assert [*checks.version_problems()] == []


def _wheel(folder: Path, **members: bytes) -> Path:
    path = folder / "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/"), data)
    return path


def test_an_archive_with_the_licence_and_the_product_has_no_problem(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path, agent_core__a=b"text", about__LICENSE=b"MIT")
    assert [*checks.content_problems(wheel)] == []


def test_tests_paths_of_the_checkout_and_a_missing_licence_are_problems(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path, thing__tests__a=b"", agent_core__b=f"{ROOT}/x".encode())
    assert [*checks.content_problems(wheel)] == [
        "thing-1.0-py3-none-any.whl holds thing/tests/a: leave it out",
        f"thing-1.0-py3-none-any.whl: agent_core/b names {ROOT}, a folder of this machine",
        "thing-1.0-py3-none-any.whl holds no LICENSE",
    ]
