"""An account's process as the real one, but with a library that does what its session file says.

Run by the tests of ``process.py``; what it is asked to send decides what happens.
"""

import json
import os
import sys
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import Any

from paceline.providers.whatsapp import host
from paceline.providers.whatsapp.host import Tell

NEVER = Event()


class OtherEnd:
    """A library that says much and may do anything."""

    def __init__(self, tell: Tell, wish: dict[str, Any]) -> None:
        self._tell = tell
        self._wish = wish
        # The real library, and the one inside it, print as they please.
        print("Press Ctrl+C to exit", flush=True)
        os.write(1, b"Login event: success\n")

    def call(self, name: str, words: dict[str, Any], body: bytes) -> Any:
        match name:
            case "connect":
                for event in self._wish.get("tells", [{"event": "standing", "state": "ready"}]):
                    self._tell(event)
                return None
            case "groups":
                return [["1203@g.us", "Grüße 🎉", 3, True]]
            case "group":
                return [words["jid"], str(os.getpid()), None, False]
            case "look_up":
                return None
            case "pair":
                return json.dumps(dict(os.environ))
            case "upload":
                digest = sha256(body).hexdigest()
                return {"url": digest, "path": words["kind"], "key": "AA==", "sha256": "",
                        "encrypted_sha256": "", "length": len(body), "thumbnail": "",
                        "width": 0, "height": 0}  # fmt: skip
        return self._send(words["draft"]["text"])

    def _send(self, text: str) -> str:
        match text:
            case "crash":
                os.write(2, b"goroutine 1 [running]:\npanic: runtime error: index out of range\n")
                os._exit(2)
            case "hang":
                NEVER.wait()
            case "nonsense":
                os.write(self._wish["sink"], b"\xff" * 64)
                NEVER.wait()
            case "flood":
                for number in range(5_000):
                    self._tell({"event": "receipt", "ids": [str(number)], "state": "read", "at": 1})
            case _ if text.startswith("error: "):
                raise RuntimeError(text.removeprefix("error: "))
        return f"3EB0 {text}"

    def stop(self) -> None:
        if self._wish.get("never_ends"):
            NEVER.wait()


def main() -> None:
    source, sink = host.take_pipes()
    session = Path(sys.argv[1])
    wish = json.loads(session.read_text() or "{}") if session.exists() else {}
    wish["sink"] = sink.fileno()

    def make(tell: Tell) -> host.Calls:
        host.settle_in(session)
        return host.kept(session, tell, lambda told: OtherEnd(told, wish))

    if wish.get("silent"):
        NEVER.wait()
    host.serve(make, source, sink)
    os._exit(0)


if __name__ == "__main__":
    main()
