"""Who may ask the explorer, and how it is served: loopback, a token, a process that ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest

from edgegraft.report.explorer import Explorer
from edgegraft.report.explorer_app import make_explorer_server
from tests.explorer_cases import (
    HOST,
    PORT,
    TOKEN,
    client_of,
    forbidding_model,
    get,
    grid_model,
)


@pytest.fixture(scope="module")
def client():
    return client_of(Explorer(grid_model(), title="grid"))


PATHS = ["", "model", "variable/0", "marginals.csv", "assets/explorer.js", "none"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", ["", "wrong/", "secret-toke/", "é/"])
def test_requests_without_the_token_are_refused(client, path, token):
    assert client.get(f"/{token}{path}", headers={"Host": HOST}).status_code == 403


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host",
    ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:80", "0.0.0.0:8051", ""],
)
def test_requests_to_another_host_are_refused(client, path, host):
    assert client.get(f"/{TOKEN}/{path}", headers={"Host": host}).status_code == 403


def test_questions_need_token_and_host_too(client):
    refused = client.post("/wrong/marginals", json={"given": []}, headers={"Host": HOST})
    rebound = client.post(f"/{TOKEN}/marginals", json={"given": []}, headers={"Host": "evil"})
    assert refused.status_code == rebound.status_code == 403


def test_localhost_is_the_same_machine(client):
    found = client.get(f"/{TOKEN}/", headers={"Host": f"localhost:{PORT}"})
    assert found.status_code == 200


def test_the_page_and_its_parts_come_from_here_alone(client):
    page = get(client, "")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert page.headers["Cache-Control"] == "no-store"
    parts = [
        "explorer.js",
        "explorer.css",
        "network.js",
        "details.js",
        "marginals.js",
        "elements.js",
    ]
    for name in parts:
        with get(client, f"assets/{name}") as part:
            assert part.status_code == 200, name
            text = part.text.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
        assert "http:" not in text, name
        assert "https:" not in text, name
        assert "innerHTML" not in text, name
    assert "//" not in page.text.replace("<!doctype html>", "")


def test_the_server_listens_on_the_loopback_address_and_wants_its_own_token():
    server, url = make_explorer_server(Explorer(forbidding_model()))
    assert server.socket.getsockname()[0] == "127.0.0.1"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with urllib.request.urlopen(url + "model") as response:
            assert len(json.load(response)["variables"]) == 4
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(url.rsplit("/", 2)[0] + "/model")
        with pytest.raises(OSError, match="choose another"):
            make_explorer_server(Explorer(forbidding_model()), server.port)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_tokens_differ():
    explorer = Explorer(forbidding_model())
    servers = [make_explorer_server(explorer) for _ in range(2)]
    tokens = {url.split("/")[-2] for _, url in servers}
    for server, _ in servers:
        server.server_close()
    assert len(tokens) == 2
    assert min(len(token) for token in tokens) >= 32


COMMAND = [
    sys.executable,
    "-c",
    "import typer; from edgegraft.cli.model_commands import explore; typer.run(explore)",
    "--no-browser",
]


def test_the_command_serves_a_model_file_until_it_is_interrupted(tmp_path):
    path = tmp_path / "small.edgegraft"
    forbidding_model().save(path)
    with subprocess.Popen([*COMMAND, str(path)], stderr=subprocess.PIPE, text=True) as process:
        try:
            url = re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/", process.stderr.readline())[0]
            with urllib.request.urlopen(url + "model") as response:
                assert json.load(response)["title"] == "small.edgegraft"
            process.send_signal(signal.SIGINT)
            assert "has ended" in process.stderr.read()
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()


def test_the_command_refuses_a_file_that_is_no_model(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    found = subprocess.run([*COMMAND, str(path)], capture_output=True, text=True, timeout=60)
    assert found.returncode == 2
    assert "rows.csv" in found.stderr
    assert "Traceback" not in found.stderr
