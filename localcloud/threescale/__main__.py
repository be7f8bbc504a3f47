"""`python -m localcloud.threescale`: serve the simulator until SIGTERM or SIGINT.

When it is ready, it prints `listening on http://HOST:PORT` with the first tenant's address.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path

from localcloud.threescale.server import Server
from localcloud.threescale.world import World


def main(argv: list[str] | None = None) -> int:
    arguments = _parse(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    asyncio.run(_serve(arguments))
    return 0


async def _serve(arguments: argparse.Namespace) -> None:
    world = World(arguments.state, host=arguments.host, port=arguments.port, master_port=arguments.master_port)
    server = Server(world)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await server.start()
        print(f"listening on {world.default['url']}", flush=True)
        await stop.wait()
    finally:
        await server.stop()
        world.close()


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m localcloud.threescale", description="A simulated 3scale with configurable faults."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument(
        "--port", type=int, default=0, help="port of the first tenant; 0 selects its previous port, or a free port"
    )
    parser.add_argument(
        "--master-port", type=int, default=0, help="port of the master; 0 selects its previous port, or a free port"
    )
    parser.add_argument("--state", type=Path, required=True, help="file that stores everything across restarts")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
