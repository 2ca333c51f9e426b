"""What a change takes away is shown to the reviewer, within bounds, and findings about it land on what is left."""

import pytest

from tests.support.review.reviewing import Reviewing, a_report, reports, says
from tests.support.workspace.repositories import Repository
from tiller_server.review.git.deleted_files import (
    MOST_BYTES,
    MOST_LINES,
    beginning_of,
    within_bounds,
)
from tiller_server.review.git.diff import ChangedFile

CHECKS = "def check_token(token):\n    return token in TOKENS\n"
USE = "from checks import check_token\n\n\ndef serve(request):\n    return check_token(request.token)\n"


@pytest.fixture
def branch(repository: Repository) -> Repository:
    repository.commit("Begin", {"checks.py": CHECKS, "serve.py": USE, "words.py": "WORD = 1\n"})
    repository.git("checkout", "--quiet", "-b", "feature")
    return repository


def delete(branch: Repository, *names: str) -> None:
    branch.git("rm", "--quiet", *names)
    branch.commit("Delete")


async def test_what_was_deleted_is_read_and_found_missing_where_it_is_still_used(
    reviewing: Reviewing, branch: Repository
) -> None:
    delete(branch, "checks.py")
    found = a_report("serve.py", 1, "from checks import check_token", category="compatibility")
    made = await reviewing.review(reports(found), says("It is still needed."))
    told = reviewing.told()
    assert "=== checks.py (deleted; this is what it held)\n" in told
    assert "       -    return token in TOKENS\n" in told
    assert "Never name a deleted file as the file of a finding" in told
    assert [(one.path, one.line, one.in_diff) for one in made.findings] == [("serve.py", 1, False)]
    assert [(one.path, one.deletions) for one in made.files] == [("checks.py", 2)]
    assert made.left_out == ()


async def test_a_finding_in_a_deleted_file_is_sent_to_what_is_left(
    reviewing: Reviewing, branch: Repository
) -> None:
    delete(branch, "checks.py")
    wrong = a_report("checks.py", 1, "def check_token(token):", title="Gone")
    right = a_report("serve.py", 5, "check_token(request.token)", title="Gone")
    made = await reviewing.review(reports(wrong), reports(right), says("Done."))
    assert "'checks.py' is deleted by the change" in reviewing.told(1)
    assert "quote the line that still needs it" in reviewing.told(1)
    assert [(one.path, one.line) for one in made.findings] == [("serve.py", 5)]


async def test_without_a_deletion_nothing_is_said_of_deletions(
    reviewing: Reviewing, branch: Repository
) -> None:
    branch.commit("Change", {"words.py": "WORD = 2\n"})
    _ = await reviewing.review(says("Seen."))
    assert "deleted file" not in reviewing.told()


async def test_what_is_deleted_after_a_review_is_read_by_the_next(
    reviewing: Reviewing, branch: Repository
) -> None:
    branch.commit("Change", {"checks.py": CHECKS + "LATER = 1\n", "words.py": "WORD = 2\n"})
    first = await reviewing.review(
        reports(a_report("checks.py", 2, "return token in TOKENS")), says("One.")
    )
    delete(branch, "checks.py")
    second = await reviewing.review(says("Gone."), earlier=first)
    asked = len(reviewing.provider.requests)
    assert "=== checks.py (deleted" in reviewing.told(asked - 1)
    assert "WORD = 2" not in reviewing.told(asked - 1)
    assert second.fixed == (first.findings[0].fingerprint,)
    third = await reviewing.review(earlier=second)
    assert len(reviewing.provider.requests) == asked
    assert third.summary == "Nothing has changed since the last review."


async def test_what_programs_made_stays_out_also_when_it_is_deleted(
    reviewing: Reviewing, branch: Repository
) -> None:
    branch.git("checkout", "--quiet", "main")
    files = {
        "uv.lock": "a = 1\n",
        "logo.png": b"\x89PNG\0\0",
        "empty.py": "",
        "src/x.py": "X = 1\n",
    }
    branch.commit("More", files)
    branch.git("checkout", "--quiet", "feature")
    branch.git("merge", "--quiet", "main")
    delete(branch, *files)
    made = await reviewing.review(says("."))
    assert [one.path for one in made.files] == ["src/x.py"]
    assert {one.path: one.reason for one in made.left_out} == {
        "uv.lock": "lock file",
        "logo.png": "binary",
        "empty.py": "deleted, was empty",
    }


def deleted(*lines: str, end: str = "\n", path: str = "gone.py") -> ChangedFile:
    body = "".join(f"-{line}\n" for line in lines)
    patch = f"@@ -1,{len(lines)} +0,0 @@\n{body}" + (
        "" if end else "\\ No newline at end of file\n"
    )
    return ChangedFile(
        path=path,
        old_path=None,
        status="deleted",
        kind="text",
        old_mode="100644",
        new_mode="000000",
        old_blob="1" * 40,
        new_blob="0" * 40,
        additions=0,
        deletions=len(lines),
        patch=patch.encode("utf-8", "surrogateescape"),
    )


@pytest.mark.parametrize("end", ["\n", ""], ids=["with its end", "without"])
def test_the_beginning_is_shown_and_the_rest_is_counted(end: str) -> None:
    lines = tuple(f"line {number}" for number in range(MOST_LINES + 3))
    shown = beginning_of(deleted(*lines, end=end))
    assert shown.lines == lines[:MOST_LINES]
    assert (shown.more_lines, shown.more_bytes) == (3, 3 * len("line 200\n"))


@pytest.mark.parametrize("end", ["\n", ""], ids=["with its end", "without"])
def test_a_short_file_is_shown_whole(end: str) -> None:
    shown = beginning_of(deleted("- a list", "", "\\ a backslash", end=end))
    assert shown.lines == ("- a list", "", "\\ a backslash")
    assert (shown.more_lines, shown.more_bytes) == (0, 0)


def test_long_lines_end_it_sooner_but_the_first_is_always_there() -> None:
    long = "x" * (MOST_BYTES // 2)
    assert len(beginning_of(deleted(long, long, long)).lines) == 1
    assert beginning_of(deleted(long * 9, "y")).lines == (long * 9,)
    assert beginning_of(deleted("caf\udce9")).lines == ("caf\ufffd",)


def test_of_many_deleted_files_the_last_are_only_named() -> None:
    files = [deleted("x" * MOST_BYTES, path=f"{number}.py") for number in range(12)]
    shown, over = within_bounds(files)
    assert [one.path for one in shown] == [f"{number}.py" for number in range(8)]
    assert [one.path for one in over] == [f"{number}.py" for number in range(8, 12)]
    assert {one.reason for one in over} == {
        "deleted, 1 line: of deleted files 65,536 bytes are read"
    }
