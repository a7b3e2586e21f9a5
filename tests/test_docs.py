"""The documentation says what the code does: generated pages, tables and commands are compared."""

import re
import tomllib
from pathlib import Path

import pytest

from paceline.core import diagrams
from paceline.core.policy import KEYS, Policy
from paceline.core.presets import PRESETS
from paceline.engine.campaign_spec import KEYS as CAMPAIGN_KEYS
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.run_queue import AT_FIRST, LARGEST_PAGE, PAGE

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def test_the_state_diagrams_are_those_of_the_tables() -> None:
    assert (DOCS / "states.md").read_text() == diagrams.page(), "run scripts/states"


def test_every_policy_key_and_preset_is_explained() -> None:
    text = (DOCS / "policies.md").read_text()
    keys = re.findall(r"^\| `(\w+)` \|", text.split("## Keys")[1].split("## What counts")[0], re.M)
    assert keys == list(KEYS)
    for name in PRESETS:
        assert f"`{name}`" in text


def test_every_key_of_a_campaign_file_is_explained() -> None:
    text = (DOCS / "campaign-files.md").read_text()
    table = text.split("| key | means |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) == set(CAMPAIGN_KEYS)
    for block in re.findall(r"```toml\n(name = .*?)```", text, re.S):
        CampaignSpec.from_mapping(tomllib.loads(block))


def test_the_policies_in_the_docs_are_valid() -> None:
    for block in re.findall(r"```toml\n(.*?)```", (DOCS / "policies.md").read_text(), re.S):
        for name, written in tomllib.loads(block)["policy"].items():
            base = PRESETS[written.pop("extends")].settings if "extends" in written else {}
            Policy.from_mapping({**base, **written}, where=name)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda p: p.name)
def test_the_examples_are_valid(path: Path) -> None:
    raw = tomllib.loads(path.read_text())
    CampaignSpec.from_mapping(raw)
    assert (path.parent / raw["audience"]).exists()


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\((?!https:)([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_how_much_a_measured_claim_reads_is_what_a_lane_reads() -> None:
    told = (DOCS / "performance.md").read_text().split("### claims\n")[1].split("Its statements")[0]
    assert f"page of {PAGE} deliveries" in told
    assert f"reads {LARGEST_PAGE} the next time" in told and f"begins with {AT_FIRST};" in told


def test_tables_of_fewer_repetitions_than_usual_are_named() -> None:
    text = (DOCS / "performance.md").read_text()
    usual = text.split("## How measured")[1].split("Each runs")[0]
    fewer = re.findall(r"^### (\w+), [-\d]+\n\n.*(?:medians of [^5f]|one repetition)", text, re.M)
    assert fewer == ["engine", "conversations"]
    assert "engines were looked at three times, conversations once" in usual


def test_the_picture_loads_nothing_from_elsewhere() -> None:
    svg = (DOCS / "demo.svg").read_text()
    assert re.findall(r"https?://[^\s\"]+", svg) == ["http://www.w3.org/2000/svg"]
    assert "@import" not in svg and "@font-face" not in svg
