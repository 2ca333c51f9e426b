"""HTTP requests to providers: client, framing of streams, and errors."""

import sys
from types import ModuleType
from typing import cast

# Where click and rich are installed, httpx imports its command line with them: a third of its import, and 6 MiB.
_ = cast("dict[str, ModuleType | None]", sys.modules).setdefault("httpx._main", None)
