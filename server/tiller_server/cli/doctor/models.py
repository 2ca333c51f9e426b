"""Checks of models for `tiller doctor`: keys, the default model, local servers, and with `--ask` a test question."""

import argparse
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Final

from agent_core.assembly import SessionRequest, open_session
from agent_core.kernel import SystemClock
from agent_core.kernel.errors import ModelUnknown, TillerError
from agent_core.providers.registry import ModelRegistry
from agent_core.resources.paths import AppPaths
from agent_core.resources.settings.layers import Settings
from tiller_server.cli.doctor.check import Check
from tiller_server.cli.environment import Environment
from tiller_server.cli.model_registry import open_registry

QUESTION: Final = "Answer with the one word: ready"
SIGN_IN: Final = "tiller auth login PROVIDER, or set a key such as ANTHROPIC_API_KEY"


async def model_checks(
    options: argparse.Namespace,
    environment: Environment,
    *,
    workspace: Path,
    paths: AppPaths,
    settings: Settings,
) -> AsyncGenerator[Check]:
    """Look at what can be asked; with `--ask` one question is asked, which costs a little."""
    async with open_registry(paths, environment, workspace=workspace) as registry:
        if registry.problems:
            summary = "; ".join(map(str, registry.problems))
            yield Check(name="models.json", status="note", found=summary, advice="repair it")
        yield _keys(registry)
        chosen, check = _chosen(registry, settings)
        yield check
        _ = await registry.refresh(servers="find")
        found = registry.servers
        names = [f"{one.provider} ({len(one.models)} models)" for one in found]
        summary = ", ".join(names) or "none runs here"
        yield Check(name="local servers", status="ok", found=summary)
    if options.ask and chosen is not None:
        yield await _asked(workspace, environment, chosen)


def _keys(registry: ModelRegistry) -> Check:
    providers = [one.id for one in registry.providers() if not one.keyless]
    sources = [
        f"{name} ({source})"
        for name in providers
        if (source := registry.key_source(name)) is not None
    ]
    if sources:
        return Check(name="accounts", status="ok", found=", ".join(sources))
    found = f"no key for any of {len(providers)} providers"
    return Check(name="accounts", status="note", found=found, advice=SIGN_IN)


def _chosen(registry: ModelRegistry, settings: Settings) -> tuple[str | None, Check]:
    values = settings.values
    wished: Sequence[str] = [one for one in (values.default_provider, values.default_model) if one]
    named = "/".join(wished) if values.default_model else None
    try:
        if named is not None:
            model = registry.usable(registry.resolve(named).model.ref)
        else:
            model = registry.choose(settings=None, provider=values.default_provider or None).model
    except ModelUnknown as error:
        return None, Check(name="model", status="missing", found=str(error), advice=SIGN_IN)
    if model is None:
        found = "none can be asked: no provider has a key, and no default is named"
        return None, Check(name="model", status="missing", found=found, advice=SIGN_IN)
    price = "" if model.prices else "; its price is not known, so no budget of money can be kept"
    status = "ok" if model.prices else "note"
    advice = None if model.prices else "name its price in models.json, or limit turns and minutes"
    return model.ref, Check(name="model", status=status, found=model.ref + price, advice=advice)


async def _asked(workspace: Path, environment: Environment, model: str) -> Check:
    clock = SystemClock()
    request = SessionRequest(
        workspace=workspace,
        env=environment.variables,
        model=model,
        tools="readonly",
        store="memory",
        settings={"request": {"budgets": {"turns": 1, "minutes": 1}, "retry": {"enabled": False}}},
    )
    began_s = clock.monotonic_s()
    try:
        async with open_session(request) as session:
            receipt = await session.prompt(QUESTION)
            result = await session.wait(receipt.run) if receipt.run else None
    except TillerError as error:
        return _silent(model, str(error))
    if result is None or result.error is not None or not result.text:
        why = result.error.message if result and result.error else "it said nothing"
        return _silent(model, why)
    took_s = clock.monotonic_s() - began_s
    cost = result.usage.tokens.cost
    paid = "" if cost is None else f", for ${cost.total:.4f}"
    return Check(name="answer", status="ok", found=f"{model} answered in {took_s:.1f} s{paid}")


def _silent(model: str, why: str) -> Check:
    advice = (
        "check the key (tiller auth status), the network and any proxy, or choose another model"
    )
    return Check(
        name="answer", status="missing", found=f"{model} did not answer: {why}", advice=advice
    )
