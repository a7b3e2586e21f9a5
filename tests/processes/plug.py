"""A plug between a service and its database that can be pulled and put back."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Plug:
    """Forwards a loopback port to a server; pulled, it drops every connection and takes none."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._pulled = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._pulled:
                    _drop(near)
                    continue
                far = socket.create_connection(self._target)
                self._pairs.append((near, far))
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=_pump, args=(source, sink), daemon=True).start()

    def pull(self) -> None:
        with self._lock:
            self._pulled = True
            pairs, self._pairs = self._pairs, []
        for near, far in pairs:
            _drop(near)
            _drop(far)

    def put_back(self) -> None:
        with self._lock:
            self._pulled = False

    def close(self) -> None:
        self.pull()
        self._listener.close()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(65_536):
            sink.sendall(chunk)
    _drop(source)
    _drop(sink)


def _drop(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
