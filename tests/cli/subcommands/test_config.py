"""`tiller config` says where everything lies and where every value came from."""

import argparse
import json
from pathlib import Path

import pytest

from tiller_server.cli.environment import Environment
from tiller_server.cli.subcommands import config


def run(
    verb: str,
    tmp_path: Path,
    *,
    as_json: bool = False,
    workspace: Path | None = None,
    name: str = "settings",
    key: str = "",
    value: str = "",
    **variables: str,
) -> int:
    given = {
        "TILLER_CONFIG_DIR": str(tmp_path / "c"),
        "TILLER_DATA_DIR": str(tmp_path / "d"),
        "TILLER_RUNTIME_DIR": str(tmp_path / "r"),
    }
    options = argparse.Namespace(
        verb=verb, json=as_json, workspace=workspace, name=name, key=key, value=value
    )
    return config.main(options, Environment(given | variables))


def settings(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "c" / "settings.json"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    return path


def test_path_names_each_place_and_whether_it_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = settings(tmp_path, "{}")
    assert run("path", tmp_path) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"config    {path.parent}",
        f"settings  {path}",
        f"models    {path.parent}/models.json  (does not exist yet)",
        f"auth      {path.parent}/auth.json  (does not exist yet)",
        f"data      {tmp_path}/d  (does not exist yet)",
        f"sessions  {tmp_path}/d/sessions  (does not exist yet)",
        f"runtime   {tmp_path}/r  (does not exist yet)",
    ]


def test_show_gives_every_value_with_its_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = settings(tmp_path, '{"retry": {"maxRetries": 9}, "sandbox": 1}')
    assert run("show", tmp_path) == 0
    said = capsys.readouterr()
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in said.out.splitlines()}
    assert rows["retry.maxRetries"] == ["9", f"user ({path})"]
    assert rows["retry.enabled"] == ["true", "default"]
    assert rows["sandbox"] == ['"auto"', "default"]
    assert said.err.startswith(f'{path}:1:30: "sandbox" is 1, but it should be')


def test_show_as_json_can_be_read_by_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = settings(tmp_path, '{"defaultModel": "m", "durability": "always"}')
    assert run("show", tmp_path, as_json=True) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["settings"]["defaultModel"] == {"value": "m", "source": "user"}
    assert shown["settings"]["permission.mode"] == {"value": "ask", "source": "default"}
    assert [problem.startswith(f"{path}:1:23: ") for problem in shown["problems"]] == [True]


def test_show_names_unknown_keys_and_does_not_list_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '{ "permision": {"mode":"plan"}, "budget": {"usd": 1}, "permission": {"mod":"plan"} }'
    path = settings(tmp_path, text)
    assert run("show", tmp_path) == 0
    said = capsys.readouterr()
    assert "permision" not in said.out
    assert "budget." not in said.out
    assert said.err.splitlines() == [
        f'{path}:1:3: "permision" is no setting, so it has no effect; did you mean "permission"?',
        f'{path}:1:33: "budget" is no setting, so it has no effect; did you mean "budgets"?',
        (
            f'{path}:1:70: "permission.mod" is no setting, so no session begins with an unknown key '
            'in "permission"; did you mean "permission.mode"?'
        ),
    ]


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_looks_like_a_secret_is_hidden(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    text = (
        '{"apiKey": "sk-123", "bash": {"authToken": "sk-123"}, "budgets": {"tokens": 77},'
        ' "extensionFlags": {"apiKey": "sk-123", "x-token": "sk-123"}}'
    )
    settings(tmp_path, text)
    assert run("show", tmp_path, as_json=form == "json") == 0
    said, err = capsys.readouterr()
    assert "sk-123" not in said + err
    assert said.count("(hidden)") == 2
    assert "77" in said


def test_a_wrong_folder_is_one_sentence_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("path", tmp_path, TILLER_DATA_DIR="here") == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "tiller config: TILLER_DATA_DIR is 'here', a relative path: give an absolute one, or unset it\n"
    )


