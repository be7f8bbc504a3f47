"""An installation whose 3scale objects are broken into: lives of all eleven kinds, one or several at a time.

`threescale_undisturbed.json` has what 3scale holds after each turn of a life that nothing disturbs. Lives have
nothing in common but the processes and servers, so that each can meet another fault, or the same at another moment.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from chaos_installation import Installation
from chaos_striking import write_name
from chaos_threescale_life import TURNS, Life, Objects

from domain.threescale import CUSTOM_KINDS
from localcloud import services
from localcloud.bench.threescale_all_kinds import COUNT
from localcloud.state import Cloud
from localcloud.threescale.control import ThreescaleControl

__all__ = ["CALL_SECONDS", "TURNS", "ThreescaleLab"]

Json = dict[str, Any]

# For a life; each one more at the same time takes its share of the machine.
SETTLE_SECONDS = 150.0
SETTLE_MORE_SECONDS = 20.0
# A call that hangs is given up after this.
CALL_SECONDS = 5
SETTINGS = {
    "PERDURE_DRAIN": "2",
    "PERDURE_CALL_TIMEOUT": str(CALL_SECONDS),
}
UNDISTURBED = Path(__file__).parent / "threescale_undisturbed.json"
SHOP = "shop"
# Perdure's word to people: nothing follows from an Event.
UNTOLD = "POST events"
# Many wait for many faults at once: how often each struck is asked once for all.
_FAULTS_SECONDS = 0.2


class ThreescaleLab(Installation):
    """The installation."""

    def __init__(self, state: Path) -> None:
        used = (*services.CLUSTER, services.TEMPORAL, services.PREPARATION, services.THREESCALE)
        worker = ("worker", "--only", "threescale")
        super().__init__(state, used, SETTINGS, worker, clouds=(Cloud.THREESCALE,), reserve=True)
        self.cloud = ThreescaleControl.of(self.deployment)
        self.undisturbed: dict[str, dict[str, list[str]]] = json.loads(UNDISTURBED.read_text())
        """What the tenant holds after each turn of a life that nothing disturbs."""
        self._lives: dict[str, Life] = {}
        self._hits: dict[str, int] = {}
        self._hits_at = 0.0
        self.start()

    def close(self) -> None:
        """Stop all of it and remove its data."""
        super().close()
        self.cloud.close()

    def fill(self) -> None:
        """Nothing is there."""
        self.settle()

    def record(self) -> None:
        """Live one life, and write down what comes of each turn."""
        life, self.undisturbed = self.life(), {}
        for turn in TURNS:
            life.take(turn)
            self.settle()
            self.undisturbed[turn] = life.holds()
        UNDISTURBED.write_text(json.dumps(self.undisturbed, indent=1, sort_keys=True) + "\n")

    def lift(self) -> None:
        """Break nothing any more."""
        super().lift()
        self.cloud.clear()

    # --- lives ---

    def life(self, name: str = SHOP) -> Life:
        """The life of that name, which begins when it is asked for first."""
        if name not in self._lives:
            self._lives[name] = Life(name, self.cluster, self.cloud)
        return self._lives[name]

    def ready_to(self, turn: str, *lives: Life) -> None:
        """Let each take undisturbed turns until it is the one's."""
        late = [each for each in lives if each.coming != turn]
        while late:
            for each in late:
                each.take(each.coming)
            self.settle()
            late = [each for each in late if each.coming != turn]

    # --- settling ---

    def settle(self, seconds: float = SETTLE_SECONDS) -> float:
        """Wait until both sides agree, longer for many lives; how many seconds it took."""
        return self.agree(seconds + SETTLE_MORE_SECONDS * len(self._lives))

    def changes(self) -> object:
        """See `Installation`."""
        return self.proxy.changes, self.cloud.ledger().mutating()

    # --- what is wrong ---

    def violations(self) -> list[str]:
        """What is not as it should be, on either side."""
        objects = {kind: self.cluster.list(kind.plural) for kind in CUSTOM_KINDS}
        wrong = [
            line
            for life in self._lives.values()
            for line in life.violations(_of_namespace(objects, life.name), self.undisturbed.get(life.after))
        ]
        return wrong + self._of_workflows([each for listed in objects.values() for each in listed])

    def _of_workflows(self, objects: Sequence[Json]) -> list[str]:
        running = self.workflows.running()
        kinds = {kind.name for kind in CUSTOM_KINDS}
        there = {id_.rpartition("/")[2] for id_ in running if id_.partition("/")[0] in kinds}
        wrong = [f"{id_} is {phase}" for id_, phase in running.items() if phase in ("Bug", "Failed")]
        wrong += [f"{id_} has ended by failing" for id_ in self.workflows.broken()]
        uids = {each["metadata"]["uid"] for each in objects}
        wrong += [f"no workflow for {len(uids - there)} objects"] if uids - there else []
        return wrong + ([f"{len(there - uids)} workflows of objects that are gone"] if there - uids else [])

    def audit(self) -> None:
        """`perdure audit threescale` finds nothing."""
        audited = self.command("audit", "threescale")
        assert audited.returncode == 0, (audited.stdout + audited.stderr).decode()

    def story(self) -> str:
        """What each lifecycle says about itself, where these are not many."""
        return self.command("list").stdout.decode() if len(self._lives) * COUNT < 100 else ""

    # --- effects ---

    def effects(self, turn: str) -> tuple[set[str], set[str]]:
        """Take a turn undisturbed: its writes to Kubernetes, and its calls that change something in 3scale."""
        self.cloud.reset_ledger()
        self.proxy.requests.clear()
        self.proxy.recording = True
        try:
            self.life().take(turn)
            self.settle()
        finally:
            self.proxy.recording = False
        writes = {write_name(each) for each in self.proxy.requests if each.method != "GET"}
        calls = {f"{each.method} {each.route}" for each in self.cloud.ledger().counts if each.mutating}
        return writes - {UNTOLD}, calls

    def disturb(self, life: Life, call: str, **fault: object) -> Callable[[], bool]:
        """Disturb the life's next call of that kind; whether it was struck."""
        made = life.disturb(call, **fault)
        return lambda: self._struck().get(made.id, 0) > 0

    def _struck(self) -> Mapping[str, int]:
        if time.monotonic() - self._hits_at > _FAULTS_SECONDS:
            self._hits = {each.id: each.hits for each in self.cloud.faults()}
            self._hits_at = time.monotonic()
        return self._hits


def _of_namespace(objects: Objects, namespace: str) -> Objects:
    return {kind: [each for each in listed if _where(each) == namespace] for kind, listed in objects.items()}


def _where(obj: Json) -> str:
    return str(obj["metadata"]["namespace"])
