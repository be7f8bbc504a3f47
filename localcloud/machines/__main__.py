"""The machine host's process. `control.py` is the client of the machine host's HTTP API."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path

from aiohttp import web
from pydantic import ValidationError

from localcloud.machines.contract import Fares
from localcloud.machines.host import Host
from localcloud.state import LOOPBACK

# Not passed to machines: the deployment's addresses and the product's settings.
_NOT_INSIDE = ("AWS_", "OS_", "PERDURE_", "KUBE", "TEMPORAL_", "API_ENDPOINT")


async def serve(host: Host, port: int, call: str) -> None:
    app = web.Application()

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"pid": os.getpid()})

    async def machines(_: web.Request) -> web.Response:
        return _json(host.view().model_dump_json())

    async def fares(_: web.Request) -> web.Response:
        return _json(host.fares.model_dump_json())

    async def set_fares(request: web.Request) -> web.Response:
        try:
            host.set_fares(Fares.model_validate_json(await request.read()))
        except ValidationError as error:
            return web.Response(status=400, text=str(error))
        return _json(host.fares.model_dump_json())

    app.add_routes(
        [
            web.get("/perdure/health", health),
            web.get("/perdure/machines", machines),
            web.get("/perdure/fares", fares),
            web.put("/perdure/fares", set_fares),
        ]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, LOOPBACK, port).start()
        await host.run(call)
    finally:
        await runner.cleanup()


async def until_signalled(work: Coroutine[None, None, None]) -> None:
    task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


def main() -> None:
    parser = argparse.ArgumentParser(description="Boot load balancers' machines as processes of this computer.")
    parser.add_argument(
        "--ground", type=Path, required=True, help="directory where Nova and Neutron write what should run"
    )
    parser.add_argument("--home", type=Path, required=True, help="parent of the machines' directories")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--call", required=True, help="abstract socket where Nova and Neutron announce changes")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    inside = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INSIDE)}

    async def work() -> None:
        await until_signalled(serve(Host(arguments.ground, arguments.home, inside), arguments.port, arguments.call))

    asyncio.run(work())


def _json(text: str) -> web.Response:
    return web.Response(text=text, content_type="application/json")


if __name__ == "__main__":
    main()
