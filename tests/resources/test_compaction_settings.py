"""Figures of compaction that make no sense are told, and the usual ones hold."""

import pytest

from agent_core.resources.settings.values import SettingsValues
from tests.resources.test_settings import of_text


@pytest.mark.parametrize("figure", ["-1", "1.5", '"many"', "true"])
@pytest.mark.parametrize("key", ["reserveTokens", "keepRecentTokens"])
def test_a_figure_that_is_no_count_is_told_and_the_usual_one_holds(
    tmp_path, key: str, figure: str
) -> None:
    settings = of_text(tmp_path, f'{{"compaction": {{"{key}": {figure}}}}}')
    assert settings.values.compaction == SettingsValues().compaction
    assert [f'"compaction.{key}"' in one.message for one in settings.problems] == [True]


@pytest.mark.parametrize("figure", ["-1", "1.5", '"many"'])
def test_a_models_own_figure_that_is_no_count_is_told(tmp_path, figure: str) -> None:
    text = f'{{"compaction": {{"modelOverrides": {{"lab/m": {{"reserveTokens": {figure}}}}}}}}}'
    settings = of_text(tmp_path, text)
    assert len(settings.problems) == 1
    assert "lab/m" in settings.problems[0].message
    own = settings.values.compaction.model_overrides.get("lab/m")
    assert own is None or own.reserve_tokens is None


def test_the_usual_figures() -> None:
    values = SettingsValues()
    compaction = values.compaction
    assert (compaction.enabled, compaction.reserve_tokens, compaction.keep_recent_tokens) == (
        True,
        16_384,
        20_000,
    )
    assert (values.branch_summary.reserve_tokens, values.branch_summary.skip_prompt) == (
        16_384,
        False,
    )
    retry = values.retry
    assert (retry.enabled, retry.max_retries, retry.base_delay_ms, retry.max_delay_ms) == (
        True,
        3,
        2_000,
        60_000,
    )
