"""Patches of moto's core: the caller's account comes from the authenticated call, and expensive work is skipped.

Without these patches moto searches all accounts for the key and tries two hundred URL patterns at each call, and keeps
every model object for its dashboard.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import moto.core.responses as core_responses
import moto.iam.models as iam_models
import moto.kms.models as kms_models
from moto.core.base_backend import AccountSpecificBackend
from moto.core.common_models import BaseModel
from moto.core.responses import BaseResponse
from moto.core.utils import utcnow
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from localcloud.aws import call, runtime


def install() -> None:
    _replace(BaseModel, "__new__", lambda _original: _untracked)
    _replace(core_responses, "method_names_from_class", cache)
    _replace(iam_models, "get_account_id_from", lambda _original: _account_of_key)
    _replace(iam_models, "mark_account_as_visited", lambda _original: _note_use_of_key)
    _replace(kms_models, "generate_private_key", _only_for_asymmetric)
    _replace(BaseResponse, "get_access_key", lambda _original: _access_key)
    _replace(BaseResponse, "get_current_account", lambda _original: _account)
    _replace(BaseResponse, "get_region_from_url", lambda _original: _region)
    _replace(AccountSpecificBackend, "__getitem__", _touching)
    _replace(DomainDispatcherApplication, "get_backend_for_host", _remembering_hosts)


def _replace(owner: Any, name: str, by: Callable[[Any], Any]) -> None:
    setattr(owner, name, by(getattr(owner, name)))


def _remembering_hosts(find: Any) -> Any:
    dispatcher = DomainDispatcherApplication(create_backend_app)
    found = cache(lambda host: find(dispatcher, host))
    return lambda _self, host: found(host)


def _untracked(cls: type[BaseModel], *_args: object, **_kwargs: object) -> BaseModel:
    return object.__new__(cls)


def _only_for_asymmetric(generate: Any) -> Any:
    return lambda key_spec: None if key_spec.startswith(("SYMMETRIC", "HMAC")) else generate(key_spec)


def _touching(lookup: Any) -> Any:
    def look_up(self: AccountSpecificBackend[Any], region: str) -> Any:
        known = dict.__contains__(self, region)
        backend = lookup(self, region)
        call.touch(self.account_id, "aws" if region == "global" else region)
        if not known:
            call.mark_changed()
        return backend

    return look_up


def _account_of_key(_access_key: str) -> str:
    in_hand = call.current()
    return in_hand.account if in_hand is not None and in_hand.account else runtime.payer_account


def _account(_self: BaseResponse) -> str:
    return _account_of_key("")


def _access_key(_self: BaseResponse) -> str:
    in_hand = call.current()
    return in_hand.access_key_id if in_hand is not None else ""


def _region(self: BaseResponse, _request: Any, _full_url: str) -> str:
    in_hand = call.current()
    return in_hand.region if in_hand is not None else self.default_region


def _note_use_of_key(account_id: str, access_key: str, service: str, region: str) -> None:
    iam = dict.get(iam_models.iam_backends[account_id], "aws")
    key = iam.access_keys.get(access_key) if iam is not None else None
    if key is not None:
        key.last_used = iam_models.AccessKeyLastUsed(timestamp=utcnow(), service=service, region=region)
