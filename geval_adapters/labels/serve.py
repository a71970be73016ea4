"""The labelling page on loopback: nobody but the person who was given its address can read it or write to it."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web
from pydantic import ValidationError

from ..errors import InputError
from .session import Answer, ConflictError, Session

PAGE = Path(__file__).with_name("page.html")


class LabelServer:
    """Serves one session under `address` until `finished` is set.

    The address holds a random token; requests for another host (DNS rebinding) or from another origin are refused; the
    page may load and call nothing but what comes from here.

    Args:
        session: what is asked, and where answers go.
        port: 0 for any that is free.
    """

    def __init__(self, session: Session, port: int = 0) -> None:
        self.session, self._port = session, port
        self._token = secrets.token_urlsafe(24)
        self.finished = asyncio.Event()
        app = web.Application(middlewares=[self._guarded])
        app.add_routes(
            [
                web.get("/{token}/", self._page),
                web.get("/{token}/task", self._task),
                web.post("/{token}/label", self._label),
                web.post("/{token}/finish", self._finish),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None)

    async def start(self) -> str:
        """Listen; the address of the page.

        Raises:
            InputError: the port is taken.
        """
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise InputError(f"port {self._port}: cannot be listened at: {error.strerror or error}") from None
        self._port = self._runner.addresses[0][1]
        return f"http://127.0.0.1:{self._port}/{self._token}/"

    async def stop(self) -> None:
        """Answer what is under way, then listen no more."""
        await self._runner.cleanup()

    @web.middleware
    async def _guarded(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        hosts = {f"127.0.0.1:{self._port}", f"localhost:{self._port}"}
        origin = request.headers.get("Origin")
        if (
            request.headers.get("Host") not in hosts
            or (origin is not None and origin != f"http://{request.headers['Host']}")
            or (request.method == "POST" and (origin is None or request.content_type != "application/json"))
            or request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
        ):
            return web.Response(status=403, text="refused: not from the labelling page")
        if not hmac.compare_digest(request.match_info.get("token", "").encode(), self._token.encode()):
            return web.Response(status=404, text="no such page: use the address that geval label printed last")
        response = await handler(request)
        response.headers["Cache-Control"] = "no-store"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        return response

    async def _page(self, request: web.Request) -> web.Response:
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
            "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        text = PAGE.read_text(encoding="utf-8").replace("{nonce}", nonce)
        return web.Response(text=text, content_type="text/html", headers={"Content-Security-Policy": policy})

    async def _task(self, request: web.Request) -> web.Response:
        at = request.query.get("at", "")
        return web.json_response(self.session.state(int(at) if at.isdecimal() and len(at) < 10 else None))

    async def _label(self, request: web.Request) -> web.Response:
        try:
            self.session.answer(Answer.model_validate_json(await request.read()))
        except ValidationError as error:
            return web.json_response({"problem": f"not a label: {error.errors()[0]['msg']}"}, status=400)
        except ConflictError as error:
            return web.json_response(self.session.state() | {"problem": str(error)}, status=409)
        except InputError as error:
            return web.json_response({"problem": str(error)}, status=400)
        return web.json_response(self.session.state())

    async def _finish(self, request: web.Request) -> web.Response:
        self.finished.set()
        return web.json_response({})
