"""`agent/costs`: sums over the model calls of the user."""

from agent_core.assembly.library import read_costs
from agent_core.kernel import SessionId, SystemClock
from agent_core.storage.ledger import CostQuery, CostSum
from tiller_server.lsp.feature import feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire.accounts import COSTS, CostsParams, CostsResult, CostSums


@feature(COSTS)
async def costs(client: ConnectedClient, params: CostsParams) -> CostsResult:
    """Return the sums of the ledger."""
    session = None if params.of_session is None else SessionId(params.of_session)
    query = CostQuery(by=params.by, since=params.since, session=session)
    report = await read_costs(client.host.paths, query, SystemClock())
    return CostsResult(
        sums=[_sums(one) for one in report.sums],
        total=_sums(report.total),
        problems=list(report.problems),
    )


def _sums(one: CostSum) -> CostSums:
    return CostSums(
        key=one.key,
        calls=one.calls,
        input=one.input,
        output=one.output,
        cache_read=one.cache_read,
        cache_write=one.cache_write,
        usd=f"{one.usd.normalize():f}",
        unknown=one.unknown,
        at_most_usd=f"{one.at_most_usd.normalize():f}",
    )
