"""Where an action goes: which addresses suit it, and what is said of those that do not."""

import pytest

from paceline.core.errors import InputError
from paceline.core.model import Target
from paceline.engine.routes import Route, route
from tests.engine.world import World

MEMBER = "ACoAAB1234567890abcdefgh"


@pytest.mark.parametrize(
    ("action", "channel", "address", "problem"),
    [
        ("email", "email", "anna@example.com", ""),
        ("email", "email", "+4915112345678", "is a phone number, not an e-mail address"),
        ("email", "email", MEMBER, "is a LinkedIn profile, not an e-mail address"),
        ("email", "email", "1203630@g.us", "is a group, not an e-mail address"),
        ("email", "email", "anna", "is not an e-mail address"),
        ("email", "email", "anna@example", "is not an e-mail address: the part after the @-sign"),
        ("message", "linkedin", MEMBER, ""),
        ("message", "linkedin", "anna-muster", ""),
        ("message", "linkedin", "chat:77", ""),
        ("message", "linkedin", "Anna Muster", "is not a LinkedIn profile"),
        ("message", "linkedin", "a@x.de", "is an e-mail address, not a LinkedIn profile"),
        ("connection_request", "linkedin", "+4915112345678", "is a phone number, not a LinkedIn"),
        ("message", "whatsapp", "+4915112345678", ""),
        ("message", "whatsapp", "1203630@g.us", ""),
        ("message", "whatsapp", "99887766554433@lid", ""),
        ("message", "whatsapp", "US.13491208655302741918", ""),
        ("message", "whatsapp", "US.ENT.11815799212886844830", ""),
        ("email", "email", "99887766554433@lid", "is not an e-mail address"),
        ("message", "whatsapp", "a@x.de", "is an e-mail address, not a phone number or a group"),
        ("message", "whatsapp", "anna", "is not a phone number or a group"),
        ("message", "whatsapp", "+49 151", "is a phone number that nobody can have"),
        # The sandbox calls people as it likes; but what is plainly something else is told.
        ("message", "sandbox", "anna", ""),
        ("message", "sandbox", "a@x.de", ""),
        ("email", "sandbox", "anna", ""),
        ("email", "sandbox", "anna@example", ""),
        ("email", "sandbox", "+4915112345678", "is a phone number, not an e-mail address"),
        ("inmail", "sandbox", "a@x.de", "is an e-mail address, not a LinkedIn profile"),
    ],
)
def test_an_address_suits_what_is_sent_or_is_told(
    action: str, channel: str, address: str, problem: str
) -> None:
    said = route(action, [channel]).problem(address)
    assert said.startswith(problem) and bool(said) is bool(problem)


def test_several_channels_take_what_suits_them_all() -> None:
    assert route("message", ["sandbox", "whatsapp"]) == Route(("phone", "group"), strict=True)
    assert route("message", ["whatsapp", "sandbox"]) == Route(("phone", "group"), strict=True)
    assert not route("message").strict
    with pytest.raises(InputError, match="linkedin and whatsapp have no kind of address in common"):
        route("message", ["whatsapp", "linkedin"])


def test_the_best_of_several_addresses() -> None:
    addresses = {"email": "a@x.de", "phone": "+4915112345678", "linkedin": "anna"}
    assert route("message", ["sandbox"]).pick(addresses) == "+4915112345678"
    assert route("email", ["sandbox"]).pick(addresses) == "a@x.de"
    assert route("message", ["linkedin"]).pick(addresses) == "anna"
    whatsapp = route("message", ["whatsapp"])
    assert (whatsapp.pick({"email": "a@x.de"}), whatsapp.missing()) == (
        None,
        "has no phone number or group",
    )


def test_nobody_is_planned_for_who_cannot_be_reached(world: World) -> None:
    """Whoever asks the engine itself has to know, too."""

    async def script(world: World) -> None:
        world.account()
        lost = r"audience: target \+4915112345678 is a phone number, not an e-mail address"
        with pytest.raises(InputError, match=lost):
            world.campaign(targets=[Target("a@x.de"), Target("+4915112345678")], action="email")
        assert world.read(lambda tx: tx.campaigns.list()) == []
        world.campaign(targets=[Target("a@x.de")], action="email")

    world.play(script)
