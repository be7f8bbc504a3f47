"""A node's part in a Service, kube-proxy and pod in one: `python -m localcloud.demo.node ADDRESS PORT NAME`.

Answers every HTTP request at the Service's node port with the node's name.
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Answer(BaseHTTPRequestHandler):
    """The answer to every request."""

    name = ""

    def do_GET(self) -> None:
        """Say who answers."""
        body = f"{self.name}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: whoever asks sees the answer."""


class Server(ThreadingHTTPServer):
    """Many clients at once; all of them end with the process."""

    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    """Answer until told to end."""
    address, port, name = sys.argv[1:]
    with Server((address, int(port)), type("NamedAnswer", (Answer,), {"name": name})) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
