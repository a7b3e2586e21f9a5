"""People named as LinkedIn names them: looked up before anything is sent, and never in doubt."""

from __future__ import annotations

import socket
from typing import cast

import pytest

from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Driver, Found, Message, Resolver
from paceline.providers.unipile.errors import ERRORS
from paceline.providers.unipile.recipients import (
    LOOKUP_ERRORS,
    Recipients,
    is_id,
    lookup_kind,
    public_name,
)
from tests.providers.loopback import HTML, JSON, Scripted
from tests.providers.remote import patience
from tests.providers.unipile.fake import KEY, LINKEDIN, FakeUnipile, error
from tests.providers.unipile.stage import letter, message, play

ID = "ACoAAAcDMMQBODyLwZrRcgYhrkCafURGqva0U4E"
NAMED = ["anna-muster", "https://www.linkedin.com/in/Anna-Muster/?trk=x", " Anna-Muster "]
PATH = "/users/anna-muster"


def resolve(fake: FakeUnipile, sent: Message, **settings: object) -> str | Outcome:
    kind = "email" if sent.action == "email" else "linkedin"

    async def scene(driver: Driver) -> str | Outcome:
        return await resolver(driver).resolve(sent)

    return play(fake.settings(kind, **settings), scene, patience(fake))


def resolver(driver: Driver) -> Resolver:
    return cast("Resolver", driver)


def lookups(fake: FakeUnipile) -> list[str]:
    return [call.path for call in fake.calls if call.path.startswith("/users/")]


@pytest.mark.parametrize("target", NAMED)
@pytest.mark.parametrize("action", ["message", "inmail", "connection_request"])
def test_a_public_name_becomes_an_id(fake: FakeUnipile, action: str, target: str) -> None:
    fake.profiles["anna-muster"] = "AAanna"
    assert resolve(fake, message(action, target)) == "ACoAAanna"
    call = fake.calls[-1]
    assert (call.method, call.path.lower(), call.body) == ("GET", PATH, b"")
    assert call.query == {"account_id": LINKEDIN}
    assert call.headers["x-api-key"] == KEY
    assert not fake.sends()


def test_every_letter_of_a_name_reaches_the_other_side(fake: FakeUnipile) -> None:
    fake.profiles["jérôme.m-1"] = "AAjer"
    assert resolve(fake, message(target="linkedin.com/in/J%C3%A9r%C3%B4me.m-1")) == "ACoAAjer"
    assert fake.calls[-1].path == "/users/j%C3%A9r%C3%B4me%2Em-1"


@pytest.mark.parametrize(("product", "prefix"), [("recruiter", "AEM"), ("sales_navigator", "ACw")])
def test_each_product_has_ids_of_its_own(fake: FakeUnipile, product: str, prefix: str) -> None:
    fake.profiles["anna-muster"] = "AAanna"
    sent = message("inmail", "anna-muster")
    assert resolve(fake, sent, linkedin_api=product) == f"{prefix}AAanna"
    assert fake.calls[-1].query == {"account_id": LINKEDIN, "linkedin_api": product}
    invited = message("connection_request", "anna-muster")
    assert resolve(fake, invited, linkedin_api=product) == "ACoAAanna", "invitations know only one"


@pytest.mark.parametrize(
    "sent",
    [
        message(target=ID),
        message(target=f" {ID} "),
        message(target=f"https://www.linkedin.com/in/{ID}"),
        message(target="chat:77"),
        message(target="urn:li:fsd_profile:1"),
        message(target=""),
        letter(),
    ],
    ids=lambda sent: sent.target,
)
def test_what_is_an_id_already_is_not_looked_up(fake: FakeUnipile, sent: Message) -> None:
    expected = sent.target.strip().removeprefix("https://www.linkedin.com/in/")
    assert resolve(fake, sent) == expected
    assert not lookups(fake)


@pytest.mark.parametrize(
    ("target", "is_one"),
    [
        (ID, True),
        ("ADoAAB", True),
        ("ACwAAB", True),
        ("AEMAAB", True),
        ("chat:7", True),
        ("acosta-aaron", False),
        ("ACosta", False),
        ("aegon", False),
        (ID.lower(), False),
        ("12345678", False),
    ],
)
def test_ids_are_told_from_names(target: str, is_one: bool) -> None:
    assert is_id(target) == is_one


@pytest.mark.parametrize(
    "target",
    [
        "anna@example.com",
        "+4915112345678",
        "Anna Muster",
        "example.com/in/x",
        "me",
        "Me",
        "a\ud800",
    ],
)
def test_what_can_be_no_profile_is_refused_without_asking(fake: FakeUnipile, target: str) -> None:
    outcome = resolve(fake, message(target=target))
    assert isinstance(outcome, Outcome)
    assert (outcome.kind, outcome.code) == (OutcomeKind.REJECTED, "target")
    assert not lookups(fake)


