"""An external agent of the vendor's SDK that does what its prompt says: a list of steps as JSON."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import acp
from acp import schema

OPTIONS = [
    schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    schema.PermissionOption(option_id="always", name="Always", kind="allow_always"),
    schema.PermissionOption(option_id="no", name="No", kind="reject_once"),
]
STATES: dict[str, Any] = {"done": "completed", "active": "in_progress", "pending": "pending"}


def left(path: str, text: str) -> None:
    """Leave a file: whole, or not at all."""
    half = Path(f"{path}.half")
    half.write_text(text, "utf-8")
    half.rename(path)


class Steps:
    """What a prompt can ask for."""

    def __init__(self) -> None:
        self.client: Any = None
        self.cwd = Path()
        self.session = ""
        self.is_loaded = False
        self.prompts: list[str] = []
        self.model = "small"
        self.said: list[str] = []
        self.cancelled = asyncio.Event()

    async def do_say(self, text: str) -> None:
        self.said.append(text)
        await self._tell(acp.update_agent_message_text(text))

    async def do_recap(self) -> None:
        """Say again what was said."""
        await self.do_say(" ".join(self.said))

    async def do_think(self, text: str) -> None:
        await self._tell(acp.update_agent_thought_text(text))

    async def do_prompts(self) -> None:
        await self.do_say(json.dumps(self.prompts))

    async def do_count(self) -> None:
        """Say how many texts came."""
        await self.do_say(f"resumed with {len(self.prompts)} texts")

    async def do_about(self) -> None:
        """Say where and as what it works."""
        await self.do_say(json.dumps({"cwd": str(self.cwd), "model": self.model}))

    async def do_environment(self) -> None:
        await self.do_say(json.dumps(dict(os.environ)))  # noqa: TID251 - what the test wants to know

    async def do_write(self, path: str, content: str) -> None:
        """Write through the client; say what it answers if it refuses."""
        try:
            await self.client.write_text_file(
                session_id=self.session, path=self._path(path), content=content
            )
        except acp.RequestError as error:
            await self.do_say(f"refused: {error}")

    async def do_read(self, path: str, *lines: int) -> None:
        try:
            answer = await self.client.read_text_file(
                session_id=self.session,
                path=self._path(path),
                line=lines[0] if lines else None,
                limit=lines[1] if lines else None,
            )
            await self.do_say(f"read: {answer.content}")
        except acp.RequestError as error:
            await self.do_say(f"refused: {error}")

    async def do_put(self, path: str, content: str) -> None:
        """Write with its own hands."""
        left(self._path(path), content)

    async def do_ask(self, kind: Any, title: str, raw: dict[str, Any], *paths: str) -> None:
        """Ask for permission, and say the answer."""
        answer = await self.client.request_permission(
            session_id=self.session,
            options=OPTIONS,
            tool_call=schema.ToolCallUpdate(
                tool_call_id="c1",
                title=title,
                kind=kind,
                raw_input=raw,
                locations=[schema.ToolCallLocation(path=self._path(one)) for one in paths],
            ),
        )
        outcome = answer.outcome
        await self.do_say(getattr(outcome, "option_id", outcome.outcome))

    async def do_tool(self, title: str, output: str, status: Any = "completed") -> None:
        await self._tell(acp.start_tool_call("t1", title, kind="execute", status="in_progress"))
        await self._tell(
            acp.update_tool_call(
                "t1", status=status, content=[acp.tool_content(acp.text_block(output))]
            )
        )

    async def do_plan(self, *entries: list[str]) -> None:
        await self._tell(
            acp.update_plan(acp.plan_entry(text, status=STATES[state]) for text, state in entries)
        )

    async def do_cost(self, amount: float, currency: str = "USD") -> None:
        cost = schema.Cost(amount=amount, currency=currency)
        await self._tell(
            schema.UsageUpdate(session_update="usage_update", used=10, size=100, cost=cost)
        )

    async def _tell(self, update: Any) -> None:
        await self.client.session_update(session_id=self.session, update=update)

    def _path(self, path: str) -> str:
        return path if path.startswith("relative:") else str(self.cwd / path)


class ShownSteps(Steps):
    """What a prompt can ask for that shows images or runs in terminals."""

    async def do_draw(self, data: str) -> None:
        """Send an image as a message, and as the output of a tool call."""
        image = acp.image_block(data, "image/png")
        await self._tell(acp.update_agent_message(image))
        await self._tell(acp.start_tool_call("t3", "Draw", kind="other"))
        content = [acp.tool_content(acp.text_block("Drawn.")), acp.tool_content(image)]
        await self._tell(acp.update_tool_call("t3", status="completed", content=content))

    async def do_run(self, command: str, *args: str, **more: Any) -> None:
        """Run a command in a terminal of the client, to its end; say its output and end."""
        async with self._terminal(command, *args, **more) as terminal:
            if not terminal:
                return
            status = await self.client.wait_for_terminal_exit(self.session, terminal)
            shown = await self.client.terminal_output(self.session, terminal)
            cut = "…" if shown.truncated else ""
            await self.do_say(f"{cut}{shown.output.strip()} ({status.exit_code}, {status.signal})")

    async def do_run_with(self, more: dict[str, Any], command: str, *args: str) -> None:
        """Run a command with other parameters of the request."""
        await self.do_run(command, *args, **more)

    async def do_kill(self, command: str, output: str) -> None:
        """Run a command, kill it when it has put something out, and ask about it after it was released."""
        async with self._terminal(command) as terminal:
            while (
                output
                not in (shown := await self.client.terminal_output(self.session, terminal)).output
            ):
                assert shown.exit_status is None
            await self.client.kill_terminal(self.session, terminal)
            status = await self.client.wait_for_terminal_exit(self.session, terminal)
            await self.do_say(f"ended: {status.exit_code}, {status.signal}")
            content = [schema.TerminalToolCallContent(type="terminal", terminal_id=terminal)]
            await self._tell(acp.start_tool_call("t2", "Watch", kind="execute"))
            await self._tell(acp.update_tool_call("t2", status="completed", content=content))
        try:
            await self.client.terminal_output(self.session, terminal)
        except acp.RequestError as error:
            await self.do_say(f"refused: {error}")

    async def do_leave_running(self, command: str) -> None:
        """Run a command and forget about it."""
        await self.client.create_terminal(command=command, session_id=self.session)

    @asynccontextmanager
    async def _terminal(self, command: str, *args: str, **more: Any) -> AsyncGenerator[str]:
        try:
            made = await self.client.create_terminal(
                command=command, session_id=self.session, args=list(args) or None, **more
            )
        except acp.RequestError as error:
            await self.do_say(f"refused: {error}")
            yield ""
            return
        yield made.terminal_id
        await self.client.release_terminal(self.session, made.terminal_id)


class ScriptedAgent(ShownSteps):
    """Does the steps of each prompt."""

    async def do_wait(self, marker: str) -> None:
        """Leave a file with its process id, and wait until it is cancelled."""
        left(marker, str(os.getpid()))
        await self.cancelled.wait()
        left(f"{marker}.cancelled", "")

    async def do_pause(self, marker: str) -> None:
        """Leave a file, and wait for another one."""
        left(marker, "")
        while not Path(f"{marker}.go").exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
            await asyncio.sleep(0.02)

    async def do_complain(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def on_connect(self, conn: acp.Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        return schema.InitializeResponse(
            protocol_version=min(protocol_version, 1),
            agent_capabilities=schema.AgentCapabilities(load_session="--loads" in sys.argv),
        )

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> schema.LoadSessionResponse:
        self.cwd, self.session, self.is_loaded = Path(cwd), session_id, True
        await self._tell(acp.update_agent_message_text("Replayed."))
        return schema.LoadSessionResponse(config_options=self._options())

    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        self.cwd = Path(cwd)
        return schema.NewSessionResponse(session_id="s1", config_options=self._options())

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> schema.SetSessionConfigOptionResponse:
        self.model = str(value)
        return schema.SetSessionConfigOptionResponse(config_options=self._options())

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        self.session = session_id
        self.prompts = [one.text for one in prompt]
        orders = [one for one in self.prompts if one.startswith("[[")]
        if self.is_loaded and not orders:
            await self.do_say(f"went on in {session_id} with {len(prompt)} texts")
            return schema.PromptResponse(stop_reason="end_turn")
        for name, *arguments in json.loads(orders[-1]):
            await getattr(self, f"do_{name}")(*arguments)
            if self.cancelled.is_set():
                return schema.PromptResponse(stop_reason="cancelled")
        return schema.PromptResponse(stop_reason="end_turn")

    def _options(self) -> list[Any]:
        values = [schema.SessionConfigSelectOption(value=one, name=one) for one in ("small", "big")]
        return [
            schema.SessionConfigOptionSelect(
                id="m",
                name="Model",
                category="model",
                type="select",
                current_value=self.model,
                options=values,
            )
        ]


if __name__ == "__main__":
    asyncio.run(acp.run_agent(cast("Any", ScriptedAgent())))
