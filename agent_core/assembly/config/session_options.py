"""Conversion of settings into the options of a session's parts."""

from pathlib import Path

from agent_core.compaction import CompactionPolicy, ModelFigures
from agent_core.events import Budgets
from agent_core.kernel import JsonValue
from agent_core.resources.settings.values import (
    BashSettings,
    BudgetSettings,
    ImageSettings,
    SettingsValues,
)
from agent_core.session.context import SessionOptions
from agent_core.session.runs.budgets import BudgetPolicy
from agent_core.session.runs.retry_policy import RetryOptions


def session_options(values: SettingsValues, *, scratch: Path) -> SessionOptions:
    """Return the options of a session.

    Args:
        values: The settings in force.
        scratch: Where tools keep whole outputs.
    """
    return SessionOptions(
        retry=RetryOptions(
            enabled=values.retry.enabled,
            max_retries=values.retry.max_retries,
            base_delay_ms=values.retry.base_delay_ms,
            max_delay_ms=values.retry.max_delay_ms,
        ),
        compaction=CompactionPolicy(
            enabled=values.compaction.enabled,
            reserve_tokens=values.compaction.reserve_tokens,
            keep_recent_tokens=values.compaction.keep_recent_tokens,
            branch_reserve_tokens=values.branch_summary.reserve_tokens,
            offer_branch_summary=not values.branch_summary.skip_prompt,
            by_model={
                ref: ModelFigures(
                    reserve_tokens=own.reserve_tokens, keep_recent_tokens=own.keep_recent_tokens
                )
                for ref, own in values.compaction.model_overrides.items()
            },
        ),
        auto_compact=values.compaction.enabled,
        tool_execution=values.tool_execution,
        cache=values.cache_retention,
        skip_on_steer=values.skip_on_steer,
        steer_grace_s=values.steer.grace_s,
        tool_options={"bash": _bash(values.bash), "read": _read(values.images)},
        durability=values.durability,
        scratch=str(scratch),
    )


def allowance(budgets: BudgetSettings) -> BudgetPolicy:
    """Return what each run may use up."""
    most = Budgets(
        usd=budgets.usd, tokens=budgets.tokens, turns=budgets.turns, minutes=budgets.minutes
    )
    return BudgetPolicy(ceiling=most)


def _bash(bash: BashSettings) -> dict[str, JsonValue]:
    options: dict[str, JsonValue] = {"timeoutS": bash.timeout_s}
    if bash.prefix is not None:
        options["prefix"] = bash.prefix
    if bash.shell_path is not None:
        options["shellPath"] = bash.shell_path
    return options


def _read(images: ImageSettings) -> dict[str, JsonValue]:
    return {
        "autoResize": images.auto_resize,
        "blockImages": images.block_images,
        "maxBytes": images.max_bytes,
    }
