"""Simulates kube-proxy and pod of a node: `python -m localcloud.demo.node ADDRESS PORT NAME`.

It answers every HTTP request with the node's name.
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Answer(BaseHTTPRequestHandler):
    name = ""

    def do_GET(self) -> None:
        body = f"{self.name}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    address, port, name = sys.argv[1:]
    with Server((address, int(port)), type("NamedAnswer", (Answer,), {"name": name})) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
