"""Telling whoever opts out, once, that they were heard.

The one message that goes to somebody who is suppressed: the suppression itself names its delivery,
so nothing else passes, and it is made where the suppression is new, so nobody is told twice. Where
it cannot be sent, they have opted out all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import structlog

from paceline.core.errors import ConflictError, InputError, NotFoundError
from paceline.core.instants import DAY, Instant
from paceline.core.model import Content, Part
from paceline.core.opting_out import OptOut
from paceline.core.opting_out_settings import Confirmation, OptingOut
from paceline.core.template import literal
from paceline.engine.commands.campaigns import DirectMessage, send_message
from paceline.engine.naming import named_by
from paceline.engine.ports import Account, Delivery, Inbound, Providers, Tx
from paceline.engine.replying import Letter, action_of, as_letter

EXPIRES_US = DAY
"""Whoever has heard nothing for so long needs no confirmation any more."""

log = structlog.get_logger("paceline.inbox")


@dataclass(frozen=True)
class Confirming(OptOut):
    """The words, where whoever uses one is told that it was heard."""

    confirmation: Confirmation | None = None
    providers: Providers | None = None

    def after_message(self, tx: Tx, account: Account, message: Inbound, at: Instant) -> int | None:
        """Answer the message by which somebody has opted out; the delivery, where there is one."""
        named = named_by(tx, message.answers)
        ours = None if named is None else named.delivery_id
        letter = Letter(message.provider_id, message.subject, ours)
        # Where a channel takes answers for so long, that is from when they wrote.
        written_at = min(message.at or at, at)
        return self._confirm(tx, account, _To(message.chat, letter, written_at), at)

    def after_link(self, tx: Tx, delivery: Delivery, at: Instant) -> int | None:
        """The same for whoever has followed the link in a message, if they are told at all."""
        told = self.confirmation is not None and self.confirmation.links
        if not told or delivery.account_id is None:
            return None
        account = tx.accounts.get(delivery.account_id)
        letter = Letter("", "", delivery.id)
        return self._confirm(tx, account, _To(delivery.target, letter, at), at)

    def _confirm(self, tx: Tx, account: Account, to: _To, at: Instant) -> int | None:
        if self.confirmation is None or self.providers is None or account.removed_at is not None:
            return None
        able = self.providers.get(account.provider).capabilities_of(account.settings)
        action, text = action_of(able), self.confirmation.text
        part = Part("text", literal(text))
        if action == "email":
            part = as_letter(tx, text, [to.letter], self.confirmation.subject)
        content, expires_at = Content((part,)), to.since_at + EXPIRES_US
        message = DirectMessage(
            account.name, to.target, content, action, reply=True, expires_at=expires_at
        )
        try:
            delivery_id = send_message(tx, message, at, self.providers)
        except (InputError, ConflictError, NotFoundError) as error:
            log.warning("opting out is not confirmed", account=account.name, reason=str(error))
            return None
        tx.suppressions.let_pass(tx.deliveries.get(delivery_id).target, delivery_id)
        return delivery_id


class _To(NamedTuple):
    target: str
    letter: Letter
    since_at: Instant
    """When they said it."""


def words_of(settings: OptingOut, providers: Providers) -> Confirming:
    """How people opt out of an installation with these settings."""
    words = settings.words
    return Confirming(words.stop, words.start, settings.confirmation, providers)
