"""A tool that changes files just as a test says, and sessions in which it does."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from anyio import lowlevel

from agent_core.changes import BlobStore
from agent_core.changes.adapters.blob_stores import MemoryBlobStore
from agent_core.kernel import JsonObject
from agent_core.session import AgentSession
from agent_core.session.context import WorkspaceContext
from agent_core.session.permissions.broker import PermissionState
from agent_core.storage import OpenedSession
from agent_core.tools import ToolContext, ToolResult, text_result
from agent_core.workspace import FileText, Workspace
from tests.support.session.scripted_model import ScriptedModel, Turn, call, say
from tests.support.session.sessions import Bench, NoProcesses, bench
from tests.support.workspace.memory_files import MemoryFiles
from tests.support.workspace.tools import FunctionTool

ROOT = Path("/project")
Step = tuple[str, ...]
"""`("write", name, text)`, `("make", name, text)`, `("delete", name)`, `("move", name, name)`, or `("await", name)`, which
goes on when there is such a file."""


def file_tool(root: Path = ROOT) -> FunctionTool:
    """Make a tool that does the steps that it is given."""

    async def work(arguments: JsonObject, context: ToolContext) -> ToolResult:
        steps = arguments["steps"]
        assert isinstance(steps, Sequence)
        for step in steps:
            assert isinstance(step, Sequence)
            await _do(root, [str(one) for one in step], context)
        return text_result("done")

    return FunctionTool("files", work, kind="edit")


async def _do(root: Path, step: Sequence[str], context: ToolContext) -> None:
    files = context.files
    verb, name, *rest = step
    path = root / name
    if verb == "move":
        await files.move(path, root / rest[0])
        return
    if verb == "await":
        while not any(one.name == name for one in await files.list(root)):
            await lowlevel.checkpoint()
        return
    there = None if verb == "make" else await files.read(path)
    if verb == "delete":
        assert there is not None
        await files.delete(path, base=there)
        return
    assert there is None or isinstance(there, FileText)
    await files.write(path, rest[0], base=there)


def does(*steps: Step) -> tuple[Turn, Turn]:
    """Make the turns of a run that does some steps."""
    return call("files", {"steps": [list(step) for step in steps]}), say("done")


@dataclass(kw_only=True)
class Desk:
    """A session with files in memory."""

    bench: Bench
    files: MemoryFiles
    contents: BlobStore
    seen: list[str] = field(default_factory=list)

    @property
    def session(self) -> AgentSession:
        return self.bench.session

    def texts(self) -> dict[str, str]:
        """Give all files by name."""
        return {
            path.relative_to(ROOT).as_posix(): data.decode()
            for path, data in sorted(self.files.contents().items())
        }

    def user(self, name: str, text: str | None) -> None:
        """Change a file behind the session's back; None removes it."""
        if text is None:
            self.files.remove(ROOT / name)
        else:
            self.files.put(ROOT / name, text.encode())

    async def run(self, *steps: Step, words: str = "go") -> None:
        """Let the agent do some steps in a run of its own."""
        self.bench.model.add(*does(*steps))
        _ = await self.session.prompt(words)
        _ = await self.bench.idle()

    async def say(self, words: str = "and now?") -> str:
        """Say something; gives what the model was shown last."""
        self.bench.model.add(say("well"))
        _ = await self.session.prompt(words)
        _ = await self.bench.idle()
        return str(self.bench.model.requests[-1].messages)


@asynccontextmanager
async def desk(
    files: dict[str, str] | None = None,
    *,
    contents: BlobStore | None = None,
    opened: OpenedSession | None = None,
) -> AsyncGenerator[Desk]:
    """Open such a session."""
    contents = contents or MemoryBlobStore()
    memory = MemoryFiles(
        (ROOT,),
        Path("/home/user"),
        files={ROOT / name: text.encode() for name, text in (files or {}).items()},
    )
    workspace = Workspace(roots=(ROOT,), files=memory, processes=NoProcesses(), env={})
    place = WorkspaceContext(
        workspace=workspace, raw=memory, permissions=PermissionState(mode="yolo")
    )
    tools = (file_tool(),)
    async with bench(
        ScriptedModel([]), tools=tools, opened=opened, workspace=place, contents=contents
    ) as b:
        yield Desk(bench=b, files=memory, contents=contents)
