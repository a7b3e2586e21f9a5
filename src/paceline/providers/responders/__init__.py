"""Responders: whoever answers people, as the port ``answering`` asks for it.

A model behind OpenAI's API or any that is like it (``openai.py``; what its answers mean is in
``completions.py``), somebody's own service (``http.py``) and a table of words (``rules.py``). What
they are told of a conversation is put together in ``window.py``, what they say is made fit to be
sent in ``replies.py``, and a call that is bounded in time is in ``calls.py``. Nothing here tries
anything again: the engine does, which alone knows whether an answer is still wanted. How to set
them up is told in ``docs/answering.md``.
"""

from __future__ import annotations

from paceline.providers.responders.making import responder_of

__all__ = ["responder_of"]
