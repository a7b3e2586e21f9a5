"""Letters in prose that say that one of ours is late, and some that only sound like them."""

from __future__ import annotations

from typing import Any

from tests.providers.mail.letters_in import Came, back, came

POSTFIX = "https://www.postfix.org/bounce.5.html (delay_template, with multi-part notices off)"
SENDMAIL = "https://fluflbounce.readthedocs.io (sendmail's transcripts)"
EXCHANGE = "https://learn.microsoft.com/exchange (delay notices of several versions, as text)"
EXIM = "https://www.exim.org/exim-html-current/doc/html/spec_html/ (warn_message_file)"
QMAIL = "https://cr.yp.to/proto/qsbmf.txt (what sites wrote who warn of delays)"
GMAIL = "https://support.google.com/mail/answer/6596 (temporary trouble, as text)"
DOMINO = "https://help.hcl-software.com/domino (delay reports)"


def told(name: str, source: str, subject: str, text: str, *news: dict[str, Any]) -> Came:
    head = "Return-Path: <>\nFrom: Mail Delivery <MAILER-DAEMON@mx.client.example>\nTo: @@OURS@@\n"
    return came(name, source, f"{head}Subject: {subject}\n\n{text}", *news)


LATE = (
    told("postfix-late", POSTFIX, "Delayed Mail (still being retried)", """\
This is the mail system at host mx.client.example.

####################################################################
# THIS IS A WARNING ONLY.  YOU DO NOT NEED TO RESEND YOUR MESSAGE. #
####################################################################

Your message could not be delivered for more than 4 hour(s).
It will be retried until it is 5 day(s) old.

For further assistance, please send mail to postmaster.

                   The mail system

<@@WHOM@@>: connect to mx[192.0.2.20]:25: Connection timed out

Message-ID: @@NAME@@
""", back("delayed", code="", reason="connect to mx[192.0.2.20]:25: Connection timed out")),
    told("sendmail-late", SENDMAIL, "Warning: could not send message for past 4 hours", """\
    **********************************************
    **      THIS IS A WARNING MESSAGE ONLY      **
    **  YOU DO NOT NEED TO RESEND YOUR MESSAGE  **
    **********************************************

The original message was received at Mon, 16 Nov 2026 09:00:00 GMT
from shop.example [192.0.2.10]

   ----- The following addresses had transient non-fatal errors -----
<@@WHOM@@>

   ----- Transcript of session follows -----
@@WHOM@@... Deferred: Connection timed out with mx.client.example.
Warning: message still undelivered after 4 hours
Will keep trying until message is 5 days old

   ----- Original message follows -----

@@SENT@@
""", back("delayed")),
    told("exchange-late", EXCHANGE, "Delivery Status Notification (Delay)", """\
This is an automatically generated Delivery Status Notification.

THIS IS A WARNING MESSAGE ONLY.

YOU DO NOT NEED TO RESEND YOUR MESSAGE.

Delivery to the following recipients has been delayed.

       @@WHOM@@

Message-ID: @@NAME@@
""", back("delayed", address="")),
    told("exchange-2010-late", EXCHANGE, "Delivery delayed: Your offer", """\
Delivery is delayed to these recipients or distribution lists:

@@WHOM@@

Subject: Your offer

This message has not yet been delivered. Microsoft Exchange will continue to try delivering
the message on your behalf.

Delivery of this message will be attempted until 18.11.2026 09:00:00 (GMT).

Message-ID: @@NAME@@
""", back("delayed", address="")),
    told("microsoft-365-late", EXCHANGE, "Delivery delayed: Your offer", """\
Your message to the following recipients hasn't been delivered yet. We'll keep trying to deliver it:

<@@WHOM@@>: 450 4.4.312 DNS query failed

Message-ID: @@NAME@@
""", back("delayed", address="", code="4.4.312")),
    told("exim-late", EXIM, "Warning: message 1vK-0001-AB delayed 24 hours", """\
This message was created automatically by mail delivery software.
A message that you sent has not yet been delivered to one or more of its
recipients after more than 24 hours on the queue on mx.client.example.

The address to which the message has not yet been delivered is:

  @@WHOM@@
    host mx.client.example [192.0.2.20]
    Delay reason: Connection timed out

No action is required on your part. Delivery attempts will continue for
some time, and this warning may be repeated at intervals if the message
remains undelivered. Eventually the mail delivery software will give up,
and when that happens, the message will be returned to you.

Message-ID: @@NAME@@
""", back("delayed")),
    told("qmail-late", QMAIL, "failure notice", """\
Hi. This is the qmail-send program at mx.client.example.
I'm afraid I wasn't able to deliver your message to the following addresses yet.
This is a temporary error; I will keep on trying for a week.

<@@WHOM@@>:
Sorry, I wasn't able to establish an SMTP connection. (#4.4.1)

--- Below this line is a copy of the message.

@@SENT@@
""", back("delayed", code="4.4.1")),
    told("gmail-late", GMAIL, "Delivery Status Notification (Delay)", """\
This is an automatically generated Delivery Status Notification

THIS IS A WARNING MESSAGE ONLY.

YOU DO NOT NEED TO RESEND YOUR MESSAGE.

Delivery to the following recipient has been delayed:

     @@WHOM@@

Message will be retried for 2 more day(s). You will be notified if the delivery fails permanently.

   ----- Original message -----

@@SENT@@
""", back("delayed")),
    told("domino-late", DOMINO, "DELAYED: Your offer", """\
Your message has not been delivered yet to the recipients below. The server is still trying.

@@WHOM@@: no route found at present

Message-ID: @@NAME@@
""", back("delayed", address="")),
    told("german-late", DOMINO, "Zustellung verzögert", """\
Die Nachricht an <@@WHOM@@> konnte noch nicht zugestellt werden.
Wir werden weiterhin versuchen, sie zuzustellen.

Message-ID: @@NAME@@
""", back("delayed", address="")),
)  # fmt: skip

