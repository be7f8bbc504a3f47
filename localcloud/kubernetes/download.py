"""Downloads Kubernetes' official programs, once per computer.

API server and etcd are checked against the SHA-512 below; the controller manager (Linux only) against the SHA-256
published beside it, which only proves a complete transfer. Interrupted downloads stay as `NAME.part` and are resumed.
`PERDURE_DOWNLOADS` is a base URL that replaces both hosts; `off` disables downloads.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tarfile
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

import httpx

from localcloud.building import only_builder
from localcloud.progress import Narrator

VERSION = "v1.36.2"
ARCHIVE_PATH = "/kubernetes-sigs/controller-tools/releases/download/envtest-{version}/{archive}"
PROGRAM_PATH = "/release/{version}/bin/{system}/{machine}/kube-controller-manager"
ARCHIVE_HOST = "https://github.com"
PROGRAM_HOST = "https://dl.k8s.io"
SETTING = "PERDURE_DOWNLOADS"
SHA512 = {
    "envtest-v1.36.2-darwin-amd64.tar.gz": (
        "b4fe9f973cd1992e3880f8b230ed32c0c243b83371591e3e3315f4404df2cdbe"
        "f8ee94eeb9bb245b7e5feb987d5c4a76c43e0877654ab73f00d7bbc2b9984514"
    ),
    "envtest-v1.36.2-darwin-arm64.tar.gz": (
        "9278f9e5af556b2f1f2d139769c1f0d717c7b4426917fdebdba898bcb725a916"
        "e4910d6160886194ff9be9589ea7c5c32c2b8ae0754703874b7c8ba8ddfc41ce"
    ),
    "envtest-v1.36.2-linux-amd64.tar.gz": (
        "ea743186c8a799f5cf8faf16969f86189d003cb7d130e0ac4b58789f1e5748dc"
        "f30ebe91c837a10d5ac415383da3e10b9e64d65785c938c23e739781cfb76f08"
    ),
    "envtest-v1.36.2-linux-arm64.tar.gz": (
        "2d72ee985a8e262a3c57dc9f7f0fd891f6a8c7bf7ebaa2db6dc6d8eac8ae2818"
        "1afe51c1f368b67756cdb40b10de9b205609e1726e5f27f7c6d824dd9c6649ac"
    ),
}
FROM_ARCHIVE = ("etcd", "kube-apiserver")
CONTROLLER_MANAGER = "kube-controller-manager"
# Includes name resolution, which no connection timeout covers.
REACHED_SECONDS = 2.5
# A silent server is given up after this time; the received part is kept.
READ_SECONDS = 15.0
ATTEMPTS = 3

_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_MB = 1_000_000


class DownloadError(Exception):
    pass


class WrongHashError(DownloadError):
    pass


@dataclass(frozen=True)
class Target:
    system: str
    machine: str

    @classmethod
    def of_this_computer(cls) -> Target | None:
        target = cls(platform.system().lower(), _MACHINES.get(platform.machine().lower(), ""))
        return target if target.archive in SHA512 else None

    @property
    def archive(self) -> str:
        return f"envtest-{VERSION}-{self.system}-{self.machine}.tar.gz"

    @property
    def has_controller_manager(self) -> bool:
        return self.system == "linux"

    def home(self, cache: Path) -> Path:
        return cache / f"official-{VERSION}-{self.system}-{self.machine}-{SHA512[self.archive][:8]}"


def is_switched_off() -> bool:
    return os.environ.get(SETTING, "").strip().lower() == "off"


def cached(cache: Path, target: Target) -> Path | None:
    home = target.home(cache)
    return home if home.is_dir() else None


def download(cache: Path, target: Target, narrator: Narrator) -> Path:
    """Download the programs; returns their directory. The controller manager may be missing. Raises DownloadError."""
    cache.mkdir(parents=True, exist_ok=True)
    with only_builder(cache, "Kubernetes", narrator):
        ready = cached(cache, target)
        if ready is not None:
            return ready
        for abandoned in cache.glob(".downloading-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        archive_url, program_url = _urls(target)
        narrator.say(f"Downloading Kubernetes {VERSION} and etcd for {target.system}/{target.machine}.")
        parts = cache / "downloads"
        parts.mkdir(exist_ok=True)
        _check_reachable(archive_url)
        timeout = httpx.Timeout(READ_SECONDS, connect=REACHED_SECONDS)
        with (
            httpx.Client(timeout=timeout, follow_redirects=True) as client,
            tempfile.TemporaryDirectory(dir=cache, prefix=".downloading-") as temporary,
        ):
            work = Path(temporary, "programs")
            work.mkdir()
            archive = _fetch(client, archive_url, parts / target.archive, "sha512", SHA512[target.archive], narrator)
            _unpack(archive, work)
            if target.has_controller_manager:
                path = parts / f"{CONTROLLER_MANAGER}-{VERSION}-{target.system}-{target.machine}"
                try:
                    _fetch(client, program_url, path, "sha256", _published_sha256(client, program_url), narrator)
                    shutil.copy(path, work / CONTROLLER_MANAGER)
                except DownloadError as error:
                    narrator.say(f"The controller manager cannot be downloaded: {error}")
            for program in work.iterdir():
                program.chmod(0o755)
            work.rename(target.home(cache))
        shutil.rmtree(parts)
    narrator.say("Downloaded; later runs start in seconds.")
    return target.home(cache)


def _urls(target: Target) -> tuple[str, str]:
    mirror = os.environ.get(SETTING, "").strip().rstrip("/")
    archive = ARCHIVE_PATH.format(version=VERSION, archive=target.archive)
    program = PROGRAM_PATH.format(version=VERSION, system=target.system, machine=target.machine)
    return (mirror or ARCHIVE_HOST) + archive, (mirror or PROGRAM_HOST) + program


def _check_reachable(url: str) -> None:
    """Check that the host completes a TLS handshake within REACHED_SECONDS. For http, an accepted connection is enough.

    Some firewalls accept connections and then drop everything.
    """
    last_step = "start_tls.complete" if httpx.URL(url).scheme == "https" else "connect_tcp.complete"
    over = threading.Event()
    reached: list[str] = []
    errors: list[httpx.HTTPError] = []

    def trace(event: str, _: object) -> None:
        if event.endswith(last_step):
            reached.append(event)
            over.set()

    def ask() -> None:
        try:
            with httpx.Client(timeout=REACHED_SECONDS) as client:
                client.head(url, extensions={"trace": trace})
        except httpx.HTTPError as error:
            errors.append(error)
        finally:
            over.set()

    threading.Thread(target=ask, name="reach", daemon=True).start()
    over.wait(REACHED_SECONDS)
    if not reached:
        timely = [error for error in errors if not isinstance(error, httpx.TimeoutException)]
        why = f": {_reason(timely[0])}" if timely else f" within {REACHED_SECONDS} s"
        raise DownloadError(f"{httpx.URL(url).host} cannot be reached{why}")


def _published_sha256(client: httpx.Client, program_url: str) -> str:
    url = f"{program_url}.sha256"
    _check_reachable(url)
    try:
        answer = client.get(url).raise_for_status()
    except httpx.HTTPError as error:
        raise DownloadError(f"{url}: {_reason(error)}") from None
    words = answer.text.split()
    if not words or len(words[0]) != 64 or not all(letter in "0123456789abcdef" for letter in words[0]):
        raise DownloadError(f"{url} contains no SHA-256")
    return words[0]


def _fetch(client: httpx.Client, url: str, path: Path, algorithm: str, expected: str, narrator: Narrator) -> Path:
    if path.exists():
        return path
    part = path.with_name(f"{path.name}.part")
    for attempt in range(1, ATTEMPTS + 1):
        before = part.stat().st_size if part.exists() else 0
        try:
            _append(client, url, part, narrator)
            break
        except httpx.HTTPError as error:
            # Retry only interrupted connections; a silent server stays silent.
            grew = part.exists() and part.stat().st_size > before
            if attempt == ATTEMPTS or not grew:
                raise DownloadError(f"{url}: {_reason(error)}") from None
            narrator.say(f"  interrupted ({_reason(error)}): resuming at {part.stat().st_size // _MB} MB")
    with part.open("rb") as file:
        actual = hashlib.file_digest(file, algorithm).hexdigest()
    if actual != expected:
        part.unlink()
        raise WrongHashError(f"{url} has the {algorithm} {actual}, expected {expected}; the file was removed")
    part.rename(path)
    return path


def _append(client: httpx.Client, url: str, part: Path, narrator: Narrator) -> None:
    have = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"} if have else {"Accept-Encoding": "identity"}
    with client.stream("GET", url, headers=headers) as answer:
        if have and answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # the part is complete; its hash is checked later
        answer.raise_for_status()
        resumed = answer.status_code == httpx.codes.PARTIAL_CONTENT
        done = have if resumed else 0
        total = done + int(answer.headers.get("Content-Length", 0))
        with part.open("ab" if resumed else "wb") as file:
            for chunk in answer.iter_bytes():
                file.write(chunk)
                done += len(chunk)
                narrator.advance(f"MB of {Path(url).name}", done // _MB, max(done, total) // _MB)


def _unpack(archive: Path, work: Path) -> None:
    with tarfile.open(archive) as opened:
        for member in opened:
            name = Path(member.name).name
            if name in FROM_ARCHIVE and member.isfile():
                source = opened.extractfile(member)
                assert source is not None
                with source, (work / name).open("wb") as file:
                    shutil.copyfileobj(source, file)
    missing = [name for name in FROM_ARCHIVE if not (work / name).is_file()]
    if missing:
        raise DownloadError(f"{archive.name} contains no {', '.join(missing)}")


def _reason(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        return f"the server answered {error.response.status_code}"
    if isinstance(error, httpx.ReadTimeout):
        return f"the server sent nothing for {READ_SECONDS:.0f} s"
    return str(error) or type(error).__name__
