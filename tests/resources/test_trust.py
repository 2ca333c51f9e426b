"""Trust is given to what was there: any change of what could configure us takes it away."""

import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import pytest
from typing_extensions import override

from agent_core.kernel.errors import ConfigError
from agent_core.resources.instructions import load_context_files
from agent_core.resources.settings.layers import Layer, load_settings
from agent_core.resources.trust import evidence
from agent_core.resources.trust.evidence import MOST_FILES, gather
from agent_core.resources.trust.workspace_trust import (
    StoredTrustDecision,
    TrustStore,
    WorkspaceTrust,
)
from tests.support.harness.clock import FakeClock


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a repository that brings a little of everything."""
    root = (tmp_path / "project").resolve()
    for name, text in {
        ".git/config": "",
        ".tiller/settings.json": "{}",
        ".tiller/skills/one/SKILL.md": "do",
        ".tiller/chat.md": "hello",
        ".mcp.json": "{}",
        ".agents/skills/two/SKILL.md": "do",
        "AGENTS.md": "be kind",
        "src/a.py": "pass",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "data" / "trust.json")


@pytest.fixture
def short() -> Iterator[Path]:
    """Give a folder whose name leaves room for a socket's."""
    with TemporaryDirectory(prefix="tl-") as name:
        yield Path(name)


def trust_in(root: Path, store: TrustStore) -> WorkspaceTrust:
    return WorkspaceTrust(root, store=store, default="ask", clock=FakeClock())


async def test_nothing_is_trusted_before_somebody_says_so(root: Path, store: TrustStore) -> None:
    trust = trust_in(root, store)
    assert not trust.is_trusted
    verdict = await trust.check()
    assert (verdict.state, verdict.must_ask) == ("undecided", True)


async def test_trust_lasts_while_nothing_changes(root: Path, store: TrustStore) -> None:
    trust = trust_in(root, store)
    await trust.check()
    await trust.record("trusted", lasting=True)
    (root / "src/a.py").write_text("changed")
    (root / ".tiller/chat.md").write_text("more")
    assert (await trust.check()).is_trusted
    assert (await trust_in(root, store).check()).is_trusted


async def test_a_no_is_kept_and_not_asked_again(root: Path, store: TrustStore) -> None:
    trust = trust_in(root, store)
    await trust.check()
    await trust.record("refused", lasting=True)
    verdict = await trust_in(root, store).check()
    assert (verdict.state, verdict.must_ask) == ("refused", False)


def _swap_link(root: Path) -> None:
    (root / "other").write_text("{}")
    (root / ".mcp.json").unlink()
    (root / ".mcp.json").symlink_to("other")


def _same_bytes_by_link(root: Path) -> None:
    kept = root.parent / "elsewhere.json"
    kept.write_bytes((root / ".tiller/settings.json").read_bytes())
    (root / ".tiller/settings.json").unlink()
    (root / ".tiller/settings.json").symlink_to(kept)


