"""Letters as mail systems and people write them, each with what is to be read in it.

They were written for these tests, after formats whose descriptions are named beside them. All
addresses and names are those that nobody has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paceline.providers.mail.ids import id_of, token

KEY = "17/42/1"
OURS = "anna@shop.example"
WHOM = "bert@client.example"
NAME = id_of(KEY, "shop.example")
EARLIER = id_of("17/42/0", "shop.example")
VERP = f"bounce+{token(KEY)}@shop.example"

SENT = f"""\
Received: from shop.example (shop.example [192.0.2.10])
	by out.shop.example with ESMTPSA id 4Xk0
	for <{WHOM}>; Mon, 16 Nov 2026 09:00:00 +0000
From: "Anna from the shop" <{OURS}>
To: {WHOM}
Subject: Your offer
Date: Mon, 16 Nov 2026 09:00:00 +0000
Message-ID: {NAME}
References: {EARLIER}
MIME-Version: 1.0
Content-Type: text/plain; charset="utf-8"
"""
"""What stands above a letter of ours."""


@dataclass(frozen=True)
class Came:
    """A letter, where its form is described, and what each piece of news is to say."""

    name: str
    source: str
    text: str
    news: tuple[dict[str, Any], ...]

    @property
    def raw(self) -> bytes:
        return self.text.replace("\n", "\r\n").encode()


def came(name: str, source: str, text: str, *news: dict[str, Any]) -> Came:
    for mark, value in {
        "@@NAME@@": NAME, "@@EARLIER@@": EARLIER, "@@OURS@@": OURS, "@@WHOM@@": WHOM,
        "@@VERP@@": VERP, "@@SENT@@": SENT,
    }.items():  # fmt: skip
        text = text.replace(mark, value)
    return Came(name, source, text, news)


def back(kind: str, **more: Any) -> dict[str, Any]:
    """A letter of ours that came back."""
    return {"kind": kind, "address": WHOM, "key": KEY} | more


def said(**more: Any) -> dict[str, Any]:
    """A message to us."""
    return {"sender": WHOM, "chat": WHOM, "from_us": False, "automatic": False} | more
