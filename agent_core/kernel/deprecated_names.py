"""Old names of what a package exports, so that extensions written for them go on working."""

import sys
import warnings
from collections.abc import Callable, Mapping


def deprecated_names(package: str, new_names: Mapping[str, str]) -> Callable[[str], object]:
    """Return a module's `__getattr__` that resolves an old name to the new one, with a `DeprecationWarning`.

    Args:
        package: The `__name__` of the module.
        new_names: The new name of each old one.
    """

    def resolve(name: str) -> object:
        new_name = new_names.get(name)
        if new_name is None:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message)
        warnings.warn(f"{package}.{name} is called {new_name}", DeprecationWarning, stacklevel=2)
        return vars(sys.modules[package])[new_name]  # pyright: ignore[reportAny] - any exported name

    return resolve
