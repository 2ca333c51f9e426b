"""Names of packages that are resolved at first use: names of modules not imported yet, and deprecated names."""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


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


def lazy_names(package: str, places: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package.

    A package whose names are needed by few of its importers then costs each of them only the modules that it uses. The
    package imports the names under `TYPE_CHECKING` too, which is where a type checker finds them.

    Args:
        package: The name of the package.
        places: The public names that each module of the package defines, by the module's name inside of the package.
    """
    modules = {name: f"{package}.{module}" for module, names in places.items() for name in names}

    def load(name: str) -> object:
        if name not in modules:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message)
        value: object = getattr(import_module(modules[name]), name)  # pyright: ignore[reportAny] - any public name
        return value

    return load
