"""What every answer carries: a tag by which a browser can ask whether it changed, compression, headers for safety."""

import gzip
import hashlib
from collections.abc import Awaitable, Callable

from fastapi import Request
from fastapi.responses import Response

FOR_EVER, ASK_AGAIN = "public, max-age=31536000, immutable", "no-cache"
SAFETY = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; worker-src 'self' blob:; "
    "child-src blob:; connect-src 'self'; style-src 'self' 'unsafe-inline'; script-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
SMALL = 1024
Next = Callable[[Request], Awaitable[Response]]


async def finish(request: Request, call_next: Next) -> Response:
    """Tag, compress or shorten to 304 what a route answered."""
    found = await call_next(request)
    body = b"".join([part async for part in found.body_iterator])  # type: ignore[attr-defined]
    kept = {name: value for name, value in found.headers.items() if name != "content-length"}
    headers = kept | SAFETY | {"Cache-Control": found.headers.get("cache-control", ASK_AGAIN)}
    if found.status_code != 200:
        return Response(body, found.status_code, headers)
    tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    headers |= {"ETag": tag, "Vary": "Accept-Encoding"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={n: v for n, v in headers.items() if n != "content-type"})
    if _can_shrink(request, body, found.headers.get("content-type", "")):
        body, headers = gzip.compress(body, 6), headers | {"Content-Encoding": "gzip"}
    return Response(body, 200, headers)


def _can_shrink(request: Request, body: bytes, kind: str) -> bool:
    wanted = "gzip" in request.headers.get("accept-encoding", "")
    return wanted and len(body) > SMALL and not kind.startswith("image/")
