"""`tiller fleet` for people and scripts: answers as JSON and as text, and one sentence for each mistake."""

import json
from pathlib import Path
from typing import Any

import pytest

from tiller_server.cli import command_line
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.results import CHANGE, PATCH, JobCost, ResultStore
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.values import ChangeName, Job, JobRequest

SUBMIT = ("submit", "--repo", "team/app", "--number", "7", "--head", "0123abc", "--base", "main")


@pytest.fixture
def config(tmp_path: Path, database_url: str) -> Path:
    file = tmp_path / "fleet.json"
    _ = file.write_text(json.dumps({"database": database_url}))
    return file


def asked(capsys: pytest.CaptureFixture[str], config: Path, *arguments: str) -> dict[str, Any]:
    """Run a command, and return its answer."""
    verb, *rest = arguments
    assert command_line.main(["fleet", verb, "--config", str(config), "--json", *rest]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_job_is_submitted_once_shown_cancelled_and_tried_again(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    first, again = (asked(capsys, config, *SUBMIT) for _ in range(2))
    assert (first["isNew"], again["isNew"]) == (True, False)
    assert first["job"] == again["job"]
    job = str(first["job"]["id"])
    assert asked(capsys, config, "job", job)["job"]["session"] == f"fleet-{job}-0"
    assert asked(capsys, config, "cancel", job, "--reason", "no")["job"]["reason"] == "no"
    assert asked(capsys, config, "retry", job)["job"]["round"] == 1
    status = asked(capsys, config, "status", "--state", "queued", "--repo", "team/app")
    assert status["counts"] == {"queued": 1}
    assert [one["state"] for one in status["jobs"]] == ["queued"]


def test_slots_are_shown_and_drained(
    capsys: pytest.CaptureFixture[str], config: Path, database: FleetDatabase
) -> None:
    slots = SlotStore(database)
    slots.make(2)
    _ = slots.adopt(host="here", boot="1")
    shown = asked(capsys, config, "slots")["slots"]
    assert [(one["id"], one["isAlive"], one["fence"]) for one in shown] == [
        (1, True, 1),
        (2, False, 0),
    ]
    assert asked(capsys, config, "drain", "1") == {"drained": 1}
    assert [slot.is_drained for slot in slots.slots()] == [True, False]


def test_the_patch_and_the_report_of_a_job_are_shown(
    capsysbinary: pytest.CaptureFixture[bytes], config: Path, database: FleetDatabase
) -> None:
    change = ChangeName(forge="hub", repo="team/app", number=0)
    jobs, slots, results = JobStore(database), SlotStore(database), ResultStore(database)
    job = jobs.submit(
        JobRequest(kind="fix", change=change, head="a" * 40, base="main", cause="api", prompt="x")
    ).job
    slots.make(1)
    lease = slots.adopt(host="here", boot="1")
    job = jobs.admit(job.id, lease)
    assert isinstance(job, Job)
    show = ["fleet", "job", "--config", str(config), str(job.id)]
    assert command_line.main([*show, "--patch"]) == 1
    assert b"job 1 has no patch" in capsysbinary.readouterr().err
    results.keep(job, lease, PATCH, b"first")
    results.keep(job, lease, PATCH, b"diff --git a/x b/x\n\xff\n")
    _ = results.save(job, lease, CHANGE, b'{"text": "Set it back"}', cost=JobCost())
    assert command_line.main([*show, "--patch"]) == 0
    assert capsysbinary.readouterr().out == b"diff --git a/x b/x\n\xff\n"
    assert command_line.main(show) == 0
    assert capsysbinary.readouterr().out.endswith(b"\n\nSet it back\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("job", "7"), "there is no job 7"),
        (("cancel", "99999999999999999999"), "there is no job 99999999999999999999"),
        (("job", "7", "--patch"), "there is no job 7"),
        (("drain", "4"), "there is no slot 4"),
        (("drain",), "there are no slots"),
        ((*SUBMIT[:-4], "--head", "HEAD", "--base", "main"), "--head is 'HEAD'; name a commit"),
        ((*SUBMIT, "--repo", "../x"), "--repo is '../x'; name a repository as owner/name"),
        ((*SUBMIT, "--priority", "0"), "--priority is 0; it is from 1 to 2147483647"),
        ((*SUBMIT, "--kind", "fix"), "a job of kind fix needs a --prompt"),
        (("status", "--limit", "-1"), "--limit is -1; name the count of jobs to show"),
    ],
)
def test_a_mistake_is_one_sentence(
    capsys: pytest.CaptureFixture[str], config: Path, arguments: tuple[str, ...], message: str
) -> None:
    verb, *rest = arguments
    assert command_line.main(["fleet", verb, "--config", str(config), *rest]) in {1, 2}
    assert capsys.readouterr().err.startswith(f"tiller fleet: {message}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "holds no settings of a fleet: Input data was truncated"),
        (
            '{"slots": "2"}',
            "holds no settings of a fleet: Expected `int`, got `str` - at `$.slots`",
        ),
        ('{"slotz": 2}', "holds no settings of a fleet: Object contains unknown field `slotz`"),
        ('{"slots": 0}', "slots is 0; it is more than 0"),
        (
            '{"forges": {"a": {"kind": "github", "clone_url": "http://git.example/{repo}"}}}',
            "forges.a: 'http://git.example/{repo}' does not begin with https://, and a token",
        ),
        (
            '{"schedules": {"nightly": {"cron": "x", "forge": "a", "repos": ["o/r"], "prompt": "p"}}}',
            "schedules.nightly: cron is 'x'; name the five fields of cron",
        ),
        (
            '{"schedules": {"a": {"cron": "0 3 * * *", "forge": "a", "repos": ["o/r"], "prompt": "p"}}}',
            "schedules.a: there is no forge 'a' in forges",
        ),
        (
            (
                '{"forges": {"a": {"kind": "github", "repos": ["x/*"]}}, "schedules": {"a": '
                '{"cron": "0 3 * * *", "forge": "a", "repos": ["o/r"], "prompt": "p"}}}'
            ),
            "schedules.a: the repository 'o/r' is not one of forges.a.repos",
        ),
        (
            '{"schedules": {"../x": {"cron": "0 3 * * *", "forge": "a", "repos": [], "prompt": ""}}}',
            "schedules.../x: a name has up to 40 small letters, digits and hyphens",
        ),
        ('{"database": "mysql://x"}', "database begins with 'mysql'; it is a URL of sqlite:///"),
        ('{"renew_s": 40}', "renew_s is 40.0; it is at most a third of lease_s, 45.0"),
        ('{"limits": {"per_repo": -1}}', "limits.per_repo is -1; it is 0 or more"),
        (
            '{"database": "postgresql://u:secret@127.0.0.1:1/x"}',
            "cannot be used: connection failed",
        ),
    ],
)
def test_settings_that_cannot_be_used_are_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "fleet.json"
    _ = file.write_text(content)
    assert command_line.main(["fleet", "status", "--config", str(file)]) in {1, 2}
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert "secret" not in error


def test_steps_that_cannot_be_loaded_are_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "fleet.json"
    _ = file.write_text('{"steps": "nowhere:make"}')
    assert command_line.main(["fleet", "worker", "--config", str(file)]) == 2
    assert "steps is 'nowhere:make', which cannot be loaded" in capsys.readouterr().err
