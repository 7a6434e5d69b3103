"""Things of one kind by name, to which anybody may add: what stands in this package and what plugins bring.

A plugin is a module of any installed package that its entry points name in the group `cranpm.plugins`. It is imported
once, when a name is first looked up, and registers what it has: a provider, a channel, a network, a statistic, a
figure, a format or a command.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TypeVar

from cranpm.core.errors import CranpmError

GROUP = "cranpm.plugins"
Thing = TypeVar("Thing")


def load_plugins() -> None:
    """Import every plugin, once in a process; one that cannot be imported is refused, at every call."""
    if problem := _import_plugins():
        raise problem


@cache
def _import_plugins() -> CranpmError | None:
    """What is wrong with the first plugin that cannot be imported, if any."""
    for name in sorted({point.module for point in entry_points(group=GROUP)}):
        try:
            import_module(name)
        except Exception as error:
            return CranpmError(
                expected=f"the plugin {name} to be imported",
                found=f"{type(error).__name__}: {error}",
                remedy="Correct it, or uninstall the package that brings it.",
            )
    return None


class Registry(Mapping[str, Thing]):
    """Things of one `kind` by name, in the order in which they were registered."""

    def __init__(self, kind: str):
        self.kind = kind
        self._things: dict[str, Thing] = {}

    def add(self, name: str, thing: Thing) -> Thing:
        """Register under a name that nobody has yet."""
        if name in self._things:
            raise CranpmError(
                expected=f"a {self.kind} with a name of its own",
                found=f"a second one called {name}",
                remedy="Choose another name.",
            )
        self._things[name] = thing
        return thing

    def register(self, name: str) -> Callable[[Thing], Thing]:
        """The same as a decorator."""
        return lambda thing: self.add(name, thing)

    def __getitem__(self, name: str) -> Thing:
        load_plugins()
        if name not in self._things:
            raise CranpmError(
                expected=f"a {self.kind}: {', '.join(self._things)}", found=repr(name), remedy="Name one of these."
            )
        return self._things[name]

    def __contains__(self, name: object) -> bool:
        load_plugins()
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        load_plugins()
        return iter(self._things)

    def __len__(self) -> int:
        load_plugins()
        return len(self._things)
