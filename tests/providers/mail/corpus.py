"""Answers that real mail servers give, each with where it was published and what it means to us.

Addresses, hosts and numbers in them are examples. The words are those of the servers.
"""

from __future__ import annotations

from typing import NamedTuple

from paceline.core.outcome import OutcomeKind
from paceline.providers.mail.replies import Command

K = OutcomeKind

GMAIL = "https://support.google.com/a/answer/3726730 (Gmail SMTP errors and codes)"
MICROSOFT = (
    "https://learn.microsoft.com/en-us/troubleshoot/exchange/email-delivery/ndr/"
    "non-delivery-reports-in-exchange-online"
)
MICROSOFT_7XX = (
    "https://learn.microsoft.com/en-us/exchange/mail-flow-best-practices/"
    "non-delivery-reports-in-exchange-online/fix-error-code-5-7-700-through-5-7-750"
)
SUBMISSION = (
    "https://learn.microsoft.com/en-us/exchange/mail-flow-best-practices/"
    "how-to-set-up-a-multifunction-device-or-application-to-send-email-using-microsoft-365-or-"
    "office-365"
)
YAHOO = "https://senders.yahooinc.com/smtp-error-codes/"
YAHOO_LIST = "https://smtp.codes/yahoo"
ZONE_MTA = "https://github.com/zone-eu/zone-mta config/bounces.txt"
SISIMAI = "https://github.com/sisimai/go-sisimai reason/02-includedin_test.go"
POSTFIX = "https://www.postfix.org/postconf.5.html and its source, smtpd_check.c"
POSTGREY = "https://postgrey.schweikert.ch"
LKML = "https://lore.kernel.org/lkml (bounces quoted in MAINTAINERS patches)"
PASTEBIN = "https://pastebin.com"
SES = "https://docs.aws.amazon.com/ses/latest/dg/troubleshoot-smtp.html"
CPANEL = "https://forums.cpanel.net/threads/email-quota.697029/"
CPANEL_DEFERS = (
    "https://my.ultrawebhosting.com/knowledgebase/392/"
    "cPanel-Max-Defers-Occurring-for-an-Account.html"
)
EXIM = (
    "https://bobcares.com/blog/"
    "2-reasons-for-550-please-turn-on-smtp-authentication-error-in-cpanel-exchange-servers/"
)
SENDGRID_LOGIN = (
    "https://experienceleague.adobe.com/docs/commerce-knowledge-base/kb/troubleshooting/"
    "miscellaneous/emails-not-being-sent-sendgrid-credits-exceeded.html"
)
ZOHO = (
    "https://help.zoho.com/portal/en/community/topic/"
    "unable-to-send-message-reason-550-5-4-6-unusual-sending-activity-detected"
)
HARVEST = "https://prospeo.io/s/550-too-many-invalid-recipients"
UNQUOTED = "no page was found that quotes the whole answer"
RFC = "https://www.rfc-editor.org/rfc/rfc5321#section-4.2.3"


class Said(NamedTuple):
    whose: str
    answer: str
    to: Command
    kind: OutcomeKind
    source: str


