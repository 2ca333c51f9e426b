"""Keeps the first model that a user chooses, because a model that needs no key is used only when it is named."""

import logging

import anyio.to_thread

from agent_core.kernel.errors import ConfigError
from agent_core.providers import ModelInfo
from agent_core.resources.paths import AppPaths
from agent_core.resources.settings.file import change_settings_now
from agent_core.resources.settings.layers import Layer, load_settings

_log = logging.getLogger(__name__)


async def keep_first_model(
    chosen: ModelInfo | None,
    *,
    before: ModelInfo | None,
    paths: AppPaths,
) -> bool:
    """Write the model into the user's settings, for new sessions, where there was none and the settings name none.

    Args:
        chosen: The model in force now.
        before: The model in force before.
        paths: Where the user's settings are.

    Returns:
        Whether it was written.
    """
    # The embedded model is for demonstrations; other sessions are not to begin with it.
    if before is not None or chosen is None or chosen.api == "embedded":
        return False
    file = paths.settings
    try:
        values = (await load_settings((Layer(name="user", content=file),))).values
        if values.default_provider or values.default_model:
            return False
        await anyio.to_thread.run_sync(
            change_settings_now,
            file,
            {"defaultProvider": chosen.provider, "defaultModel": chosen.id},
        )
    except ConfigError as error:
        # The choice is in force all the same; `tiller doctor` tells of the file.
        _log.warning("the first model is not kept: %s", error)
        return False
    return True
