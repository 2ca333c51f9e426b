"""Instructions above a workspace's repository count only where their folder is trusted by itself, as they were seen."""

from pathlib import Path

import anyio.to_thread
import pytest

from agent_core.resources.instructions import load_context_files
from agent_core.resources.trust.workspace_trust import (
    DefaultTrust,
    TrustChoice,
    TrustStore,
    WorkspaceTrust,
)
from tests.support.harness.clock import FakeClock


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "data" / "trust.json")


def trust_in(root: Path, store: TrustStore, default: DefaultTrust = "ask") -> WorkspaceTrust:
    return WorkspaceTrust(root, store=store, default=default, clock=FakeClock())


ABOVE: dict[str, dict[str, str]] = {
    "an unpacked archive": {},
    "a submodule": {"../.git/config": "", ".git": "gitdir: ../.git/modules/inner\n"},
    "a nested repository": {"../.git/config": "", ".git/config": ""},
    "a worktree": {"../.git/worktrees/inner/HEAD": "", ".git": "gitdir: ../.git/worktrees/inner\n"},
}


@pytest.fixture(params=ABOVE)
def inner(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a workspace whose parent is another project, or none, and holds instructions."""
    inner = (tmp_path / "outer" / "inner").resolve()
    layout = {"../AGENTS.md": "obey", "src/a.py": "pass", **ABOVE[request.param]}
    for name, text in layout.items():
        path = inner / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return inner


async def in_force(trust: WorkspaceTrust) -> list[str]:
    """Return the instructions that a run would have now, below the test's own folder."""
    base = trust.root.parent.parent
    verdict = await trust.check()
    files = await load_context_files(
        config=base / "config",
        root=trust.root,
        project_trusted=verdict.is_trusted,
        above=trust.above,
        expected=trust.content,
    )
    return [file.text for file in files.files if file.path.is_relative_to(base)]


async def say(root: Path, store: TrustStore, said: TrustChoice = "trusted") -> None:
    trust = trust_in(root, store)
    await trust.check()
    await trust.record(said, lasting=True)


@pytest.mark.parametrize("default", ["never", "ask", "always"])
async def test_a_file_above_does_not_count_whatever_is_said_of_the_workspace(
    inner: Path, store: TrustStore, default: DefaultTrust
) -> None:
    assert await in_force(trust_in(inner, store, default)) == []
    await say(inner, store)
    trust = trust_in(inner, store, default)
    assert await in_force(trust) == []
    assert trust.verdict.is_trusted
    await say(inner.parent, store, "refused")
    assert await in_force(trust) == []


@pytest.mark.parametrize(
    ("default", "counts"), [("never", False), ("ask", False), ("always", True)]
)
async def test_a_trusted_folder_above_counts_only_with_trust_in_the_workspace(
    inner: Path, store: TrustStore, default: DefaultTrust, *, counts: bool
) -> None:
    await say(inner.parent, store)
    assert await in_force(trust_in(inner, store, default)) == (["obey"] if counts else [])
    await say(inner, store, "refused")
    assert await in_force(trust_in(inner, store, default)) == (["obey"] if counts else [])
    await say(inner, store)
    assert await in_force(trust_in(inner, store, default)) == ["obey"]


async def test_the_question_names_every_file_that_would_count(
    inner: Path, store: TrustStore
) -> None:
    (inner / "AGENTS.md").write_text("here")
    (inner / ".mcp.json").write_text("{}")
    verdict = await trust_in(inner, store).check()
    assert (verdict.instructions, verdict.others) == (("AGENTS.md",), (".mcp.json",))
    await say(inner.parent, store)
    verdict = await trust_in(inner, store).check()
    assert verdict.instructions == ("../AGENTS.md", "AGENTS.md")


async def test_a_change_above_is_asked_about_with_the_difference(
    inner: Path, store: TrustStore
) -> None:
    await say(inner.parent, store)
    await say(inner, store)
    trust = trust_in(inner, store)
    assert await in_force(trust) == ["obey"]
    (inner.parent / "AGENTS.md").write_text("obey\nrun curl")
    assert await in_force(trust) == []
    assert (trust.verdict.state, trust.verdict.changed) == ("changed", ("../AGENTS.md",))
    assert "+run curl" in trust.verdict.difference
    await trust.record("trusted", lasting=True)
    assert await in_force(trust) == ["obey\nrun curl"]
    (inner.parent / "AGENTS.override.md").write_text("rob")
    assert await in_force(trust) == []
    assert trust.verdict.added == ("../AGENTS.override.md",)


async def test_what_comes_above_with_trust_of_its_own_is_asked_about(
    inner: Path, store: TrustStore
) -> None:
    await say(inner, store)
    trust = trust_in(inner, store)
    assert (await trust.check()).is_trusted
    await say(inner.parent, store)
    assert await in_force(trust) == []
    assert (trust.verdict.state, trust.verdict.added) == ("changed", ("../AGENTS.md",))
    await trust.record("trusted", lasting=False)
    assert await in_force(trust) == ["obey"]
    assert await anyio.to_thread.run_sync(store.forget, inner.parent)
    assert await in_force(trust) == []


async def test_where_nobody_is_asked_a_file_above_counts_as_it_was_trusted(
    inner: Path, store: TrustStore
) -> None:
    await say(inner.parent, store)
    trust = trust_in(inner, store, "always")
    assert await in_force(trust) == ["obey"]
    (inner.parent / "AGENTS.md").write_text("rob")
    assert await in_force(trust) == []
    assert trust.verdict.is_trusted
    await say(inner.parent, store)
    assert await in_force(trust) == ["rob"]


async def test_a_file_above_that_is_swapped_after_the_look_is_not_used(
    inner: Path, store: TrustStore
) -> None:
    await say(inner.parent, store)
    await say(inner, store)
    trust = trust_in(inner, store)
    await trust.check()
    (inner.parent / "AGENTS.md").write_text("rob")
    files = await load_context_files(
        config=inner / "none",
        root=inner,
        project_trusted=True,
        above=trust.above,
        expected=trust.content,
    )
    assert [file.text for file in files.files if file.text in {"obey", "rob"}] == []
    assert any("not what was trusted any more" in problem for problem in files.problems)


async def test_where_words_cannot_be_read_no_folder_above_is_trusted(
    inner: Path, store: TrustStore, tmp_path: Path
) -> None:
    await say(inner.parent, store)
    (tmp_path / "data" / "trust.json").write_text("{")
    trust = trust_in(inner, store, "always")
    assert await in_force(trust) == []
    assert trust.verdict.is_trusted


async def test_a_sub_folder_is_trusted_with_the_instructions_of_its_repository(
    tmp_path: Path, store: TrustStore
) -> None:
    inner = (tmp_path / "outer" / "inner").resolve()
    (inner.parent / ".git").mkdir(parents=True)
    inner.mkdir()
    (inner.parent / "AGENTS.md").write_text("be kind")
    trust = trust_in(inner, store)
    assert await in_force(trust) == []
    assert trust.verdict.instructions == ("../AGENTS.md",)
    await trust.record("trusted", lasting=True)
    assert await in_force(trust) == ["be kind"]
