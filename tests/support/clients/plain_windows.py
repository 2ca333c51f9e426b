"""What a user without an extension does and sees, for tests: commands, messages, code actions, lenses."""

from typing import Any

from tests.support.clients.server import calls
from tests.support.lsp.lsp_client import ClientError, RawClient

Json = dict[str, Any]


async def command(client: RawClient, name: str, *arguments: Any) -> Any:
    """Run one of our commands, `status` for `tiller.status`; raises ClientError when it is refused."""
    params: Json = {"command": f"tiller.{name}"}
    if arguments:
        params["arguments"] = list(arguments)
    return await client.request("workspace/executeCommand", params)


async def refusal(client: RawClient, name: str, *arguments: Any) -> str:
    """Run a command that must be refused, and give why it was."""
    try:
        found = await command(client, name, *arguments)
    except ClientError as error:
        return error.message
    wrong = f"tiller.{name} was taken: {found!r}"
    raise AssertionError(wrong)


def messages(client: RawClient) -> list[str]:
    """Give what the user was shown as messages so far."""
    return [
        one["params"]["message"]
        for one in client.received
        if one.get("method") == "window/showMessage"
    ]


async def actions(
    client: RawClient, uri: str, line0: int = 0, *, last0: int | None = None, **context: Any
) -> list[Json]:
    """Ask for the code actions of some lines."""
    end = line0 if last0 is None else last0
    return await client.request(
        "textDocument/codeAction",
        {
            "textDocument": {"uri": uri},
            "range": {
                "start": {"line": line0, "character": 0},
                "end": {"line": end, "character": 1},
            },
            "context": {"diagnostics": [], **context},
        },
    )


def titled(found: list[Json], title: str) -> Json:
    """Give the action or lens of that title, without the name of the product."""
    for one in found:
        shown = one.get("title") or one["command"]["title"]
        if shown == f"Tiller: {title}":
            return one
    wrong = f"{title!r} is not among {[one.get('title') for one in found]}"
    raise AssertionError(wrong)


async def press(client: RawClient, found: list[Json], title: str) -> Any:
    """Run the command of an action or lens."""
    return await client.request("workspace/executeCommand", titled(found, title)["command"])


def ends(client: RawClient) -> list[str]:
    """Give what the user was told at the end of each run."""
    values = [one for told in client.progress.values() for one in told]
    done = [one.get("message", "") for one in values if one["kind"] == "end"]
    return [*done, *(one for one in messages(client) if one.startswith("Tiller: done"))]


def write(name: str, content: str) -> Json:
    """Make a turn in which the agent writes a file."""
    return calls(("write", {"path": name, "content": content}))