GIVEN_UP = (
    told("qmail-too-long", QMAIL, "failure notice", """\
Hi. This is the qmail-send program at mx.client.example.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Your message was delayed, and will not be retried.

<@@WHOM@@>:
Sorry, I wasn't able to establish an SMTP connection. (#4.4.1)
I'm not going to try again; this message has been in the queue too long.

--- Below this line is a copy of the message.

@@SENT@@
""", back("failed", code="4.4.1")),
    told("says-no-all-the-same", POSTFIX, "Delayed Mail (still being retried)", """\
This is the mail system at host mx.client.example.

Your message could not be delivered for more than 4 hour(s).
It will be retried until it is 5 day(s) old.

<@@WHOM@@>: host mx.client.example[192.0.2.20] said: 550 5.1.1 no such user

Message-ID: @@NAME@@
""", back("bounced", code="5.1.1")),
    told("says-no-before-it-names-anybody", POSTFIX, "Delayed Mail (still being retried)", """\
This is the mail system at host mx.client.example.

Your message could not be delivered for more than 4 hour(s), and will be retried.
The last answer was: 550 5.1.1 no such user

<@@WHOM@@>: see above

Message-ID: @@NAME@@
""", back("failed", code="")),
    told("says-no-behind-a-not-now", POSTFIX, "Delayed Mail (still being retried)", """\
This is the mail system at host mx.client.example.

Your message could not be delivered for more than 4 hour(s), and will be retried.
The answer was at first: 450 4.2.0 greylisted

<@@WHOM@@>: host mx.client.example[192.0.2.20] said: 550 5.1.1 no such user

Message-ID: @@NAME@@
""", back("bounced", code="5.1.1")),
    told("our-own-words-are-not-theirs", QMAIL, "failure notice", """\
Hi. This is the qmail-send program at mx.client.example.
I'm afraid I wasn't able to deliver your message to the following addresses.

<@@WHOM@@>:
Sorry, no mailbox here by that name. vpopmail

--- Below this line is a copy of the message.

@@SENT@@
Your parcel is delayed. We keep trying, and it will be retried tomorrow.
""", back("bounced", code="")),
    told("ours-in-words-alone", POSTFIX, "Undeliverable: Your offer", """\
The letter could not be delivered.

Message-ID: @@NAME@@
Subject: Your parcel is delayed

We keep trying.
""", back("failed", address="", code="")),
)  # fmt: skip

DELAYS = (*LATE, *GIVEN_UP)