def test_nobody_is_looked_up_twice(fake: FakeUnipile) -> None:
    fake.profiles |= {"anna": "AAanna", "bob": "AAbob"}

    async def scene(driver: Driver) -> list[str | Outcome]:
        targets = ("anna", "Anna", "linkedin.com/in/anna", "bob", "anna")
        return [await resolver(driver).resolve(message(target=target)) for target in targets]

    found = play(fake.settings(), scene)
    assert found == ["ACoAAanna"] * 3 + ["ACoAAbob", "ACoAAanna"]
    assert lookups(fake) == ["/users/anna", "/users/bob"]


def test_a_failure_is_not_remembered(fake: FakeUnipile) -> None:
    async def scene(driver: Driver) -> list[str | Outcome]:
        first = await resolver(driver).resolve(message(target="anna"))
        fake.profiles["anna"] = "AAanna"
        return [first, await resolver(driver).resolve(message(target="anna"))]

    first, second = play(fake.settings(), scene)
    assert isinstance(first, Outcome) and second == "ACoAAanna"


def test_so_many_are_remembered_and_no_more() -> None:
    known = Recipients(most=2)
    known.put("anna", "classic", "1")
    known.put("bob", "classic", "2")
    assert known.get("ANNA", "classic") == "1"
    assert known.get("anna", "recruiter") is None
    known.put("carl", "classic", "3")
    assert known.get("bob", "classic") is None, "the longest unused goes first"
    assert known.get("anna", "classic") == "1"
    known.put("anna", "classic", "4")
    assert known.get("carl", "classic") == "3", "one that is known takes nobody's place"


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize("row", LOOKUP_ERRORS, ids=lambda row: row.code)
def test_every_row_of_the_table_over_the_wire(fake: FakeUnipile, row: object) -> None:
    status, type_, kind = row.status, row.code, row.kind  # type: ignore[attr-defined]
    fake.answers["/users/anna"] = error(status, type_)
    outcome = resolve(fake, message(target="anna"))
    assert isinstance(outcome, Outcome)
    assert (outcome.kind, outcome.code) == (kind, type_)
    assert "Told in detail" in outcome.reason
    assert not fake.sends()


@pytest.mark.parametrize("row", ERRORS, ids=lambda row: row.code)
def test_all_else_means_what_it_means_for_a_send(row: object) -> None:
    status, type_, kind = row.status, row.code, row.kind  # type: ignore[attr-defined]
    found = lookup_kind(status, type_)
    assert found not in (OutcomeKind.ACCEPTED, OutcomeKind.UNKNOWN), "nothing was sent"
    if kind not in (OutcomeKind.ACCEPTED, OutcomeKind.UNKNOWN):
        assert found is kind


@pytest.mark.parametrize(
    ("scripted", "kind"),
    [
        (error(422, "never_heard_of"), OutcomeKind.REJECTED),
        (error(404, "never_heard_of"), OutcomeKind.REJECTED),
        (Scripted(404, b"<html>", HTML), OutcomeKind.TRANSIENT),
        (Scripted(422, b"<html>", HTML), OutcomeKind.TRANSIENT),
        (Scripted(301, b"", {"Location": "http://127.0.0.1:1/"}), OutcomeKind.TRANSIENT),
        (Scripted(429, b""), OutcomeKind.THROTTLED),
        (Scripted(500, b"<html>", HTML), OutcomeKind.TRANSIENT),
        (Scripted(502, b"<html>", HTML), OutcomeKind.TRANSIENT),
        (Scripted(503, b"<html>", HTML), OutcomeKind.UNAVAILABLE),
        (Scripted(504, b"<html>", HTML), OutcomeKind.TRANSIENT),
        (error(429, "too_many_requests"), OutcomeKind.THROTTLED),
        (error(401, "disconnected_account"), OutcomeKind.UNAUTHORISED),
        (error(403, "account_restricted"), OutcomeKind.BANNED),
        (Scripted(200, b"<html>", HTML), OutcomeKind.TRANSIENT),
        (Scripted(200, b"{}", JSON), OutcomeKind.TRANSIENT),
        (Scripted(200, b'{"provider_id": null}', JSON), OutcomeKind.TRANSIENT),
        (Scripted(200, b'{"type": "errors/user_unreachable"}', JSON), OutcomeKind.REJECTED),
        (Scripted(drops="read"), OutcomeKind.TRANSIENT),
        (Scripted(200, b"{", JSON, drops="midway"), OutcomeKind.TRANSIENT),
        (Scripted(hangs=True), OutcomeKind.TRANSIENT),
    ],
    ids=lambda value: f"{value.status} {value.body[:50]!r}" if isinstance(value, Scripted) else "",
)
def test_nothing_that_happens_leaves_a_doubt(
    fake: FakeUnipile, scripted: Scripted, kind: OutcomeKind
) -> None:
    fake.answers["/users/anna"] = scripted
    outcome = resolve(fake, message(target="anna"))
    assert isinstance(outcome, Outcome)
    assert outcome.kind is kind
    assert outcome.reason
    assert not fake.sends()


