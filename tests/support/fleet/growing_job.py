"""An intake with a job that standard input leads: `python -m tests.support.fleet.growing_job FOLDER`.

The first line that it prints has the origin of its page and the token of the fleet. `say TEXT` adds an answer to the session
of job 1, `end` ends the job; a line is printed when that is stored. It ends with standard input.
"""

import json
import sys
from hashlib import sha256
from pathlib import Path

import anyio
from anyio import to_thread

from agent_core.kernel import SystemClock
from tests.support.session.entries import assistant, chain, header, user
from tiller_server.fleet.intake.routes import FleetIntake, IntakeOptions
from tiller_server.fleet.intake.server import listen, serve_intake
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.sessions import FleetSessions
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.values import ChangeName, JobRequest, SlotLease

TOKEN = "growing-token"


async def follow_orders(
    jobs: JobStore, sessions: FleetSessions, job: int, lease: SlotLease
) -> None:
    """Do what the lines of standard input say."""
    log = await sessions.create(header(jobs.job(job).session))
    last = chain(user("Review the change of the **basket**."))[0]
    await log.append([last])
    count = 1
    while line := await to_thread.run_sync(sys.stdin.readline):
        verb, _, text = line.strip().partition(" ")
        if verb == "say":
            count += 1
            (last,) = chain(assistant(text), after=last.id, first=count)
            await log.append([last])
        else:
            await log.close()
            jobs.finish(job, lease, "done")
        print("stored", flush=True)


async def main(folder: Path) -> None:
    """Serve until standard input ends."""
    database = FleetDatabase(f"sqlite:///{folder}/fleet.db")
    database.migrate()
    slots, jobs = SlotStore(database), JobStore(database)
    slots.make(1)
    lease = slots.adopt(host="here", boot="1")
    change = ChangeName(forge="forge", repo="team/basket", number=7)
    job = jobs.submit(
        JobRequest(kind="review", change=change, head="a" * 40, base="main", cause="person")
    ).job
    _ = jobs.admit(job.id, lease)
    listener = listen("127.0.0.1", 0)
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    digest = sha256(TOKEN.encode()).hexdigest()
    intake = FleetIntake(database, {}, IntakeOptions(token_sha256=digest))
    print(json.dumps({"origin": origin, "token": TOKEN}), flush=True)
    async with anyio.create_task_group() as group:

        async def lead() -> None:
            await follow_orders(jobs, FleetSessions(database, lease), job.id, lease)
            group.cancel_scope.cancel()

        group.start_soon(lead)
        await serve_intake(intake, listener, clock=SystemClock())


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