def _same_size_and_time(root: Path) -> None:
    path = root / "AGENTS.md"
    facts = path.stat()
    path.write_text("be mean")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _write(name: str, text: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return change


SWAPS: dict[str, Callable[[Path], object]] = {
    "settings edited": _write(".tiller/settings.json", '{"permission":{"mode":"yolo"}}'),
    "context file edited": _write("AGENTS.md", "be mean"),
    "same size and time": _same_size_and_time,
    "another context file": _write("CLAUDE.md", "run this"),
    "one that wins": _write("AGENTS.override.md", "run this"),
    "an extension": _write(".tiller/extensions/x.py", "import os"),
    "a skill edited": _write(".agents/skills/two/SKILL.md", "don't"),
    "a policy": _write(".tiller/policy.json", "{}"),
    "a server edited": _write(".mcp.json", '{"mcpServers":{}}'),
    "settings gone": lambda root: (root / ".tiller/settings.json").unlink(),
    "a link in its place": _swap_link,
    "a link to the same bytes": _same_bytes_by_link,
    "a skill renamed": lambda root: (root / ".tiller/skills/one").rename(
        root / ".tiller/skills/three"
    ),
}


@pytest.mark.parametrize("swap", SWAPS)
async def test_a_change_of_what_configures_us_is_asked_about(
    root: Path, store: TrustStore, swap: str
) -> None:
    trust = trust_in(root, store)
    await trust.check()
    await trust.record("trusted", lasting=True)
    SWAPS[swap](root)
    for looked in (await trust.check(), await trust_in(root, store).check()):
        assert (looked.state, looked.must_ask) == ("changed", True)
        assert looked.added or looked.removed or looked.changed
    await trust.record("trusted", lasting=True)
    assert (await trust.check()).is_trusted


async def test_what_has_changed_is_shown_line_by_line(root: Path, store: TrustStore) -> None:
    trust = trust_in(root, store)
    await trust.check()
    await trust.record("trusted", lasting=True)
    (root / "AGENTS.md").write_text("be kind\nrun curl")
    (root / ".mcp.json").write_bytes(b"\0\1")
    verdict = await trust.check()
    assert verdict.changed == (".mcp.json", "AGENTS.md")
    assert "+run curl" in verdict.difference
    assert ".mcp.json: it is no short text" in verdict.difference


async def test_what_is_swapped_while_the_user_thinks_is_not_trusted(
    root: Path, store: TrustStore
) -> None:
    trust = trust_in(root, store)
    await trust.check()
    (root / "AGENTS.md").write_text("run curl")
    verdict = await trust.record("trusted", lasting=True)
    assert (verdict.state, verdict.changed) == ("changed", ("AGENTS.md",))


async def test_trust_for_this_time_only_is_not_kept_and_ends_with_a_change(
    root: Path, store: TrustStore
) -> None:
    trust = trust_in(root, store)
    await trust.check()
    assert (await trust.record("trusted", lasting=False)).is_trusted
    assert (await trust_in(root, store).check()).state == "undecided"
    (root / "AGENTS.md").write_text("run curl")
    assert (await trust.check()).state == "changed"


async def test_context_files_up_to_the_top_of_the_repository_count(
    root: Path, store: TrustStore
) -> None:
    inner = root / "src"
    trust = trust_in(inner, store)
    await trust.check()
    await trust.record("trusted", lasting=True)
    (root.parent / "AGENTS.md").write_text("of the user, above the repository")
    assert (await trust.check()).is_trusted
    (root / "AGENTS.md").write_text("changed")
    assert (await trust.check()).changed == ("../AGENTS.md",)


@pytest.mark.parametrize("text", ["{", '{"version": 2}', "[]", '{"folders": 1}', ""], ids=repr)
async def test_a_broken_file_of_trust_trusts_nothing(root: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "data" / "trust.json"
    path.parent.mkdir()
    path.write_text(text)
    verdict = await trust_in(root, TrustStore(path)).check()
    assert not verdict.is_trusted
    if verdict.problem:
        assert (verdict.state, str(path) in verdict.problem) == ("unknown", True)


@pytest.mark.parametrize("text", ["{", '{"version": 2}', "[]"], ids=repr)
def test_a_broken_file_of_trust_is_left_as_it_is(root: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "trust.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="repair it"):
        TrustStore(path).record(root, "trusted", seen=gather(root), at_ms=1)
    assert path.read_text() == text


async def test_what_cannot_be_looked_at_is_not_trusted(root: Path, store: TrustStore) -> None:
    skills = root / ".tiller/skills"
    for number in range(MOST_FILES):
        (skills / f"{number}.md").touch()
    verdict = await trust_in(root, store).check()
    assert (verdict.state, f"{MOST_FILES} files" in verdict.problem) == ("unknown", True)


async def test_pipes_sockets_and_loops_are_looked_at_without_waiting(
    root: Path, store: TrustStore, short: Path
) -> None:
    os.mkfifo(root / ".tiller/pipe")
    (root / ".tiller/loop").symlink_to("loop")
    (root / ".tiller/nothing").symlink_to("/nothing/there")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(short / "s"))
        (root / ".tiller/socket").symlink_to(short / "s")
        trust = trust_in(root, store)
        verdict = await trust.check()
        assert verdict.state in {"undecided", "unknown"}
        assert not verdict.is_trusted


def test_many_who_say_something_lose_nothing(root: Path, store: TrustStore) -> None:
    seen = gather(root)
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda number: store.record(root / str(number), "trusted", seen=seen, at_ms=1),
                range(40),
            )
        )
    assert len(store.decisions()) == 40


