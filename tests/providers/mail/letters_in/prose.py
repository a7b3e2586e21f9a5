"""Reports in prose, each in its own form."""

from __future__ import annotations

from tests.providers.mail.letters_in import back, came

SISIMAI = "https://github.com/sisimai/set-of-emails (the order of parts only)"
QSBMF = "https://cr.yp.to/proto/qsbmf.txt"
FLUFL = "https://fluflbounce.readthedocs.io (which forms there are)"
EXIM = "https://www.exim.org/exim-html-4.50/doc/html/spec_45.html"

PROSE = (
    came("qmail", QSBMF, """\
Return-Path: <>
Date: 16 Nov 2026 09:00:10 -0000
From: MAILER-DAEMON@mx.client.example
To: @@OURS@@
Subject: failure notice

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
    came("qmail-remote", QSBMF, """\
Return-Path: <>
From: MAILER-DAEMON@out.shop.example
To: @@OURS@@
Subject: failure notice

Hi. This is the qmail-send program at out.shop.example.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

<@@WHOM@@>:
192.0.2.20 does not like recipient.
Remote host said: 554 5.7.1 Access denied, bad sender reputation
Giving up on 192.0.2.20.

--- Below this line is a copy of the message.

@@SENT@@
""", back("failed", code="5.7.1")),
    came("yahoo", FLUFL, """\
Return-Path: <>
From: MAILER-DAEMON@yahoo.com
To: @@OURS@@
Subject: Delivery failure
X-Originating-IP: [192.0.2.20]

Message from  yahoo.com.
Unable to deliver message to the following address(es).

<@@WHOM@@>:
This user doesn't have a yahoo.com account (@@WHOM@@) [0]

--- Original message follows.

@@SENT@@
""", back("bounced")),
    came("exim-old", EXIM, """\
Return-path: <>
X-Failed-Recipients: @@WHOM@@
From: Mail Delivery System <Mailer-Daemon@out.shop.example>
To: @@OURS@@
Subject: Mail delivery failed: returning message to sender

This message was created automatically by mail delivery software.

A message that you sent could not be delivered to one or more of its
recipients. This is a permanent error. The following address(es) failed:

  @@WHOM@@
    SMTP error from remote mail server after RCPT TO:<@@WHOM@@>:
    host mx.client.example [192.0.2.20]: 550 5.1.1 <@@WHOM@@>... User unknown

------ This is a copy of the message, including all the headers. ------

@@SENT@@
""", back("bounced", code="5.1.1")),
    came("exchange-old", FLUFL, """\
Return-Path: <>
From: System Administrator <postmaster@client.example>
To: @@OURS@@
Subject: Undeliverable: Your offer

Your message

  To:      @@WHOM@@
  Subject: Your offer
  Sent:    Mon, 16 Nov 2026 09:00:00 +0000

did not reach the following recipient(s):

@@WHOM@@ on Mon, 16 Nov 2026 09:00:03 +0000
    The recipient name is not recognized
	The MTS-ID of the original message is: c=us;a= ;p=client;l=MX-091600Z-1
    MSEXCH:IMS:CLIENT:SITE:MX 0 (000C05A6) Unknown Recipient

In-Reply-To: @@NAME@@
""", back("bounced")),
    came("gmail-no-fields", SISIMAI, """\
Delivered-To: @@OURS@@
Return-Path: <>
Content-Type: multipart/report; boundary="aa01"; report-type=delivery-status
To: @@OURS@@
Auto-Submitted: auto-replied
From: Mail Delivery Subsystem <mailer-daemon@googlemail.com>
Subject: Delivery Status Notification (Failure)
X-Failed-Recipients: @@WHOM@@

--aa01
Content-Type: text/plain; charset="UTF-8"

** Message not delivered **

The response was:

Unspecified Error (SENT_SECOND_EHLO): Smtp server does not advertise AUTH capability

--aa01
Content-Type: message/delivery-status


--aa01
Content-Type: message/rfc822

Message-ID: <CAB@mail.gmail.com>
X-Google-Original-Message-ID: @@NAME@@
Subject: Your offer

--aa01--
""", back("failed")),
    came("warning", FLUFL, """\
Return-Path: <>
X-Failed-Recipients:
From: Mail Delivery System <Mailer-Daemon@out.shop.example>
To: @@OURS@@
Subject: Warning: message 1vK-0001-AB delayed 24 hours

This message was created automatically by mail delivery software.
A message that you sent has not yet been delivered to one or more of its
recipients after more than 24 hours on the queue on out.shop.example.

The message identifier is:     1vK-0001-AB
The subject of the message is: Your offer

The address to which the message has not yet been delivered is:

  @@WHOM@@

No action is required on your part. Message-ID: @@NAME@@
""", back("delayed")),
    came("of-its-own-form", "none: nobody knows this one", """\
Return-Path: <>
From: Mail Guard <postmaster@guard.example>
To: @@OURS@@
Subject: We did not take it

Dear sender, your letter @@NAME@@ was answered with
550 5.1.1 no such user
and is gone.
""", back("bounced", address="", code="5.1.1")),
)  # fmt: skip
