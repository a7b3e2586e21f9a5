"""Every driver with a fake on loopback that speaks HTTP, as a case of the same campaigns."""

from __future__ import annotations

from typing import Any

from paceline.core.model import Part, Target
from paceline.providers.mail.letters import key_in
from paceline.providers.registry import Registry
from paceline.providers.unipile import UnipileProvider
from tests.providers.campaigns.case import Case, Doubt, Files, Refusal, Trouble, answering
from tests.providers.gmail import fake as gmail
from tests.providers.gmail.bodies import BODIES
from tests.providers.gmail.live import LiveWorld as GmailWorld
from tests.providers.loopback import HTML, Scripted, said
from tests.providers.remote import PATIENT
from tests.providers.unipile import fake as unipile
from tests.providers.unipile.live import LiveWorld as UnipileWorld
from tests.providers.waha import fake as waha
from tests.providers.waha.live import LiveWorld as WahaWorld
from tests.providers.wassenger import fake as wassenger
from tests.providers.wassenger.live import LiveWorld as WassengerWorld
from tests.providers.wati import fake as wati
from tests.providers.wati.live import LiveWorld as WatiWorld
from tests.providers.whatsapp_cloud import fake as cloud
from tests.providers.whatsapp_cloud.live import LiveWorld as CloudWorld

HUNG_UP = Scripted(drops="read", takes=True)
GATEWAY = Scripted(504, b"<html>", takes=True)
TEMPLATE = Part("template", template="order_ready", language="en_US", values=(("", "{{ name }}"),))

# ---------------------------------------------------------------------- WAHA

TIMED_OUT = waha.failure("timed out waiting for message send response", takes=True)


def _forget_waha_files(world: Any) -> None:
    """As a restart does: files live in the process and go out with every message."""
    world.providers.get("waha")._files._kept.clear()


def _same_words_once(world: Any) -> None:
    """WAHA knows the id, and takes it once."""
    first, again = world.fake.sends()
    assert first.json() == again.json()
    assert len(world.fake.messages) == 1


def _session(status: str) -> Any:
    def told(fake: waha.FakeWaha) -> None:
        fake.state = status

    return told


WAHA = Case(
    "waha",
    waha.FakeWaha,
    WahaWorld,
    asked=lambda fake: bool(fake.asked("/messages/")),
    doubts=tuple(
        Doubt(f"{name}, {engine}", lost, fake={"engine": engine})
        for engine in ("GOWS", "NOWEB")
        for name, lost in (("hung up", HUNG_UP), ("gateway", GATEWAY), ("engine", TIMED_OUT))
    ),
    crashes=True,
    resent=_same_words_once,
    refusals=(
        Refusal("key", answering(waha.error(401, "Unauthorized")), "Unauthorized"),
        *(
            Refusal(
                status,
                answering(waha.not_working(status)),
                f"not paired: WAHA says the session is '{status}'",
            )
            for status in ("SCAN_QR_CODE", "FAILED")
        ),
        Refusal("never paired", _session("SCAN_QR_CODE"), "not paired", sends=0),
    ),
    troubles=(
        Trouble(
            "starting",
            answering(waha.not_working("STARTING")),
            lambda fake: len(fake.sends()) == 1,
            sends=1,
        ),
    ),
    files=Files(_forget_waha_files, check=lambda fake: _sent_once(fake, 10)),
)


def _sent_once(fake: Any, count: int) -> None:
    assert len(fake.sends()) == count, "no retry was used up"


# ---------------------------------------------------------------------- Wassenger


def _unauthorised(fake: wassenger.FakeWassenger) -> None:
    assert fake.device is not None
    fake.device["session"] = {"status": "unauthorized"}


WASSENGER = Case(
    "wassenger",
    wassenger.FakeWassenger,
    WassengerWorld,
    asked=lambda fake: any(call.method == "GET" and call.query for call in fake.calls),
    doubts=(Doubt("hung up", HUNG_UP), Doubt("gateway", GATEWAY)),
    refusals=(
        Refusal("device", answering(wassenger.error(401)), "Told in words: 401"),
        Refusal("never paired", _unauthorised, "not paired", sends=0),
    ),
    files=Files(lambda world: world.fake.files.clear(), uploads=2),
)

# ---------------------------------------------------------------------- Unipile

LOOKS = ("/chat_attendees/", "/users/invite/sent")
UNIPILE_LOST = unipile.error(504, "request_timeout", takes=True)


def _credentials(fake: unipile.FakeUnipile) -> None:
    fake.accounts["li-account_1"]["status"] = "CREDENTIALS"


def _new_process(world: Any) -> None:
    """One that has not got the file, and is given a handle of the one before."""
    world.providers = Registry([UnipileProvider(world.clock, timeout=PATIENT)])


def _attached(fake: unipile.FakeUnipile) -> None:
    assert [one["files"][0][2] for one in fake.sent] == [b"PNG"] * 10


