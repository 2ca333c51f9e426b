"""Messages to a webhook when a session needs a person: a permission, a question, a run that failed or has ended."""

import logging
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Final, Literal
from urllib.parse import urlsplit

import anyio
from msgspec import Struct

from agent_core.events import (
    Event,
    EventSubscription,
    PermissionRequested,
    QuestionRequested,
    RunEnded,
    RunStarted,
)
from agent_core.events.values import PermissionResolved, QuestionResolved
from agent_core.kernel import Clock
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.values import Value
from agent_core.providers.http.client import HttpPool
from agent_core.providers.http.request import HttpRequest
from agent_core.resources.settings.values import NotifySettings

INTERVAL_S: Final = 10.0
"""Least time between two messages about one session."""
SEND_S: Final = 10.0
RETRIES_S: Final = (1.0, 4.0)
"""Waits before the message is sent again."""
RETRIED: Final = frozenset({408, 425, 429})
"""Statuses below 500 after which it is sent again."""
SERVER_ERROR: Final = 500
NO_PERSON: Final = frozenset({"timeout", "cancelled", "restart", "unshown", "policy"})
MAX_TITLE: Final = 200
Kind = Literal["permission", "question", "failed", "ended"]
TEXTS: Final[Sequence[tuple[Kind, str]]] = (
    ("permission", "A permission is needed."),
    ("question", "A question waits for an answer."),
    ("failed", "The run has failed."),
    ("ended", "The run has ended."),
)
_log = logging.getLogger(__name__)


class PersonNeed(Value, frozen=True, kw_only=True):
    """A reason to send a message."""

    kind: Kind
    due_s: float


class AlertSchedule:
    """Which messages are due, from the events of a session. Pure: the caller has the time."""

    def __init__(self, settings: NotifySettings, *, now_s: float) -> None:
        """Begin with no needs.

        Args:
            settings: When a message is due.
            now_s: The time.
        """
        self._settings = settings
        self._needs: dict[str, PersonNeed] = {}
        self._person_s = now_s
        self._sent_s = now_s - INTERVAL_S

    @property
    def due_s(self) -> float | None:
        """Time of the next message; None: there is no need of one."""
        if not self._needs:
            return None
        first_s = min(one.due_s for one in self._needs.values())
        return max(first_s, self._sent_s + INTERVAL_S)

    def see(self, event: Event, *, now_s: float) -> None:
        """Follow an event."""
        match event:
            case PermissionRequested(request=request):
                self._ask(request.request, "permission", now_s)
            case QuestionRequested(request=request):
                self._ask(request.request, "question", now_s)
            case PermissionResolved() | QuestionResolved():
                _ = self._needs.pop(event.request, None)
                if event.by not in NO_PERSON:
                    self._person_s = now_s
            case RunStarted():
                self._person_s = now_s
            case RunEnded(parent=None):
                self._end(event, now_s)
            case _:
                pass

    def take(self, *, now_s: float) -> Sequence[Kind]:
        """Return the kinds of all needs that are due, which are over then."""
        due_s = self.due_s
        if due_s is None or now_s < due_s:
            return ()
        taken = {key: one for key, one in self._needs.items() if one.due_s <= now_s}
        for key in taken:
            del self._needs[key]
        self._sent_s = now_s
        return [one.kind for one in taken.values()]

    def _ask(self, request: str, kind: Kind, now_s: float) -> None:
        self._needs[request] = PersonNeed(kind=kind, due_s=now_s + self._settings.request_after_s)

    def _end(self, event: RunEnded, now_s: float) -> None:
        after_s = self._settings.run_after_s
        if event.status not in {"completed", "cancelled"}:
            self._needs[event.run] = PersonNeed(kind="failed", due_s=now_s)
        elif (
            event.status == "completed"
            and after_s is not None
            and now_s - self._person_s >= after_s
        ):
            self._needs[event.run] = PersonNeed(kind="ended", due_s=now_s)


class Webhook(Struct, kw_only=True):
    """Address that messages are posted to."""

    pool: HttpPool
    url: str
    token: Callable[[], str | None]
    """Returns the bearer token; None: there is none."""
    clock: Clock

    async def send(self, title: str, text: str, *, link: str | None) -> bool:
        """Post a message, again after failures that may pass; return whether it was accepted. Redirects are failures."""
        failure = ""
        for wait_s in (0.0, *RETRIES_S):
            if wait_s:
                await self.clock.sleep(wait_s)
            status, failure = await self._post(title, text, link)
            if 200 <= status < 300:  # noqa: PLR2004 - success
                return True
            if 0 < status < SERVER_ERROR and status not in RETRIED:
                break
        # The path and the query may be a secret.
        _log.warning("The webhook %s takes no message: %s", urlsplit(self.url).hostname, failure)
        return False

    async def _post(self, title: str, text: str, link: str | None) -> tuple[int, str]:
        """Return the status and its account; status 0: there was no answer."""
        headers = {"content-type": "text/plain; charset=utf-8", "title": _header(title)}
        if link is not None:
            headers["click"] = link
        token = self.token()
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        post = HttpRequest(
            provider="notify.url",
            url=self.url,
            headers=headers,
            body=(text if link is None else f"{text}\n{link}").encode(),
            secrets=(self.url, *(() if token is None else (token,))),
        )
        with anyio.move_on_after(SEND_S):
            try:
                answer = await (await self.pool.client_for(self.url)).send(post)
                await answer.aclose()
            except ProviderError as error:
                return 0, str(error)
            return answer.status, f"it answers with the status {answer.status}"
        return 0, f"no answer in {SEND_S:g} s"


class PersonAlert(Struct, kw_only=True):
    """Messages about one session."""

    reader: EventSubscription
    settings: NotifySettings
    webhook: Webhook
    title: Callable[[], str]
    """Returns the title of the session, without secrets."""
    link: Callable[[], str | None]
    """Returns the address at which the session can be used; None: no browser is served. Blocking."""

    async def run(self) -> None:
        """Send messages until the session is closed."""
        schedule = AlertSchedule(self.settings, now_s=anyio.current_time())
        while not self.reader.closed:
            due_s = schedule.due_s
            with anyio.CancelScope(deadline=anyio.current_time() + 1e9 if due_s is None else due_s):
                await self.reader.wait_urgent()
            for stamped in self.reader.take_now():
                schedule.see(stamped.event, now_s=anyio.current_time())
            if kinds := schedule.take(now_s=anyio.current_time()):
                await self._send(kinds)

    async def _send(self, kinds: Sequence[Kind]) -> None:
        text = " ".join(said for kind, said in TEXTS if kind in kinds)
        link = await anyio.to_thread.run_sync(self.link)
        _ = await self.webhook.send(f"Tiller: {self.title()}", text, link=link)


def _header(text: str) -> str:
    """Return a text as the value of a header, encoded after RFC 2047 where it is not ASCII."""
    line = "".join(one if one.isprintable() else " " for one in text)[:MAX_TITLE]
    if line.isascii():
        return line
    return f"=?UTF-8?B?{b64encode(line.encode('utf-8', 'replace')).decode()}?="
