"""The database is unplugged in the middle of a campaign, and plugged in again."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import make_url

from tests.processes.plug import Plug
from tests.processes.service import Installation, eventually

COUNT = 150


@pytest.fixture
def plug(fresh_postgres_url: Callable[[], str]) -> Iterator[tuple[Plug, str]]:
    direct = make_url(fresh_postgres_url())
    plug = Plug(direct.host or "127.0.0.1", direct.port or 5432)
    try:
        through = direct.set(host="127.0.0.1", port=plug.port)
        yield plug, through.render_as_string(hide_password=False)
    finally:
        plug.close()


def test_a_service_survives_an_unplugged_database(plug: tuple[Plug, str], tmp_path: Path) -> None:
    wire, url = plug
    installation = Installation(tmp_path, url)
    installation.run("account", "add", "ann", "--provider", "sandbox", "--set", "rate=40/s")
    installation.campaign("spring", COUNT, "ann")
    with installation.service("first") as service:
        eventually(lambda: len(installation.accepted()) > COUNT // 5, "some were sent")
        assert httpx.get(f"{service.url}/readyz").status_code == 200
        wire.pull()
        service.wait_for_line("store unavailable")
        answer = httpx.get(f"{service.url}/readyz", timeout=30)
        assert answer.status_code == 503
        assert httpx.get(f"{service.url}/healthz").status_code == 200
        refused = installation.run("campaign", "list", check=False)
        assert refused.returncode == 1
        assert len(refused.stderr.strip().splitlines()) == 1
        assert "Traceback" not in refused.stderr
        wire.put_back()
        eventually(lambda: installation.finished("spring"), "the campaign ended")
        eventually(
            lambda: httpx.get(f"{service.url}/readyz").status_code == 200, "it is ready again"
        )
        assert service.terminate() == 0
    accepted = installation.accepted()
    assert (len(accepted), max(accepted.values())) == (COUNT, 1)
    status = installation.ask("campaign", "status", "spring")
    assert status["counts"]["sent"] == COUNT
    assert installation.ask("verify")["violations"] == []
