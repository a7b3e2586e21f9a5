"""E-mail as such, whoever carries it: letters, what mail servers answer, and what comes back.

Pure, but for mailboxes and what is asked of the DNS.

``letters.py`` makes a letter of a message, ``headers.py`` writes what stands above it, ``plain.py``
reads HTML aloud, ``ids.py`` names letters, ``replies.py`` says what a server's answer means.

What comes in: ``incoming.py`` takes a letter to pieces, ``reports.py`` says what it is,
``bounces.py`` reads those about ours that came back, ``automatic.py`` tells programs from people.
``mailbox.py`` watches a mailbox, over the connection in ``imap.py`` and ``imap_client.py``.
"""
