"""What every answer has: a tag by which a browser can ask whether it changed, compression, headers for security."""

import gzip
import hashlib
from collections.abc import Awaitable, Callable

import anyio.to_thread
from fastapi import Request
from fastapi.responses import Response

FOR_EVER, ASK_AGAIN = "public, max-age=31536000, immutable", "no-cache"
SAFETY = {
    "content-security-policy": "default-src 'self'; img-src 'self' data: blob:; worker-src 'self' blob:; "
    "child-src blob:; connect-src 'self'; style-src 'self' 'unsafe-inline'; script-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
SMALL = 1024
Next = Callable[[Request], Awaitable[Response]]


async def finish(request: Request, call_next: Next) -> Response:
    """Add the tag, compress, or answer 304 if nothing changed; HEAD is GET without the body."""
    asked = request.method
    if asked == "HEAD":
        request.scope["method"] = "GET"
    found = await call_next(request)
    body = b"".join([part async for part in found.body_iterator])  # type: ignore[attr-defined]
    headers = {name: value for name, value in found.headers.items() if name != "content-length"} | SAFETY
    headers.setdefault("cache-control", ASK_AGAIN)
    if found.status_code == 200:
        tag = f'W/"{hashlib.sha256(body).hexdigest()[:20]}"'
        headers |= {"etag": tag, "vary": "Accept-Encoding"}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers={n: v for n, v in headers.items() if n != "content-type"})
        if _can_shrink(request, body, headers):
            body = await anyio.to_thread.run_sync(gzip.compress, body, 3)
            headers["content-encoding"] = "gzip"
    return Response(b"" if asked == "HEAD" else body, found.status_code, headers)


def _can_shrink(request: Request, body: bytes, headers: dict[str, str]) -> bool:
    wanted = "gzip" in request.headers.get("accept-encoding", "")
    plain = "content-encoding" not in headers and not headers.get("content-type", "").startswith("image/")
    return wanted and plain and len(body) > SMALL