@pytest.mark.parametrize(
    ("trust", "value", "source"), [("always", "1", "project"), ("never", "3", "default")]
)
def test_show_names_what_a_trusted_workspace_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], trust: str, value: str, source: str
) -> None:
    settings(tmp_path, json.dumps({"defaultProjectTrust": trust}))
    own = tmp_path / "w" / ".tiller" / "settings.json"
    own.parent.mkdir(parents=True)
    own.write_text('{"retry": {"maxRetries": 1}}', encoding="utf-8")
    assert run("show", tmp_path, workspace=tmp_path / "w") == 0
    said = capsys.readouterr()
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in said.out.splitlines()}
    where = f"project ({own})" if source == "project" else source
    assert rows["retry.maxRetries"] == [value, where]
    assert ("is not trusted" in said.err) is (trust == "never")


@pytest.mark.parametrize("name", ["settings", "models"])
def test_schema_gives_what_editors_check_a_file_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert run("schema", tmp_path, name=name) == 0
    assert json.loads(capsys.readouterr().out)["title"] == f"Tiller {name}"


def test_mode_sets_the_users_own_permission_mode_and_keeps_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = settings(tmp_path, '{"permission": {"fallback": "deny"}, "durability": "always"}')
    assert run("mode", tmp_path, name="auto") == 0
    assert json.loads(path.read_text("utf-8")) == {
        "permission": {"fallback": "deny", "mode": "auto"},
        "durability": "always",
    }
    assert capsys.readouterr().out == f'permission.mode is now "auto" ({path})\n'


def test_mode_changes_nothing_in_a_file_that_it_cannot_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = settings(tmp_path, '{"permission": ')
    assert run("mode", tmp_path, name="auto") != 0
    assert path.read_text("utf-8") == '{"permission": '
    assert "repair it first" in capsys.readouterr().err


def test_a_setting_is_set_shown_and_removed_and_the_rest_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = settings(tmp_path, '{"durability": "always", "of another version": [1]}')
    assert run("set", tmp_path, key="budgets.usd", value="2.5") == 0
    assert run("set", tmp_path, key="defaultModel", value="some model") == 0
    assert json.loads(path.read_text("utf-8")) == {
        "durability": "always",
        "of another version": [1],
        "budgets": {"usd": 2.5},
        "defaultModel": "some model",
    }
    assert run("get", tmp_path, key="budgets.usd") == 0
    assert run("unset", tmp_path, key="budgets.usd") == 0
    assert run("unset", tmp_path, key="budgets.usd") == 0
    assert run("unset", tmp_path, key="defaultModel") == 0
    unset = "budgets.usd is no longer set; the value in force is null"
    assert capsys.readouterr().out.splitlines() == [
        f"budgets.usd is now 2.5 ({path})",
        f'defaultModel is now "some model" ({path})',
        "2.5",
        unset,
        unset,
        "defaultModel is no longer set; the value in force is null",
    ]
    assert json.loads(path.read_text("utf-8")) == {
        "durability": "always",
        "of another version": [1],
    }


@pytest.mark.parametrize(
    ("verb", "words", "reason"),
    [
        ("set", ("budget.usd", "2"), 'did you mean "budgets"?'),
        ("set", ("permission.mod", "plan"), 'did you mean "permission.mode"?'),
        ("set", ("permission.mode", "plann"), "it should be 'plan', 'ask', 'auto' or 'yolo'"),
        ("get", ("permission.mod", ""), "did you mean permission.mode?"),
        ("unset", ("zzz", ""), "unknown setting 'zzz'"),
    ],
)
def test_a_key_or_value_that_no_setting_has_changes_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    verb: str,
    words: tuple[str, str],
    reason: str,
) -> None:
    path = settings(tmp_path, "{}")
    assert run(verb, tmp_path, key=words[0], value=words[1]) == 2
    assert reason in capsys.readouterr().err
    assert path.read_text("utf-8") == "{}"
