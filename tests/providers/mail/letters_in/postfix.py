"""Reports of Postfix, the mail server that most others sound like."""

from __future__ import annotations

from tests.providers.mail.letters_in import back, came

POSTFIX = "https://www.postfix.org/bounce.5.html"
SISIMAI = "https://github.com/sisimai/set-of-emails (the order of fields only)"


def postfix(subject: str, prose: str, fields: str, returned: str = "message/rfc822") -> str:
    return f"""\
Return-Path: <>
Delivered-To: @@OURS@@
Received: by out.shop.example (Postfix)
	id 4Xk0ZQ1; Mon, 16 Nov 2026 09:00:05 +0000 (UTC)
Date: Mon, 16 Nov 2026 09:00:05 +0000 (UTC)
From: MAILER-DAEMON@out.shop.example (Mail Delivery System)
Subject: {subject}
To: @@OURS@@
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status;
	boundary="4Xk0ZQ1.1763283605/out.shop.example"
Message-Id: <4Xk0ZQ1@out.shop.example>

This is a MIME-encapsulated message.

--4Xk0ZQ1.1763283605/out.shop.example
Content-Description: Notification
Content-Type: text/plain; charset=us-ascii

This is the mail system at host out.shop.example.

{prose}

--4Xk0ZQ1.1763283605/out.shop.example
Content-Description: Delivery report
Content-Type: message/delivery-status

Reporting-MTA: dns; out.shop.example
X-Postfix-Queue-ID: 4Xk0ZQ1
X-Postfix-Sender: rfc822; @@OURS@@
Arrival-Date: Mon, 16 Nov 2026 09:00:00 +0000 (UTC)

{fields}

--4Xk0ZQ1.1763283605/out.shop.example
Content-Description: Undelivered Message
Content-Type: {returned}

@@SENT@@
Good morning!

--4Xk0ZQ1.1763283605/out.shop.example--
"""


BY_POSTFIX = (
    came("postfix-unknown", POSTFIX, postfix(
        "Undelivered Mail Returned to Sender",
        "<@@WHOM@@>: host mx.client.example[192.0.2.20] said: 550 5.1.1\n    <@@WHOM@@>: Recipient "
        "address rejected: User unknown in local recipient\n    table (in reply to RCPT TO)",
        """\
Final-Recipient: rfc822; @@WHOM@@
Original-Recipient: rfc822;Bert@Client.Example
Action: failed
Status: 5.1.1
Remote-MTA: dns; mx.client.example
Diagnostic-Code: smtp; 550 5.1.1 <@@WHOM@@>: Recipient address rejected: User
    unknown in local recipient table"""),
        back("bounced", code="5.1.1", reason="550 5.1.1 <bert@client.example>: Recipient address "
             "rejected: User unknown in local recipient table")),
    came("postfix-full", POSTFIX, postfix(
        "Undelivered Mail Returned to Sender", "<@@WHOM@@>: mailbox is full",
        """\
Final-Recipient: rfc822; @@WHOM@@
Action: failed
Status: 5.2.2
Diagnostic-Code: smtp; 552 5.2.2 Mailbox full""", "text/rfc822-headers"),
        back("failed", code="5.2.2")),
    came("postfix-delayed", POSTFIX, postfix(
        "Delayed Mail (still being retried)", "THIS IS A WARNING ONLY.",
        """\
Final-Recipient: rfc822; @@WHOM@@
Original-Recipient: rfc822;@@WHOM@@
Action: delayed
Status: 4.4.1
Diagnostic-Code: X-Postfix; connect to mx.client.example[192.0.2.20]:25:
    Connection timed out
Will-Retry-Until: Sat, 21 Nov 2026 09:00:05 +0000 (UTC)""", "text/rfc822-headers"),
        back("delayed", code="4.4.1")),
    came("postfix-gave-up", POSTFIX, postfix(
        "Undelivered Mail Returned to Sender", "<@@WHOM@@>: delivery expired",
        """\
Final-Recipient: rfc822; @@WHOM@@
Action: failed
Status: 4.4.1
Diagnostic-Code: X-Postfix; connect to mx.client.example[192.0.2.20]:25:
    Connection timed out"""),
        back("failed", code="4.4.1")),
    came("postfix-mimecast", SISIMAI, postfix(
        "Undelivered Mail Returned to Sender", "<@@WHOM@@>: host said: 554 Not allowed",
        """\
Final-Recipient: rfc822; @@WHOM@@
Original-Recipient: rfc822;@@WHOM@@
Action: failed
Status: 5.0.0
Remote-MTA: dns; eu-smtp-inbound-1.mimecast.com
Diagnostic-Code: smtp; 554 Host network not allowed -
    https://mimecast.example/docs/554 [aB3dE5fG.eu42]"""),
        back("failed", code="5.0.0")),
    came("postfix-two", POSTFIX, postfix(
        "Undelivered Mail Returned to Sender", "Two of them.",
        """\
Final-Recipient: rfc822; @@WHOM@@
Action: failed
Status: 5.7.1
Diagnostic-Code: smtp; 550 5.7.1 Message rejected as spam, user unknown to us

Final-Recipient: rfc822; cleo@client.example
Action: delivered
Status: 2.0.0
Diagnostic-Code: smtp; 250 2.0.0 Ok"""),
        back("failed", code="5.7.1"), {"state": "delivered", "key": "17/42/1"}),
    came("postfix-relayed", POSTFIX, postfix(
        "Successful Mail Delivery Report", "It was passed on.",
        "Final-Recipient: rfc822; @@WHOM@@\nAction: relayed\nStatus: 2.0.0")),
)  # fmt: skip
