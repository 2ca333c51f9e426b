"""Files, folders and web pages that a prompt of a conversation names with `@`, read when it is sent."""

import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from anyio import CancelScope, to_thread

from agent_core.kernel.errors import AttachmentRefused
from agent_core.messages import File, Text, UserContent
from agent_core.messages.values import TEXT_TYPE
from tiller_server.cli.terminal.pictures import PastedPicture

_PAGE: Final = re.compile(r"(?<!\S)@(https?://\S*[^\s.,;:!?)])", re.IGNORECASE)


def page_urls(text: str) -> Sequence[str]:
    """Return the addresses of the web pages that a prompt names with `@`, each once, in their order."""
    return tuple(dict.fromkeys(_PAGE.findall(text)))


class MentionReader:
    """Reader of what prompts name in one workspace."""

    def __init__(self, root: Path, env: Mapping[str, str], tell: Callable[[str], None]) -> None:
        """Create the reader; nothing is read yet.

        Args:
            root: The workspace, in which files are looked for.
            env: Environment that names the user's settings.
            tell: Shows a sentence to the user.
        """
        self._root = root
        self._env = env
        self._tell = tell
        self._scope: CancelScope | None = None

    async def content(
        self, text: str, pictures: Sequence[PastedPicture]
    ) -> tuple[UserContent, ...]:
        """Return a prompt with its pictures, and with the files and folders that it names.

        A name that is no file stays text, and the user is told.

        Raises:
            UsageError: A file or picture cannot be read or shown.
        """
        # Files are read where they are named; most prompts name none.
        if "@" not in text and not pictures:
            return (Text(text=text),)
        content, notes = await to_thread.run_sync(_content, text, pictures, self._root)
        for note in notes:
            self._tell(note)
        return content

    async def pages(self, text: str, begun: Callable[[], None]) -> Sequence[File] | None:
        """Return the web pages that a prompt names; None: `cancel` was called meanwhile.

        A page that cannot be read stays text, and the user is told.

        Args:
            text: The prompt.
            begun: Called when `is_reading` is true.
        """
        self._scope = scope = CancelScope()
        begun()
        try:
            with scope:
                pages = [await self._page(url) for url in page_urls(text)]
                return tuple(filter(None, pages))
        finally:
            self._scope = None
        return None

    @property
    def is_reading(self) -> bool:
        """Whether a page is being read."""
        return self._scope is not None

    def cancel(self) -> None:
        """Stop reading pages, if one is being read."""
        if self._scope is not None:
            self._scope.cancel()

    async def _page(self, url: str) -> File | None:
        from agent_core.assembly.storage.web_pages import page_options  # noqa: PLC0415 - few prompts name a page
        from agent_core.resources.paths import app_paths  # noqa: PLC0415 - as above
        from agent_core.tools.web.attached_page import attached_page  # noqa: PLC0415 - as above

        self._tell(f"Reading {url}")
        options = await to_thread.run_sync(page_options, app_paths(self._env))
        try:
            page = await attached_page(url, options)
        except AttachmentRefused as error:
            self._tell(f"{error} @{url} is sent as text.")
            return None
        data = b64encode(page.text.encode()).decode("ascii")
        return File(name=page.name, mime=TEXT_TYPE, data=data)


def _content(
    text: str, pictures: Sequence[PastedPicture], root: Path
) -> tuple[tuple[UserContent, ...], Sequence[str]]:
    """Return a prompt with its pictures and with the files of the workspace that it names, and notes for the user. Blocking.

    Raises:
        UsageError: A file or picture cannot be read or shown.
    """
    from tiller_server.cli.run.prompt_input import (  # noqa: PLC0415 - most prompts name no file
        file_parts,
        mentioned,
        missing_notes,
        picture_parts,
    )

    # The space: a name alone is no word of a command line here.
    texts = [f" {text}"]
    files = dict.fromkeys(mentioned(texts, root=root))
    attached = [part for path in files for part in file_parts(path)]
    attached += [part for one in pictures for part in picture_parts(one.name, one.data)]
    return (Text(text=text), *attached), missing_notes(texts, root=root)
