"""Kubernetes' official programs come from a server of the test's own that serves, cuts, hangs, lies or is not there."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from localcloud.kubernetes import build, download, programs
from localcloud.kubernetes.download import DownloadError, Target, WrongHashError
from localcloud.progress import Silence

pytestmark = pytest.mark.integration

LINUX = Target("linux", "amd64")
MAC = Target("darwin", "arm64")
PROGRAMS = {name: f"{name} of the test\n".encode() + os.urandom(300_000) for name in build.PACKAGES}


def archive() -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as tar:
        for name in ("etcd", "kube-apiserver", "kubectl"):
            content = PROGRAMS.get(name, b"not wanted")
            member = tarfile.TarInfo(f"controller-tools/envtest/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return written.getvalue()


class Mirror(ThreadingHTTPServer):
    """Serves both hosts' paths, with ranges; counts what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files: dict[str, bytes] = {}
        self.cuts: list[int] = []
        """After how many bytes each of the next answers to a GET of an archive ends."""
        self.hangs = threading.Event()
        self.released = threading.Event()
        self.asked: list[tuple[str, str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def ranges(self) -> list[str | None]:
        return [wanted for method, path, wanted in self.asked if method == "GET" and path.endswith(".tar.gz")]


class Answer(BaseHTTPRequestHandler):
    server: Mirror

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""

    def _answer(self, *, with_body: bool) -> None:
        path = urlsplit(self.path).path
        wanted = self.headers.get("Range")
        self.server.asked.append((self.command, path, wanted))
        content = self.server.files.get(path)
        if content is None:
            self.send_error(404)
            return
        begin = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        if not with_body:
            return
        if self.server.hangs.is_set():
            self.server.released.wait()
            return
        body = content[begin:]
        if path.endswith(".tar.gz") and self.server.cuts:
            body = body[: self.server.cuts.pop(0)]
        self.wfile.write(body)


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    with Mirror() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        content = archive()
        digest = hashlib.sha512(content).hexdigest()
        for target in (LINUX, MAC):
            monkeypatch.setitem(download.SHA512, target.archive, digest)
            server.files[download.ARCHIVE_PATH.format(version=download.VERSION, archive=target.archive)] = content
        manager = PROGRAMS["kube-controller-manager"]
        path = download.PROGRAM_PATH.format(version=download.VERSION, system="linux", machine="amd64")
        server.files[path] = manager
        server.files[f"{path}.sha256"] = hashlib.sha256(manager).hexdigest().encode()
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "KUBEBUILDER_ASSETS"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(download.SETTING, server.url)
        # A busy computer may take longer than a person should wait for.
        monkeypatch.setattr(download, "REACHED_SECONDS", 30.0)
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


def assert_whole(home: Path) -> None:
    assert {path.name: path.read_bytes() for path in home.iterdir()} == PROGRAMS
    assert all(os.access(path, os.X_OK) for path in home.iterdir())


def nothing_usable(cache: Path) -> bool:
    return download.cached(cache, LINUX) is None and not list(cache.rglob("kube-apiserver"))


def test_the_programs_are_downloaded_once_and_runnable(mirror: Mirror, tmp_path: Path) -> None:
    home = download.download(tmp_path, LINUX, Silence())
    requested = len(mirror.asked)

    assert_whole(home)
    assert download.download(tmp_path, LINUX, Silence()) == home
    assert len(mirror.asked) == requested
    assert {path.name for path in tmp_path.iterdir()} == {"lock", home.name}


def test_a_download_that_is_cut_goes_on_where_it_was(mirror: Mirror, tmp_path: Path) -> None:
    mirror.cuts = [100_000, 50_000]

    assert_whole(download.download(tmp_path, LINUX, Silence()))

    assert mirror.ranges() == [None, "bytes=100000-", "bytes=150000-"]


def test_the_next_attempt_resumes_what_the_last_one_left(mirror: Mirror, tmp_path: Path) -> None:
    mirror.cuts = [100_000, 0]
    with pytest.raises(DownloadError):
        download.download(tmp_path, LINUX, Silence())
    assert nothing_usable(tmp_path)

    assert_whole(download.download(tmp_path, LINUX, Silence()))

    assert mirror.ranges()[-1] == "bytes=100000-"


def spoil(mirror: Mirror, ending: str) -> None:
    for path, content in mirror.files.items():
        if path.endswith(ending):
            mirror.files[path] = content[:-1] + bytes([content[-1] ^ 1])


def test_an_archive_with_a_wrong_hash_is_never_used(mirror: Mirror, tmp_path: Path) -> None:
    spoil(mirror, ".tar.gz")

    with pytest.raises(WrongHashError, match="expected"):
        download.download(tmp_path, LINUX, Silence())

    assert nothing_usable(tmp_path)
    assert not list((tmp_path / "downloads").glob("*.part")), "it would be resumed for ever"


def test_a_controller_manager_with_a_wrong_hash_is_never_used(
    mirror: Mirror, compiler: Compiler, tmp_path: Path
) -> None:
    spoil(mirror, "kube-controller-manager")

    found = programs.find_programs(Silence(), tmp_path)

    assert compiler.made == [("kube-controller-manager",)]
    assert found.kube_controller_manager.read_bytes() == PROGRAMS["kube-controller-manager"]
    assert found.etcd.read_bytes() == PROGRAMS["etcd"]


def test_a_server_that_sends_nothing_is_given_up(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "READ_SECONDS", 0.5)
    mirror.hangs.set()

    with pytest.raises(DownloadError, match="sent nothing"):
        download.download(tmp_path, LINUX, Silence())

    assert nothing_usable(tmp_path)


def test_a_refused_connection_is_found_out_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv(download.SETTING, f"http://127.0.0.1:{port}")

    with pytest.raises(DownloadError, match="cannot be reached"):
        download.download(tmp_path, LINUX, Silence())


def test_an_internet_that_does_not_answer_is_found_out_within_three_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = threading.Event()

    def lost(*_: object, **__: object) -> None:
        never.wait()
        raise socket.gaierror("no answer")

    monkeypatch.setattr(socket, "getaddrinfo", lost)
    monkeypatch.setenv(download.SETTING, "http://mirror.example")
    assert download.REACHED_SECONDS < 3
    began = time.monotonic()
    try:
        with pytest.raises(DownloadError, match="cannot be reached"):
            download.download(tmp_path, LINUX, Silence())
        assert time.monotonic() - began < download.READ_SECONDS
    finally:
        never.set()


@pytest.mark.parametrize("way", ["direct", "proxy"])
def test_a_server_that_accepts_and_stays_silent_is_detected_within_three_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        if way == "proxy":
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
            monkeypatch.setenv(download.SETTING, "https://mirror.invalid")
        else:
            monkeypatch.setenv(download.SETTING, f"https://127.0.0.1:{port}")
        began = time.monotonic()
        with pytest.raises(DownloadError, match="cannot be reached"):
            download.download(tmp_path, LINUX, Silence())
        assert time.monotonic() - began < download.READ_SECONDS


def test_a_proxy_is_honoured(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", mirror.url)
    monkeypatch.setenv(download.SETTING, "http://mirror.invalid/")

    assert_whole(download.download(tmp_path, LINUX, Silence()))


class Compiler:
    """Replaces the compiler, which would take minutes: makes files, and remembers which."""

    def __init__(self) -> None:
        self.made: list[tuple[str, ...]] = []

    def build(self, cache: Path, _: object, names: tuple[str, ...] = build.ALL) -> Path:
        self.made.append(names)
        home = cache / "compiled"
        home.mkdir(parents=True)
        for name in names:
            (home / name).write_bytes(PROGRAMS[name])
        return home


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    stand_in = Compiler()
    monkeypatch.setattr(build, "build", stand_in.build)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    return stand_in


def test_nothing_is_compiled_where_the_programs_can_be_downloaded(
    mirror: Mirror, compiler: Compiler, tmp_path: Path
) -> None:
    found = programs.find_programs(Silence(), tmp_path)

    assert found.kube_controller_manager.read_bytes() == PROGRAMS["kube-controller-manager"]
    assert mirror.asked
    assert not compiler.made
    mirror.files.clear()
    assert programs.find_programs(Silence(), tmp_path) == found, "the second time it is in the cache"


def test_off_downloads_nothing(
    mirror: Mirror, compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(download.SETTING, "off")

    programs.find_programs(Silence(), tmp_path)

    assert compiler.made == [build.ALL]
    assert not mirror.asked


def test_all_is_compiled_where_the_download_fails(mirror: Mirror, compiler: Compiler, tmp_path: Path) -> None:
    mirror.files.clear()

    programs.find_programs(Silence(), tmp_path)

    assert compiler.made == [build.ALL]


def test_the_controller_manager_alone_is_compiled_on_a_mac(
    mirror: Mirror, compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")

    found = programs.find_programs(Silence(), tmp_path)

    assert compiler.made == [("kube-controller-manager",)]
    assert found.etcd.read_bytes() == PROGRAMS["etcd"]
    assert found.kube_controller_manager.read_bytes() == PROGRAMS["kube-controller-manager"]
    assert mirror.ranges() == [None]