UNIPILE = Case(
    "unipile",
    unipile.FakeUnipile,
    UnipileWorld,
    people=[Target(f"ACoAA-{number}", {"name": f"N{number}"}) for number in range(5)],
    hides="lags",
    asked=lambda fake: any(
        call.method == "GET" and any(look in call.path for look in LOOKS) for call in fake.calls
    ),
    doubts=(
        Doubt("message", UNIPILE_LOST, "message"),
        Doubt("invitation", UNIPILE_LOST, "connection_request"),
    ),
    refusals=(
        Refusal(
            "disconnected",
            answering(unipile.error(401, "disconnected_account")),
            "Disconnected account: Told in detail: disconnected_account.",
        ),
        Refusal("credentials", _credentials, "Unipile reports CREDENTIALS", sends=0),
    ),
    files=Files(
        _new_process,
        part=lambda media: Part("media", "See {{ name }}", media=media),
        connect=("email",),
        more={
            "targets": [Target(f"{number}@example.com", {"name": "N"}) for number in range(5)],
            "action": "email",
        },
        check=_attached,
    ),
)

# ---------------------------------------------------------------------- Gmail

NO_GRANT = gmail.no_token(401, "unauthorized_client", "Client is unauthorized")
NO_GRANT_SAID = "unauthorized_client: Client is unauthorized"


def _stale_and_no_other(fake: gmail.FakeGmail) -> None:
    """In the middle of a campaign the token is not good any more, and there is no other."""
    fake.script.append(gmail.STALE)
    fake.later_token_answers.append(NO_GRANT)


def _tokens(answer: Scripted) -> Any:
    def told(fake: gmail.FakeGmail) -> None:
        fake.token_answers.append(answer)

    return told


def _same_id(world: Any) -> None:
    """Gmail takes it twice, but whoever gets both sees that they are one."""
    first, again = world.fake.sent
    assert first.own_id == again.own_id and key_in(first.own_id) is not None


GMAIL = Case(
    "gmail",
    gmail.FakeGmail,
    GmailWorld,
    people=[Target(f"p{number}@example.org", {"name": f"N{number}"}) for number in range(5)],
    parts=(Part("text", "Hello {{ name }}", subject="A word, {{ name }}"),),
    action="email",
    hides="lags",
    asked=lambda fake: bool(fake.searches()),
    doubts=(
        Doubt("hung up", HUNG_UP),
        Doubt("gateway", Scripted(502, b"<html>", HTML, takes=True)),
        Doubt("gmail", gmail.error(500, "backendError", "Backend Error", takes=True)),
        Doubt("odd yes", Scripted(200, b"<html>", HTML, takes=True)),
    ),
    crashes=True,
    resent=_same_id,
    takes_twice=True,
    refusals=(
        Refusal("token", answering(gmail.STALE, gmail.STALE), "invalid authentication credentials"),
        Refusal("mailbox", answering(BODIES["no mailbox"].answer), "Mail service not enabled"),
        Refusal("domain", answering(BODIES["domain"].answer), "have disabled Gmail apps"),
        Refusal("no grant", _tokens(NO_GRANT), NO_GRANT_SAID, sends=0),
        Refusal("no grant any more", _stale_and_no_other, NO_GRANT_SAID, sends=1),
    ),
    troubles=tuple(
        Trouble(name, _tokens(answer), lambda fake: len(fake.asked_for_tokens()) == 1, sends=0)
        for name, answer in (
            ("network", Scripted(drops="read")),
            ("page", Scripted(503, b"<html>", HTML)),
            ("google", gmail.no_token(500, "internal_failure")),
        )
    ),
)

# ---------------------------------------------------------------------- templates only


def _wati_ready(fake: wati.FakeWati) -> None:
    fake.templates["order_ready"] = ("1",)
    fake.talking = set()


WATI = Case(
    "wati",
    wati.FakeWati,
    WatiWorld,
    parts=(TEMPLATE,),
    ready=_wati_ready,
    asked=lambda fake: any("getMessages/" in one.path for one in fake.calls),
    doubts=(
        Doubt("hung up", HUNG_UP),
        Doubt("nobody listed", said(200, {"success": True, "recipients": []}, takes=True)),
    ),
    holds=False,
    refusals=(
        Refusal("token", answering(Scripted(401)), "answered 401"),
        Refusal("credit", answering(wati.answer_of("no-credit")), "Insufficient balance"),
    ),
)


def _cloud_ready(fake: cloud.FakeMeta) -> None:
    fake.templates["order_ready"] = cloud.Approved(blanks=1)
    fake.talking = set()


def _with_a_picture(fake: cloud.FakeMeta) -> None:
    fake.templates["order_ready"] = cloud.Approved(blanks=1, header="image")


CLOUD = Case(
    "whatsapp_cloud",
    cloud.FakeMeta,
    CloudWorld,
    parts=(TEMPLATE,),
    ready=_cloud_ready,
    holds=False,
    refusals=(Refusal("locked", answering(cloud.error(131031, 403)), "(#131031) Told in words"),),
    files=Files(
        lambda world: world.fake.files.clear(),
        part=lambda media: TEMPLATE._replace(media=media),
        uploads=2,
        ready=_with_a_picture,
    ),
)

CASES = [WAHA, WASSENGER, UNIPILE, GMAIL, WATI, CLOUD]
