"""What a terminal is told when something is wrong: one sentence, an exit code, never a traceback, and nothing is lost."""

import pytest

from tests.support.clients.server import Ground, says
from tests.support.programs.terminal import shell, tiller
from tests.support.session.session_files import checked_entries, runs, said

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

COMMANDS = ("lsp", "run", "chat", "demo", "auth", "models", "config", "doctor")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "no/such", "hi"], ["'no/such'", "models.json"]),
        (["--workspace", "nowhere", "hi"], ["'nowhere'", "not a folder"]),
        (["--tools", "hammer", "hi"], ["'hammer'", "presets"]),
        (["--session", "nobody", "hi"], ["'nobody'", "session"]),
        ([], ["no prompt", "example:"]),
        (["  "], ["no prompt", "example:"]),
    ],
    ids=["model", "workspace", "tools", "session", "prompt", "blank"],
)
def test_what_cannot_be_used_is_named_in_one_sentence_with_exit_code_2(
    ground: Ground, arguments: list[str], words: list[str]
) -> None:
    ran = tiller(ground, "run", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.complaint.startswith("tiller run: ")
    assert [word for word in words if word not in ran.complaint] == []
    assert ground.sessions() == []
    assert ground.provider.requests == []


def test_a_projects_own_package_named_server_is_not_taken_for_ours(ground: Ground) -> None:
    package = ground.root / "server"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('the project')", encoding="utf-8")
    ground.provider.script([says("Here.")])
    ran = tiller(ground, "run", "hi", env={"PYTHONPATH": str(ground.root)})
    assert (ran.code, ran.out) == (0, "Here.\n")


def test_without_a_model_or_key_it_says_how_to_get_one(ground: Ground) -> None:
    (ground.dirs.config / "models.json").unlink()
    (ground.dirs.config / "settings.json").unlink()
    ran = tiller(ground, "run", "--json", "hi")
    assert ran.code == 2
    (line,) = [line for line in ran.lines if line["type"] == "error"]
    assert line["error"]["kind"] == "AuthRequired"
    assert ran.complaint == f"tiller run: {line['error']['message']}"
    assert "OPENAI_API_KEY" in ran.complaint
    assert ground.sessions() == []


def test_a_key_that_is_refused_is_a_matter_of_usage(ground: Ground) -> None:
    ground.provider.script([{"status": 401}])
    ran = tiller(ground, "run", "hi")
    assert ran.code == 2
    assert "AuthRequired: lab answered 401" in ran.err


@pytest.mark.parametrize("api", ["openai-completions", "anthropic-messages"])
def test_a_provider_that_refuses_fails_the_run_with_exit_code_1(ground: Ground, api: str) -> None:
    ground.configure(api=api)
    ground.provider.script([{"status": 400}])
    ran = tiller(ground, "run", "--json", "hi")
    assert ran.code == 1
    ended = next(event for event in ran.lines if event["type"] == "run.ended")
    assert ended["status"] == "failed"
    assert "400" in ended["error"]["message"]
    entries = checked_entries(*ground.sessions())
    assert (said(entries), [status for _, status in runs(entries)]) == (
        ["hi"],
        ["started", "failed"],
    )
    ground.provider.script([says("better now")])
    assert tiller(ground, "run", "--continue", "again").out == "better now\n"


@pytest.mark.parametrize(
    ("api", "stop"), [("openai-completions", "content_filter"), ("anthropic-messages", "refusal")]
)
def test_a_model_that_says_no_ends_the_run_with_exit_code_5(
    ground: Ground, api: str, stop: str
) -> None:
    ground.configure(api=api)
    ground.provider.script([{"text": "I would", "stop": stop}])
    ran = tiller(ground, "run", "--json", "hi")
    assert ran.code == 5
    ended = next(event for event in ran.lines if event["type"] == "run.ended")
    assert (ended["status"], ended["error"]["retryable"]) == ("refused", False)
    assert ended["error"]["message"].startswith("lab refused to answer")
    assert [status for _, status in runs(checked_entries(*ground.sessions()))] == [
        "started",
        "refused",
    ]


def test_broken_settings_are_told_with_line_and_column_and_stop_nothing(ground: Ground) -> None:
    path = ground.dirs.config / "settings.json"
    path.write_text('{\n  "retry": {},\n  oops\n}\n', encoding="utf-8")
    ground.provider.script([says("fine")])
    ran = tiller(ground, "run", "--model", "lab/m", "hi")
    assert (ran.code, ran.out) == (0, "fine\n")
    assert f"{path}:3:3" in ran.err
    shown = tiller(ground, "config", "show")
    assert shown.code == 0
    assert f"{path}:3:3" in shown.err


def test_one_wrong_setting_leaves_the_others_in_force(ground: Ground) -> None:
    ground.configure(permission={"mode": "yodo"}, retry={"maxRetries": 1})
    path = ground.dirs.config / "settings.json"
    ground.provider.script([says("fine")])
    ran = tiller(ground, "run", "hi")
    assert (ran.code, ran.out) == (0, "fine\n")
    assert f"{path}:7:" in ran.err
    assert "permission.mode" in ran.err
    shown = tiller(ground, "config", "show").out
    assert [line.split() for line in shown.splitlines() if "retry.maxRetries" in line] == [
        ["retry.maxRetries", "1", "user", f"({path})"]
    ]


def test_a_session_that_cannot_be_read_is_told_from_a_missing_one(ground: Ground) -> None:
    folder = ground.dirs.data / "sessions" / "--w--"
    folder.mkdir(parents=True)
    file = folder / "2026-01-01_s1.jsonl"
    file.mkdir()
    ran = tiller(ground, "run", "--session", "s1", "hi")
    assert ran.code == 1
    assert f"{str(file)!r} has the name of a session and is a folder: move it away" in ran.complaint
    assert tiller(ground, "run", "--session", "s2", "hi").code == 2
    assert file.is_dir()


def test_broken_models_are_told_with_line_and_column_even_when_no_model_is_left(
    ground: Ground,
) -> None:
    path = ground.dirs.config / "models.json"
    path.write_text('{\n "providers": {\n  oops\n}}\n', encoding="utf-8")
    ran = tiller(ground, "run", "hi")
    assert (ran.code, ran.out) == (2, "")
    assert f"{path}:3:3" in ran.err
    assert "Traceback" not in ran.err
    as_json = tiller(ground, "run", "--json", "hi")
    assert [line["type"] for line in as_json.lines] == ["session", "notice", "error"]
    assert f"{path}:3:3" in as_json.lines[1]["text"]
    shown = tiller(ground, "run", "--model", "embedded/repair", "hi")
    assert shown.code == 0
    assert f"{path}:3:3" in shown.err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--nonsense"], "--nonsense"),
        (["walk"], "'walk'"),
        (["run", "--nonsense", "hi"], "--nonsense"),
        (["run", "--permission", "all", "hi"], "'all'"),
        (["run", "--continue", "--no-session", "hi"], "--no-session"),
        (["lsp", "--nonsense"], "'--nonsense'"),
        (["lsp", "--log-level", "loud"], "'loud'"),
        (["lsp", "--log-file"], "--log-file"),
        (["lsp", "--log-file", "/nowhere/at/all.log"], "'/nowhere/at/all.log'"),
        (["config"], "show|get|set|unset|path"),
        (["config", "edit"], "'edit'"),
    ],
    ids=" ".join,
)
def test_a_wrong_option_is_named_with_exit_code_2(
    ground: Ground, arguments: list[str], word: str
) -> None:
    ran = tiller(ground, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert word in ran.err.splitlines()[-1]
    assert "Traceback" not in ran.err


def test_help_is_there_for_every_command_with_an_example(ground: Ground) -> None:
    whole = tiller(ground, "--help")
    assert (whole.code, whole.err) == (0, "")
    assert [name for name in COMMANDS if name not in whole.out] == []
    for name in COMMANDS:
        ran = tiller(ground, name, "--help")
        assert (ran.code, ran.err) == (0, "")
        assert f"usage: tiller {name}" in ran.out
        assert "example" in ran.out
    alone = tiller(ground)
    assert (alone.code, "COMMAND" in alone.out + alone.err) == (2, True)
    version = tiller(ground, "--version")
    assert (version.code, version.out) == (0, "tiller 0.1.0\n")


def test_config_says_where_everything_lies_and_where_each_value_came_from(ground: Ground) -> None:
    ran = tiller(ground, "config", "path")
    assert ran.code == 0
    rows = dict(line.split(maxsplit=1) for line in ran.out.splitlines())
    assert rows["settings"] == str(ground.dirs.config / "settings.json")
    assert rows["sessions"] == f"{ground.dirs.data / 'sessions'}  (does not exist yet)"
    shown = tiller(ground, "config", "show")
    values = {line.split()[0]: line.split()[1:] for line in shown.out.splitlines()}
    assert values["permission.mode"][:2] == ['"yolo"', "user"]
    assert values["retry.maxRetries"] == ["3", "default"]
    as_json = tiller(ground, "config", "show", "--json").lines[0]
    assert as_json["settings"]["permission.mode"] == {"value": "yolo", "source": "user"}
    assert as_json["problems"] == []


def test_a_reader_that_leaves_early_ends_the_run_cleanly(ground: Ground) -> None:
    ground.provider.script([{"text": "word\n" * 2000, "deltas": 2000, "delta_delay_s": 0.001}])
    ran = shell(ground, "$TILLER run --json hi | head -n 1")
    assert ran.code == 1
    assert len(ran.out.splitlines()) == 1
    complaint = ran.err.splitlines()[-1]
    assert "was closed by its reader" in complaint
    assert "Traceback" not in ran.err
    assert "Exception ignored" not in ran.err
    assert runs(checked_entries(*ground.sessions()))[-1][1] == "cancelled"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("$TILLER config show | head -n 1", (0, 1)),
        ("$TILLER run hi > /dev/full", (1,)),
        ("$TILLER run hi >&-", (0,)),
        ("$TILLER run hi 2>&-", (0,)),
        ("$TILLER run hi <&-", (0,)),
        ("$TILLER run <&-", (2,)),
        ("LC_ALL=C PYTHONIOENCODING=ascii $TILLER run hi", (0,)),
        ("LC_ALL=C PYTHONIOENCODING=ascii $TILLER run $'\\xff'", (0,)),
    ],
)
def test_odd_standard_streams_are_no_reason_for_a_traceback(
    ground: Ground, line: str, code: tuple[int, ...]
) -> None:
    ground.provider.script([{"text": "wörd 🦜 " * 50, "repeat": -1}])
    ran = shell(ground, line)
    assert ran.code in code
    assert "Traceback" not in ran.err
    assert "Exception ignored" not in ran.err
    for file in ground.sessions():
        _ = checked_entries(file)


def test_json_lines_are_utf_8_whatever_the_locale(ground: Ground) -> None:
    ground.provider.script([says("wörd 🦜")])
    ran = tiller(ground, "run", "--json", "hi", env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii"})
    ended = [event for event in ran.lines if event["type"] == "message.ended"]
    assert ended[-1]["content"] == [{"type": "text", "text": "wörd 🦜"}]
