"""Settings come from layers: the stronger wins, what is wrong is left out and named with its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.resources.settings.layers import (
    Layer,
    LayerName,
    Settings,
    load_settings,
    load_settings_now,
)
from agent_core.resources.settings.values import SettingsValues, settings_schema

CHAT_APP = {
    "workspaces": {},
    "people": [],
    "approvers": [],
    "admins": [],
    "direct": True,
    "groups": True,
    "contextMessages": 0,
}
DEFAULTS: dict[str, Any] = {
    "defaultProvider": None,
    "defaultModel": None,
    "defaultThinkingLevel": "medium",
    "scopedModels": [],
    "cacheRetention": "short",
    "permission": {"mode": "ask", "fallback": "ask", "timeoutS": 300.0},
    "defaultProjectTrust": "ask",
    "workspace": None,
    "sandbox": "auto",
    "containment": {"passVariables": [], "readPaths": [], "hidePaths": []},
    "retry": {"enabled": True, "maxRetries": 3, "baseDelayMs": 2000, "maxDelayMs": 60000},
    "compaction": {
        "enabled": True,
        "reserveTokens": 16384,
        "keepRecentTokens": 20000,
        "modelOverrides": {},
    },
    "branchSummary": {"reserveTokens": 16384, "skipPrompt": False},
    "steeringMode": "one-at-a-time",
    "followUpMode": "one-at-a-time",
    "toolExecution": "parallel",
    "toolConcurrency": 8,
    "toolTimeoutS": 600.0,
    "maxTurns": 150,
    "skipOnSteer": True,
    "defaultTools": "default",
    "bash": {"timeoutS": 600.0, "prefix": None, "shellPath": None},
    "images": {"autoResize": True, "blockImages": False, "maxBytes": 4_718_592},
    "stream": {"firstByteTimeoutS": 300.0, "idleTimeoutS": 30.0},
    "steer": {"graceS": 2.0},
    "durability": "run",
    "budgets": {
        "usd": None,
        "tokens": None,
        "turns": None,
        "minutes": None,
        "dayUsd": None,
        "folderDayUsd": None,
    },
    "skills": [],
    "prompts": [],
    "enableSkillCommands": True,
    "extensions": [],
    "extensionConflicts": "last",
    "extensionFlags": {},
    "hooks": {"timeoutS": 5.0, "longTimeoutS": 120.0},
    "mcp": {"startTimeoutS": 30.0, "callTimeoutS": 120.0},
    "planReview": "complex",
    "memory": {"consolidateAfterMinutes": None},
    "notify": {"url": None, "tokenVariable": None, "requestAfterS": 15.0, "runAfterS": 300.0},
    "attachments": {"store": None, "endpoint": None, "region": None, "linkS": None},
    "telemetry": {"enabled": False, "endpoint": None, "content": False},
    "externalAgents": {},
    "web": {"timeoutS": 30.0, "privateHosts": [], "search": None, "searchUrl": None},
    "channels": {
        "lark": {
            **CHAT_APP,
            "appId": None,
            "domain": "feishu",
            "secretVariable": "LARK_APP_SECRET",
        },
        "slack": {
            **CHAT_APP,
            "appTokenVariable": "SLACK_APP_TOKEN",
            "botTokenVariable": "SLACK_BOT_TOKEN",
        },
    },
    "titles": "auto",
    "titleModel": None,
    "completion": {"trigger": "invoked", "model": None},
    "idleUnloadMinutes": 30.0,
}


def of_text(
    tmp_path: Path, text: str | bytes, *, name: LayerName = "user", trusted: bool = True
) -> Settings:
    path = tmp_path / "settings.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_settings_now((Layer(name=name, content=path),), project_trusted=trusted)


def told(settings: Settings) -> list[tuple[str, int | None, int | None]]:
    return [(problem.message, problem.line, problem.column) for problem in settings.problems]


def test_without_any_layer_the_defaults_hold() -> None:
    settings = load_settings_now((), project_trusted=False)
    assert settings.values.as_json() == DEFAULTS
    assert set(settings.sources.values()) == {"default"}
    assert settings.sources["permission.mode"] == "default"
    assert settings.problems == ()


async def test_a_stronger_layer_wins_key_by_key_and_every_key_knows_its_layer(
    tmp_path: Path,
) -> None:
    user = tmp_path / "settings.json"
    user.write_text('{"retry": {"maxRetries": 5, "baseDelayMs": 1}, "defaultModel": "a"}')
    layers = [
        Layer(name="request", content={"defaultModel": "e"}),
        Layer(name="session", content={"defaultModel": "d", "scopedModels": ["x"]}),
        Layer(name="editor", content={"defaultModel": "c", "toolExecution": "sequential"}),
        Layer(name="project", content={"defaultModel": "b", "retry": {"maxRetries": 1}}),
        Layer(name="user", content=user),
    ]
    settings = await load_settings(layers, project_trusted=True)
    values = settings.values
    assert (values.default_model, values.scoped_models) == ("e", ("x",))
    assert (values.retry.max_retries, values.retry.base_delay_ms) == (1, 1)
    assert values.tool_execution == "sequential"
    chosen = {key: layer for key, layer in settings.sources.items() if layer != "default"}
    assert chosen == {
        "defaultModel": "request",
        "scopedModels": "session",
        "toolExecution": "editor",
        "retry.maxRetries": "project",
        "retry.baseDelayMs": "user",
    }


def test_an_untrusted_project_has_no_say(tmp_path: Path) -> None:
    settings = of_text(tmp_path, '{"defaultModel": "b"', name="project", trusted=False)
    assert settings.values == SettingsValues()
    assert settings.problems == ()


def test_a_missing_or_empty_file_is_no_problem(tmp_path: Path) -> None:
    missing = load_settings_now(
        (Layer(name="user", content=tmp_path / "none.json"),), project_trusted=False
    )
    assert missing.problems == ()
    assert of_text(tmp_path, " \n").problems == ()
    assert of_text(tmp_path, b"\xef\xbb\xbf{}").problems == ()


def test_an_unknown_key_is_named_with_the_nearest_known_one_and_the_rest_holds(
    tmp_path: Path,
) -> None:
    text = (
        '{"theme": "dark", "retry": {"maxRetrys": 1, "enabled": false},\n'
        ' "compaction": {"modelOverrides": {"a/b": {"reserveToken": 1}}}}'
    )
    settings = of_text(tmp_path, text)
    assert settings.values.as_json() == DEFAULTS | {
        "retry": DEFAULTS["retry"] | {"enabled": False},
        "compaction": DEFAULTS["compaction"]
        | {"modelOverrides": {"a/b": {"reserveTokens": None, "keepRecentTokens": None}}},
    }
    assert told(settings) == [
        ('"theme" is no setting, so it has no effect', 1, 2),
        (
            (
                '"retry.maxRetrys" is no setting, so it has no effect; '
                'did you mean "retry.maxRetries"?'
            ),
            1,
            29,
        ),
        (
            (
                '"compaction.modelOverrides.a/b.reserveToken" is no setting, so it has no effect; '
                'did you mean "compaction.modelOverrides.a/b.reserveTokens"?'
            ),
            2,
            44,
        ),
    ]
    assert settings.refusals == ()
    assert "retry.maxRetrys" not in settings.sources


def test_an_unknown_key_of_permission_or_budgets_refuses_a_session(tmp_path: Path) -> None:
    text = '{"permission": {"mod": "plan"}, "budgets": {"dollars": 1, "usd": 2}}'
    settings = of_text(tmp_path, text)
    assert settings.refusals == settings.problems
    assert told(settings) == [
        (
            (
                '"permission.mod" is no setting, so no session begins with an unknown key in '
                '"permission"; did you mean "permission.mode"?'
            ),
            1,
            17,
        ),
        (
            '"budgets.dollars" is no setting, so no session begins with an unknown key in "budgets"',
            1,
            45,
        ),
    ]


def test_keys_for_people_and_editors_are_passed_over(tmp_path: Path) -> None:
    text = '{"$schema": "x", "_note": 1, "// why": 2, "permission": {"_why": "x", "mode": "plan"}}'
    settings = of_text(tmp_path, text)
    assert (settings.problems, settings.values.permission.mode) == ((), "plan")


def test_an_ill_typed_value_is_left_out_and_the_rest_holds(tmp_path: Path) -> None:
    text = '{\n  "retry": {"enabled": false,\n    "maxRetries": "five"},\n  "sandbox": "of",\n  "defaultModel": "m"\n}'
    settings = of_text(tmp_path, text)
    assert settings.values.retry.enabled is False
    assert settings.values.retry.max_retries == 3
    assert settings.values.default_model == "m"
    assert told(settings) == [
        (
            '"retry.maxRetries" is "five", but it should be a valid integer; 3 holds instead',
            3,
            5,
        ),
        ('"sandbox" is "of", but it should be \'auto\' or \'off\'; "auto" holds instead', 4, 3),
    ]
    assert str(settings.problems[0]).startswith(f"{tmp_path / 'settings.json'}:3:5: ")


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ('{"retry": 3}', "retry"),
        ('{"retry": null}', "retry"),
        ('{"scopedModels": ["a", 1]}', "scopedModels"),
        ('{"defaultTools": 4}', "defaultTools"),
        ('{"defaultTools": ["a", 4]}', "defaultTools"),
        ('{"bash": {"timeoutS": 0}}', "bash.timeoutS"),
        ('{"bash": {"timeoutS": true}}', "bash.timeoutS"),
        ('{"budgets": {"usd": -1}}', "budgets.usd"),
        ('{"permission": {"mode": "YOLO"}}', "permission.mode"),
        ('{"skipOnSteer": "yes"}', "skipOnSteer"),
        ('{"cacheRetention": "forever"}', "cacheRetention"),
        ('{"retry": {"maxRetries": 1.5}}', "retry.maxRetries"),
    ],
)
def test_of_a_wrong_value_the_default_holds_and_one_problem_names_the_key(
    tmp_path: Path, value: str, key: str
) -> None:
    settings = of_text(tmp_path, value)
    assert settings.values.as_json() == DEFAULTS
    assert [f'"{key}"' in problem.message for problem in settings.problems] == [True]
    assert settings.problems[0].column == value.index(f'"{key.rsplit(".", 1)[-1]}"') + 1


def test_what_a_weaker_layer_says_holds_when_the_stronger_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"retry": {"maxRetries": 7}}')
    layers = (
        Layer(name="user", content=path),
        Layer(name="session", content={"retry": {"maxRetries": "x"}}),
    )
    settings = load_settings_now(layers, project_trusted=False)
    assert settings.values.retry.max_retries == 7
    assert settings.sources["retry.maxRetries"] == "user"
    assert str(settings.problems[0]).startswith("session settings: ")


@pytest.mark.parametrize(
    ("text", "says", "line", "column"),
    [
        ('{\n  "a": 1,\n  "b" 2\n}', "is not valid JSON", 3, 7),
        ("{'a': 1}", "is not valid JSON", 1, 2),
        ('{"a": 1} // really', "is not valid JSON", 1, 10),
        ("\n [1]", "must hold a JSON object", 2, 2),
        ('{"a": NaN}', "NaN is not a JSON value", None, None),
        (b'{"a":\n "\xff"}', "is not UTF-8 text", 2, 3),
        ("[" * 100_000, "", None, None),
        ('{"a": ' + "9" * 5000 + "}", "is not valid JSON", None, None),
        ('{"a": "' + "x" * (1 << 20) + '"}', "is larger than", None, None),
    ],
)
def test_a_broken_file_is_named_with_its_place_and_does_not_stop_anything(
    tmp_path: Path, text: str | bytes, says: str, line: int | None, column: int | None
) -> None:
    settings = of_text(tmp_path, text)
    assert settings.values.as_json() == DEFAULTS
    ((message, *place),) = told(settings)
    assert says in message
    assert place == [line, column]


def test_a_folder_in_the_place_of_the_file_is_a_problem(tmp_path: Path) -> None:
    settings = load_settings_now((Layer(name="user", content=tmp_path),), project_trusted=False)
    assert "cannot be read" in settings.problems[0].message


def test_of_a_key_given_twice_the_place_of_the_last_is_told(tmp_path: Path) -> None:
    settings = of_text(tmp_path, '{"sandbox": "auto",\n "sandbox": 3}')
    assert [(problem.line, problem.column) for problem in settings.problems] == [(2, 2)]


LOOSENING = [
    ("permission.mode", "ask", "auto"),
    ("permission.mode", "ask", "yolo"),
    ("permission.mode", "plan", "ask"),
    ("permission.fallback", "rules", "ask"),
    ("permission.fallback", "deny", "ask"),
    ("sandbox", "auto", "off"),
    ("defaultProjectTrust", "ask", "always"),
    ("budgets.usd", 5, 6),
    ("budgets.turns", 5, None),
    ("bash.prefix", None, "evil"),
    ("bash.shellPath", None, "./bash"),
    ("containment.passVariables", ["MINE"], ["MY_TOKEN"]),
    ("containment.readPaths", ["~/data"], ["~"]),
]


def nested(key: str, value: object) -> dict:
    *outer, last = key.split(".")
    return {outer[0]: {last: value}} if outer else {last: value}


@pytest.mark.parametrize("name", ["project", "editor"])
@pytest.mark.parametrize(("key", "own", "wanted"), LOOSENING)
def test_a_project_and_an_editor_never_loosen_what_the_user_decided(
    name: LayerName, key: str, own: object, wanted: object
) -> None:
    below = Layer(name="user", content=nested(key, own))
    above = Layer(name=name, content=nested(key, wanted))
    settings = load_settings_now((below, above), project_trusted=True)
    alone = load_settings_now((below,), project_trusted=True)
    assert settings.values == alone.values
    assert settings.sources[key] == "user"
    (problem,) = settings.problems
    assert problem.layer == name
    assert f'"{key}": {json.dumps(wanted)}' in problem.message


@pytest.mark.parametrize("name", ["project", "editor"])
@pytest.mark.parametrize(("key", "wanted", "own"), LOOSENING[:9])
def test_a_project_and_an_editor_may_tighten(name, key: str, wanted: object, own: object) -> None:
    layers = (
        Layer(name="user", content=nested(key, own)),
        Layer(name=name, content=nested(key, wanted)),
    )
    settings = load_settings_now(layers, project_trusted=True)
    assert settings.problems == ()
    assert settings.sources[key] == name


def test_an_editor_does_not_take_back_what_a_project_tightened() -> None:
    layers = (
        Layer(name="user", content={"permission": {"mode": "yolo"}}),
        Layer(name="project", content={"permission": {"mode": "plan"}}),
        Layer(name="editor", content={"permission": {"mode": "yolo"}}),
    )
    assert load_settings_now(layers, project_trusted=True).values.permission.mode == "plan"


def test_the_request_may_choose_any_mode() -> None:
    layers = (Layer(name="request", content={"permission": {"mode": "yolo"}}),)
    assert load_settings_now(layers, project_trusted=False).values.permission.mode == "yolo"


def test_tools_with_signs_change_what_is_below_and_others_replace_it() -> None:
    def tools(*wanted: object) -> object:
        names = ("user", "editor", "request")
        layers = [
            Layer(name=name, content={"defaultTools": one})  # pyright: ignore[reportArgumentType] - wrong ones too
            for name, one in zip(names, wanted, strict=False)
        ]
        return load_settings_now(layers, project_trusted=False).values.as_json()["defaultTools"]

    assert tools(["+grep"]) == ["default", "+grep"]
    assert tools(["read", "bash"], ["-bash"], "+ls") == ["read", "bash", "-bash", "+ls"]
    assert tools("minimal", ["read"]) == ["read"]
    assert tools("minimal", []) == []


def test_the_schema_names_every_key_with_its_default() -> None:
    schema = settings_schema()
    properties: Any = schema["properties"]
    assert set(properties) == set(DEFAULTS)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert properties["sandbox"]["enum"] == ["auto", "off"]
    assert properties["permission"]["default"] == DEFAULTS["permission"]
    assert schema["additionalProperties"] is False
    json.dumps(schema)


def test_lists_of_paths_add_up_and_are_meant_from_their_file(tmp_path: Path) -> None:
    user, project = tmp_path / "c/settings.json", tmp_path / "w/.tiller/settings.json"
    for path, entries in ((user, ["a", "~/b", "/c", "-a/x", "!old-*"]), (project, ["../d"])):
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"skills": entries, "prompts": entries[:1]}))
    layers = (
        Layer(name="user", content=user),
        Layer(name="project", content=project),
        Layer(name="request", content={"skills": ["here"]}),
    )
    values = load_settings_now(layers, project_trusted=True).values
    own, theirs = user.parent, project.parent
    assert values.skills == (
        f"{own}/a",
        "~/b",
        "/c",
        f"-{own}/a/x",
        "!old-*",
        f"{theirs}/../d",
        "here",
    )
    assert values.prompts == (f"{own}/a", f"{theirs}/../d")
    assert load_settings_now(layers, project_trusted=False).values.skills[-1] == "here"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("project", "extensions"),
        ("editor", "extensions"),
        ("editor", "skills"),
        ("editor", "prompts"),
    ],
)
def test_what_runs_or_instructs_is_named_by_those_who_may(name: LayerName, key: str) -> None:
    layers = (
        Layer(name="user", content={key: ["/mine"]}),
        Layer(name=name, content={key: ["/theirs"]}),
    )
    settings = load_settings_now(layers, project_trusted=True)
    assert settings.values.as_json()[key] == ["/mine"]
    (problem,) = settings.problems
    assert "only in the user's own settings" in problem.message


@pytest.mark.parametrize("layer", ["project", "editor"])
@pytest.mark.parametrize(
    ("group", "value"),
    [("extensionFlags", {"guard": False}), ("channels", {"slack": {"people": ["*"]}})],
)
def test_groups_of_the_user_are_not_set_by_a_workspace(
    tmp_path: Path, layer: LayerName, group: str, value: object
) -> None:
    settings = of_text(tmp_path, json.dumps({group: value}), name=layer)
    assert settings.values.as_json() == DEFAULTS
    (problem,) = settings.problems
    assert problem.message == (
        f'"{group}" may stand only in the user\'s own settings; it has no effect'
    )
