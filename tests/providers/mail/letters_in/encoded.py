"""Reports whose parts are encoded. RFC 2046 forbids it of ``message``, and gateways do it all the
same."""

from __future__ import annotations

import base64

from tests.providers.mail.letters_in import OURS, SENT, WHOM, back, came, said

RFC = "https://www.rfc-editor.org/rfc/rfc2046#section-5.2.1 (what is not to be)"
ARF = "https://www.rfc-editor.org/rfc/rfc5965#section-3.1"

STATUS = f"""\
Reporting-MTA: dns; mx.client.example

Final-Recipient: rfc822; {WHOM}
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 User unknown
"""
FEEDBACK = f"""\
Feedback-Type: @@KIND@@
User-Agent: Some/1
Version: 1
Original-Rcpt-To: {WHOM}
"""


def in_base64(text: str) -> str:
    return "Content-Transfer-Encoding: base64\n\n" + base64.encodebytes(text.encode()).decode()


def in_quotes(text: str) -> str:
    """Also what need not be, and with lines broken where no field would be."""
    quoted = text.replace("=", "=3D").replace(": ", ":=20").replace("-", "=2D")
    return "Content-Transfer-Encoding: Quoted-Printable\n\n" + quoted.replace("unk", "un=\nk")


def as_it_is(text: str) -> str:
    return "\n" + text


def report(
    kind: str, told: str, letter: str, sender: str = "MAILER-DAEMON@mx.client.example"
) -> str:
    name = "feedback-report" if kind == "message/feedback-report" else "delivery-status"
    return f"""\
From: {sender}
To: {OURS}
Subject: Your letter
Content-Type: multipart/report; report-type={name}; boundary="b"

--b
Content-Type: text/plain

Something about your letter.
--b
Content-Type: {kind}
{told}
--b
Content-Type: message/rfc822
{letter}
--b--
"""


DSN = "message/delivery-status"
GLOBAL = "message/global-delivery-status"
FBL = "message/feedback-report"
LETTER = f"{SENT}\nGood morning!\n"
GONE = back("bounced", code="5.1.1", reason="550 5.1.1 User unknown")
SPAM = back("complaint", code="abuse", reason="abuse, reported by Some/1")


def feedback(kind: str) -> str:
    return FEEDBACK.replace("@@KIND@@", kind)


def fbl(told: str, letter: str = "\n" + LETTER) -> str:
    return report(FBL, told, letter, "fbl@isp.example")


UNREAD = said(sender="fbl@isp.example", chat="fbl@isp.example", automatic=True, answers=None)

ENCODED = (
    came("status-in-base64", RFC, report(DSN, in_base64(STATUS), as_it_is(LETTER)), GONE),
    came("status-in-quotes", RFC, report(DSN, in_quotes(STATUS), as_it_is(LETTER)), GONE),
    came("status-in-another-alphabet", RFC,
         report(GLOBAL, in_base64(STATUS), as_it_is(LETTER)), GONE),
    came("letter-in-base64", RFC, report(DSN, as_it_is(STATUS), in_base64(LETTER)), GONE),
    came("letter-in-quotes", RFC, report(DSN, as_it_is(STATUS), in_quotes(LETTER)), GONE),
    came("both-in-base64", RFC, report(DSN, in_base64(STATUS), in_base64(LETTER)), GONE),
    came("said-to-be-in-base64-and-is-not", RFC,
         report(DSN, "Content-Transfer-Encoding: base64\n\n" + STATUS,
                "Content-Transfer-Encoding: base64\n\n" + LETTER), GONE),
    came("complaint-in-base64", ARF, fbl(in_base64(feedback("abuse"))), SPAM),
    came("complaint-in-quotes", ARF, fbl(in_quotes(feedback("abuse"))), SPAM),
    came("complaint-with-the-letter-in-base64", ARF,
         fbl(as_it_is(feedback("abuse")), in_base64(LETTER)), SPAM),
    came("complaint-with-a-comment", ARF, fbl(as_it_is(feedback("Abuse (as they say)"))), SPAM),
    came("complaint-below-an-empty-line", ARF, fbl(as_it_is("\n" + feedback("abuse"))), SPAM),
    came("not-spam-below-an-empty-line", ARF, fbl(as_it_is("\n" + feedback("not-spam")))),
    came("complaint-below-an-empty-line-in-base64", ARF,
         fbl(in_base64("\n\n" + feedback("abuse"))), SPAM),
    came("not-spam-in-base64", ARF, fbl(in_base64(feedback("not-spam")))),
    came("not-spam-in-quotes", ARF, fbl(in_quotes(feedback("not-spam")))),
    came("auth-failure-in-base64", ARF, fbl(in_base64(feedback("auth-failure")))),
    came("complaint-of-no-kind", ARF, fbl(as_it_is("User-Agent: Some/1\nVersion: 1\n")), UNREAD),
    came("complaint-of-an-empty-kind", ARF, fbl(as_it_is(feedback(""))), UNREAD),
    came("complaint-that-cannot-be-read", ARF, fbl(as_it_is("!!! 12 ###\n")), UNREAD),
    came("complaint-of-what-is-no-kind", ARF, fbl(as_it_is(feedback("?=\x01 (x)"))), UNREAD),
)  # fmt: skip
