"""Policies from the command line: printed as written, from every place they can come from."""

import tomllib

from paceline.core.policy import Policy
from paceline.core.presets import PRESETS
from tests.cli.conftest import CommandLine


def test_a_preset_prints_as_it_is_written(paceline: CommandLine) -> None:
    out = paceline.ok("policy", "show", "cold-email").out
    assert out.startswith("# Unsolicited e-mail")
    assert tomllib.loads(out)["policy"]["cold-email"] == PRESETS["cold-email"].settings
    shown = paceline.ok("policy", "show", "cold-email", "--json").json
    assert shown == {"name": "cold-email", "limits": dict(PRESETS["cold-email"].settings)}
    assert not (paceline.folder / "paceline.db").exists(), "a preset needs no database"


def test_what_holds_for_an_account(accounts: CommandLine) -> None:
    accounts.ok("account", "set", "sales", "--set", "daily.email=5")
    out = accounts.ok("policy", "show", "sales").out
    assert out.startswith("# What holds for account sales based on cold-email\n")
    assert tomllib.loads(out)["policy"]["sales"]["daily"] == {"email": 5}


def test_a_policy_of_the_file(paceline: CommandLine) -> None:
    paceline.write("paceline.toml", '[policy.slow]\nextends = "cold-email"\nspacing = "1h"\n')
    limits = paceline.ok("policy", "show", "slow", "--json").json["limits"]
    assert (limits["spacing"], limits["daily"]) == ("1h", {"email": 20})
    names = [entry["name"] for entry in paceline.ok("policy", "presets", "--json").json]
    assert names == sorted([*PRESETS, "slow"])


def test_an_unknown_name_brings_up_the_nearest(accounts: CommandLine) -> None:
    assert "did you mean 'cold-email'?" in accounts.refused("policy", "show", "cold-emial")
    assert "did you mean 'sales'?" in accounts.refused("policy", "show", "sale")


def test_the_presets(paceline: CommandLine) -> None:
    out = paceline.ok("policy", "presets").out
    for name, preset in PRESETS.items():
        assert name in out
        assert preset.description in out


def test_the_presets_in_full_are_toml(paceline: CommandLine) -> None:
    written = tomllib.loads(paceline.ok("policy", "presets", "--toml").out)["policy"]
    assert written.keys() == PRESETS.keys()
    for name, body in written.items():
        assert Policy.from_mapping(body) == Policy.from_mapping(PRESETS[name].settings)
