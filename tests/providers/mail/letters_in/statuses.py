"""Reports in fields, as RFC 3464 has them."""

from __future__ import annotations

from tests.providers.mail.letters_in import back, came
from tests.providers.mail.letters_in.postfix import BY_POSTFIX

RFC = "https://www.rfc-editor.org/rfc/rfc3464 (appendix E)"
EXIM = "https://www.exim.org/exim-html-current/doc/html/spec_html/ch-customizing_messages.html"
MICROSOFT = (
    "https://learn.microsoft.com/exchange/mail-flow/non-delivery-reports-and-bounce-messages"
)
GOOGLE = "https://support.google.com/mail/answer/6596"
AMAZON = "https://docs.aws.amazon.com/ses/latest/dg/notification-contents.html"

STATUSES = (
    *BY_POSTFIX,
    came("gmail-unknown", GOOGLE, """\
Delivered-To: @@OURS@@
Return-Path: <>
Content-Type: multipart/report; boundary="000000000000aa01"; report-type=delivery-status
To: @@OURS@@
Auto-Submitted: auto-replied
Message-ID: <6719f0aa.050a0220.1.GMR@mx.google.com>
Date: Mon, 16 Nov 2026 01:00:06 -0800 (PST)
From: Mail Delivery Subsystem <mailer-daemon@googlemail.com>
Subject: Delivery Status Notification (Failure)
References: @@NAME@@
In-Reply-To: @@NAME@@
X-Failed-Recipients: @@WHOM@@

--000000000000aa01
Content-Type: multipart/related; boundary="000000000000aa02"

--000000000000aa02
Content-Type: multipart/alternative; boundary="000000000000aa03"

--000000000000aa03
Content-Type: text/plain; charset="UTF-8"

** Address not found **

Your message wasn't delivered to @@WHOM@@ because the address couldn't be found.

--000000000000aa03
Content-Type: text/html; charset="UTF-8"

<html><body><h2>Address not found</h2></body></html>

--000000000000aa03--
--000000000000aa02
Content-Type: image/png; name="icon.png"
Content-Disposition: attachment; filename="icon.png"
Content-Transfer-Encoding: base64

iVBORw0KGgo=
--000000000000aa02--
--000000000000aa01
Content-Type: message/delivery-status

Reporting-MTA: dns; googlemail.com
Received-From-MTA: dns; @@OURS@@
Arrival-Date: Mon, 16 Nov 2026 01:00:05 -0800 (PST)
X-Original-Message-ID: @@NAME@@

Final-Recipient: rfc822; @@WHOM@@
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550-5.1.1 The email account that you tried to reach does not exist. Please
 550-5.1.1 try double-checking the recipient's email address for typos or
 550 5.1.1 unnecessary spaces. 4a-1si.5 - gsmtp
Last-Attempt-Date: Mon, 16 Nov 2026 01:00:06 -0800 (PST)

--000000000000aa01
Content-Type: message/rfc822

X-Received: by 2002:a05 with SMTP id a1; Mon, 16 Nov 2026 01:00:05 -0800 (PST)
@@SENT@@
----- Message truncated -----

--000000000000aa01--
""", back("bounced", code="5.1.1", reason="550 5.1.1 The email account that you tried to reach "
          "does not exist. Please try double-checking the recipient's email address for typos or "
          "unnecessary spaces. 4a-1si.5 - gsmtp")),
    came("exchange-online", MICROSOFT, """\
From: <postmaster@client.example>
To: <@@OURS@@>
Date: Mon, 16 Nov 2026 09:00:07 +0000
Content-Type: multipart/report; report-type=delivery-status;
	boundary="a0b1c2d3-0000-4e4e-9f9f-aaaaaaaaaaaa"
X-MS-Exchange-Message-Is-Ndr:
Content-Language: de-DE
Message-ID: <f00d@AM0PR00MB.eurprd00.prod.outlook.com>
In-Reply-To: @@NAME@@
References: @@NAME@@
Subject: =?utf-8?Q?Unzustellbar=3A_Your_offer?=
Auto-Submitted: auto-replied

--a0b1c2d3-0000-4e4e-9f9f-aaaaaaaaaaaa
Content-Type: multipart/alternative; differences=Content-Type;
	boundary="b0b1c2d3-0000-4e4e-9f9f-bbbbbbbbbbbb"

--b0b1c2d3-0000-4e4e-9f9f-bbbbbbbbbbbb
Content-Type: text/plain; charset="us-ascii"
Content-Transfer-Encoding: quoted-printable

Ihre Nachricht an @@WHOM@@ konnte nicht zugestellt werden. bert wurde unter=
 client.example nicht gefunden.

--b0b1c2d3-0000-4e4e-9f9f-bbbbbbbbbbbb--

--a0b1c2d3-0000-4e4e-9f9f-aaaaaaaaaaaa
Content-Type: message/delivery-status

Reporting-MTA: dns;AM0PR00MB.eurprd00.prod.outlook.com
Received-From-MTA: dns;out.shop.example
Arrival-Date: Mon, 16 Nov 2026 09:00:06 +0000

Final-Recipient: rfc822;@@WHOM@@
Action: failed
Status: 5.1.10
Diagnostic-Code: smtp;550 5.1.10 RESOLVER.ADR.RecipientNotFound;
 Recipient not found by SMTP address lookup

--a0b1c2d3-0000-4e4e-9f9f-aaaaaaaaaaaa
Content-Type: message/rfc822

@@SENT@@
--a0b1c2d3-0000-4e4e-9f9f-aaaaaaaaaaaa--
""", back("bounced", code="5.1.10")),
    came("exchange-edge", "https://github.com/rgl/MailBounceDetector", """\
From: <postmaster@out.shop.example>
To: <@@OURS@@>
Content-Type: multipart/report; report-type=delivery-status; boundary="edge"
Subject: Undeliverable: Your offer

--edge
Content-Type: text/plain

Delivery has failed.

--edge
Content-Type: message/delivery-status

Reporting-MTA: dns;edge.shop.example

Final-recipient: RFC822; @@WHOM@@
Action: failed
Status: 5.0.0
Remote-MTA: dns;mx.client.example
X-Supplementary-Info: <mx.client.example #5.1.1 smtp;550-5.1.1 The account does not exist>

--edge
Content-Type: text/rfc822-headers

Subject: Your offer
Message-ID: <rewritten@prod.outlook.com>
X-Microsoft-Original-Message-ID: @@NAME@@

--edge--
""", back("bounced", code="5.1.1")),
    came("exim", EXIM, """\
Return-path: <>
Envelope-to: @@VERP@@
Delivery-date: Mon, 16 Nov 2026 09:00:09 +0000
X-Failed-Recipients: @@WHOM@@
Auto-Submitted: auto-replied
From: Mail Delivery System <Mailer-Daemon@out.shop.example>
To: @@VERP@@
Content-Type: multipart/report; report-type=delivery-status; boundary=1763283609-eximdsn-1
MIME-Version: 1.0
Subject: Mail delivery failed: returning message to sender
Message-Id: <E1vK-0001-AB@out.shop.example>

--1763283609-eximdsn-1
Content-type: text/plain; charset=us-ascii

This message was created automatically by mail delivery software.

  @@WHOM@@
    host mx.client.example [192.0.2.20]
    SMTP error from remote mail server after RCPT TO:<@@WHOM@@>:
    550 No such user here

--1763283609-eximdsn-1
Content-type: message/delivery-status

Reporting-MTA: dns; out.shop.example

Action: failed
Final-Recipient: rfc822;@@WHOM@@
Status: 5.0.0
Remote-MTA: dns; mx.client.example
Diagnostic-Code: smtp; 550 No such user here

--1763283609-eximdsn-1
Content-type: message/rfc822

Message-ID: <rewritten@relay.example>
Subject: Your offer

--1763283609-eximdsn-1--
""", back("bounced", code="5.0.0")),
    came("amazon-ses", AMAZON, """\
Return-Path: <>
From: MAILER-DAEMON@amazonses.com
To: @@VERP@@
Subject: Delivery Status Notification (Failure)
Message-ID: <0100019a-ses@email.amazonses.com>
Content-Type: multipart/report; report-type=delivery-status; boundary="----=_Part_1"

------=_Part_1
Content-Type: text/plain; charset=us-ascii

An error occurred while trying to deliver the mail to the following recipients:
@@WHOM@@
------=_Part_1
Content-Type: message/delivery-status

Reporting-MTA: dsn; a8-70.smtp-out.amazonses.com

Action: failed
Final-Recipient: rfc822; @@WHOM@@
Diagnostic-Code: smtp; 550 4.4.7 Message expired: unable to deliver in 840 minutes.
 <421 4.4.0 Unable to lookup DNS for client.example>
Status: 4.4.7

------=_Part_1
Content-Type: message/rfc822

Message-ID: <0100019a-ours@email.amazonses.com>
Subject: Your offer

------=_Part_1--
""", back("failed")),
    came("utf8-addresses", "https://www.rfc-editor.org/rfc/rfc6533", """\
From: postmaster@client.example
To: @@OURS@@
Subject: Undeliverable
Content-Type: multipart/report; report-type=delivery-status; boundary="g"

--g
Content-Type: text/plain

Not delivered.

--g
Content-Type: message/global-delivery-status

Reporting-MTA: dns; client.example

Final-Recipient: utf-8; @@WHOM@@
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 no such
 user

--g
Content-Type: message/global-headers

Message-ID: @@NAME@@

--g--
""", back("bounced", code="5.1.1")),
    came("somebody-elses", RFC, """\
Return-Path: <>
From: MAILER-DAEMON@mx.elsewhere.example
To: @@OURS@@
Subject: Returned mail: see transcript for details
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b

The original message was received from a host that claimed to be yours.

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.elsewhere.example

Final-Recipient: RFC822; victim@elsewhere.example
Action: failed
Status: 5.1.1
Diagnostic-Code: SMTP; 550 5.1.1 User unknown

--b
Content-Type: message/rfc822

From: <@@OURS@@>
To: <victim@elsewhere.example>
Subject: Cheap watches
Message-ID: <forged-0001@bad.example>
References: @@NAME@@

--b--
""", back("bounced", address="victim@elsewhere.example", key=None)),
)  # fmt: skip