CORPUS: tuple[Said, ...] = (
    # ------------------------------------------------------------------ Gmail
    Said("gmail", "550-5.1.1 The email account that you tried to reach does not exist. Please try\n"
         "5.1.1 double-checking the recipient's email address for typos or\n"
         "5.1.1 unnecessary spaces. For more information, go to\n"
         "5.1.1  https://support.google.com/mail/?p=NoSuchUser d9443c01a7336si.35 - gsmtp",
         "rcpt", K.BOUNCED, GMAIL),
    Said("gmail", "553 5.1.2 We weren't able to find the recipient domain. Please check for any "
         "spelling errors.", "rcpt", K.BOUNCED, GMAIL),
    Said("gmail", "553 5.1.3 The recipient address is not a valid RFC 5321 address.", "rcpt",
         K.BOUNCED, GMAIL),
    Said("gmail", "553 5.1.7 The sender address is not a valid RFC 5321 address.", "mail",
         K.UNAUTHORISED, GMAIL),
    Said("gmail", "550 5.2.1 The email account that you tried to reach is inactive. For more "
         "information, go to https://support.google.com/mail/?p=DisabledUser", "rcpt",
         K.REJECTED, GMAIL),
    Said("gmail", "550 5.2.1 The user you are trying to contact is receiving email at a rate that "
         "prevents additional messages from being delivered.", "rcpt", K.TRANSIENT, GMAIL),
    Said("gmail", "450 4.2.1 The user you are trying to contact is receiving email too quickly. "
         "Please resend your message at a later time.", "rcpt", K.TRANSIENT, GMAIL),
    Said("gmail", "450 4.2.1 Peak SMTP relay limit exceeded for this customer. This is a temporary "
         "error.", "content", K.THROTTLED, GMAIL),
    Said("gmail", "452 4.2.2 The recipient's inbox is out of storage space.", "rcpt",
         K.TRANSIENT, GMAIL),
    Said("gmail", "552 5.2.2 The recipient's inbox is out of storage space and inactive.", "rcpt",
         K.TRANSIENT, GMAIL),
    Said("gmail", "552 5.3.4 Your message exceeded Google's message size limits.", "content",
         K.REJECTED, GMAIL),
    Said("gmail", "550 5.4.5 Daily user sending limit exceeded. For more information on Gmail "
         "sending limits, go to Gmail sending limits.", "content", K.EXHAUSTED, GMAIL),
    Said("gmail", "550 5.4.5 Daily SMTP relay limit exceeded for user.", "mail",
         K.EXHAUSTED, GMAIL),
    Said("gmail", "550 5.7.1 Daily SMTP relay sending limit exceeded for this customer.", "mail",
         K.EXHAUSTED, GMAIL),
    Said("gmail", "421 4.3.0 Temporary System Problem. Try again later.", "mail",
         K.UNAVAILABLE, GMAIL),
    Said("gmail", "451 4.3.0 Email server has temporarily rejected this message.", "content",
         K.TRANSIENT, GMAIL),
    Said("gmail", "421 4.4.5 Server busy, try again later.", "mail", K.UNAVAILABLE, GMAIL),
    Said("gmail", "421 4.7.0 Try again later, closing connection. (EHLO)", "connect",
         K.THROTTLED, GMAIL),
    Said("gmail", "421 4.7.28 Gmail has detected an unusual rate of unsolicited email originating "
         "from your IP Netblock 192.0.2.0. To protect our users from spam, email sent from your IP "
         "Netblock has been temporarily rate limited.", "content", K.THROTTLED, GMAIL),
    Said("gmail", "421 4.7.26 This email has been rate limited because it is unauthenticated. "
         "Gmail requires all senders to authenticate with either SPF or DKIM.", "content",
         K.THROTTLED, GMAIL),
    Said("gmail", "421 5.7.32 Your email was blocked because the From: header (RFC5322) in this "
         "message isn't aligned with either the authenticated SPF or DKIM organizational domain.",
         "content", K.THROTTLED, GMAIL),
    Said("gmail", "454 4.7.0 Too many login attempts, please try again later.", "login",
         K.THROTTLED, GMAIL),
    Said("gmail", "454 4.7.0 Cannot authenticate due to a temporary system problem. Try again "
         "later.", "login", K.UNAVAILABLE, GMAIL),
    Said("gmail", "535-5.7.8 Username and Password not accepted. For more information, go to\n"
         "5.7.8  https://support.google.com/mail/?p=BadCredentials x1si.3 - gsmtp", "login",
         K.UNAUTHORISED, GMAIL),
    Said("gmail", "534 5.7.14 Please log in through your web browser and then try again.", "login",
         K.UNAUTHORISED, GMAIL),
    Said("gmail", "530 5.7.0 Authentication required.", "mail", K.UNAUTHORISED, GMAIL),
    Said("gmail", "550 5.7.0 Email relay denied 192.0.2.1. The sending email account has been "
         "temporarily suspended due to abuse.", "mail", K.BANNED, GMAIL),
    Said("gmail", "550 5.7.1 This message is likely unsolicited email. To reduce the amount of "
         "spam sent to Gmail, this message has been blocked.", "content", K.REJECTED, GMAIL),
    Said("gmail", "550 5.7.1 The user or domain that you are sending to (or from) has a policy "
         "that prohibits the email that you sent.", "content", K.REJECTED, GMAIL),
    Said("gmail", "550 5.7.1 This email has been rate limited.", "content", K.THROTTLED, GMAIL),
    Said("gmail", "552 5.7.0 This message was blocked because its content presents a potential "
         "security issue.", "content", K.REJECTED, GMAIL),
    Said("gmail", "554 5.6.0 Email message is malformed. Not accepted.", "content",
         K.REJECTED, GMAIL),
    Said("gmail", "555 5.5.2 Syntax error, goodbye.", "rcpt", K.REJECTED, GMAIL),
    Said("gmail", "503 5.5.1 EHLO/HELO first. An email transaction protocol command was issued out "
         "of sequence.", "mail", K.TRANSIENT, GMAIL),
    # ------------------------------------------------------------------ Exchange Online
    Said("exchange", "550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient anna@example.com not "
         "found by SMTP address lookup", "rcpt", K.BOUNCED, MICROSOFT),
    Said("exchange", "550 5.1.1 RESOLVER.ADR.RecipNotFound; not found", "rcpt",
         K.BOUNCED, MICROSOFT),
    Said("exchange", "550 5.1.8 Access denied, bad outbound sender AS(42003)", "content",
         K.BANNED, MICROSOFT),
    Said("exchange", "550 5.1.90 Your message can't be sent because you've reached your daily "
         "limit for message recipients", "rcpt", K.EXHAUSTED, MICROSOFT),
    Said("exchange", "554 5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException; "
         "Failed to process message due to a permanent exception", "content",
         K.EXHAUSTED, MICROSOFT),
    Said("exchange", "554 5.2.0 STOREDRV.Submission.Exception:SendAsDeniedException."
         "MapiExceptionSendAsDenied; Failed to process message", "content",
         K.UNAUTHORISED, SUBMISSION),
    Said("exchange", "554 5.2.0 STOREDRV.Submission.Exception:OutboundSpamException; Failed to "
         "process message due to a permanent exception with message", "content",
         K.BANNED, MICROSOFT),
    Said("exchange", "554 5.2.0 STOREDRV.Submission.Exception:OutboundSpamException; Failed to "
         "process message. WASCL UserAction verdict is not None. Actual verdict is RefuseQuota.",
         "content", K.EXHAUSTED, SUBMISSION),
    Said("exchange", "554 5.2.252 SendAsDenied; anna@shop.example not allowed to send as "
         "other@shop.example", "content", K.UNAUTHORISED, SUBMISSION),
    Said("exchange", "554 5.2.2 mailbox full; STOREDRV.Deliver.Exception:QuotaExceededException."
         "MapiExceptionShutoffQuotaExceeded", "content", K.TRANSIENT, MICROSOFT),
    Said("exchange", "550 5.2.3 RESOLVER.RST.RecipSizeLimit; message too large for this recipient",
         "content", K.REJECTED, SISIMAI),
    Said("exchange", "432 4.3.2 STOREDRV.Deliver; recipient thread limit exceeded", "content",
         K.TRANSIENT, MICROSOFT),
    Said("exchange", "432 4.3.2 STOREDRV.ClientSubmit; sender thread limit exceeded", "content",
         K.THROTTLED, SUBMISSION),
    Said("exchange", "421 4.4.2 Message submission rate for this client has exceeded the "
         "configured limit", "mail", K.THROTTLED, SUBMISSION),
    Said("exchange", "550 5.4.1 [anna@example.com]: Recipient address rejected: Access denied "
         "[CY1GCC01FT007.eop-gcc01.prod.protection.outlook.com]", "rcpt",
         K.REJECTED, f"{PASTEBIN}/32NXKByX"),
    Said("exchange", "451 4.7.500 Server busy. Please try again later from [192.0.2.1]. (AS761)",
         "rcpt", K.THROTTLED, MICROSOFT),
    Said("exchange", "451 4.7.650 The mail server [192.0.2.2] has been temporarily rate limited "
         "due to IP reputation.", "mail", K.THROTTLED, SISIMAI),
    Said("exchange", "535 5.7.3 Authentication unsuccessful [AM0P123CA0001.EURP123.PROD.OUTLOOK."
         "COM]", "login", K.UNAUTHORISED, SUBMISSION),
    Said("exchange", "535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is "
         "disabled for the Tenant.", "login", K.UNAUTHORISED, SUBMISSION),
    Said("exchange", "530 5.7.57 SMTP; Client was not authenticated to send anonymous mail during "
         "MAIL FROM [AM6PR0732BE0065.eurprd07.prod.outlook.com]", "mail",
         K.UNAUTHORISED, "https://www.easy365manager.com/office-365-ndr-error-codes/"),
    Said("exchange", "550 5.7.60 SMTP; Client does not have permissions to send as this sender",
         "content", K.UNAUTHORISED, SUBMISSION),
    Said("exchange", "550 5.7.705 Access denied, tenant has exceeded threshold. For more "
         "information please go to http://go.microsoft.com/fwlink/?LinkId=524931 AS831", "content",
         K.BANNED, f"{PASTEBIN}/98tNBPeg"),
    Said("exchange", "550 5.7.708 Service unavailable. Access denied, traffic not accepted from "
         "this IP. For more information please go to http://go.microsoft.com/fwlink/?LinkId=526653 "
         "AS(8561)", "content", K.BANNED, MICROSOFT_7XX),
    Said("exchange", "550 5.7.750 Service unavailable. Client blocked from sending from "
         "unregistered domains.", "content", K.BANNED, MICROSOFT_7XX),
    Said("exchange", "550 5.7.606 Access denied, banned sending IP [192.0.2.1]. To request removal "
         "from this list please visit https://sender.office.com/", "rcpt", K.BANNED, ZONE_MTA),
    Said("exchange", "550 5.7.1 RESOLVER.RST.AuthRequired; authentication required", "rcpt",
         K.REJECTED, SISIMAI),
    # ------------------------------------------------------------------ Outlook.com
    Said("outlook", "550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302).",
         "rcpt", K.REJECTED, "https://github.com/search?q=S2017062302&type=code (many bounces)"),
    Said("outlook", "550 5.7.1 Unfortunately, messages from [192.0.2.1] weren't sent. Please "
         "contact your Internet service provider since part of their network is on our block list "
         "(S3150).",
         "mail", K.UNAUTHORISED, ZONE_MTA),
    Said("outlook", "421 RP-001 The mail server IP connecting to Outlook.com server has exceeded "
         "the rate limit allowed.", "connect", K.THROTTLED, ZONE_MTA),
    # ------------------------------------------------------------------ Yahoo
    Said("yahoo", "421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to "
         "unexpected volume or user complaints - 4.16.55.1; see https://postmaster.yahooinc.com/error-codes",
         "mail", K.THROTTLED, YAHOO_LIST),
    Said("yahoo", "421 Max message per connection reached, closing transmission channel", "mail",
         K.THROTTLED, YAHOO_LIST),
    Said("yahoo", "450 User is receiving mail too quickly", "rcpt", K.TRANSIENT, YAHOO_LIST),
    Said("yahoo", "451 mta1.yahoo.com Resources temporarily unavailable. Please try again later "
         "[#4.16.1].", "connect", K.THROTTLED, YAHOO_LIST),
    Said("yahoo", "451 4.3.2 Internal server error", "mail", K.UNAVAILABLE, YAHOO_LIST),
    Said("yahoo", "553 5.7.1 [BL21] Connections will not be accepted from 192.0.2.1, because the "
         "ip is in Spamhaus's list; see https://help.yahoo.com/kb/postmaster/SLN5070.html", "rcpt",
         K.REJECTED, ZONE_MTA),
    Said("yahoo", "554 5.7.5 (AU01) Message not accepted for policy reasons. See "
         "http://postmaster.yahoo.com/errors/postmaster-28.html", "content", K.REJECTED, ZONE_MTA),
    Said("yahoo", "554 delivery error: dd This user doesn't have a yahoo.com account "
         "(anna@yahoo.com) [-5] - mta123.mail.mud.yahoo.com", "content", K.REJECTED, YAHOO),
    # ------------------------------------------------------------------ Postfix
    Said("postfix", "550 5.1.1 <anna@example.com>: Recipient address rejected: User unknown in "
         "virtual mailbox table", "rcpt", K.BOUNCED, LKML),
    Said("postfix", "550 5.1.1 <anna@example.jp>: Recipient address rejected: User unknown in "
         "local recipient table", "rcpt", K.BOUNCED, SISIMAI),
    Said("postfix", "450 4.2.0 <anna@example.com>: Recipient address rejected: Greylisted, see "
         "http://postgrey.schweikert.ch/help/example.com.html", "rcpt", K.TRANSIENT, POSTGREY),
    Said("postfix", "450 4.7.1 <anna@example.com>: Recipient address rejected: Greylisted, try "
         "again in 500 seconds", "rcpt", K.TRANSIENT, POSTGREY),
    Said("postfix", "450 4.1.8 <shop@shop.example>: Sender address rejected: Domain not found",
         "rcpt", K.TRANSIENT, POSTFIX),
    Said("postfix", "450 4.1.1 <anna@example.com>: Recipient address rejected: unverified address: "
         "Address verification in progress", "rcpt", K.TRANSIENT, POSTFIX),
    Said("postfix", "450 4.7.1 <shop@shop.example>: Sender address rejected: Deferring: Too many "
         "messages from sender in last 60", "rcpt", K.THROTTLED, f"{PASTEBIN}/V80548k6"),
    Said("postfix", "451 4.7.1 <smtp.example.jp[192.0.2.3]>: Client host rejected: Please try "
         "again slower", "rcpt", K.THROTTLED, SISIMAI),
    Said("postfix", "452 4.3.1 Insufficient system storage", "mail", K.UNAVAILABLE, POSTFIX),
    Said("postfix", "451 4.3.0 <anna@example.com>: Temporary lookup failure", "rcpt",
         K.TRANSIENT, POSTFIX),
    Said("postfix", "421 4.7.0 mx.example.com Error: too many connections from 192.0.2.1",
         "connect", K.THROTTLED, POSTFIX),
    Said("postfix", "421 4.4.2 mx.example.com Error: timeout exceeded", "mail",
         K.UNAVAILABLE, POSTFIX),
    Said("postfix", "553 5.7.1 <other@shop.example>: Sender address rejected: not owned by user "
         "anna@shop.example", "rcpt", K.UNAUTHORISED, POSTFIX),
    Said("postfix", "554 5.7.1 <anna@example.com>: Relay access denied", "rcpt",
         K.REJECTED, POSTFIX),
    Said("postfix", "554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using "
         "sbl-xbl.spamhaus.org", "rcpt", K.REJECTED, ZONE_MTA),
    Said("postfix", "552 5.3.4 Message size exceeds fixed limit", "mail", K.REJECTED, POSTFIX),
    Said("postfix", "535 5.7.8 Error: authentication failed: UGFzc3dvcmQ6", "login",
         K.UNAUTHORISED, POSTFIX),
    Said("postfix", "454 4.7.0 Temporary authentication failure: Connection lost to authentication "
         "server", "login", K.UNAVAILABLE, POSTFIX),
    Said("postfix", "554 5.5.1 Error: no valid recipients", "data", K.REJECTED, POSTFIX),
    Said("mailhostbox", "550 5.4.5 <anna@example.com>: Recipient address rejected: Domain Sending "
         "Quota Exceeded", "rcpt", K.EXHAUSTED, f"{PASTEBIN}/v3bkLPK5"),
    # ------------------------------------------------------------------ others
    Said("exim", "550 kijitora@example.com... No such user", "rcpt", K.BOUNCED, SISIMAI),
    Said("sendmail", "550 5.1.6 address neko@cat.cat has been replaced by neko@example.jp", "rcpt",
         K.BOUNCED, SISIMAI),
    Said("sendmail", "550 5.1.8 Domain of sender address example.org does not exist", "rcpt",
         K.REJECTED, SISIMAI),
    Said("any", "550 5.1.0 192.0.2.222 is not allowed to send from <example.net> per it's SPF "
         "Record", "rcpt", K.REJECTED, SISIMAI),
    Said("icloud", "452 4.2.2 <anna@icloud.com>: user is over quota", "rcpt", K.TRANSIENT, SISIMAI),
    Said("any", "452 Insufficient disk space; try again later", "rcpt", K.TRANSIENT, SISIMAI),
    Said("any", "421 4.7.1 Service unavailable; Client host [192.0.2.1] blocked using grey.rbl - "
         "Greylisting in action, please try again later", "rcpt", K.TRANSIENT, ZONE_MTA),
    Said("ses", "454 Throttling failure: Maximum sending rate exceeded.", "mail", K.THROTTLED, SES),
    Said("ses", "454 Throttling failure: Daily message quota exceeded.", "mail", K.EXHAUSTED, SES),
    Said("ses", "554 Message rejected: Email address is not verified. The following identities "
         "failed the check in region US-EAST-1: anna@shop.example", "content",
         K.UNAUTHORISED, SES),
    Said("any", "552 Message size limit exceeded", "content", K.REJECTED, RFC),
    Said("ses", "535 Authentication Credentials Invalid", "login", K.UNAUTHORISED, SES),
    Said("rfc", "421 mx.example.com Service not available, closing transmission channel", "rcpt",
         K.THROTTLED, RFC),
    Said("rfc", "450 Requested mail action not taken: mailbox unavailable", "rcpt",
         K.TRANSIENT, RFC),
    Said("rfc", "451 Requested action aborted: local error in processing", "content",
         K.THROTTLED, RFC),
    Said("rfc", "550 Requested action not taken: mailbox unavailable", "rcpt", K.REJECTED, RFC),
    Said("rfc", "551 User not local; please try <anna@elsewhere.example>", "rcpt", K.REJECTED, RFC),
    Said("rfc", "552 Requested mail action aborted: exceeded storage allocation", "rcpt",
         K.TRANSIENT, RFC),
    Said("rfc", "553 Requested action not taken: mailbox name not allowed", "rcpt",
         K.REJECTED, RFC),
    Said("rfc", "554 Transaction failed", "content", K.REJECTED, RFC),
    Said("rfc", "503 Bad sequence of commands", "rcpt", K.TRANSIENT, RFC),
    # ------------------------------------------------------------------ about us, and told late
    Said("cpanel", "550 Domain shop.example has exceeded the max emails per hour (101/100 (101%)) "
         "allowed. Message discarded.", "rcpt", K.THROTTLED, CPANEL),
    Said("cpanel", "550 Domain shop.example has exceeded the max defers and failures per hour (5/5 "
         "(100%)) allowed. Message discarded.", "rcpt", K.THROTTLED, CPANEL_DEFERS),
    Said("exim", "550-Please turn on SMTP Authentication in your mail client.\n550 client.example "
         "[192.0.2.1] is not permitted to relay through this server without authentication.",
         "rcpt", K.UNAUTHORISED, EXIM),
    Said("zoho", "550 5.4.6 Unusual sending activity detected.",
         "content", K.THROTTLED, ZOHO),
    Said("sendgrid", "451 Authentication failed: Maximum credits exceeded", "login",
         K.EXHAUSTED, SENDGRID_LOGIN),
    # ------------------------------------------------------------------ not about the recipient
    Said("any", "550 Too many invalid recipients", "rcpt", K.REJECTED, HARVEST),
    Said("yahoo", "554 5.7.9 Message not accepted for policy reasons. See "
         "https://postmaster.yahooinc.com/error-codes", "content", K.REJECTED, YAHOO),
)  # fmt: skip

# Whoever runs such accounts knows these words, but nobody was found who quotes all of the answer.
LIKELY: tuple[Said, ...] = (
    Said("cpanel", "550 This account has been suspended due to abuse", "content",
         K.BANNED, UNQUOTED),
    Said("exim", "550 authentication required", "rcpt", K.UNAUTHORISED, UNQUOTED),
    Said("sendgrid", "550 Maximum credits exceeded", "rcpt", K.EXHAUSTED, UNQUOTED),
    Said("sendgrid", "550 The from address does not match a verified Sender Identity. Mail cannot "
         "be sent until this error is resolved.", "content", K.UNAUTHORISED, UNQUOTED),
    Said("ses", "554 Message rejected: Sending paused for this account.", "content",
         K.BANNED, UNQUOTED),
    Said("any", "550 Message contains invalid e-mail header: From", "content",
         K.REJECTED, UNQUOTED),
)  # fmt: skip