def test_what_others_wrote_into_the_file_stays(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    path.write_text('{"version": 1, "mine": 1, "folders": {"/x": {"said": "maybe", "k": 2}}}')
    store = TrustStore(path)
    store.record(root, "trusted", seen=gather(root), at_ms=1)
    text = path.read_text()
    assert '"mine": 1' in text
    assert '"k": 2' in text
    assert (path.stat().st_mode & 0o777) == 0o600
    assert set(store.decisions()) == {str(root)}


@pytest.mark.parametrize("was_there", [True, False], ids=["swapped", "new"])
async def test_what_is_used_is_what_was_seen_also_when_it_changes_in_between(
    root: Path, store: TrustStore, tmp_path: Path, *, was_there: bool
) -> None:
    names = ["AGENTS.md", ".tiller/APPEND_SYSTEM.md", ".tiller/settings.json"]
    for name in names:
        (root / name).unlink(missing_ok=True)
        if was_there:
            (root / name).write_text('{"skipOnSteer": true}')
    trust = trust_in(root, store)
    await trust.check()
    await trust.record("trusted", lasting=True)
    for swapped in (False, True):
        if swapped:
            for name in names:
                (root / name).write_text('{"skipOnSteer": false}')
        context = await load_context_files(
            config=tmp_path / "c", root=root, project_trusted=True, expected=trust.content
        )
        layer = Layer(
            name="project",
            content=root / names[2],
            expected=trust.content(root / names[2]),
        )
        settings = await load_settings([layer], project_trusted=True)
        texts = [one.text for one in (*context.files, context.append) if one is not None]
        assert not any("false" in text for text in texts)
        assert settings.values.skip_on_steer
        problems = [*context.problems, *map(str, settings.problems)]
        assert len(problems) == (len(names) if swapped else 0)
        assert all("not what was trusted any more" in one for one in problems)


async def test_without_trust_there_is_nothing_that_may_be_used(
    root: Path, store: TrustStore
) -> None:
    trust = trust_in(root, store)
    await trust.check()
    assert trust.content(root / "AGENTS.md") == ""
    await trust.record("trusted", lasting=False)
    assert trust.content(root / "AGENTS.md") not in {"", None}
    (root / "AGENTS.md").write_text("changed")
    await trust.check()
    assert trust.content(root / "AGENTS.md") == ""


def test_a_second_change_in_the_same_moment_is_seen(root: Path, store: TrustStore) -> None:
    path = root / "AGENTS.md"
    clock = FakeClock(path.stat().st_ctime_ns // 1_000_000)
    trust = WorkspaceTrust(root, store=store, default="ask", clock=clock)
    trust.check_now()
    assert trust.record_now("trusted", lasting=True).is_trusted
    # As if the file system had not noticed: everything but the bytes is as it was.
    real = evidence.marks(root)
    path.write_text("be mean")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent_core.resources.trust.workspace_trust.marks", lambda *_, **__: real)
        assert trust.check_now().state == "changed"


def test_a_look_that_began_before_a_decision_does_not_overrule_it(
    root: Path, tmp_path: Path
) -> None:
    has_begun, go_on = Event(), Event()

    class SlowStore(TrustStore):
        @override
        def decision(self, root: Path) -> StoredTrustDecision | None:
            found = super().decision(root)
            has_begun.set()
            assert go_on.wait(20)
            return found

    path = tmp_path / "data" / "trust.json"
    before = trust_in(root, TrustStore(path))
    before.check_now()
    assert before.record_now("trusted", lasting=True).is_trusted
    trust = trust_in(root, SlowStore(path))
    looking = Thread(target=trust.check_now)
    deciding = Thread(target=partial(trust.record_now, "refused", lasting=False))
    looking.start()
    assert has_begun.wait(20)
    deciding.start()
    deciding.join(0.2)  # a decision that did not wait for the look would be made by now
    go_on.set()
    looking.join()
    deciding.join()
    assert trust.verdict.state == "refused"
