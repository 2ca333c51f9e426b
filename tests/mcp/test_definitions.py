"""What an `mcp.json` may say, what of it is used, and what is told about the rest."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_core.mcp.approvals import Declared, believed, tool_name
from agent_core.mcp.definitions import (
    MOST_SERVERS,
    DisabledServer,
    Http,
    ServerFiles,
    Stdio,
    read_definitions,
    shown_way,
    without_password,
)

ROOT = Path("/w")
AT = Path("/config/mcp.json")
ENV = {"HOME": "/home/me", "PLAIN": "p", "MY_TOKEN": "s3cret", "EMPTY": ""}


def read(entry: Any, origin: Any = "user") -> Any:
    """Read one server; returns its way, `off: ` and its way as text, or the one problem."""
    document = {"mcpServers": {"s": entry}}
    defined = read_definitions(document, at=AT, origin=origin, root=ROOT, env=ENV)
    if defined.entries and not defined.servers:
        (disabled,) = defined.entries
        assert isinstance(disabled, DisabledServer)
        assert defined.problems == ()
        return f"off: {disabled.way}"
    if not defined.servers:
        (problem,) = defined.problems or ("",)
        return problem.removeprefix(f"{AT}: MCP server 's': ")
    return defined.servers[0].way


USED: dict[str, tuple[Any, Any]] = {
    "a program": ({"command": "x"}, Stdio(argv=("x",), cwd=ROOT)),
    "with words": (
        {"type": "stdio", "command": "x", "args": ["-a", ""], "cwd": "sub"},
        Stdio(argv=("x", "-a", ""), cwd=ROOT / "sub"),
    ),
    "variables": (
        {"command": "${HOME}/x", "args": ["${PLAIN}", "${NONE:-d}", "${EMPTY:-e}", "$PLAIN"]},
        Stdio(argv=("/home/me/x", "p", "d", "e", "$PLAIN"), cwd=ROOT),
    ),
    "a secret of the user": (
        {"command": "x", "env": {"TOKEN": "${MY_TOKEN}"}},
        Stdio(argv=("x",), env={"TOKEN": "s3cret"}, cwd=ROOT),
    ),
    "the network, let out": (
        {"command": "x", "needs": ["network"], "sandbox": "off"},
        Stdio(argv=("x",), cwd=ROOT, needs=frozenset({"network"}), contained=False),
    ),
    "an address": ({"url": "https://a.org/mcp"}, Http(url="https://a.org/mcp")),
    "with headers": (
        {
            "type": "http",
            "url": "https://a.org/mcp",
            "headers": {"Authorization": "Bearer ${MY_TOKEN}"},
        },
        Http(url="https://a.org/mcp", headers={"Authorization": "Bearer s3cret"}),
    ),
    "another word for it": (
        {"type": "streamable-http", "url": "http://localhost:1/mcp"},
        Http(url="http://localhost:1/mcp"),
    ),
    "switched on": ({"command": "x", "disabled": False}, Stdio(argv=("x",), cwd=ROOT)),
    "switched off": ({"command": "x", "disabled": True}, "off: x"),
    "switched off by the other key": ({"command": "x", "enabled": False}, "off: x"),
    "switched off by one key of two": (
        {"command": "x", "enabled": True, "disabled": True},
        "off: x",
    ),
    "switched off, and not valid besides": ({"command": "${NONE}", "disabled": True}, "off: "),
}
REFUSED: dict[str, tuple[Any, str]] = {
    "no object": ([], "it is to be an object"),
    "nothing": ({}, 'it needs a "command"'),
    "no text": ({"command": 3}, "'command' is to be text"),
    "an empty command": ({"command": ""}, "'command' is to be text"),
    "NUL": ({"command": "x", "args": ["a\0b"]}, "'args' is to be text"),
    "words in one": ({"command": "x", "args": "-a -b"}, "'args' is to be a list"),
    "a variable that is not set": ({"command": "${NONE}"}, "the variable NONE is not set"),
    "an old transport": ({"type": "sse", "url": "https://a.org"}, "its type is 'sse'"),
    "a broken address": ({"url": "http://[::1"}, "Invalid IPv6 URL"),
    "another scheme": ({"url": "file:///etc/passwd"}, "no address of http"),
    "an address with a password": ({"url": "ftp://me:pw@a.org"}, "'ftp://a.org'"),
    "a header of two lines": (
        {"url": "https://a.org", "headers": {"A": "b\nC: d"}},
        "a header has a line break",
    ),
    "another need": (
        {"command": "x", "needs": ["root"]},
        '"needs" knows "network" and "sockets", not',
    ),
    "another sandbox": ({"command": "x", "sandbox": "maybe"}, '"sandbox" is "auto" or "off"'),
    "a switch that is text": (
        {"command": "x", "disabled": "yes"},
        "\"disabled\" is to be true or false, not 'yes'",
    ),
    "no time": ({"command": "x", "timeoutS": 0}, "a number of seconds"),
    "all of time": ({"command": "x", "startTimeoutS": 1e9}, "a number of seconds"),
    "true": ({"command": "x", "timeoutS": True}, "a number of seconds"),
}


@pytest.mark.parametrize("name", USED)
def test_a_server_is_reached_as_its_entry_says(name: str) -> None:
    entry, way = USED[name]
    assert read(entry) == way


@pytest.mark.parametrize("name", REFUSED)
def test_an_entry_that_cannot_be_used_is_told(name: str) -> None:
    entry, problem = REFUSED[name]
    told = read(entry)
    assert problem in told
    assert told.endswith("the server is left out")


@pytest.mark.parametrize("name", ["", "a__b", "a b", "../x", "ü", "x" * 41])
def test_a_name_must_fit_into_the_names_of_tools(name: str) -> None:
    document = {"mcpServers": {name: {"command": "x"}, "good": {"command": "y"}}}
    defined = read_definitions(document, at=AT, origin="user", root=ROOT, env={})
    assert [one.name for one in defined.servers] == ["good"]
    assert "its name is to be" in defined.problems[0]


def test_a_project_gets_no_secret_and_stays_contained() -> None:
    asking = read({"url": "https://evil.org", "headers": {"X": "${MY_TOKEN}"}}, "project")
    assert "it asks for MY_TOKEN, a secret of yours" in asking
    assert read({"command": "x", "env": {"A": "${PLAIN}"}}, "project").env == {"A": "p"}
    assert read({"command": "x", "sandbox": "off"}, "project").contained


@pytest.mark.parametrize(
    "variable", ["LD_PRELOAD", "BASH_ENV", "PYTHONSTARTUP", "NODE_OPTIONS", "SSH_AUTH_SOCK"]
)
def test_what_makes_programs_load_code_is_left_out(variable: str) -> None:
    value = "./evil.so:http://a:b@c.org"
    document = {"mcpServers": {"s": {"command": "x", "env": {variable: value, "A": "b"}}}}
    defined = read_definitions(document, at=AT, origin="user", root=ROOT, env={})
    way = defined.servers[0].way
    assert isinstance(way, Stdio)
    assert way.env == {"A": "b"}
    assert f"{variable} is left out" in defined.problems[0]


def test_what_nobody_knows_is_told_and_the_rest_is_used() -> None:
    entry = {"command": "x", "alwaysAllow": ["a"], "timeout": 3}
    document = {"mcpServers": {"s": entry}, "inputs": []}
    defined = read_definitions(document, at=AT, origin="user", root=ROOT, env={})
    assert len(defined.servers) == 1
    server = f"{AT}: MCP server 's': "
    assert defined.problems == (
        f'{AT}: "inputs" is no key of mcp.json, so it has no effect',
        f'{server}"alwaysAllow" is no key of a server here, so it has no effect',
        f'{server}"timeout" is no key of a server here, so it has no effect; did you mean "timeoutS"?',
    )


def test_a_way_is_shown_without_its_secrets() -> None:
    document = {
        "mcpServers": {
            "a": {"command": "x", "args": ["y"], "env": {"TOKEN": "s3cret"}, "needs": ["network"]},
            "b": {"url": "https://me:pw@a.org/mcp?key=s3cret"},
        }
    }
    defined = read_definitions(document, at=AT, origin="user", root=ROOT, env={})
    program, address = (shown_way(one) for one in defined.servers)
    assert program == "x y with TOKEN and the network"
    assert address == "https://a.org/mcp?…"
    assert without_password("http://h/#k") == "http://h/"


def write(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = document if isinstance(document, str) else json.dumps({"mcpServers": document})
    path.write_text(text, "utf-8")


async def test_the_nearer_file_wins_and_a_project_counts_when_it_is_trusted(
    tmp_path: Path,
) -> None:
    config, root = tmp_path / "config", tmp_path / "root"
    write(config / "mcp.json", {"mine": {"command": "m"}, "both": {"command": "user"}})
    write(root / ".mcp.json", {"both": {"command": "shared"}, "theirs": {"command": "t"}})
    write(root / ".tiller" / "mcp.json", {"theirs": {"command": "nearest"}})
    trusted = False
    files = ServerFiles(config=config, root=root, env={}, is_trusted=lambda: trusted)
    named = {one.name: shown_way(one) for one in (await files.read()).servers}
    assert named == {"mine": "m", "both": "user"}
    trusted = True
    named = {one.name: shown_way(one) for one in (await files.read()).servers}
    assert named == {"mine": "m", "both": "shared", "theirs": "nearest"}


async def test_a_server_that_the_nearer_file_switches_off_is_off(tmp_path: Path) -> None:
    config, root = tmp_path / "config", tmp_path / "root"
    write(config / "mcp.json", {"a": {"command": "a", "disabled": True}, "b": {"command": "b"}})
    write(root / ".mcp.json", {"a": {"command": "near"}, "b": {"disabled": True}})
    files = ServerFiles(config=config, root=root, env={}, is_trusted=lambda: True)
    defined = await files.read()
    assert [(server.name, shown_way(server)) for server in defined.servers] == [("a", "near")]
    assert [(entry.name, entry.at) for entry in defined.entries] == [
        ("a", root / ".mcp.json"),
        ("b", root / ".mcp.json"),
    ]
    assert defined.problems == ()


def test_servers_that_are_off_do_not_count_towards_the_limit() -> None:
    servers = {f"s{at}": {"command": "x", "disabled": at < 9} for at in range(MOST_SERVERS + 10)}
    defined = read_definitions({"mcpServers": servers}, at=AT, origin="user", root=ROOT, env={})
    assert len(defined.servers) == MOST_SERVERS
    assert len(defined.entries) == MOST_SERVERS + 9
    assert defined.problems == (f"{AT}: only the first {MOST_SERVERS} servers are used",)


async def test_a_file_that_is_not_what_was_trusted_is_not_used(tmp_path: Path) -> None:
    write(tmp_path / ".mcp.json", {"x": {"command": "x"}})
    files = ServerFiles(
        config=tmp_path / "none",
        root=tmp_path,
        env={},
        is_trusted=lambda: True,
        expected=lambda _: "0" * 64,
    )
    defined = await files.read()
    assert defined.servers == ()
    assert "is not what was trusted any more" in defined.problems[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", ":1:2 is not valid JSON"),
        ("[]", "no MCP server of it is used"),
        ('{"mcpServers": []}', "is to be an object of servers"),
        ("\udcff", "cannot be read"),
        (" " * (1024 * 1024 + 1), "has more than"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
async def test_a_broken_file_is_a_problem_and_no_more(
    tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "mcp.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    files = ServerFiles(config=tmp_path, root=tmp_path, env={}, is_trusted=lambda: False)
    defined = await files.read()
    assert defined.servers == ()
    assert problem in defined.problems[0]


async def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    import os  # noqa: PLC0415 - only here

    os.mkfifo(tmp_path / "mcp.json")
    files = ServerFiles(config=tmp_path, root=tmp_path, env={}, is_trusted=lambda: False)
    assert "no regular file" in (await files.read()).problems[0]


def declared(name: str, **more: Any) -> Declared:
    return Declared(name=name, description="", parameters={"type": "object"}, **more)


def test_names_fit_everywhere_and_are_never_the_same() -> None:
    taken: list[str] = []
    pairs = [("a", "b"), ("a", "b c"), ("a", "b_c"), ("a.x", "y"), ("a_x", "y"), ("s", "t" * 99)]
    for server, tool in pairs:
        taken.append(tool_name(server, tool, taken=taken))
    assert taken[0] == "mcp__a__b"
    assert taken[1] == "mcp__a__b_c"
    assert len(set(taken)) == len(taken)
    assert all(len(name) <= 64 for name in taken)


@pytest.mark.parametrize(
    ("marks", "reads"),
    [
        (None, False),
        ({}, False),
        ({"readOnlyHint": True}, True),
        ({"readOnlyHint": "true"}, False),
        ({"readOnlyHint": True, "openWorldHint": False}, True),
        ({"readOnlyHint": True, "openWorldHint": True}, False),
    ],
)
def test_only_a_plain_mark_makes_a_tool_read_only(marks: Any, reads: bool) -> None:
    assert declared("x", annotations=marks).is_read_only is reads


def test_no_more_is_believed_than_a_person_can_look_through() -> None:
    large = [
        Declared(name=f"t{number}", description="x" * 60_000, parameters={"type": "object"})
        for number in range(20)
    ]
    found = believed(large)
    assert len(found.tools) == 8
    assert found.problems == ("only its first 8 tools are used; it has too many",)


def test_a_hash_is_of_all_that_is_said() -> None:
    tools = [
        declared("x"),
        declared("x", title="X"),
        declared("x", annotations={"readOnlyHint": True}),
        declared("x", output={"type": "object"}),
        Declared(name="x", description="d", parameters={"type": "object"}),
        Declared(name="x", description="", parameters={"type": "object", "required": []}),
    ]
    assert len({one.hash for one in tools}) == len(tools)
    first = Declared(name="x", description="", parameters={"a": 1, "type": "object"})
    second = Declared(name="x", description="", parameters={"type": "object", "a": 1})
    assert first.hash == second.hash
    assert believed([declared("lone \ud800")]).tools == ()
