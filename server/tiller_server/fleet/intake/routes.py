"""HTTP routes of the intake. Every refusal has a status and one sentence."""

import base64
import binascii
import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, ClassVar, Final

import msgspec
from anyio.to_thread import run_sync
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route

from agent_core.kernel import Clock, SessionId, SystemClock
from agent_core.kernel.errors import SessionNotFound
from agent_core.kernel.values import SecretValue
from agent_core.transcript.export.markdown_document import markdown
from tiller_server.fleet.errors import FleetError, JobUnknown
from tiller_server.fleet.forges import Forge
from tiller_server.fleet.intake.page import POLICY, render_metrics, render_page
from tiller_server.fleet.intake.panel_routes import PanelRoutes
from tiller_server.fleet.intake.session_panel import SessionPanel
from tiller_server.fleet.intake.webhooks import (
    WebhookEvent,
    WebhookForged,
    WebhookUnreadable,
    is_commit,
    is_ref,
    read_webhook,
)
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.deliveries import DeliveryStore
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.sessions import FleetSessions
from tiller_server.fleet.store.statistics import read_statistics
from tiller_server.fleet.values import ChangeName, Job, JobKind, JobRequest

LOG: Final = logging.getLogger(__name__)
DEBOUNCE_MS: Final = 90_000
MOST_BODY_BYTES: Final = 8 * 1024 * 1024
MOST_JOBS: Final = 200
PAGE_JOBS: Final = 50
RouteHandler = Callable[[Request], Awaitable[Response]]


class IntakeRefused(FleetError):
    """A request is answered with a status of its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class IntakeOptions(SecretValue, frozen=True, kw_only=True):
    """Rules of the intake."""

    hidden: ClassVar = frozenset({"token_sha256"})

    token_sha256: str
    """SHA-256 of the token of `/jobs`, `/metrics` and the page, in hexadecimal digits; empty: none has access."""
    provider: str = ""
    """Provider that the jobs count for."""
    budget_usd: float | None = None
    debounce_ms: int = DEBOUNCE_MS
    most_body_bytes: int = MOST_BODY_BYTES


class JobBody(BaseModel):
    """Body of `POST /jobs`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    forge: str
    repo: str
    number: int = Field(default=0, ge=0, le=2**31 - 1)
    head: str
    base: str
    kind: JobKind = "review"
    prompt: str = Field(default="", max_length=20_000)
    priority: int = Field(default=100, ge=0, le=1000)
    budget_usd: float | None = Field(default=None, gt=0)


