"""Letters that come back about one of ours: a bounce, a complaint, an answer."""

from __future__ import annotations

OURS = "anna@shop.example"


def bounce(
    recipient: str,
    message_id: str,
    status: str = "5.1.1",
    words: str = "550 5.1.1 no such user here",
    *,
    to: str = OURS,
) -> bytes:
    """As a mail server says it (RFC 3464), with the head of the letter that came back; without a
    Message-ID only the address that it was sent ``to`` says which."""
    named = f"Message-ID: {message_id}\r\n" if message_id else ""
    return (
        f"Return-Path: <>\r\nFrom: MAILER-DAEMON@mx.example\r\nTo: {to}\r\n"
        "Subject: Undelivered Mail Returned to Sender\r\nMIME-Version: 1.0\r\n"
        'Content-Type: multipart/report; report-type=delivery-status; boundary="b"\r\n\r\n'
        "--b\r\nContent-Type: text/plain\r\n\r\nIt could not be delivered.\r\n"
        "--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example\r\n\r\n"
        f"Final-Recipient: rfc822; {recipient}\r\nAction: failed\r\nStatus: {status}\r\n"
        f"Diagnostic-Code: smtp; {words}\r\n\r\n"
        "--b\r\nContent-Type: text/rfc822-headers\r\n\r\n"
        f"{named}Subject: A word\r\n\r\n--b--\r\n"
    ).encode()


def complaint(message_id: str) -> bytes:
    return (
        f"From: feedback@mail.example\r\nTo: {OURS}\r\nSubject: complaint\r\n"
        "MIME-Version: 1.0\r\n"
        'Content-Type: multipart/report; report-type=feedback-report; boundary="b"\r\n\r\n'
        "--b\r\nContent-Type: text/plain\r\n\r\nThis is a complaint.\r\n"
        "--b\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\n"
        "User-Agent: mail.example/1\r\nVersion: 1\r\n\r\n"
        "--b\r\nContent-Type: text/rfc822-headers\r\n\r\n"
        f"Message-ID: {message_id}\r\n\r\n--b--\r\n"
    ).encode()


def answer(sender: str, message_id: str) -> bytes:
    return (
        f"From: <{sender}>\r\nTo: {OURS}\r\nSubject: Re: A word\r\n"
        f"Message-ID: <1@example.com>\r\nIn-Reply-To: {message_id}\r\n"
        "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nYes, please.\r\n"
    ).encode()
