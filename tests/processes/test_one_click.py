"""One click on a link that a real letter bore, against the real service, over real HTTP."""

from __future__ import annotations

import httpx
import pytest

from tests.processes.service import Installation, eventually
from tests.processes.test_smtp import mailing as mailing  # noqa: PLC0414  (a fixture)
from tests.processes.test_smtp import sink as sink  # noqa: PLC0414
from tests.providers.smtp.fake import FakeServer

ONE_CLICK = {"List-Unsubscribe": "One-Click"}


def suppressed(mailing: Installation) -> list[str]:
    """The addresses that nobody may write to."""
    return [address for address, *_ in mailing.look(lambda tx: tx.suppressions.list())]


@pytest.mark.parametrize("path", ["", "/mail"])
def test_only_a_post_to_the_very_link_unsubscribes(
    mailing: Installation, sink: FakeServer, path: str
) -> None:
    public = f"https://paceline.example{path}"
    mailing.env["PACELINE_BASE_URL"] = public
    with mailing.service("one") as service:
        eventually(lambda: sink.letters, "a letter has arrived")
        letter = sink.letters[0].parsed
        assert letter["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        link = letter["List-Unsubscribe"].strip("<>")
        assert link.startswith(f"{public}/unsubscribe/")
        here = service.url + link.removeprefix("https://paceline.example")
        for method in ("GET", "HEAD", "OPTIONS"):
            httpx.request(method, here)
        assert httpx.get(here).status_code == 200 and suppressed(mailing) == []
        forged = here[:-1] + ("a" if here[-1] != "a" else "b")
        assert httpx.post(forged, data=ONE_CLICK).status_code == 404
        assert suppressed(mailing) == []
        assert httpx.post(here, data=ONE_CLICK).status_code == 200
        assert suppressed(mailing) == [sink.letters[0].recipient]
        assert httpx.post(here, data=ONE_CLICK).status_code == 200, "twice is once"
        assert len(suppressed(mailing)) == 1
        assert service.terminate() == 0
