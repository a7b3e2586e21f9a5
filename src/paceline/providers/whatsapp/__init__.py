"""WhatsApp as a linked device of one's own phone, by way of neonize (an optional extra).

An account is paired like WhatsApp Web (``pairing.py``) and keeps its session in a file
(``settings.py``). The library that speaks to WhatsApp runs in a process of its own for every open
account (decision 17): ``library.py`` is all that knows it, ``host.py`` is that process, and
``process.py`` is our end of the pipe. Above it everything speaks of a ``WhatsAppWire``
(``wire.py``): the connection and how it stands (``connection.py``), the driver, what errors mean
(``errors.py``), uploads (``handles.py``) and what comes in (``news.py``).

Nothing is imported here, because the process of an account loads this package, too, and needs
next to nothing of it. How to use it is told in ``docs/providers/whatsapp.md``.
"""
