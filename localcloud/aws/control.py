"""The typed client of the emulator's control API."""

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
from localcloud.aws.events_contract import EventFault, EventFaultKind, EventRecord, Notice, Published
from localcloud.aws.happenings import Detail, Happening
from localcloud.control import DisturbableCloud


class Emulator(DisturbableCloud):
    @property
    def endpoint(self) -> str:
        return self.url

    def health(self) -> Health:
        return self._get("health", Health)

    def config(self, **changes: object) -> Config:
        if not changes:
            return self._get("config", Config)
        return self._send("PUT", "config", changes, Config)

    def reset_config(self) -> Config:
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
        fault = Fault.model_validate({"service": service, "action": action, "kind": kind, "count": count, **more})
        return self._send("POST", "faults", fault.model_dump(mode="json"), Fault)

    def faults(self) -> list[Fault]:
        return [Fault.model_validate(entry) for entry in self.request("GET", "faults").json()]

    def ledger(self, *, recent: bool = False) -> Ledger:
        return self._get("ledger?recent=1" if recent else "ledger", Ledger)

    def world(self) -> World:
        return self._get("world", World)

    def customer(self, account: str = "") -> CustomerAccount:
        return self._send("POST", "customers", {"account": account}, CustomerAccount)

    def resolve_case(self, case_id: str) -> CaseRecord:
        return self._send("POST", f"cases/{case_id}", {"resolve": "now"}, CaseRecord)

    def hold_case(self, case_id: str) -> CaseRecord:
        return self._send("POST", f"cases/{case_id}", {"resolve": "never"}, CaseRecord)

    def clock(self, *, speed: float | None = None, advance_seconds: float = 0) -> ClockReading:
        if speed is None and not advance_seconds:
            return self._get("clock", ClockReading)
        return self._send("POST", "clock", {"speed": speed, "advance_seconds": advance_seconds}, ClockReading)

    def announce(self, kind: str, account: str, region: str, *instances: str, **more: object) -> Published:
        """Publish a notice: spot, rebalance, capacity-reservation or health; `more` are fields of `Notice`."""
        event = {"kind": kind, "account": account, "region": region, "instances": instances, **more}
        return self._send("POST", "notices", Notice.model_validate(event).model_dump(mode="json"), Published)

    def publish(self, account: str, region: str, source: str, detail_type: str, detail: Detail) -> Published:
        happening = Happening(account=account, region=region, source=source, detail_type=detail_type, detail=detail)
        return self._send("POST", "events", happening.model_dump(mode="json"), Published)

    def events(self) -> list[EventRecord]:
        return [EventRecord.model_validate(each) for each in self.request("GET", "events").json()]

    def forget_events(self) -> None:
        self.request("DELETE", "events")

    def event_fault(self, kind: EventFaultKind | str, **more: object) -> EventFault:
        fault = EventFault.model_validate({"kind": kind, **more})
        return self._send("POST", "event-faults", fault.model_dump(mode="json"), EventFault)

    def event_faults(self) -> list[EventFault]:
        return [EventFault.model_validate(each) for each in self.request("GET", "event-faults").json()]

    def clear(self, fault_id: str | None = None) -> None:
        super().clear(fault_id)
        if fault_id is None:
            self.request("DELETE", "event-faults")

    def save(self) -> None:
        self.request("POST", "save")
