"""A finding that a person rejected is not reported again, until it expires or its file is rewritten."""

import argparse
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.review.reviewing import Reviewing, a_report, reports, says
from tests.support.workspace.repositories import Repository
from tiller_server.cli.environment import Environment
from tiller_server.cli.subcommands import memory, review
from tiller_server.review.findings.rejections import RejectedFinding, is_rewritten, sketch_of

pytestmark = [pytest.mark.timeout(60)]

SUM = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"
FOUND = reports(a_report("sums.py", 6, "return b - a"))
FILE = [f"line {number} of the file" for number in range(100)]


@pytest.fixture
def branch(repository: Repository) -> Repository:
    """Return a repository whose branch `feature` breaks a function."""
    repository.commit("Begin", {"sums.py": SUM})
    repository.git("checkout", "--quiet", "-b", "feature")
    repository.replace("sums.py", "return a - b", "return b - a")
    repository.commit("Subtract")
    return repository


@pytest.mark.parametrize(
    ("lines", "rewritten"),
    [
        (FILE, False),
        ([*FILE, *(f"more {number}" for number in range(20))], False),
        ([f"  {line}" for line in FILE[30:]], False),
        ([*FILE[:20], *(f"other {number}" for number in range(80))], True),
        (["nothing of it"], True),
        (None, False),
    ],
)
def test_a_file_is_rewritten_when_it_lost_most_of_its_lines(
    lines: list[str] | None, rewritten: bool
) -> None:
    assert is_rewritten(sketch_of(FILE), lines) is rewritten


async def test_a_rejected_finding_is_counted_and_not_shown(
    reviewing: Reviewing, branch: Repository
) -> None:
    (first,) = (await reviewing.review(FOUND, says("."))).findings
    one = RejectedFinding(
        fingerprint=first.fingerprint,
        path=first.path,
        category=first.category,
        sketch=sketch_of(branch.read("sums.py").splitlines()),
    )
    again = await reviewing.review(FOUND, says("."), rejected=(one,))
    assert (again.findings, again.suppressed, again.accepted) == ((), 1, 0)
    for other in (
        replace(one, path="other.py"),
        replace(one, category="security"),
        replace(one, fingerprint="0" * 32),
        replace(one, sketch=sketch_of(FILE)),
    ):
        shown = await reviewing.review(FOUND, says("."), rejected=(other,))
        assert (len(shown.findings), shown.suppressed) == (1, 0), other


class Command:
    """The commands of one user in a repository."""

    def __init__(self, reviewing: Reviewing, capsys: pytest.CaptureFixture[str]) -> None:
        self.reviewing = reviewing
        self.capsys = capsys
        self.env = dict(reviewing.request().env)

    def memory(self, *arguments: str) -> int:
        parser = argparse.ArgumentParser()
        memory.add_arguments(parser)
        here = ("-C", str(self.reviewing.repository.root))
        return memory.main(parser.parse_args([*arguments, *here]), Environment(self.env))

    def review(self, *arguments: str) -> tuple[int, str, str]:
        parser = argparse.ArgumentParser()
        review.add_arguments(parser)
        here = ("--workspace", str(self.reviewing.repository.root), "--no-session")
        code = review.main(parser.parse_args([*arguments, *here]), Environment(self.env))
        said = self.capsys.readouterr()
        return code, said.out, said.err

    def made(self) -> dict[str, object]:
        self.reviewing.provider.script([FOUND, says(".")])
        _, out, _ = self.review("--base", "main", "--format", "json")
        return json.loads(out)


@pytest.fixture
def command(
    reviewing: Reviewing, branch: Repository, capsys: pytest.CaptureFixture[str]
) -> Command:
    assert branch is reviewing.repository
    return Command(reviewing, capsys)


def test_a_finding_is_rejected_by_its_place_until_the_rejection_expires(command: Command) -> None:
    why = ("--why", "b comes first here")
    code, _, err = command.review("--reject", "sums.py:6", *why)
    assert code == 2
    assert "memory is off in this project" in err
    command.memory("on")
    code, _, err = command.review("--reject", "sums.py:6", *why)
    assert (code, "there is no stored review of this project" in err) == (2, True)
    assert command.made()["suppressed"] == 0
    code, _, err = command.review("--reject", "sums.py:5", *why)
    assert code == 2
    assert "no finding has the name 'sums.py:5': sums.py:6 is " in err
    code, _, err = command.review("--reject", "sums.py:6", *why)
    assert code == 0
    assert "Wrong in sums.py (sums.py:6): b comes first here" in err
    again = command.made()
    assert (again["findings"], again["suppressed"]) == ([], 1)
    command.reviewing.provider.script([FOUND, says(".")])
    code, out, _ = command.review("--base", "main")
    assert code == 0
    assert "Suppressed: 1 finding rejected before, not shown" in out
    (path,) = Path(command.env["TILLER_DATA_DIR"]).glob("memory/projects/*/memory.md")
    entry = path.read_text("utf-8")
    expires = entry.partition("expires: ")[2][:10]
    path.write_text(entry.replace(f"expires: {expires}", "expires: 2026-01-01"), "utf-8")
    assert command.made()["suppressed"] == 0
    assert command.review("--reject", "sums.py:6", *why)[0] == 0
    assert command.made()["suppressed"] == 1


def test_a_rejection_needs_a_reason(command: Command) -> None:
    code, _, err = command.review("--reject", "sums.py:6")
    assert code == 2
    assert "--reject needs a reason; say --why TEXT" in err
