"""The environment of a command has what tool chains need, and neither secrets nor what makes programs run others."""

import pytest

from agent_core.workspace.sandbox import scrubbed
from agent_core.workspace.sandbox.environment import (
    LOCATED,
    TOOLCHAINS,
    VARIABLES,
    is_secret,
    steers_programs,
)

KEPT = {
    "PATH": "/usr/bin",
    "HOME": "/home/me",
    "PWD": "/x",
    "OLDPWD": "/y",
    "LANG": "C.UTF-8",
    "TERM": "xterm",
    "COLORTERM": "truecolor",
    "PYTHONPATH": "src",
    "NODE_ENV": "test",
    "VIRTUAL_ENV": "/x/.venv",
    "LC_ALL": "C.UTF-8",
    "CARGO_HOME": "/home/me/.cargo",
    "GOPATH": "/home/me/go",
    "JAVA_HOME": "/usr/lib/jvm/21",
    "CI": "1",
    "GIT_AUTHOR_NAME": "me",
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_COMMITTER_DATE": "now",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_SSL_CAINFO": "/etc/ssl/ca.pem",
    "HTTP_PROXY": "http://proxy:3128",
    "TILLER_PROCESS_ID": "abc",
}
REMOVED = {
    "by word": ["OPENAI_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "MYSQL_PWD", "npm_config__auth", "MY_PAT"],
    "every word": [f"MY_{word}_X" for word in ["APIKEY", "AUTH", "AUTHORIZATION", "BEARER", "COOKIE", "CREDENTIAL", "CREDENTIALS", "CREDS", "KEY", "KEYS", "PASS", "PASSPHRASE", "PASSWD", "PASSWORD", "PASSWORDS", "PAT", "PRIVATE", "PWD", "SECRET", "SECRETS", "SIGNATURE", "TOKEN", "TOKENS", "WEBHOOK"]],
    "every ending": [f"my{word}" for word in ["apikey", "password", "passwd", "passphrase", "secret", "token", "credentials"]],
    "loaders": ["LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "GCONV_PATH", "GLIBC_TUNABLES"],
    "shells": ["BASH_ENV", "ENV", "PROMPT_COMMAND", "SHELLOPTS", "PS4", "IFS", "BASH_FUNC_ls%%", "CDPATH", "ZDOTDIR"],
    "languages": ["PYTHONSTARTUP", "PYTHONHOME", "NODE_OPTIONS", "PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS", "PYTEST_ADDOPTS"],
    "git": ["GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_DIR", "GIT_EXEC_PATH", "GIT_ASKPASS"],
    "builders": ["RUSTC_WRAPPER", "CARGO_TARGET_X_RUNNER", "PIP_CONFIG_FILE", "LUA_INIT_5_4", "_RLD_LIST", "MAKEFLAGS", "GOFLAGS", "npm_config_script_shell"],
    "doors": ["SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "XDG_RUNTIME_DIR", "TMUX", "VSCODE_IPC_HOOK", "DOCKER_HOST"],
    "ours": ["TILLER_DATA_DIR", "TILLER_RUNTIME_DIR"],
    "keys whose names say nothing": ["SSHPASS", "AZURE_STORAGE_CONNECTION_STRING", "OTEL_EXPORTER_OTLP_HEADERS", "SENTRY_DSN", "SLACK_HOOK", "JWT", "MNEMONIC", "WALLET_SEED", "MYSQLPWD", "SECRETKEYBASE", "ACCESSKEY", "STRIPE_SK", "HEROKU_API", "CONNSTR", "KRB5CCNAME"],
    "what no tool chain names": ["KEYBOARD", "AUTHOR", "MONKEY", "path", "PATHS", "LCD", "GIT_AUTHOR_NAMES", "CARGO_REGISTRY"],
}  # fmt: skip


def test_what_programs_need_stays() -> None:
    assert scrubbed(KEPT).env == KEPT
    assert scrubbed(KEPT).removed == ()


@pytest.mark.parametrize(
    "name", [pytest.param(name, id=f"{why}-{name}") for why in REMOVED for name in REMOVED[why]]
)
def test_it_is_taken_out_and_named(name: str) -> None:
    result = scrubbed({**KEPT, name: "value"})
    assert (result.env, result.removed) == (KEPT, (name,))


@pytest.mark.parametrize(
    "value", ["postgres://u:p4ss@host/db", "see https://me:tok@x.y/z", "https://tok@x.y/simple"]
)
def test_an_address_with_a_password_is_a_secret(value: str) -> None:
    assert scrubbed({"PIP_INDEX_URL": value}).removed == ("PIP_INDEX_URL",)


def test_an_address_with_the_name_of_a_user_is_no_secret() -> None:
    assert scrubbed({"PIP_INDEX_URL": "ssh://git@x.y/z"}).removed == ()


def test_names_are_told_in_order() -> None:
    assert scrubbed({"ZZ_TOKEN": "1", "LD_X": "2", "A_KEY": "3"}).removed == (
        "A_KEY",
        "LD_X",
        "ZZ_TOKEN",
    )


def test_what_the_user_lists_passes() -> None:
    env = {"MY_FLAG": "1", "MY_OTHER": "2", "APP_PORT": "3", "APPLE": "4"}
    assert scrubbed(env, passed=["MY_FLAG", "APP_*"]).env == {"MY_FLAG": "1", "APP_PORT": "3"}


def test_a_beginning_lets_no_secret_loader_or_door_pass() -> None:
    env = {"MY_TOKEN": "1", "MY_DB": "db://u:p@h", "LD_PRELOAD": "x", "GIT_DIR": "y", "TMUX": "z"}
    assert scrubbed(env, passed=["MY_*", "LD_*", "GIT_*", "*"]).env == {}


def test_a_whole_name_lets_a_secret_pass() -> None:
    env = {"MY_TOKEN": "1", "LD_PRELOAD": "x", "DATABASE_URL": "db://u:p@h"}
    assert scrubbed(env, passed=list(env)).env == env


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_no_tool_chain_names_a_secret_or_what_steers_programs(name: str) -> None:
    assert not is_secret(name, "value")
    assert not steers_programs(name)


def test_every_variable_stands_in_one_row() -> None:
    names = [name for row in TOOLCHAINS for name in row.variables.split()]
    assert len(names) == len(set(names))
    assert {name for name, _ in LOCATED} <= VARIABLES
