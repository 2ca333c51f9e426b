"""Writing standing answers: nothing else in the file changes, and no two writers lose one another's."""

import json
import os
import stat
import threading

import pytest

from agent_core.kernel import private_file
from agent_core.kernel.errors import ConfigError
from agent_core.workspace.permissions.policy import Rule, load_rules, named, remove_rule, save_rule
from tests.support.harness.sizes import at_size
from tests.workspace.permissions.policy.world import World, command_rule, file_rule


def test_a_rule_is_saved_and_read_again_as_it_was(world: World) -> None:
    path = world.base / "new" / "deep" / "policy.json"
    saved = [
        world.allow("npm", "test", host="*"),
        file_rule("deny", "read", "/etc/**"),
        named(Rule(id="", tool="m", verdict="ask", scope="user", mcp="s/t", host="a.org", match=("s/t",), not_match=("x/y",))),
    ]  # fmt: skip
    for rule in saved:
        save_rule(path, rule)
    found = load_rules(path, origin="user", roots=(world.root,), env_path="")
    assert found.rules == tuple(saved)
    assert found.problems == ()
    assert json.loads(path.read_text("utf-8"))["version"] == 1
    assert path.read_text("utf-8").endswith("}\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(one.name for one in path.parent.iterdir()) == ["policy.json", "policy.json.lock"]


def test_what_else_is_in_the_file_stays(world: World) -> None:
    path = world.base / "policy.json"
    rule = command_rule("deny", "rm")
    mine = [{"id": "mine", "odd": 1}, 7]
    before = {
        "$schema": "x", "version": 1, "later": [1],
        "rules": [*mine, {"id": rule.id, "note": "kept", "verdict": "allow"}],
    }  # fmt: skip
    path.write_text(json.dumps(before), "utf-8")
    save_rule(path, rule)
    after = json.loads(path.read_text("utf-8"))
    assert after["rules"][:2] == mine
    assert after["rules"][2] == {
        "id": rule.id, "note": "kept", "verdict": "deny", "tool": "bash", "argvPrefix": ["rm"], "match": [], "notMatch": [],
    }  # fmt: skip
    assert list(after) == ["version", "$schema", "later", "rules"]
    assert remove_rule(path, rule.id)
    assert json.loads(path.read_text("utf-8"))["rules"] == mine
    content = path.read_bytes()
    inode = path.stat().st_ino
    assert not remove_rule(path, rule.id)
    assert (path.read_bytes(), path.stat().st_ino) == (content, inode)


def test_to_forget_where_nothing_is_kept_makes_nothing(world: World) -> None:
    path = world.base / "new" / "policy.json"
    assert not remove_rule(path, "x")
    assert not path.parent.exists()


def test_a_link_stays_a_link(world: World) -> None:
    real, link = world.base / "real.json", world.base / "policy.json"
    link.symlink_to(real)
    save_rule(link, command_rule("deny", "rm"))
    assert link.is_symlink()
    assert "argvPrefix" in real.read_text("utf-8")


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"rules": 1}', '{"version": 2}', '{"rules": [], "rules": []}']
)
def test_a_broken_file_is_not_touched(world: World, content: str) -> None:
    path = world.base / "policy.json"
    path.write_text(content, "utf-8")
    for change in (
        lambda: save_rule(path, command_rule("deny", "rm")),
        lambda: remove_rule(path, "x"),
    ):
        with pytest.raises(ConfigError, match="repair it first: nothing was changed") as caught:
            change()
        assert str(path) in str(caught.value)
        assert caught.value.path == path
    assert path.read_text("utf-8") == content


def test_what_cannot_be_written_is_told_and_leaves_nothing_behind(world: World) -> None:
    path = world.bin / "ls" / "policy.json"
    with pytest.raises(ConfigError, match="cannot be changed") as caught:
        save_rule(path, command_rule("deny", "rm"))
    assert caught.value.path == path
    assert "nothing was changed" in str(caught.value)


def test_a_write_that_fails_leaves_the_file_as_it_was(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world.base / "policy.json"
    save_rule(path, command_rule("deny", "rm"))
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left on device"):
        save_rule(path, command_rule("deny", "ls"))
    assert path.read_bytes() == before
    assert not [one for one in world.base.iterdir() if one.name.startswith(".policy")]


def test_a_lock_that_nobody_lets_go_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_file, "LOCK_WAIT_S", 0.0)
    path = world.base / "policy.json"
    with (
        private_file.locked(path),
        pytest.raises(ConfigError, match="another process holds its lock"),
    ):
        save_rule(path, command_rule("deny", "rm"))
    save_rule(path, command_rule("deny", "rm"))


def test_writers_at_the_same_time_lose_nothing(world: World) -> None:
    path = world.base / "policy.json"
    each = at_size(ci=2, campaign=25)
    failed: list[BaseException] = []

    def write(writer: int) -> None:
        try:
            for number in range(each):
                save_rule(path, command_rule("deny", f"w{writer}-{number}"))
                save_rule(path, command_rule("ask", f"w{writer}-{number}"))
                remove_rule(path, command_rule("ask", f"w{writer}-{number}").id)
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=write, args=(one,)) for one in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    entries = json.loads(path.read_text("utf-8"))["rules"]
    names = {entry["argvPrefix"][0] for entry in entries}
    assert names == {f"w{writer}-{number}" for writer in range(6) for number in range(each)}
    assert len(entries) == 6 * each
