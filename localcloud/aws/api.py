"""The control API: JSON under `/perdure/`, never counted, delayed or disturbed (docs/emulator.md lists the paths).

Invalid requests are answered with 400 and the reason, unknown paths and objects with 404.
"""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import parse_qs

from pydantic import BaseModel, ValidationError

from localcloud.aws import bus, census, customers, notices, organizations, pump, runtime, support
from localcloud.aws import call as calls
from localcloud.aws.call import CallInHand
from localcloud.aws.contract import (
    CaseChange,
    CaseRecord,
    ClockChange,
    Config,
    ConfigFile,
    CustomerRequest,
    Fault,
    Health,
)
from localcloud.aws.events_contract import EventFault, Notice, Published
from localcloud.aws.happenings import Happening
from localcloud.aws.persistence import StateFile

_JSON = tuple[int, bytes]


class _UnknownError(Exception):
    pass


class ControlAPI:
    def __init__(self, state: StateFile) -> None:
        self._state = state
        self._started = time.time()

    def answer(self, environ: dict[str, Any]) -> _JSON:
        method = environ["REQUEST_METHOD"]
        parts = [part for part in environ["PATH_INFO"].split("/")[2:] if part]
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        query = parse_qs(environ.get("QUERY_STRING", ""))
        try:
            return 200, _to_json(self._route(method, parts, body, query))
        except ValidationError as error:
            return 400, _to_json({"error": json.loads(error.json(include_url=False, include_context=False))})
        except ValueError as error:
            return 400, _to_json({"error": str(error)})
        except _UnknownError as error:
            return 404, _to_json({"error": str(error) or f"no {method} {environ['PATH_INFO']}"})

    def _route(self, method: str, parts: list[str], body: bytes, query: dict[str, list[str]]) -> object:
        match (method, parts):
            case ("GET", ["health"]):
                return self._health()
            case ("GET", ["config"]):
                return runtime.config()
            case ("PUT", ["config"]):
                return self._changed(change_config(json.loads(body or b"{}")))
            case ("POST", ["reset-config"]):
                runtime.set_config(Config())
                return self._changed(runtime.config())
            case ("GET", ["faults"]):
                return runtime.faults.report()
            case ("POST", ["faults"]):
                return self._changed(runtime.faults.add(Fault.model_validate_json(body)))
            case ("DELETE", ["faults"]):
                runtime.faults.clear()
                return self._changed({})
            case ("DELETE", ["faults", fault_id]):
                if not runtime.faults.remove(fault_id):
                    raise _UnknownError(f"no fault {fault_id}")
                return self._changed({})
            case ("GET", ["event-faults"]):
                return runtime.event_faults.report()
            case ("POST", ["event-faults"]):
                return self._changed(runtime.event_faults.add(EventFault.model_validate_json(body)))
            case ("DELETE", ["event-faults"]):
                runtime.event_faults.clear()
                return self._changed({})
            case ("GET", ["events"]):
                return bus.recent()
            case ("DELETE", ["events"]):
                bus.forget()
                return {}
            case ("POST", ["events"]):
                happening = Happening.model_validate_json(body)
                return self._with_state(lambda: Published(events=(bus.publish(happening),)))
            case ("POST", ["notices"]):
                notice = Notice.model_validate_json(body)
                return self._with_state(lambda: notices.announce(notice))
            case ("GET", ["ledger"]):
                return runtime.ledger.report(recent="recent" in query)
            case ("DELETE", ["ledger"]):
                runtime.ledger.reset()
                return {}
            case ("GET", ["world"]):
                return self._with_state(census.take)
            case ("POST", ["customers"]):
                wanted = CustomerRequest.model_validate_json(body or b"{}")
                return self._with_state(lambda: customers.open_account(wanted.account))
            case ("POST", ["cases", case_id]):
                return self._decide_case(case_id, CaseChange.model_validate_json(body))
            case ("GET", ["clock"]):
                return runtime.clock.reading()
            case ("POST", ["clock"]):
                reading = runtime.clock.change(ClockChange.model_validate_json(body))
                pump.clock_changed()
                return self._changed(reading)
            case ("POST", ["save"]):
                self._state.save()
                return {"saved_at": self._state.saved_at}
        raise _UnknownError

    def _health(self) -> Health:
        with runtime.MOTO:
            organization = organizations.of_payer()
            return Health(
                status="ok",
                version="moto 5.2.5",
                payer_account=runtime.payer_account,
                access_key_id=runtime.payer_access_key_id,
                secret_access_key=runtime.payer_secret_access_key,
                organization=organization.org.id if organization.org else "",
                root=organization.org.root_id if organization.org else "",
                accounts=len(organization.accounts),
                uptime_seconds=time.time() - self._started,
                saved_at=self._state.saved_at,
                warnings=tuple(self._state.warnings),
            )

    def _decide_case(self, case_id: str, change: CaseChange) -> CaseRecord:
        case = self._with_state(lambda: support.decide_case(case_id, change.resolve))
        if case is None:
            raise _UnknownError(f"no support case {case_id}")
        return CaseRecord(
            account=case.id.split("-")[1], id=case.id, subject=case.subject, status=case.status, created=case.created
        )

    def _with_state(self, action: Any) -> Any:
        call = CallInHand("perdure", "control", "us-east-1")
        calls.set_current(call)
        try:
            with runtime.MOTO:
                return action()
        finally:
            calls.set_current(None)
            if call.changed and call.touched:
                self._state.changed(call.touched)

    def _changed(self, answer: object) -> object:
        self._state.settings_changed()
        return answer


def change_config(changes: dict[str, object]) -> Config:
    """Change the configuration; raises ValidationError, and changes nothing, if a name or value is wrong."""
    changed = Config.model_validate({**runtime.config().model_dump(), **changes})
    runtime.set_config(changed)
    return changed


def apply_file(content: ConfigFile) -> None:
    change_config(content.config)
    for fault in runtime.faults.report():
        if fault.id.startswith("file-"):
            runtime.faults.remove(fault.id)
    for number, fault in enumerate(content.faults, 1):
        runtime.faults.add(fault.model_copy(update={"id": f"file-{fault.id or number}"}))
    if content.clock is not None:
        runtime.clock.change(content.clock)


def _to_json(answer: object) -> bytes:
    if isinstance(answer, BaseModel):
        return answer.model_dump_json().encode()
    if isinstance(answer, list):
        return b"[" + b",".join(_to_json(entry) for entry in answer) + b"]"
    return json.dumps(answer).encode()
