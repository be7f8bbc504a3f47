"""`python -m localcloud.aws`: serve the emulator until SIGTERM or SIGINT.

The line `listening on http://HOST:PORT` means ready. `--config FILE` (YAML or JSON: `config`, `faults`, `clock`) is
reread when it changes; an invalid file is reported and ignored.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from pathlib import Path

# moto reads these at import.
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
os.environ["MOTO_DISABLE_GLOBAL_CORS"] = "true"
os.environ["MOTO_IAM_LOAD_MANAGED_POLICIES"] = "false"
os.environ.pop("MOTO_ACCOUNT_ID", None)

import localcloud.aws.shared_loader  # noqa: F401 - before moto

# isort: split
import yaml
from pydantic import ValidationError

from localcloud.aws import (
    account,
    autoscaling,
    bus,
    ec2,
    identity,
    moto_core,
    notices,
    organizations,
    pump,
    runtime,
    service_quotas,
    sqs,
    support,
)
from localcloud.aws.api import apply_file
from localcloud.aws.contract import ConfigFile
from localcloud.aws.persistence import StateFile
from localcloud.aws.server import Emulator, Server

log = logging.getLogger("localcloud.aws")

_LOOK_AT_FILE_SECONDS = 1.0


def main(argv: list[str] | None = None) -> None:
    arguments = _parse(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    _take_payer_key()
    moto_core.install()
    for part in (organizations, identity, support, service_quotas, account, ec2, sqs, pump, bus, autoscaling, notices):
        part.install()
    state = StateFile(arguments.state)
    state.load()
    with runtime.MOTO:
        organizations.ensure_organization()
        identity.index_keys()
        identity.ensure_payer_user()
    if arguments.config is not None:
        _read_config(arguments.config)
    state.mark_everything()
    state.start()
    pump.start(state.changed)
    server = Server(arguments.host, arguments.port, Emulator(state))
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.5}, name="http", daemon=True).start()
    host, port = server.server_address[:2]
    print(f"listening on http://{host!s}:{port}", flush=True)
    _watch_config(arguments.config, state, stop)
    state.stop()
    # From here on no call is answered, since its effect would not be saved.
    runtime.MOTO.acquire()
    state.save()


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m localcloud.aws", description="The AWS of the local deployment.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 chooses a free port and prints it")
    parser.add_argument("--state", type=Path, required=True, help="file that stores the cloud across restarts")
    parser.add_argument("--config", type=Path, help="YAML or JSON with settings and faults, watched for changes")
    return parser.parse_args(argv)


def _take_payer_key() -> None:
    key, secret = os.environ.pop("AWS_ACCESS_KEY_ID", ""), os.environ.pop("AWS_SECRET_ACCESS_KEY", "")
    os.environ.pop("AWS_SESSION_TOKEN", None)
    if key:
        runtime.set_payer_key(key, secret)


def _watch_config(path: Path | None, state: StateFile, stop: threading.Event) -> None:
    seen = _version_of(path)
    while not stop.wait(_LOOK_AT_FILE_SECONDS if path is not None else None):
        version = _version_of(path)
        if path is not None and version != seen:
            seen = version
            _read_config(path)
            state.settings_changed()


def _version_of(path: Path | None) -> tuple[int, int] | None:
    try:
        status = path.stat() if path is not None else None
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size) if status is not None else None


def _read_config(path: Path) -> None:
    try:
        content = yaml.safe_load(path.read_text()) or {}
        apply_file(ConfigFile.model_validate(content))
    except (OSError, yaml.YAMLError, ValidationError, ValueError) as error:
        log.warning("%s was ignored: %s", path, error)
    else:
        log.info("%s was read", path)


if __name__ == "__main__":
    main()
    # All state is saved; tearing moto down would take a third of a second.
    os._exit(0)