def test_a_wait_that_is_asked_for_is_passed_on(fake: FakeUnipile) -> None:
    fake.answers["/users/anna"] = error(429, "too_many_requests", headers={"Retry-After": "90"})
    outcome = resolve(fake, message(target="anna"))
    assert isinstance(outcome, Outcome)
    assert outcome.retry_after_us == 90_000_000


def test_nobody_there_is_no_doubt(fake: FakeUnipile) -> None:
    async def scene(driver: Driver) -> str | Outcome:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            driver._line._client.base_url = "http://{}:{}".format(*free.getsockname())  # type: ignore[attr-defined]
            return await resolver(driver).resolve(message(target="anna"))

    outcome = play(fake.settings(), scene)
    assert isinstance(outcome, Outcome)
    assert (outcome.kind, outcome.code) == (OutcomeKind.TRANSIENT, "profile")


@pytest.mark.parametrize(
    ("account", "kind"),
    [
        (None, OutcomeKind.REJECTED),
        (error(404, "resource_not_found"), OutcomeKind.UNAUTHORISED),
        (error(401, "disconnected_account"), OutcomeKind.UNAUTHORISED),
        (error(500, "unexpected_error"), OutcomeKind.TRANSIENT),
        (Scripted(drops="read"), OutcomeKind.TRANSIENT),
    ],
    ids=["the person is unknown", "account gone", "disconnected", "away", "hangs up"],
)
def test_an_account_that_is_gone_costs_nobody_their_message(
    fake: FakeUnipile, account: Scripted | None, kind: OutcomeKind
) -> None:
    """Unipile says 404 of an account it no longer has, too."""

    async def scene(driver: Driver) -> str | Outcome:
        if account is not None:
            fake.answers[f"/accounts/{LINKEDIN}"] = account
        return await resolver(driver).resolve(message(target="anna"))

    outcome = play(fake.settings(), scene)
    assert isinstance(outcome, Outcome)
    assert outcome.kind is kind


def test_the_key_is_not_repeated(fake: FakeUnipile) -> None:
    fake.answers["/users/anna"] = error(422, "user_unreachable", detail=f"You said {KEY}.")
    outcome = resolve(fake, message(target="anna"))
    assert isinstance(outcome, Outcome)
    assert KEY not in outcome.reason and "(secret)" in outcome.reason


# ---------------------------------------------------------------------- finding


@pytest.mark.parametrize("action", ["message", "inmail", "connection_request"])
def test_what_was_sent_to_somebody_by_name_is_found(fake: FakeUnipile, action: str) -> None:
    fake.profiles["anna-muster"] = "AAanna"
    sent = message(action, "linkedin.com/in/anna-muster", subject="An idea")

    async def scene(driver: Driver) -> Found:
        target = await resolver(driver).resolve(sent)
        assert isinstance(target, str)
        fake.script.append(error(504, "request_timeout", takes=True))
        assert (await driver.send(sent._replace(target=target))).kind is OutcomeKind.UNKNOWN
        return await driver.find(sent, 0)

    assert play(fake.settings(), scene) == Found("present", "id-1")
    # Another process has looked nobody up.
    assert play(fake.settings(), lambda driver: driver.find(sent, 0)).finding == "present"


def test_whoever_cannot_be_looked_up_any_more_is_unclear(fake: FakeUnipile) -> None:
    sent = message(target="anna-muster")
    assert play(fake.settings(), lambda driver: driver.find(sent, 0)) == Found("unclear")
    invited = message("connection_request", "anna-muster")
    body = (
        b'{"items": [{"id": "9", "invited_user_id": "b", "invited_user_public_id": "Anna-Muster"}]}'
    )
    fake.answers["/users/invite/sent"] = Scripted(200, body)
    found = play(fake.settings(), lambda driver: driver.find(invited, 0))
    assert found == Found("present", "9"), "the list itself may know the name"


def test_a_name_is_read_from_any_address_of_a_profile() -> None:
    assert [public_name(target) for target in NAMED] == ["anna-muster"] * 2 + ["Anna-Muster"]
