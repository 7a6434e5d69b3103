"""Connections that send no request are closed, so that they cannot take the place of others."""

from asyncio import Transport
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 10.0
"""A whole request must arrive within this time, or twice this time after the one before."""


class PromptProtocol(H11Protocol):
    """HTTP as uvicorn speaks it, with a limit on how long a connection may wait without a request."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._close_if_idle_since(self)

    def _close_if_idle_since(self, before: Any) -> None:
        """Close if no other request than at the last look has begun, and that one is answered."""
        if self.transport.is_closing():
            return
        if self.cycle is before and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()
            return
        self.loop.call_later(REQUEST_SECONDS, self._close_if_idle_since, self.cycle)
