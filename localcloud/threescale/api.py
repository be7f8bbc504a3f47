"""The control API: JSON under `/perdure/` on every address. Its requests are never counted, delayed or disturbed.

docs/threescale-simulator.md lists the paths. An invalid request is answered with 400 and the reason, an unknown path or
object with 404.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Awaitable, Callable

from aiohttp import web
from pydantic import BaseModel, JsonValue, ValidationError

from localcloud.threescale.contract import Config, Fault, Health, TenantWish, TokenWish
from localcloud.threescale.resources import accounts, tenants
from localcloud.threescale.world import World

_STATES = (accounts.APPROVED, tenants.SUSPENDED)


class ControlAPI:
    def __init__(self, world: World, open_new: Callable[[], Awaitable[None]]) -> None:
        self._world = world
        self._open_new = open_new
        self._started = time.time()

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        parts = [part for part in request.match_info["path"].split("/") if part]
        try:
            result = self._steer(request, parts, json.loads(body or b"null"))
        except ValidationError as error:
            return _json(400, {"error": json.loads(error.json(include_url=False, include_context=False))})
        except LookupError as error:
            return _json(404, {"error": str(error.args[0])})
        except (TypeError, ValueError) as error:
            return _json(400, {"error": str(error)})
        if request.method != "GET":
            await self._open_new()
        return _json(200, result)

    def _steer(self, request: web.Request, parts: list[str], body: JsonValue) -> object:
        match request.method, parts:
            case "GET", ["health"]:
                tenant = self._world.default
                return Health(
                    pid=os.getpid(), started=self._started, tenant=tenant.text("name"), url=tenant.text("url")
                )
            case _, ["config"]:
                return self._steer_config(request.method, body)
            case _, ["faults", *rest]:
                return self._steer_faults(request.method, rest, body)
            case "GET", ["ledger"]:
                return self._world.ledger.report(recent="recent" in request.query)
            case "DELETE", ["ledger"]:
                self._world.ledger.reset()
                return None
            case _, ["tenants", *rest]:
                return self._steer_tenants(request.method, rest, body)
            case "DELETE", ["tokens", value]:
                self._world.revoke(value)
                return None
        raise _unknown(request.method, parts)

    def _steer_config(self, method: str, body: JsonValue) -> Config:
        if method == "PUT":
            if not isinstance(body, dict):
                raise ValueError("an object of settings is expected")
            self._world.set_config(Config.model_validate(self._world.config.model_dump() | body))
        elif method == "DELETE":
            self._world.set_config(Config())
        elif method != "GET":
            raise _unknown(method, ["config"])
        return self._world.config

    def _steer_faults(self, method: str, rest: list[str], body: JsonValue) -> object:
        faults = self._world.faults
        match method, rest:
            case "GET", []:
                return faults.report()
            case "POST", []:
                added = faults.add(Fault.model_validate(body))
                self._world.keep_faults()
                return added
            case "DELETE", []:
                faults.clear()
                self._world.keep_faults()
                return None
            case "DELETE", [fault_id]:
                if not faults.remove(fault_id):
                    raise LookupError(f"no fault {fault_id}")
                self._world.keep_faults()
                return None
        raise _unknown(method, ["faults", *rest])

    def _steer_tenants(self, method: str, rest: list[str], body: JsonValue) -> object:
        world = self._world
        match method, rest:
            case "GET", []:
                return [world.record_of(tenant) for tenant in world.tenants]
            case "POST", []:
                # `answer` opens the new tenant's port right after this.
                return world.add_tenant(TenantWish.model_validate(body).name)
            case "GET", [name, "world"]:
                return world.contents(world.tenant(name))
            case "POST", [name, "tokens"]:
                return world.add_token(world.tenant(name), TokenWish.model_validate(body or {}))
            case "PUT", [name, "state"]:
                state = body.get("state") if isinstance(body, dict) else None
                if state not in _STATES:
                    raise ValueError(f"state must be one of {', '.join(_STATES)}")
                world.set_state(world.tenant(name), str(state))
                return None
        raise _unknown(method, ["tenants", *rest])


def _unknown(method: str, parts: list[str]) -> LookupError:
    return LookupError(f"{method} /perdure/{'/'.join(parts)} is not known")


def _json(status: int, result: object) -> web.Response:
    return web.Response(status=status, body=json.dumps(_plain(result)).encode(), content_type="application/json")


def _plain(result: object) -> object:
    if isinstance(result, BaseModel):
        return result.model_dump(mode="json")
    return [_plain(each) for each in result] if isinstance(result, list) else result
