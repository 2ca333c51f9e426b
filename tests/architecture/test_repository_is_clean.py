"""The repository holds no address of a registry, no path of a machine, no credential, and pins every version."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.harness.shared import ROOT
from tests.support.harness.sources import text_files

# "path" → why the finding there is none, in a sentence.
WAIVERS: Mapping[str, str] = {
    "agent_core/decisions/0050-vscode-server-virtual-environment.md": "tells of the next one",
    "vscode-client/src/host/server/install.ts": "installs from the wheels that the extension brings along, and from nowhere else",
}

# A name in brackets keeps a pattern from finding itself here.
UNWANTED: Mapping[str, re.Pattern[str]] = {
    "the address of a package registry": re.compile(
        r"https?://[\w.-]*([p]ypi|[n]pmjs|[p]ythonhosted|registry)[\w.-]*", re.IGNORECASE
    ),
    "an index option of pip": re.compile(r"--(?:[e]xtra-)?[i]ndex-url|--[f]ind-links"),
    "a path of one machine": re.compile(r"(?<![\w.~*-])/(?:[w]ork|[r]oot|[f]arm)(?=/)"),
    "a private key": re.compile(r"-----[B]EGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
    "a provider's key": re.compile(
        r"\b[s]k-(?:ant-|or-v1-|proj-)?[A-Za-z0-9_-]{32,}|\b[A]Iza[\w-]{35}|\b[g]sk_\w{40,}"
    ),
    "a cloud or forge token": re.compile(
        r"\b[A]KIA[0-9A-Z]{16}\b|\b[g]h[pousr]_\w{36,}|\b[g]lpat-[\w-]{20,}|\b[x]ox[abprs]-[\w-]{20,}"
    ),
}

PIN = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+")


def test_no_file_holds_what_belongs_elsewhere() -> None:
    found = _findings(text_files())
    assert [finding for finding in found if finding.split(":")[0] not in WAIVERS] == []
    stale = [path for path in WAIVERS if not any(f.startswith(f"{path}:") for f in found)]
    assert stale == []


@pytest.mark.parametrize(
    "line",
    [
        "https://" + "pypi.org/simple",
        "--extra-" + "index-url x",
        "cd /" + "work/main",
        "-----BEGIN " + "RSA PRIVATE KEY-----",
        "sk-" + "ant-" + "a" * 40,
        "AKIA" + "ABCDEFGHIJKLMNOP",
        "ghp_" + "a" * 36,
    ],
)
def test_what_must_not_be_there_is_noticed(line: str) -> None:
    assert len(_findings([("file", f"first\n{line}\n")])) == 1


@pytest.mark.parametrize("line", ["./work/x", "src/root/a", "~/work/", "/workspace/a", "task-" * 9])
def test_what_only_looks_alike_is_left_alone(line: str) -> None:
    assert _findings([("file", line)]) == []


def test_constraints_are_plain_pins_of_everything_that_is_required() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [pin for pin in pins if not PIN.fullmatch(pin)] == []
    versions = {canonicalize_name(pin.split("==")[0]): pin.split("==")[1] for pin in pins}
    assert len(versions) == len(pins)
    unmet = [
        str(requirement)
        for requirement in map(Requirement, _required())
        if (version := versions.get(canonicalize_name(requirement.name))) is None
        or version not in requirement.specifier
    ]
    assert unmet == []


def test_files_end_with_a_newline_and_hold_no_tabs_of_their_own() -> None:
    texts = [
        (path, text)
        for path, text in text_files()
        if Path(path).suffix in {".md", ".py", ".toml", ".txt"}
    ]
    assert [path for path, text in texts if text and not text.endswith("\n")] == []
    assert [path for path, text in texts if path.endswith(".py") and "\n\t" in text] == []


def _findings(texts) -> list[str]:
    return [
        f"{path}:{number}: {what}: {match[0][:40]}"
        for path, text in texts
        for number, line in enumerate(text.splitlines(), start=1)
        for what, pattern in UNWANTED.items()
        if (match := pattern.search(line))
    ]


def _required() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"]
    needed = [*groups["dev"], *groups["docs"], *groups["release"]]
    return [*project["project"]["dependencies"], *needed, *project["build-system"]["requires"]]
