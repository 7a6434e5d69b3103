"""The one error type that users see: what was expected, what was found, what to do."""

from functools import partial
from typing import Any


class CranpmError(Exception):
    """A refusal that a user can act on; the command line prints it without a traceback."""

    def __init__(self, *, expected: str, found: str, remedy: str):
        self.expected, self.found, self.remedy = expected, found, remedy
        super().__init__(f"expected {expected}; found {found}. {remedy}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Passes between processes as it is."""
        return partial(CranpmError, expected=self.expected, found=self.found, remedy=self.remedy), ()
