"""Letters that look like reports at first sight, and may have been written by a person."""

from __future__ import annotations

from typing import Any

from tests.providers.mail.letters_in import KEY, back, came, said

OWN = "https://www.rfc-editor.org/rfc/rfc5321#section-4.5.1 (people read postmaster@)"
MDN = "https://www.rfc-editor.org/rfc/rfc8098"
SIGNS = "https://www.rfc-editor.org/rfc/rfc5321#section-6.1 (a report comes from nobody)"

POSTMASTER = "postmaster@client.example"
BOUNCE = "bounce@trampoline.example"


def written(sender: str, text: str, subject: str = "Re: Your offer", head: str = "") -> str:
    return f"""\
{head}From: Bert <{sender}>
To: @@OURS@@
Subject: {subject}
Message-ID: <doubt-1@client.example>
In-Reply-To: @@NAME@@
References: @@EARLIER@@ @@NAME@@

{text}
"""


def by(sender: str, **more: Any) -> dict[str, Any]:
    return said(sender=sender, chat=sender, answers=KEY) | more


PEOPLE = (
    came("postmaster-yes", OWN, written(POSTMASTER, "Yes please, send me an offer.\nBert"),
         by(POSTMASTER, text="Yes please, send me an offer.\nBert")),
    came("postmaster-stop", OWN, written(POSTMASTER, "STOP"), by(POSTMASTER, text="STOP")),
    came("postmaster-stop-with-an-envelope", OWN,
         written(POSTMASTER, "STOP", head=f"Return-Path: <{POSTMASTER}>\n"),
         by(POSTMASTER, text="STOP")),
    came("postmaster-numbers", OWN,
         written(POSTMASTER, "We are 450 people; the invalid user account you mention is mine."),
         by(POSTMASTER)),
    came("postmaster-quotes-a-report", OWN,
         written(POSTMASTER, """\
I wrote to Cleo and got this:

> Delivery to the following recipient failed permanently:
>
>     cleo@shop.example
>
> 550 5.1.1 <cleo@shop.example>: no such user"""),
         by(POSTMASTER)),
    came("postmaster-has-a-delivery-problem", OWN,
         written(POSTMASTER, "The parcel you sent has not come.", "Delivery problem"),
         by(POSTMASTER)),
    came("bounce-is-a-name", OWN, written(BOUNCE, "Sure, call me."), by(BOUNCE)),
    came("bounces-is-a-name", OWN, written("bounces@trampoline.example", "STOP"),
         by("bounces@trampoline.example", text="STOP")),
    came("bounce-with-a-word-behind-it", OWN, written("bounce.house@party.example", "Call me."),
         by("bounce.house@party.example")),
    came("postmaster-of-our-own", OWN, written("postmaster@shop.example", "It has arrived."),
         by("postmaster@shop.example")),
)  # fmt: skip

PROGRAMS = (
    came("postmaster-away", OWN,
         written(POSTMASTER, "Ich bin bis 5.5. nicht im Haus.", "Abwesenheitsnotiz",
                 "Auto-Submitted: auto-replied\n"),
         by(POSTMASTER, automatic=True)),
    came("postmaster-away-from-nobody", OWN,
         written(POSTMASTER, "Away. Extension 450 Please call.", "Re: Your offer",
                 "Return-Path: <>\nAuto-Submitted: auto-replied\n"),
         by(POSTMASTER, automatic=True)),
    came("postmaster-away-to-the-address-of-the-letter", OWN,
         written(POSTMASTER, "Away until Friday.", "Out of office",
                 "Return-Path: <>\n").replace("To: @@OURS@@", "To: @@VERP@@"),
         by(POSTMASTER, automatic=True)),
    came("could-not-read-it", OWN,
         written("bert@client.example", "Away. Extension 450 Please call.",
                 "Message could not be read right now", "Return-Path: <>\n"),
         by("bert@client.example", automatic=True)),
    came("postmaster-has-read-it", MDN, """\
From: Bert <postmaster@client.example>
To: @@OURS@@
Subject: Read: Your offer
Message-ID: <mdn-1@client.example>
In-Reply-To: @@NAME@@
Content-Type: multipart/report; report-type=disposition-notification; boundary="b"

--b
Content-Type: text/plain

Your letter was displayed.
--b
Content-Type: message/disposition-notification

Final-Recipient: rfc822; postmaster@client.example
Disposition: manual-action/MDN-sent-manually; displayed

--b--
""", by(POSTMASTER, automatic=True)),
    *(came(f"a-system-says-that-it-was-{done}{'-' * bool(kind)}{kind}", MDN, f"""\
Return-Path: <>
From: Mail of the client <postmaster@client.example>
To: @@OURS@@
Subject: Read: Your offer
Message-ID: <mdn-2@client.example>
X-Failed-Recipients: @@WHOM@@
Content-Type: multipart/report; {kind and f"report-type={kind};"} boundary="b"

--b

Your letter was {done}.
--b
Content-Type: message/disposition-notification

Final-Recipient: rfc822; @@WHOM@@
Original-Message-ID: @@NAME@@
Disposition: automatic-action/MDN-sent-automatically; {done}

--b
Content-Type: text/rfc822-headers

@@SENT@@
--b--
""", by(POSTMASTER, automatic=True, answers=None))
      for done, kind in (("displayed", "disposition-notification"),
                         ("deleted", "Disposition-Notification"), ("denied", ""))),
    came("postmaster-tells-news", OWN, """\
From: Mail of the client <postmaster@client.example>
To: @@OURS@@
Subject: Scheduled maintenance
Message-ID: <news-1@client.example>

We are down on Sunday.
""", by(POSTMASTER, automatic=True, answers=None)),
)  # fmt: skip

REPORTS = (
    came("in-no-form-but-from-nobody", SIGNS,
         written(POSTMASTER, "550 5.1.1 no such user", "Your letter", "Return-Path: <>\n"),
         back("bounced", address="", code="5.1.1")),
    came("in-no-form-but-called-a-report", SIGNS,
         written("mailer-daemon@client.example", "It was answered 552 5.2.2 mailbox is full.",
                 "Mail delivery failed"),
         back("failed", address="", code="5.2.2")),
    came("in-no-form-but-a-report-by-type", SIGNS, """\
From: MAILER-DAEMON@client.example
To: @@OURS@@
Subject: Your letter
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b

It was answered with 550 5.1.1 no such user.
--b
Content-Type: message/rfc822

@@SENT@@
Good morning!
--b--
""", back("bounced", address="", code="5.1.1")),
    came("in-a-known-form-with-nothing-else", SIGNS, """\
From: MAILER-DAEMON@mx.client.example
To: @@OURS@@
Subject: Your letter

Hi. This is the qmail-send program at mx.client.example.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

<@@WHOM@@>:
Sorry, no mailbox here by that name. (#5.1.1)

--- Below this line is a copy of the message.

Return-Path: <@@OURS@@>
@@SENT@@
Good morning!
""", back("bounced", code="5.1.1")),
    came("in-no-form-with-the-letter-in-it", SIGNS, """\
From: Mail Guard <postmaster@guard.example>
To: @@OURS@@
Subject: We did not take it
Content-Type: multipart/mixed; boundary="b"

--b

Your letter was answered with 550 5.1.1 no such user.
--b
Content-Type: text/rfc822-headers

Message-ID: @@NAME@@
Subject: Your offer

--b--
""", back("bounced", address="", code="5.1.1")),
)  # fmt: skip

DOUBTFUL = (*PEOPLE, *PROGRAMS, *REPORTS)
