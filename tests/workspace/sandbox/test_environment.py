"""The environment of a contained command has neither secrets nor what makes programs run others."""

import pytest

from agent_core.workspace.sandbox import scrubbed

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
    "KEYBOARD": "de",
    "AUTHOR": "me",
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
    "MONKEY": "banana",
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


@pytest.mark.parametrize("value", ["postgres://u:p4ss@host/db", "see https://me:tok@x.y/z"])
def test_an_address_with_a_password_is_a_secret(value: str) -> None:
    assert scrubbed({"DATABASE_URL": value}).removed == ("DATABASE_URL",)


def test_names_are_told_in_order() -> None:
    assert scrubbed({"ZZ_TOKEN": "1", "LD_X": "2", "A_KEY": "3"}).removed == (
        "A_KEY",
        "LD_X",
        "ZZ_TOKEN",
    )
