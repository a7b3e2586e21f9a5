"""Complaints, answers of programs and of people, and what else comes in."""

from __future__ import annotations

from tests.providers.mail.letters_in import KEY, OURS, WHOM, back, came, said

ARF = "https://www.rfc-editor.org/rfc/rfc5965 (appendix B)"
JMRP = "https://sendersupport.olc.protection.outlook.com/snds/JMRP.aspx"
YAHOO = "https://senders.yahooinc.com/complaint-feedback-loop/"
RFC3834 = "https://www.rfc-editor.org/rfc/rfc3834"
OOF = "https://learn.microsoft.com/openspecs/exchange_server_protocols/ms-oxcmail/"
OWN = "https://www.rfc-editor.org/rfc/rfc5322"

COMPLAINTS = (
    came("arf-yahoo", YAHOO, """\
From: Yahoo! Mail AntiSpam Feedback <feedback@arf.mail.yahoo.com>
To: fbl@shop.example
Subject: Customer complaint: Your offer
Date: Mon, 16 Nov 2026 10:00:00 +0000
Message-ID: <arf-1@arf.mail.yahoo.com>
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="arf"

--arf
Content-Type: text/plain; charset=US-ASCII

This is an email abuse report for an email message from shop.example.

--arf
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: Yahoo!-Mail-Feedback/2.0
Version: 0.1
Original-Mail-From: <@@OURS@@>
Original-Rcpt-To: @@WHOM@@
Received-Date: Mon, 16 Nov 2026 09:00:02 PST
Reported-Domain: shop.example

--arf
Content-Type: message/rfc822
Content-Disposition: inline

@@SENT@@
Good morning!

--arf--
""", back("complaint", code="abuse", reason="abuse, reported by Yahoo!-Mail-Feedback/2.0")),
    came("arf-bare", ARF, """\
From: abuse@provider.example
To: fbl@shop.example
Subject: FW: Your offer
Content-Type: multipart/report; report-type="feedback-report"; boundary="arf"

--arf
Content-Type: text/plain

A report.
--arf
Content-Type: message/feedback-report

Feedback-Type: fraud
User-Agent: SomeGenerator/1.0
Version: 1

--arf
Content-Type: text/rfc822-headers

From: @@OURS@@
To: <@@WHOM@@>
Message-ID: @@NAME@@

--arf--
""", back("complaint", code="fraud")),
    came("arf-not-spam", ARF, """\
From: abuse@provider.example
To: fbl@shop.example
Content-Type: multipart/report; report-type=feedback-report; boundary="arf"

--arf
Content-Type: message/feedback-report

Feedback-Type: not-spam
User-Agent: SomeGenerator/1.0
Version: 1
Original-Rcpt-To: @@WHOM@@

--arf--
"""),
    came("hotmail", JMRP, """\
Return-Path: <staff@hotmail.com>
From: staff@hotmail.com
To: fbl@shop.example
Subject:  complaint about message from 192.0.2.10
Content-Type: multipart/mixed; boundary="F0-JMRP"

--F0-JMRP
Content-Type: message/rfc822
Content-Disposition: inline

X-HmXmrOriginalRecipient: @@WHOM@@
X-Reporter-IP: 192.0.2.30
@@SENT@@
Good morning!

--F0-JMRP--
""", back("complaint", reason="complaint about message from 192.0.2.10")),
)  # fmt: skip

PROGRAMS = (
    came("outlook-away", OOF, """\
From: Bert <@@WHOM@@>
To: <@@OURS@@>
Subject: Automatic reply: Your offer
Thread-Topic: Your offer
Date: Mon, 16 Nov 2026 09:00:20 +0000
Message-ID: <away-1@prod.outlook.com>
References: @@EARLIER@@ @@NAME@@
In-Reply-To: @@NAME@@
X-Auto-Response-Suppress: All
Auto-Submitted: auto-generated
Content-Type: text/html; charset="us-ascii"

<html><body><p>I am away until Friday.</p><p>Mail delivery failed? Ask Cleo.</p></body></html>
""", said(automatic=True, answers=KEY, text="I am away until Friday.\n\nMail delivery failed? Ask "
          "Cleo.")),
    came("gmail-away", "https://support.google.com/mail/answer/25922", """\
Return-Path: <>
From: Bert <@@WHOM@@>
To: @@OURS@@
Subject: Away Re: Your offer
Message-ID: <CAB-away@mail.gmail.com>
Precedence: bulk
X-Autoreply: yes
Auto-Submitted: auto-replied
In-Reply-To: @@NAME@@
Content-Type: text/plain; charset="UTF-8"

Back on Monday.
""", said(automatic=True, answers=KEY, text="Back on Monday.")),
    came("german-away", RFC3834, """\
From: =?iso-8859-1?Q?B=E4rbel?= <@@WHOM@@>
To: @@OURS@@
Subject: =?utf-8?B?QWJ3ZXNlbmhlaXRzbm90aXo6IFlvdXIgb2ZmZXI=?=
Message-ID: <abw-1@client.example>
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Ich bin bis zum 20. November nicht im B=FCro.
""", said(automatic=True, answers=None, subject="Abwesenheitsnotiz: Your offer",
          text="Ich bin bis zum 20. November nicht im Büro.")),
    came("french-away", RFC3834, """\
From: <@@WHOM@@>
To: @@OURS@@
Subject: =?utf-8?Q?R=C3=A9ponse_automatique_=3A_Your_offer?=
Message-ID: <abs-1@client.example>
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: 8bit

Je suis absent jusqu'à vendredi.
""", said(automatic=True, subject="Réponse automatique : Your offer")),
    came("ticket", RFC3834, """\
From: Support <noreply@client.example>
Reply-To: ticket-77@client.example
To: @@OURS@@
Subject: [#77] Your offer
Message-ID: <t77@client.example>
In-Reply-To: @@NAME@@

We have got your message.
""", said(automatic=True, sender="noreply@client.example", chat="ticket-77@client.example")),
    came("list", "https://www.rfc-editor.org/rfc/rfc2919", """\
From: News of the trade <news@trade.example>
To: members@trade.example
Subject: What is new
Message-ID: <n1@trade.example>
Precedence: list
List-Id: <members.trade.example>
List-Unsubscribe: <https://trade.example/u/1>

Much is new.
""", said(automatic=True, sender="news@trade.example", chat="news@trade.example", answers=None)),
    came("away-from-nobody", RFC3834, """\
Return-Path: <>
From: Bert <@@WHOM@@>
To: @@OURS@@
Subject: Your offer
Message-ID: <null-1@client.example>

I will read it when I am back.
""", said(automatic=True)),
)  # fmt: skip