class FleetIntake:
    """The routes, over one database."""

    def __init__(
        self,
        database: FleetDatabase,
        forges: Mapping[str, Forge],
        options: IntakeOptions,
        *,
        clock: Clock | None = None,
    ) -> None:
        """Prepare; the database is migrated."""
        self._database = database
        self._forges = forges
        self._options = options
        self._jobs = JobStore(database)
        self._deliveries = DeliveryStore(database)
        self._panel = PanelRoutes(SessionPanel(database, clock=clock or SystemClock()))

    def app(self) -> Starlette:
        """Return the application."""
        routes = (
            ("/", "GET", self._private(self._page)),
            ("/healthz", "GET", self._health),
            ("/metrics", "GET", self._private(self._metrics)),
            ("/jobs", "GET", self._private(self._list)),
            ("/jobs", "POST", self._private(self._submit)),
            ("/jobs/{id:int}", "GET", self._private(self._show)),
            ("/jobs/{id:int}/transcript", "GET", self._private(self._transcript)),
            ("/jobs/{id:int}/live", "GET", self._private(self._live)),
            ("/panel", "GET", self._private(self._panel.page)),
            ("/assets/{name}", "GET", self._private(self._panel.asset)),
            ("/v1/rpc", "POST", self._private(self._call)),
            ("/v1/events", "GET", self._private(self._panel.events)),
            ("/webhooks/{forge}", "POST", self._webhook),
        )
        return Starlette(
            routes=[
                Route(path, self._answered(handler), methods=[method])
                for path, method, handler in routes
            ]
        )

    def submit_event(self, forge: Forge, event: WebhookEvent, *, cause: str) -> Mapping[str, Any]:
        """Submit the job that an event asks for, or end those of a closed change. Blocks."""
        change = event.change(forge.name)
        if event.action == "other":
            return {"status": "ignored"}
        if event.action != "push":
            return {"status": event.action, "ended": self._jobs.close_change(change, event.action)}
        submission = self._jobs.submit(
            JobRequest(
                kind="review",
                change=change,
                head=event.head,
                base=event.base,
                cause=cause,
                provider=self._options.provider,
                budget_usd=self._options.budget_usd,
                delay_ms=self._options.debounce_ms,
            )
        )
        status = "queued" if submission.is_new else "present"
        return {"status": status, "job": submission.job.id, "superseded": submission.superseded}

    async def _webhook(self, request: Request) -> Response:
        body = await self._body(request)
        forge = self._forges.get(request.path_params["forge"])
        if forge is None:
            # As for a wrong signature: names of forges are not for strangers.
            message = "the signature of the webhook is not that of the forge"
            raise IntakeRefused(401, message)
        try:
            event = read_webhook(forge, request.headers, body)
        except WebhookForged as error:
            raise IntakeRefused(401, str(error)) from error
        except WebhookUnreadable as error:
            raise IntakeRefused(400, str(error)) from error
        if await run_sync(self._deliveries.is_handled, forge.name, event.delivery):
            return JSONResponse({"status": "repeated"})
        if event.action != "other" and not forge.has(event.repo):
            raise IntakeRefused(404, f"the repository {event.repo!r} is not one of this fleet")
        submit = partial(self.submit_event, forge, event, cause=f"webhook:{event.delivery}")
        answer = await run_sync(submit)
        # Only now: a delivery that was lost before is sent again, and submitting is idempotent.
        add = partial(self._deliveries.add, body_hash=sha256(body).hexdigest())
        await run_sync(add, forge.name, event.delivery)
        return JSONResponse(answer, status_code=202)

    async def _submit(self, request: Request) -> Response:
        try:
            body = JobBody.model_validate_json(await self._body(request))
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()
            )
            raise IntakeRefused(400, f"the job cannot be read: {problems}") from error
        forge = self._forges.get(body.forge)
        if forge is None or not forge.has(body.repo):
            message = f"the repository {body.repo!r} of {body.forge!r} is not one of this fleet"
            raise IntakeRefused(404, message)
        if not is_commit(body.head) or not is_ref(body.base):
            message = "head is the whole hash of a commit, and base a branch or commit"
            raise IntakeRefused(400, message)
        if body.kind != "review" and not body.prompt:
            raise IntakeRefused(400, f"a job of kind {body.kind} needs a prompt")
        submission = await run_sync(
            self._jobs.submit,
            JobRequest(
                kind=body.kind,
                change=ChangeName(forge=body.forge, repo=body.repo, number=body.number),
                head=body.head,
                base=body.base,
                cause="api",
                provider=self._options.provider,
                prompt=body.prompt,
                priority=body.priority,
                budget_usd=body.budget_usd or self._options.budget_usd,
            ),
        )
        return JSONResponse(_shown(submission.job), status_code=202 if submission.is_new else 200)

    async def _list(self, request: Request) -> Response:
        before = request.query_params.get("before")
        if before is not None and not (before.isascii() and before.isdecimal()):
            raise IntakeRefused(400, "before is the id of a job")
        jobs = await run_sync(
            partial(
                self._jobs.jobs,
                repo=request.query_params.get("repo"),
                before=None if before is None else int(before),
                limit=MOST_JOBS,
            )
        )
        return JSONResponse({"jobs": [_shown(job) for job in jobs]})

    async def _show(self, request: Request) -> Response:
        return JSONResponse(_shown(await self._job(request)))

    async def _transcript(self, request: Request) -> Response:
        """Answer with what was said in the session of a job so far."""
        job = await self._job(request)
        try:
            stored = await FleetSessions(self._database).read(SessionId(job.session))
        except SessionNotFound as error:
            message = f"job {job.id} has no transcript: no model was asked, or it is too old"
            raise IntakeRefused(404, message) from error
        title = f"{job.kind} of {job.change}"
        text = await run_sync(partial(markdown, stored.header, stored.entries, title=title))
        return PlainTextResponse(text, headers={"Content-Security-Policy": POLICY})

    async def _call(self, request: Request) -> Response:
        return await self._panel.answer(await self._body(request))

    async def _live(self, request: Request) -> Response:
        job = await self._job(request)
        return RedirectResponse(f"/panel#session={job.session}", 303)

    async def _job(self, request: Request) -> Job:
        try:
            return await run_sync(self._jobs.job, request.path_params["id"])
        except JobUnknown as error:
            raise IntakeRefused(404, str(error)) from error

    async def _health(self, request: Request) -> Response:
        _ = request
        _ = await run_sync(self._jobs.counts)
        return JSONResponse({"status": "ok"})

    async def _metrics(self, request: Request) -> Response:
        _ = request
        numbers = await run_sync(read_statistics, self._database)
        return PlainTextResponse(render_metrics(numbers), media_type="text/plain; version=0.0.4")

    async def _page(self, request: Request) -> Response:
        _ = request
        numbers = await run_sync(read_statistics, self._database)
        listed = partial(self._jobs.jobs, limit=PAGE_JOBS)
        page = render_page(
            numbers,
            working=await run_sync(partial(listed, states=("running", "posting"))),
            queued=await run_sync(partial(listed, states=("queued",))),
            failed=await run_sync(partial(listed, states=("failed",))),
        )
        return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})

    async def _body(self, request: Request) -> bytes:
        """Read a body up to the limit.

        Raises:
            IntakeRefused: It is larger.
        """
        most = self._options.most_body_bytes
        parts: list[bytes] = []
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise IntakeRefused(413, f"the body is larger than {most} bytes")
            parts.append(part)
        return b"".join(parts)

    def _private(self, handler: RouteHandler) -> RouteHandler:
        async def checked(request: Request) -> Response:
            if not self._has_access(request.headers.get("authorization", "")):
                raise IntakeRefused(401, "this needs the token of the fleet")
            return await handler(request)

        return checked

    def _has_access(self, header: str) -> bool:
        """Return whether a header has the token: as a bearer, or as the password that a browser asks for."""
        scheme, _, value = header.partition(" ")
        token = value.strip()
        if scheme.lower() == "basic":
            try:
                token = base64.b64decode(token, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                return False
        elif scheme.lower() != "bearer":
            return False
        digest = sha256(token.encode()).hexdigest()
        return hmac.compare_digest(digest.encode(), self._options.token_sha256.lower().encode())

    def _answered(self, handler: RouteHandler) -> RouteHandler:
        async def answered(request: Request) -> Response:
            try:
                response = await handler(request)
            except IntakeRefused as refusal:
                response = JSONResponse({"error": str(refusal)}, status_code=refusal.status)
                if refusal.status == 401 and request.method == "GET":  # noqa: PLR2004
                    response.headers["WWW-Authenticate"] = 'Basic realm="tiller fleet"'
            except SQLAlchemyError:
                LOG.exception("the database of the fleet cannot be used")
                message = "the database of the fleet cannot be used now"
                response = JSONResponse({"error": message}, status_code=503)
            except ClientDisconnect:
                response = Response(status_code=400)
            _ = response.headers.setdefault("Cache-Control", "no-store")
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Referrer-Policy"] = "no-referrer"
            return response

        return answered


def _shown(job: Job) -> Mapping[str, Any]:
    return msgspec.to_builtins(job)
