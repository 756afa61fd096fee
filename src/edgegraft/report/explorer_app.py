"""The explorer's page: access control, and the data that it fetches.

The server listens only on the loopback address. Every address starts with a random token, so that
other users and other pages of the browser cannot guess it. The Host header must be the server's
own, so that a foreign name that resolves to this machine gives no access. The
Content-Security-Policy of the page allows requests only to the server itself.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from pathlib import Path
from typing import Any

from edgegraft.errors import DataError, ImpossibleEvidenceError, MissingExtraError, ModelError
from edgegraft.report.explorer import Explorer, read_json

try:
    from flask import Blueprint, Flask, Response, abort, jsonify, redirect, render_template, request
    from werkzeug import Response as BaseResponse
    from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server
except ImportError as error:
    raise MissingExtraError("flask", "explore", "the explorer") from error

LOOPBACK = "127.0.0.1"
_ASSETS = Path(__file__).parent / "assets"
_MAX_BODY = 1 << 20  # bytes of a request: evidence of ten thousand variables
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class _Application(Flask):
    """Logs faults without their addresses, which contain the token."""

    def log_exception(self, exc_info: Any) -> None:
        """Log the traceback alone."""
        self.logger.error("a request failed", exc_info=exc_info)


def build_app(explorer: Explorer, token: str, port: int) -> Flask:
    """Return the application that shows a model to clients whose address begins with the token.

    The port of the server is part of the accepted Host headers.
    """
    app = _Application(
        "edgegraft.report",
        template_folder=_ASSETS,
        static_folder=_ASSETS,
        static_url_path=f"/{token}/assets",
    )
    app.config["MAX_CONTENT_LENGTH"] = _MAX_BODY
    app.register_blueprint(_routes(explorer), url_prefix=f"/{token}")
    tickets = app.config["TICKETS"] = set[str]()
    hosts = {f"{LOOPBACK}:{port}", f"localhost:{port}"}

    @app.before_request
    def guard() -> BaseResponse | None:
        given = request.path.split("/")[1]
        if request.headers.get("Host", "").lower() not in hosts:
            abort(403)
        if given in tickets:
            tickets.discard(given)
            return redirect(f"/{token}/")
        if not hmac.compare_digest(given.encode(), token.encode()):
            abort(403)
        return None

    @app.after_request
    def harden(response: Response) -> Response:
        response.headers.update(_HEADERS)
        return response

    @app.errorhandler(ModelError)
    @app.errorhandler(DataError)
    def refuse(error: Exception) -> tuple[Response, int]:
        return jsonify(error=str(error)), 409 if isinstance(error, ImpossibleEvidenceError) else 422

    @app.errorhandler(UnicodeError)
    def not_text(error: Exception) -> tuple[Response, int]:
        return jsonify(error="the question is not text: it has half of a surrogate pair"), 400

    return app


def _routes(explorer: Explorer) -> Blueprint:
    routes = Blueprint("explorer", "edgegraft.report")

    @routes.get("/")
    def page() -> str:
        return render_template("explorer.html", title=explorer.title)

    @routes.get("/model")
    def model() -> Response:
        return jsonify(explorer.overview())

    @routes.get("/variable/<int:i>")
    def variable(i: int) -> Response:
        return jsonify(explorer.variable(i))

    @routes.post("/marginals")
    def marginals() -> Response:
        if not request.is_json:
            abort(415)
        try:
            asked = read_json(request.get_data(as_text=True))
        except ValueError as error:
            abort(400, f"the question is not JSON: {error}")
        if not isinstance(asked, dict) or not ({"given", "link"} & set(asked)):
            raise ModelError("a question has 'given' or 'link'")
        if "given" in asked:
            return jsonify(explorer.answer(explorer.codes(asked["given"])))
        return jsonify(explorer.answer(explorer.read_link(str(asked["link"]))))

    @routes.get("/marginals.csv")
    def export() -> Response:
        text = explorer.export_csv(explorer.read_link(request.args.get("given", "")))
        headers = {"Content-Disposition": 'attachment; filename="marginals.csv"'}
        return Response(text, content_type="text/csv; charset=utf-8", headers=headers)

    return routes


class _Quiet(WSGIRequestHandler):
    """Keeps addresses, which contain the token, out of the log; waits for a client no longer."""

    timeout = 30  # seconds without a byte

    def log(self, type: str, message: str, *args: Any) -> None:
        """Log nothing."""


def one_time_address(server: BaseWSGIServer) -> str:
    """Return an address that leads to the page once: other users see a browser's arguments."""
    ticket = secrets.token_urlsafe(24)
    server.app.config["TICKETS"].add(ticket)  # type: ignore[attr-defined]
    return f"http://{LOOPBACK}:{server.port}/{ticket}"


def make_explorer_server(explorer: Explorer, port: int = 0) -> tuple[BaseWSGIServer, str]:
    """Return a server ready for ``serve_forever()``, and the address of its page.

    Port 0 is any free one.
    """
    try:
        listening = socket.create_server((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        raise OSError(
            f"port {port} of {LOOPBACK} cannot be used ({error}): choose another, or 0 for any"
        ) from error
    with listening:
        bound = int(listening.getsockname()[1])
        token = secrets.token_urlsafe(24)
        server = make_server(
            LOOPBACK,
            bound,
            build_app(explorer, token, bound),
            threaded=True,
            request_handler=_Quiet,
            fd=listening.fileno(),
        )
    return server, f"http://{LOOPBACK}:{bound}/{token}/"
