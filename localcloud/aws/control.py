"""The typed client of the emulator's control API, for tests, demos and benchmarks.

Example:
    >>> emulator = Emulator("http://127.0.0.1:4566")
    >>> emulator.config(create_account_seconds=5, latency_ms=50)
    >>> emulator.fault("organizations", "CreateAccount", kind="after", count=1)
    >>> emulator.ledger().calls("organizations", "CreateAccount")
    2
"""

from __future__ import annotations

from localcloud.aws.contract import (
    CaseRecord,
    ClockReading,
    Config,
    CustomerAccount,
    Fault,
    FaultKind,
    Health,
    Ledger,
    World,
)
from localcloud.aws.events_contract import EventFault, EventFaultKind, EventRecord, Notice, Told
from localcloud.aws.happenings import Detail, Happening
from localcloud.control import DisturbableCloud


class Emulator(DisturbableCloud):
    """The emulator behind an endpoint, as a test steers it. Calls block; none of them shows in the ledger."""

    @property
    def endpoint(self) -> str:
        """Where AWS's clients find it."""
        return self.url

    def health(self) -> Health:
        """Whether it serves; raises httpx.HTTPError where nobody answers."""
        return self._get("health", Health)

    def config(self, **changes: object) -> Config:
        """Change the named settings, of which `Config` has the list, and return all; without names only return them."""
        if not changes:
            return self._get("config", Config)
        return self._send("PUT", "config", changes, Config)

    def reset_config(self) -> Config:
        """All settings back to their defaults."""
        return self._send("POST", "reset-config", None, Config)

    def fault(
        self,
        service: str = "*",
        action: str = "*",
        *,
        kind: FaultKind | str,
        count: int | None = None,
        **more: object,
    ) -> Fault:
        """Disturb calls; `Fault` has the list of what else can be said (account, region, probability, code, ...)."""
        fault = Fault.model_validate({"service": service, "action": action, "kind": kind, "count": count, **more})
        return self._send("POST", "faults", fault.model_dump(mode="json"), Fault)

    def faults(self) -> list[Fault]:
        """The faults in force, with how often each struck."""
        return [Fault.model_validate(entry) for entry in self.request("GET", "faults").json()]

    def ledger(self, *, recent: bool = False) -> Ledger:
        """The calls since the last reset, on request with the last ones one by one."""
        return self._get("ledger?recent=1" if recent else "ledger", Ledger)

    def world(self) -> World:
        """What exists."""
        return self._get("world", World)

    def customer(self, account: str = "") -> CustomerAccount:
        """An account outside the organization, as a customer brings it: a new one, or the one of that id."""
        return self._send("POST", "customers", {"account": account}, CustomerAccount)

    def resolve_case(self, case_id: str) -> CaseRecord:
        """Resolve a support case now."""
        return self._send("POST", f"cases/{case_id}", {"resolve": "now"}, CaseRecord)

    def hold_case(self, case_id: str) -> CaseRecord:
        """Leave a support case open for ever."""
        return self._send("POST", f"cases/{case_id}", {"resolve": "never"}, CaseRecord)

    def clock(self, *, speed: float | None = None, advance_seconds: float = 0) -> ClockReading:
        """Change the emulator's clock, or only read it."""
        if speed is None and not advance_seconds:
            return self._get("clock", ClockReading)
        return self._send("POST", "clock", {"speed": speed, "advance_seconds": advance_seconds}, ClockReading)

    def announce(self, kind: str, account: str, region: str, *instances: str, **more: object) -> Told:
        """Announce something of instances: `spot`, `rebalance`, `capacity-reservation` or `health`.

        `Notice` has the list of what else can be said (action; code, start, status, event, ...).
        """
        said = {"kind": kind, "account": account, "region": region, "instances": instances, **more}
        return self._send("POST", "notices", Notice.model_validate(said).model_dump(mode="json"), Told)

    def tell(self, account: str, region: str, source: str, detail_type: str, detail: Detail) -> Told:
        """Tell the event bus something that did not happen, in a service's name."""
        told = Happening(account=account, region=region, source=source, detail_type=detail_type, detail=detail)
        return self._send("POST", "events", told.model_dump(mode="json"), Told)

    def events(self) -> list[EventRecord]:
        """The last events that services told, in the order in which they were delivered."""
        return [EventRecord.model_validate(each) for each in self.request("GET", "events").json()]

    def forget_events(self) -> None:
        """Forget them; queues keep what they took."""
        self.request("DELETE", "events")

    def event_fault(self, kind: EventFaultKind | str, **more: object) -> EventFault:
        """Disturb events; `EventFault` has the list of what can be said (detail_type, containing, count, ...)."""
        fault = EventFault.model_validate({"kind": kind, **more})
        return self._send("POST", "event-faults", fault.model_dump(mode="json"), EventFault)

    def event_faults(self) -> list[EventFault]:
        """The faults of events in force, with how often each struck."""
        return [EventFault.model_validate(each) for each in self.request("GET", "event-faults").json()]

    def clear(self, fault_id: str | None = None) -> None:
        """Lift all faults, those of events too, or one of calls."""
        super().clear(fault_id)
        if fault_id is None:
            self.request("DELETE", "event-faults")

    def save(self) -> None:
        """Have the state saved now instead of within two seconds."""
        self.request("POST", "save")
