"""Parts that name a template of the provider's: read, refused, stored, filled in and sent."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from paceline.core.errors import ConflictError, InputError
from paceline.core.model import Content, Part, Target
from paceline.core.template import content_variables, render_part
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.commands import campaigns
from paceline.engine.reminder_spec import ReminderSpec
from tests.engine.scenes import finish
from tests.engine.world import World

LEAST: dict[str, Any] = {"name": "x", "accounts": ["ann"]}
PLAIN = {"template": "order_ready", "language": "en_US"}

WHOLE = """
name = "ready"
account = "ann"
targets = ["x"]
at = "2026-11-20"

[[parts]]
template = "order_ready"
language = "pt_BR"
values = ["{{ name }}", "Tuesday"]
media = "shop.png"

[[parts]]
template = "what_next"
language = "de"
values = { first_name = "{{ name | default('you') }}", day = "{{ day }}" }
"""

NUMBERED = Part(
    "template",
    media="shop.png",
    template="order_ready",
    language="pt_BR",
    values=(("", "{{ name }}"), ("", "Tuesday")),
)
NAMED = Part(
    "template",
    template="what_next",
    language="de",
    values=(("first_name", "{{ name | default('you') }}"), ("day", "{{ day }}")),
)


def spec(*parts: Any) -> CampaignSpec:
    return CampaignSpec.from_mapping({**LEAST, "parts": list(parts)})


def test_a_reminder_s_file_may_have_them() -> None:
    found = ReminderSpec.from_mapping(tomllib.loads(WHOLE)).campaign
    assert found.content == Content((NUMBERED, NAMED))
    assert found.media == ["shop.png"], "what is shown above it is a file like any other"


def test_a_campaign_s_steps_may_have_them() -> None:
    steps = [{"parts": [PLAIN]}, {"after": "3d", "parts": [{**PLAIN, "values": ["{{ a }}"]}]}]
    found = CampaignSpec.from_mapping({**LEAST, "steps": steps})
    first, second = found.contents
    assert first.parts == (Part("template", template="order_ready", language="en_US"),)
    assert second.parts[0].values == (("", "{{ a }}"),)


@pytest.mark.parametrize(
    ("part", "key", "complaint"),
    [
        ({"template": "order_ready"}, "language", "must be a name"),
        ({**PLAIN, "language": ""}, "language", "must be a name"),
        ({**PLAIN, "language": "en-US"}, "language", "must be a name"),
        ({**PLAIN, "language": 7}, "language", "must be a name"),
        ({**PLAIN, "template": ""}, "template", "must be a name"),
        ({**PLAIN, "template": "order ready"}, "template", "must be a name"),
        ({**PLAIN, "template": ["a"]}, "template", "must be a name"),
        ({**PLAIN, "text": "Hello"}, "text", "a template has its own text"),
        ({**PLAIN, "subject": "Hello"}, "subject", "a template has its own text"),
        ({**PLAIN, "html": "Hello"}, "html", "a template has its own text"),
        ({**PLAIN, "caption": "Hello"}, "caption", "a template has its own text"),
        ({**PLAIN, "media": 7}, "media", "must be a text"),
        ({**PLAIN, "media": ""}, "media", "must be a text"),
        ({**PLAIN, "values": "Anna"}, "values", "must be a list of texts, or a table of them"),
        ({**PLAIN, "values": [7]}, "values[1]", "must be a text, and not empty"),
        ({**PLAIN, "values": ["a", " "]}, "values[2]", "must be a text, and not empty"),
        ({**PLAIN, "values": {"day": ""}}, "values.day", "must be a text, and not empty"),
        ({**PLAIN, "values": ["{{ a"]}, "values[1]", "template: "),
        ({**PLAIN, "values": {"day": "{{ a | nope }}"}}, "values.day", "template: "),
        ({"text": "Hello", "language": "de"}, "language", "only a template has this"),
        ({"text": "Hello", "values": ["a"]}, "values", "only a template has this"),
    ],
    ids=str,
)
def test_what_is_wrong_with_one_is_told_with_its_key(
    part: dict[str, Any], key: str, complaint: str
) -> None:
    for place in ("parts", "steps"):
        good = {"parts": [{"text": "x"}, part]}
        raw = {**LEAST, **good} if place == "parts" else {**LEAST, "steps": [good]}
        where = "parts[2]" if place == "parts" else "steps[1].parts[2]"
        with pytest.raises(InputError) as refused:
            CampaignSpec.from_mapping(raw)
        assert str(refused.value).startswith(f"{where}: {key}: {complaint}"), refused.value


def test_a_key_that_nobody_knows_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"unknown key 'parts\[1\].vlues', did you mean 'values'"):
        spec({**PLAIN, "vlues": ["a"]})


def test_it_is_stored_and_read_back_whole() -> None:
    for part in (NUMBERED, NAMED, spec(PLAIN).content.parts[0]):
        assert Part.from_mapping(part.to_mapping()) == part
    kept = Content((NUMBERED, NAMED)).to_list()
    assert Content.from_list(kept) == Content((NUMBERED, NAMED))
    assert "values" not in spec(PLAIN).content.parts[0].to_mapping(), "as short as it can be"


def test_what_is_stored_of_other_parts_stays_as_it_was() -> None:
    """Campaigns from before there were templates are the same wishes as they were."""
    assert Part("text", "Hello").to_mapping() == {"kind": "text", "text": "Hello"}


def test_its_blanks_are_filled_in_for_every_target() -> None:
    assert content_variables(Content((NUMBERED, NAMED))) == {"name", "day"}
    filled = render_part(NAMED, "+49", {"name": "Ann{{a", "day": "{{ name }}"})
    assert filled == NAMED._replace(values=(("first_name", "Ann{{a"), ("day", "{{ name }}")))
    assert render_part(NUMBERED, "+49", {"name": "Ann"}).values == (("", "Ann"), ("", "Tuesday"))
    with pytest.raises(InputError, match="'day' is undefined"):
        render_part(NAMED, "+49", {})


def create(world: World, part: Part, targets: list[Target], key: str | None = None) -> None:
    wanted = CampaignSpec(name="spring", accounts=("ann",), content=Content((part,)))
    now = world.clock.now()
    world.write(lambda tx: campaigns.create_once(tx, wanted, targets, world.providers, now, key))


ANNA = Target("a@x.de", {"name": "Anna", "day": "Monday"})


def test_a_target_without_a_value_is_found_before_anything_is_stored(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        with pytest.raises(InputError, match=r"a@x\.de has no value for day"):
            create(world, NAMED, [Target("a@x.de", {"name": "Anna"})])
        with pytest.raises(
            InputError, match=r"^parts\[1\].values: .* a blank .* left empty"
        ) as bad:
            create(world, NAMED, [ANNA, Target("b@x.de", {"name": "Bob", "day": "\n"})])
        assert "b@x.de" in str(bad.value)
        assert world.read(lambda tx: tx.campaigns.find("spring")) is None
        create(world, NAMED, [ANNA])

    world.play(script)


def test_other_words_in_a_blank_are_another_wish(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        create(world, NAMED, [ANNA], "k1")
        create(world, NAMED, [ANNA], "k1")
        others = (
            NAMED._replace(values=(*NAMED.values[:1], ("day", "Sunday"))),
            NAMED._replace(language="en"),
            NAMED._replace(template="what_now"),
        )
        for other in others:
            with pytest.raises(ConflictError):
                create(world, other, [ANNA], "k1")

    world.play(script)


def test_it_is_sent_as_it_was_filled_in(world: World) -> None:
    """The sandbox tells messages apart by all that they say, as a provider would."""

    async def script(world: World) -> None:
        world.account()
        targets = [Target(f"{name}@x.de", {"name": name, "day": "Monday"}) for name in "abc"]
        world.campaign(targets=targets, parts=(NAMED,))
        await finish(world)

    world.play(script)
    assert world.counts_at_end == {"sent": 3}
    assert len({effect.part.digest for effect in world.sends()}) == 3
