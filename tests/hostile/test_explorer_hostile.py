"""The explorer is asked what is not text, in vain for its token, and slowly."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request

import pytest

from edgegraft.model import PairwiseMRF
from edgegraft.report.explorer import Explorer
from edgegraft.report.explorer_app import _Quiet, build_app, make_explorer_server, one_time_address

HOST = "127.0.0.1:5000"
LONE = "\\ud800"


@pytest.fixture(scope="module")
def explorer():
    states = {"a": ["no", "yes"], "b": ["no", "yes"]}
    return Explorer(PairwiseMRF.from_potentials(states, edges={("a", "b"): [[1, 0], [0, 1]]}))


@pytest.mark.parametrize(
    "body",
    [
        f'{{"link": "{LONE}"}}',
        f'{{"link": "{{\\"{LONE}\\": 1}}"}}',
        f'{{"given": [["{LONE}", 1]]}}',
        f'{{"{LONE}": 1}}',
        "[" * 100_000,
        '{"given": ' + "[" * 100_000,
    ],
    ids=["link", "name", "given", "key", "deep", "deep given"],
)
def test_what_is_not_text_is_no_fault_of_the_server(explorer, body):
    client = build_app(explorer, "secret-token", 5000).test_client()
    asked = {"headers": {"Host": HOST}, "data": body, "content_type": "application/json"}
    assert 400 <= client.post("/secret-token/marginals", **asked).status_code < 500
    assert client.get("/secret-token/", headers={"Host": HOST}).status_code == 200


def test_neither_faults_nor_bad_requests_are_logged_with_the_token(
    explorer, capfd, caplog, monkeypatch
):
    def fail(*given):
        raise RuntimeError("fault")

    app = build_app(explorer, "secret-token", 5000)
    app.testing = False
    monkeypatch.setattr(explorer, "variable", fail)
    asked = app.test_client().get("/secret-token/variable/0", headers={"Host": HOST})
    assert asked.status_code == 500
    server, url = make_explorer_server(explorer)
    worker = threading.Thread(target=server.handle_request)
    worker.start()
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(f"GET /{url.split('/')[-2]}/ x HTTP/9.9 z\r\n\r\n".encode())
        client.recv(1000)
    worker.join()
    server.server_close()
    said = "".join(capfd.readouterr()) + caplog.text
    assert "a request failed" in said
    assert "secret-token" not in said
    assert url.split("/")[-2] not in said


def test_the_address_of_the_browser_works_once(explorer):
    server, url = make_explorer_server(explorer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    once = one_time_address(server)
    assert url.split("/")[-2] not in once
    with urllib.request.urlopen(once) as response:
        assert response.url == url
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(once)
    server.shutdown()
    server.server_close()


def test_a_client_that_says_nothing_is_not_waited_for():
    assert 0 < _Quiet.timeout <= 60
