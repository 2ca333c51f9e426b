"""`tiller sessions` shows what is stored, to people and to programs, and does nothing to a terminal."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.kernel import EntryId, SystemClock
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript import AnyEntry, BranchSummaryEntry, LabelEntry, SessionNameEntry
from tests.support.session.entries import (
    AT_MS,
    assistant,
    call,
    chain,
    compaction,
    entry,
    header,
    result,
    user,
)
from tiller_server.cli.environment import Environment
from tiller_server.cli.subcommands import sessions
from tiller_server.cli.terminal.text import clipped, one_line, padded, safe, short_ids

Capture = pytest.CaptureFixture[str]


def run(tmp_path: Path, *arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="tiller")
    sessions.add_arguments(parser.add_subparsers().add_parser("sessions"))
    options = parser.parse_args(["sessions", *arguments])
    variables = {"TILLER_DATA_DIR": str(tmp_path / "d"), "TILLER_CONFIG_DIR": str(tmp_path / "c")}
    return sessions.main(options, Environment(variables))


def keep(
    tmp_path: Path, session: str, entries: Sequence[AnyEntry], *, cwd: str | None = None
) -> None:
    async def write() -> None:
        store = JsonlStore(tmp_path / "d" / "sessions", SystemClock())
        log = await store.create(header(session, cwd=str(tmp_path) if cwd is None else cwd))
        await log.append(entries)
        await log.close()

    anyio.run(write)


def lines(capture: Capture) -> list[str]:
    return capture.readouterr().out.splitlines()


def named(entry_id: str, name: str, *, parent: str) -> SessionNameEntry:
    return SessionNameEntry(id=EntryId(entry_id), parent=EntryId(parent), at_ms=AT_MS, name=name)


def branched() -> list[AnyEntry]:
    """Two answers to the first question, the second one after a summary of the first."""
    return [
        *chain(
            user("first"),
            assistant("one", call("bash", {"command": "ls -l"})),
            result("no", is_error=True),
        ),
        entry("e4", user("left"), parent="e3"),
        BranchSummaryEntry(
            id=EntryId("b"), parent=EntryId("e3"), at_ms=AT_MS, from_id="e4", summary="was left"
        ),
        entry("e5", user("right"), parent="b"),
        LabelEntry(
            id=EntryId("l"),
            parent=EntryId("e5"),
            at_ms=AT_MS,
            target=EntryId("e4"),
            label="old way",
        ),
        compaction("c", parent="l", first_kept="e5", summary="all of it"),
    ]


def test_the_sessions_of_this_folder_are_listed(tmp_path: Path, capsys: Capture) -> None:
    keep(tmp_path, "mine", [*chain(user("hello\nthere")), named("n", "A title", parent="e1")])
    keep(tmp_path, "other", chain(user("elsewhere")), cwd="/w/x")
    assert run(tmp_path, "--workspace", str(tmp_path)) == 0
    (line,) = lines(capsys)
    assert line.startswith("  1  mine  20")
    assert line.endswith("   1 messages  no model                  A title")
    assert run(tmp_path, "list", "--all") == 0
    assert [line.split()[0] for line in lines(capsys)] == ["other", "mine"]


def test_the_number_of_the_list_names_a_session(tmp_path: Path, capsys: Capture) -> None:
    keep(tmp_path, "first", chain(user("hello")))
    here = ("--workspace", str(tmp_path))
    assert run(tmp_path, *here, "show", "1") == 0
    assert "> hello" in lines(capsys)
    assert run(tmp_path, *here, "show", "2") == 2
    assert (
        f"there is no session 2 in {tmp_path}; see tiller sessions list" in capsys.readouterr().err
    )


def test_programs_get_json_and_the_place_where_the_list_goes_on(
    tmp_path: Path, capsys: Capture
) -> None:
    for number in range(3):
        keep(tmp_path, f"s{number}", chain(user("hi"), assistant("yes")))
    assert run(tmp_path, "--json", "list", "--all", "--limit", "2") == 0
    shown = json.loads(capsys.readouterr().out)
    assert [one["session"] for one in shown["sessions"]] == ["s2", "s1"]
    assert shown["next"]
    first: dict[str, Any] = shown["sessions"][0]
    assert first | {"file": ""} == {
        "session": "s2",
        "title": None,
        "workspace": str(tmp_path),
        "created": "2026-01-01T00:00:00.000Z",
        "modified": "2026-01-01T00:00:00.000Z",
        "messages": 2,
        "model": "lab/m",
        "parent": None,
        "preview": "hi",
        "file": "",
    }


def test_nothing_found_is_said_beside_the_output(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "list", "--workspace", "/w/none") == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "there are no sessions in /w/none; --all looks in all folders\n"
    assert run(tmp_path, "search", "--all", "word") == 0
    assert capsys.readouterr().err == "no session holds all of that\n"


def test_a_search_marks_the_words(tmp_path: Path, capsys: Capture) -> None:
    keep(tmp_path, "s1", chain(user("please"), assistant("修复会话索引的错误")))
    assert run(tmp_path, "search", "--all", "索引") == 0
    assert lines(capsys)[1] == "    修复会话[索引]的错误"
    assert run(tmp_path, "search", "--all", "--json", "索引") == 0
    (hit,) = json.loads(capsys.readouterr().out)["hits"]
    assert (hit["session"], hit["entry"], hit["marks"]) == ("s1", "e2", [[4, 6]])


def test_a_conversation_is_shown_with_a_line_for_each_tool(tmp_path: Path, capsys: Capture) -> None:
    keep(tmp_path, "s1", branched())
    assert run(tmp_path, "show", "s") == 0
    title, facts, *shown = lines(capsys)
    assert title == "first"
    assert facts.startswith(f"s1 · lab/m · {tmp_path} · 20")
    assert shown == [
        "",
        "> first",
        "",
        "one",
        "▸ bash ls -l",
        "✗ read: no",
        "",
        "— summary of another branch —",
        "was left",
        "",
        "> right",
        "",
        "— summary of the earlier conversation —",
        "all of it",
    ]


def test_show_as_json_gives_the_lines_of_the_present_branch(
    tmp_path: Path, capsys: Capture
) -> None:
    keep(tmp_path, "s1", branched())
    assert run(tmp_path, "show", "s1", "--json") == 0
    ids = [json.loads(line)["id"] for line in lines(capsys)]
    assert ids == ["s1", "e1", "e2", "e3", "b", "e5", "l", "c"]


def test_a_tree_shows_branches_labels_and_where_it_goes_on(tmp_path: Path, capsys: Capture) -> None:
    keep(tmp_path, "s1", [*branched(), named("n", "Two ways", parent="c")])
    assert run(tmp_path, "tree", "s1") == 0
    assert lines(capsys) == [
        "Two ways",
        "e1 > first",
        "e2 one ▸ bash ls -l",
        "├─e4 > left [old way]",
        "└─b — a branch that was left, summed up: was left",
        "  e5 > right",
        "  c — the past, summed up: all of it ← here",
    ]
    assert run(tmp_path, "tree", "s1", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["leaf"] == "c"
    assert [(one["entry"], one["parent"], one["label"]) for one in shown["nodes"]][2:4] == [
        ("e4", "e2", "old way"),
        ("b", "e2", None),
    ]


def test_what_was_said_does_nothing_to_a_terminal(tmp_path: Path, capsys: Capture) -> None:
    evil = "\x1b]0;owned\x07 \x9b31m \u202eback"
    entries = [
        *chain(user(evil), assistant(evil, call("bash", {"command": evil}))),
        named("n", evil, parent="e2"),
    ]
    keep(tmp_path, "s1", entries, cwd=f"/w/{evil}")
    for verb in (["list", "--all"], ["show", "s1"], ["tree", "s1"], ["search", "--all", "owned"]):
        assert run(tmp_path, *verb) == 0
    said = capsys.readouterr().out
    assert "owned" in said
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(said)


def test_a_long_chain_and_many_branches_are_drawn(tmp_path: Path, capsys: Capture) -> None:
    deep = chain(*[user(f"m{number}") for number in range(3_000)])
    forks = [entry(f"f{number}", user("fork"), parent=f"e{number}") for number in range(1, 200)]
    keep(tmp_path, "s1", [*deep, *forks])
    assert run(tmp_path, "tree", "s1") == 0
    shown = lines(capsys)
    assert len(shown) == 1 + 3_000 + 199
    assert max(map(len, shown)) < 100


@pytest.mark.parametrize("form", ["jsonl", "md", "html"])
def test_an_export_goes_to_a_new_file_and_never_over_another(
    tmp_path: Path, capsys: Capture, form: str
) -> None:
    keep(tmp_path, "s1", branched())
    path = tmp_path / "out"
    assert run(tmp_path, "export", "s1", "--format", form, "--output", str(path)) == 0
    assert capsys.readouterr().out == f"s1 is in {path}\n"
    assert b"first" in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert run(tmp_path, "export", "s1", "--output", str(path)) == 2
    assert f"tiller sessions: '{path}' is there already" in capsys.readouterr().err


def test_an_import_is_a_new_session_of_this_folder(tmp_path: Path, capsys: Capture) -> None:
    keep(tmp_path, "s1", branched(), cwd="/w/x")
    path = tmp_path / "out.jsonl"
    assert run(tmp_path, "export", "s1", "--format", "jsonl", "--output", str(path)) == 0
    capsys.readouterr()
    assert run(tmp_path, "import", str(path), "--workspace", str(tmp_path)) == 0
    taken, advice = lines(capsys)
    assert taken.endswith(f"holds 8 entries of {path}")
    assert advice.startswith("go on with it: tiller run --session ")
    assert run(tmp_path, "list", "--workspace", str(tmp_path), "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["sessions"]
    assert (found["parent"], found["preview"]) == (str(path), "first")


def test_rm_removes_all_or_none_and_needs_an_answer(tmp_path: Path, capsys: Capture) -> None:
    for name in ("a1", "a2", "b1"):
        keep(tmp_path, name, chain(user("hi")))
        (tmp_path / "d" / "outputs" / name).mkdir(parents=True)
    assert run(tmp_path, "rm", "a1", "nope", "--yes") == 2
    assert run(tmp_path, "rm", "a1") == 2
    assert "add --yes" in capsys.readouterr().err
    assert run(tmp_path, "rm", "a1", "b", "--yes") == 0
    assert lines(capsys) == ["a1 was removed", "b1 was removed"]
    assert run(tmp_path, "list", "--all") == 0
    assert [line.split()[0] for line in lines(capsys)] == ["a2"]
    assert [one.name for one in (tmp_path / "d" / "outputs").iterdir()] == ["a2"]


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["show", "zzz"], 2, "no session's id begins or ends with 'zzz'"),
        (["tree", "s"], 2, "the ids of 2 sessions begin or end with 's': s2, s1; write more of it"),
        (["list", "--limit", "0"], 2, "--limit is 0"),
        (["import", "/w/none.jsonl"], 1, "'/w/none.jsonl' could not be read"),
        (["export", "s1", "--output", "/w/none/x"], 1, "'/w/none/x' could not be written"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    tmp_path: Path, capsys: Capture, arguments: list[str], code: int, why: str
) -> None:
    for name in ("s1", "s2"):
        keep(tmp_path, name, chain(user("hi")))
    assert run(tmp_path, *arguments) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tiller sessions: ")
    assert why in line


@pytest.mark.parametrize("verb", ["show", "tree", "export", "rm"])
@pytest.mark.parametrize("name", ["s1", "s"])
def test_a_session_that_cannot_be_read_is_told_from_a_missing_one(
    tmp_path: Path, capsys: Capture, verb: str, name: str
) -> None:
    keep(tmp_path, "s1", chain(user("hi")))
    (file,) = tmp_path.glob("d/sessions/*/*_s1.jsonl")
    file.write_text("overwritten", encoding="utf-8")
    assert run(tmp_path, verb, name) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"tiller sessions: {str(file)!r} has the name of a session")
    assert "restore it from a copy or remove it" in line
    assert file.read_text(encoding="utf-8") == "overwritten"
    file.unlink()
    file.mkdir()
    assert run(tmp_path, verb, name) == 1
    assert "is a folder: move it away" in capsys.readouterr().err


def test_errors_for_programs_are_objects(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "show", "zzz", "--json") == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "SessionNotFound"


def test_an_index_without_a_place_is_told_and_does_not_hinder(
    tmp_path: Path, capsys: Capture
) -> None:
    keep(tmp_path, "s1", chain(user("hi")))
    (tmp_path / "d" / "index.sqlite3").mkdir()
    assert run(tmp_path, "list", "--all") == 0
    said = capsys.readouterr()
    assert said.out.startswith("s1 ")
    assert "searched without it" in said.err


def test_ids_are_shortened_as_far_as_they_stay_different() -> None:
    ids = ["01a1fdc4-9c7f28", "01a1fdc4-8c7f28", "01a1fdc4-6af3bb", "short", "a short"]
    assert short_ids(ids) == {
        "01a1fdc4-9c7f28": "9c7f28",
        "01a1fdc4-8c7f28": "8c7f28",
        "01a1fdc4-6af3bb": "6af3bb",
        "short": "short",
        "a short": " short",
    }
    assert short_ids(["1-aaaaaaa", "2-aaaaaaa"]) == {
        "1-aaaaaaa": "1-aaaaaaa",
        "2-aaaaaaa": "2-aaaaaaa",
    }
    assert short_ids(["only"]) == {"only": "only"}


def test_wide_characters_take_two_cells() -> None:
    assert clipped("会话索引", 5) == "会…"
    assert clipped("会话索引", 8) == "会话索引"
    assert padded("会", 4) == "会  "
    assert one_line("a\r\nb\x1b\tc") == "a b<U+001B> c"
    assert safe("a\r\nb\r") == "a\nb<U+000D>"