PEOPLE = (
    came("answer", OWN, """\
Return-Path: <@@WHOM@@>
From: "Bert, of the client" <Bert@Client.example>
To: "Anna from the shop" <@@OURS@@>
Subject: =?UTF-8?Q?Re=3A_Your_offer_=E2=80=93_yes?=
Date: Mon, 16 Nov 2026 11:00:00 +0100
Message-ID: <re-1@client.example>
In-Reply-To: @@NAME@@
References: @@EARLIER@@ @@NAME@@
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary="alt"

--alt
Content-Type: text/plain; charset="utf-8"
Content-Transfer-Encoding: base64

WWVzLCBwbGVhc2Uh

--alt
Content-Type: text/html; charset="utf-8"

<p>Yes, <b>please</b>!</p>

--alt--
""", said(provider_id="re-1@client.example", answers=KEY, text="Yes, please!",
          subject="Re: Your offer – yes")),
    came("answer-in-html", OWN, """\
From: @@WHOM@@
To: @@OURS@@
Subject: Re: Your offer
Message-ID: <re-2@client.example>
References: @@NAME@@
Content-Type: text/html; charset=x-does-not-exist

<p>Not now.</p><blockquote>On Monday Anna wrote:<br>Good morning!</blockquote>
""", said(answers=KEY, text="Not now.\n\nOn Monday Anna wrote:\nGood morning!")),
    came("answer-through-a-group", OWN, """\
From: Bert <@@WHOM@@>
To: sales@shop.example
Subject: Re: Your offer
Message-ID: <re-3@client.example>
In-Reply-To: @@NAME@@
Precedence: list
List-Id: <sales.shop.example>

Call me.
""", said(answers=KEY, text="Call me.")),
    came("quotes-a-bounce", OWN, """\
Return-Path: <@@WHOM@@>
From: Bert <@@WHOM@@>
To: @@OURS@@
Subject: Undeliverable: what is this?
Message-ID: <re-4@client.example>
Content-Type: multipart/mixed; boundary="m"

--m
Content-Type: text/plain

I wrote to Cleo and got this. Delivery to the following recipient failed permanently:

     cleo@shop.example

550 5.1.1 no such user

--m
Content-Type: message/rfc822

From: MAILER-DAEMON@mx.client.example
Content-Type: multipart/report; report-type=delivery-status; boundary="i"

--i
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.client.example

Final-Recipient: rfc822; cleo@shop.example
Action: failed
Status: 5.1.1

--i--

--m--
""", said(answers=None)),
    came("stop-from-a-system-that-wants-no-answers", OOF, """\
Return-Path: <@@WHOM@@>
From: Bert <@@WHOM@@>
To: @@OURS@@
Subject: RE: Your offer
Message-ID: <re-5@client.example>
In-Reply-To: @@NAME@@
X-Auto-Response-Suppress: DR, OOF, AutoReply

STOP
""", said(answers=KEY, text="STOP")),
    came("to-go-on-elsewhere", OWN, """\
From: Bert <@@WHOM@@>
Reply-To: Cleo <cleo@client.example>
To: @@OURS@@
Subject: Re: Your offer
In-Reply-To: <not-ours@client.example>

Cleo will answer.
""", said(chat="cleo@client.example", answers=None)),
    came("our-own", OWN, """\
From: Anna <ANNA@shop.example>
To: Bert <@@WHOM@@>
Subject: Your offer
Message-ID: @@NAME@@

Good morning!
""", said(sender=OURS, chat=WHOM, from_us=True)),
)  # fmt: skip

OTHERS = (*COMPLAINTS, *PROGRAMS, *PEOPLE)
