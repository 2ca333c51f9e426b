"""Before a process starts: unsaved edits are saved where that is ours to do, else asked for, else told to the model."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import anyio

from agent_core.events import Answers, QuestionLine, QuestionOption
from agent_core.workspace import NO_NEEDS, Process, Processes
from agent_core.workspace.permissions.call_permission import Needs
from tiller_server.lsp.edits.overlays import Overlay
from tiller_server.lsp.overlay.workspace_files import OverlayFiles

SHOWN_FILES: Final = 10
ASKED_FILES: Final = 3
"""A dialog has room for so many names."""
LOOK_S: Final = 0.5
"""How often the disk is looked at while the user is asked."""
SILENCE_S: Final = 60.0
"""A run does not wait longer for somebody to save."""
LINE: Final = "unsaved"
SAVED: Final = "saved"
OLD: Final = "old"
DISK: Final = "disk"
OPTIONS: Final = (
    QuestionOption(id=SAVED, label="I saved – go on"),  # noqa: RUF001 - an en dash, as people write
    QuestionOption(id=OLD, label="Run on old files"),
    QuestionOption(id=DISK, label="Write my agent edits to disk"),
)


class SaveQuestioner(Protocol):
    """Asks the user of a session."""

    def __call__(
        self, questions: Sequence[QuestionLine], *, timeout_s: float | None = None
    ) -> Awaitable[Answers]:
        """Ask and wait; cancelled, the question is withdrawn."""
        ...


class SaveBarrier:
    """Save barrier between the edits of a session and programs that read the disk."""

    def __init__(self, files: OverlayFiles) -> None:
        self._files = files
        self._ask: SaveQuestioner | None = None
        self._run: Callable[[], str | None] = lambda: None
        self._asked_for: set[str | None] = set()
        self._turn = anyio.Lock()

    def ask_through(self, ask: SaveQuestioner, *, run: Callable[[], str | None]) -> None:
        """Ask the user from now on.

        Args:
            ask: The session's questions.
            run: Gives the run that is going on.
        """
        self._ask, self._run = ask, run

    async def pass_through(self) -> str | None:
        """Do what can be done before a process starts; give a sentence for the model if programs read old files."""
        await self._files.edits.save(reason="command")
        left = await self._files.edits.unsaved()
        if not left:
            return None
        # Of commands that start at once one asks, the others see what came of it.
        async with self._turn:
            left = await self._asked(left)
        return _stale_note(left) if left else None

    async def _asked(self, left: Sequence[Path]) -> Sequence[Path]:
        """Ask once, if that is wanted; give what is unsaved then."""
        wanted = [one for path in left if (one := await self._wish(path)) is not None]
        per_run = "ask" in wanted
        key = self._run() if per_run else None
        if self._ask is None or not wanted or key in self._asked_for:
            return await self._files.edits.unsaved()
        self._asked_for |= {key, None}
        answer = await self._answer(self._ask, left)
        if answer == DISK:
            # Never below what is unsaved now: an editor would find its file changed behind it.
            self._files.edits.clean_to_disk = True
        return await self._files.edits.unsaved()

    async def _wish(self, path: Path) -> str | None:
        """Return how the user of a document wants to be asked; None: not at all."""
        buffer: Overlay | None = await self._files.opened.find(path)
        if buffer is None:
            return None
        able = buffer.editor.capabilities
        if able.barrier == "auto":
            # Where documents can be saved for the user, what is left is the user's own text.
            return None if able.saves else "auto"
        return "ask" if able.barrier == "ask" else None

    async def _answer(self, ask: SaveQuestioner, left: Sequence[Path]) -> str | None:
        """Ask, until somebody answers or all is saved."""
        found: list[str | None] = []

        async def asking() -> None:
            given = await ask((_line(left),), timeout_s=SILENCE_S)
            chosen = (given.answers or {}).get(LINE)
            found.append(chosen if isinstance(chosen, str) else None)
            group.cancel_scope.cancel()

        async def looking() -> None:
            while await self._files.edits.unsaved():  # noqa: ASYNC110 - the disk tells nobody when it is written
                await anyio.sleep(LOOK_S)
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(asking)
            group.start_soon(looking)
        return found[0] if found else None


class SaveBeforeRun:
    """Processes of the machine, with a look at what is unsaved before each start."""

    def __init__(
        self, processes: Processes, files: OverlayFiles, barrier: SaveBarrier | None = None
    ) -> None:
        self._processes = processes
        self._barrier = barrier or SaveBarrier(files)

    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> Process:
        """Start a process."""
        return await self._processes.start(argv, cwd=cwd, env=env, stdin=stdin, needs=needs)

    async def before_start(self) -> str | None:
        """Have unsaved edits saved where that is ours to do; name the files of which the disk is old."""
        note = await self._processes.before_start()
        stale = await self._barrier.pass_through()
        return f"{note} {stale}" if note and stale else note or stale


def _line(left: Sequence[Path]) -> QuestionLine:
    names = ", ".join(path.name for path in left[:ASKED_FILES])
    if len(left) > ASKED_FILES:
        names += f" and {len(left) - ASKED_FILES} more"
    return QuestionLine(
        id=LINE,
        text=(
            f"A command is about to run. Programs read the disk, and edits of {names} are only in the editor. "
            "Save them there, or run on the old files, or have edits of unmodified files written to the disk from now on."
        ),
        kind="choice",
        options=OPTIONS,
        default=OLD,
    )


def _stale_note(left: Sequence[Path]) -> str:
    names = ", ".join(str(path) for path in left[:SHOWN_FILES])
    if len(left) > SHOWN_FILES:
        names += f" and {len(left) - SHOWN_FILES} more"
    return f"Unsaved in the editor, so programs read the old text from the disk: {names}."
