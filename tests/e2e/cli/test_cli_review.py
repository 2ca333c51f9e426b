"""`tiller review` as a shell and a CI job see it: what it prints, writes and exits with."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support.clients.server import TILLER, Ground, calls, says
from tests.support.programs.terminal import tiller
from tests.support.review.reviewing import a_report, reports
from tests.support.workspace.repositories import Repository

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

Json = dict[str, Any]
SUMS = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"
FOUND = a_report(
    "sums.py",
    6,
    "return b - a",
    title="Turned round",
    message="`sub(3, 1)` gives -2.",
    suggestion="    return a - b",
)
SCHEMA = (
    Path(__file__).parents[3]
    / "server"
    / "tiller_server"
    / "review"
    / "outputs"
    / "review.schema.json"
)
REPORT = """\
Review: 1 error

One thing is turned round.

error Turned round
  --> sums.py:6 · bug · 90 % sure
    4 |
    5 | def sub(a, b):
  > 6 |     return b - a
  `sub(3, 1)` gives -2.
  suggested:
    -     return b - a
    +     return a - b
"""


@pytest.fixture
def branch(ground: Ground) -> Repository:
    repository = Repository(ground.root)
    repository.commit("Begin", {"sums.py": SUMS})
    repository.git("checkout", "--quiet", "-b", "feature")
    repository.replace("sums.py", "return a - b", "return b - a")
    repository.commit("Subtract")
    ground.provider.script([reports(FOUND), says("One thing is turned round.")])
    return repository


def test_the_report_shows_the_lines_and_the_code_says_that_something_was_found(
    ground: Ground, branch: Repository
) -> None:
    ran = tiller(ground, "review")
    assert (ran.code, ran.err) == (3, "")
    assert ran.out.startswith(REPORT), ran.out
    assert "Base:      main (" in ran.out
    assert "cost unknown" in ran.out
    assert "\x1b" not in ran.out
    assert len(ground.sessions()) == 1


FAIL_ON = {
    "the same severity": (("--fail-on", "error"), 3),
    "a milder one": (("--fail-on", "note"), 3),
    "never": (("--fail-on", "never"), 0),
    "nothing is left": (("--min-confidence", "0.95"), 0),
    "none is shown": (("--max-findings", "0"), 0),
}


@pytest.mark.parametrize(("options", "code"), FAIL_ON.values(), ids=FAIL_ON)
def test_the_exit_code_is_as_fail_on_says(
    ground: Ground, branch: Repository, options: tuple[str, ...], code: int
) -> None:
    assert tiller(ground, "review", *options).code == code


def test_json_is_as_its_schema_says_and_can_be_rendered_again_without_a_model(
    ground: Ground, branch: Repository
) -> None:
    ran = tiller(
        ground, "review", "--format", "json", "--output", "again.md", "--output", "sarif=r.sarif"
    )
    report = json.loads(ran.out)
    jsonschema.validate(report, json.loads(SCHEMA.read_text("utf-8")))
    assert report["findings"][0]["title"] == "Turned round"
    (ground.root / "report.json").write_text(ran.out, encoding="utf-8")
    asked = len(ground.provider.requests)
    again = tiller(ground, "review", "--from", "report.json", "--format", "md")
    assert len(ground.provider.requests) == asked
    assert again.out == (ground.root / "again.md").read_text("utf-8")
    assert json.loads((ground.root / "r.sarif").read_text("utf-8"))["version"] == "2.1.0"


def test_what_is_accepted_in_the_base_is_not_shown_again(
    ground: Ground, branch: Repository
) -> None:
    first = tiller(ground, "review", "--write-baseline", "b.json")
    ground.provider.script([reports(FOUND), says("."), reports(FOUND), says(".")])
    second = tiller(ground, "review", "--baseline", "b.json")
    assert (first.code, second.code) == (3, 0)
    assert "1 finding of the baseline, not shown" in second.out
    branch.git("checkout", "--quiet", "main")
    branch.commit(
        "Accept", {".tiller/review-baseline.json": (ground.root / "b.json").read_text("utf-8")}
    )
    third = tiller(ground, "review", "--head", "feature")
    assert (third.code, third.err) == (0, "")


def test_a_second_run_with_the_first_report_asks_nobody_and_keeps_what_stands(
    ground: Ground, branch: Repository
) -> None:
    first = tiller(ground, "review", "--output", "r.json", "--previous", "r.json")
    second = tiller(
        ground, "review", "--output", "r.json", "--previous", "r.json", "--format", "json"
    )
    assert (first.code, second.code) == (3, 3)
    assert len(ground.provider.requests) == 2
    assert [one["title"] for one in json.loads(second.out)["findings"]] == ["Turned round"]


def test_fixes_become_a_branch_that_the_tests_have_judged(
    ground: Ground, branch: Repository
) -> None:
    judge = "python3 -B -c 'import sums; assert sums.sub(3, 1) == 2'"
    ran = tiller(ground, "review", "--fix", "branch", "--fix-to", "fixed", "--test", judge)
    assert (
        ran.err == "tiller review: 1 of 1 repaired, on the branch fixed; the tests pass with it\n"
    )
    assert branch.git("show", "fixed:sums.py") == SUMS.strip()
    assert branch.git("rev-parse", "fixed^") == branch.head()
    ground.provider.script([reports(FOUND), says(".")])
    again = tiller(ground, "review", "--fix", "branch", "--fix-to", "fixed")
    assert again.code == 2
    assert "the branch 'fixed' is there already" in again.complaint


def test_fixes_become_a_patch(ground: Ground, branch: Repository) -> None:
    ran = tiller(ground, "review", "--fix", "patch")
    assert "1 of 1 repaired, in tiller-fix.patch" in ran.complaint
    assert "no test has judged it" in ran.complaint
    branch.git("apply", "tiller-fix.patch")
    assert branch.read("sums.py") == SUMS


def test_a_budget_ends_with_4_and_the_findings_so_far(ground: Ground, branch: Repository) -> None:
    note = a_report("sums.py", 6, "return b - a", severity="note", title="Odd")
    ground.provider.script([reports(note), *[calls(("ls", {}))] * 4])
    ran = tiller(ground, "review", "--max-turns", "2")
    assert ran.code == 4
    assert "PARTIAL: 0 of 1 files were looked at" in ran.out
    assert "note Odd" in ran.out
    ground.provider.script([reports(note), *[calls(("ls", {}))] * 4])
    assert tiller(ground, "review", "--max-turns", "2", "--on-partial", "pass").code == 0


def test_in_ci_two_dollars_are_the_most(ground: Ground, branch: Repository) -> None:
    price = {"input": 1000, "output": 1000, "cacheRead": 0, "cacheWrite": 0}
    models = ground.dirs.config / "models.json"
    known = json.loads(models.read_text("utf-8"))
    known["providers"]["lab"]["models"][0]["cost"] = price
    models.write_text(json.dumps(known), encoding="utf-8")
    look = calls(("ls", {})) | {"usage": {"input": 1500, "output": 1}}
    ground.provider.script([look] * 5)
    ran = tiller(ground, "review", env={"CI": "true"})
    assert (ran.code, len(ground.provider.requests)) == (4, 2)
    assert "of 2 US dollars" in ran.out


def test_an_outage_fails_or_passes_as_the_policy_says(ground: Ground, branch: Repository) -> None:
    ground.configure(retry={"enabled": False})
    down = {"status": 503, "body": {"error": {"message": "over capacity"}}, "repeat": -1}
    ground.provider.script([down])
    assert tiller(ground, "review").code == 1
    passed = tiller(ground, "review", "--on-partial", "pass")
    assert passed.code == 0
    assert "PARTIAL" in passed.out


def test_ctrl_c_settles_and_shows_what_there_is(ground: Ground, branch: Repository) -> None:
    stuck = {"text": "a b c", "stall_forever_after_deltas": 1}
    ground.provider.script([reports(FOUND), stuck])
    with subprocess.Popen(
        [*TILLER, "review"],
        cwd=ground.root,
        env=dict(ground.env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell that runs things in the background ignores the signal for its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - no threads here
    ) as process:
        ground.provider.wait_requests(2)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"stopping; once more leaves at once" in err
    assert b"Turned round" in out


REFUSED = {
    "an unknown base": (("--base", "nowhere"), "'nowhere' is no commit of this repository"),
    "no repository": (("--workspace", "/"), "is in no Git repository"),
    "two heads": (("--uncommitted", "--head", "main"), "--uncommitted is a head of its own"),
    "no format": (("--output", "x.xml"), "does not say in which format"),
    "no folder": (("--from", "nothing.json"), "cannot be read"),
    "an agent without a judge": (("--fix", "patch", "--fix-with", "agent"), "needs a judge"),
    "an unknown model": (("--model", "lab/none"), "lab/none"),
}


@pytest.mark.parametrize(("options", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_done_is_said_in_one_sentence(
    ground: Ground, branch: Repository, options: tuple[str, ...], words: str
) -> None:
    ran = tiller(ground, "review", *options)
    assert ran.code == 2
    assert words in ran.complaint
    assert ground.provider.requests == []


def test_an_empty_diff_is_no_failure(ground: Ground, branch: Repository) -> None:
    ran = tiller(ground, "review", "--base", "HEAD")
    assert (ran.code, ran.err, ground.provider.requests) == (0, "", [])
    assert "There is nothing to look at in this change." in ran.out


def test_a_token_that_stands_in_the_code_is_not_printed_with_its_lines(
    ground: Ground, branch: Repository
) -> None:
    secret = "plain-words-nobody-would-take-for-a-key"
    branch.replace("sums.py", "return b - a", f"return b - a  # {secret}")
    branch.commit("A token")
    ground.provider.script([reports(FOUND), says(f"I was told {secret}.")])
    ran = tiller(ground, "review", "--output", "r.json", env={"GITHUB_TOKEN": secret})
    assert ran.code == 3
    assert "return b - a  # [redacted:" in ran.out
    assert secret not in ran.out + ran.err + (ground.root / "r.json").read_text("utf-8")


def test_a_stored_report_is_measured_against_a_baseline(ground: Ground, branch: Repository) -> None:
    first = tiller(ground, "review", "--output", "all.json", "--write-baseline", "accepted.json")
    assert first.code == 3
    assert first.complaint == "tiller review: accepted.json accepts 1 finding of this review"
    again = tiller(ground, "review", "--from", "all.json", "--baseline", "accepted.json")
    assert (again.code, again.out.splitlines()[0]) == (0, "Review: nothing found")
    assert "Accepted:  1 finding of the baseline, not shown" in again.out
    gone = tiller(ground, "review", "--from", "all.json", "--baseline", "gone.json")
    assert (gone.code, "'gone.json' cannot be read" in gone.complaint) == (2, True)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--fix", "branch", "--fix-to", "main"), "the branch 'main' is there already"),
        (("--fix", "branch", "--fix-to", "a..b"), "'a..b' is no name of a branch"),
        (("--fix", "patch", "--fix-to", "gone/x.patch"), "there is no folder 'gone'"),
    ],
)
def test_where_a_repair_goes_is_checked_before_a_model_is_paid(
    ground: Ground, branch: Repository, options: tuple[str, ...], why: str
) -> None:
    ran = tiller(ground, "review", *options)
    assert (ran.code, why in ran.complaint) == (2, True), ran.err
    assert ground.provider.requests == []


def test_a_branch_that_a_repair_would_have_is_found_before_a_model_is_paid(
    ground: Ground, branch: Repository
) -> None:
    head = branch.git("rev-parse", "HEAD").strip()
    branch.git("branch", f"tiller/fix-{head[:12]}")
    ran = tiller(ground, "review", "--fix", "branch")
    assert (ran.code, "is there already" in ran.complaint) == (2, True), ran.err
    assert ground.provider.requests == []


@pytest.mark.parametrize("form", ["text", "md", "json"])
def test_a_report_names_the_session_and_no_folder_of_whoever_made_it(
    ground: Ground, branch: Repository, form: str
) -> None:
    ran = tiller(ground, "review", "--format", form, "--save-session", "kept.jsonl")
    (session,) = ground.sessions()
    assert session.stem.rpartition("_")[2] in ran.out
    assert str(ground.dirs.data) not in ran.out
    assert (ground.root / "kept.jsonl").read_bytes() == session.read_bytes()


def test_a_review_that_was_not_finished_is_headed_so_and_has_no_words_for_the_model(
    ground: Ground, branch: Repository
) -> None:
    ground.configure(retry={"enabled": False})
    wrong = a_report("sums.py", 6, "not in the file", title="Bogus", message="x")
    ground.provider.script([reports(wrong), {"status": 500, "body": "down", "repeat": -1}])
    for form, head in (("text", "Review: "), ("md", "# Tiller review: ")):
        ran = tiller(ground, "review", "--format", form, "--no-session")
        assert ran.code == 1
        assert ran.out.startswith(f"{head}not finished, nothing found so far\n"), ran.out
        assert "quote the lines" not in ran.out
        ground.provider.script([{"status": 500, "body": "down", "repeat": -1}])
