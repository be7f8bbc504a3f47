"""Sends notifications to the webhooks that an InterruptionPolicy names.

If the worker dies between sending and reporting, the notification is sent once more, with the same `Idempotency-Key`.
Reactions never wait for a webhook. Addresses, headers and proxies may hold secrets: no error, log or Event repeats
them.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import ssl
from datetime import timedelta

import httpx
from temporalio import activity

from activities.activity_class import Activities
from activities.instances import metrics
from activities.instances.cache import InstanceCache
from domain.instances.actions import Done, Notify
from domain.instances.interruption_policy import CauseSort
from domain.instances.notices import about, on_each
from domain.instances.resources.interruption_policy import WEB_ADDRESS, Notification, NotificationFormat
from domain.instances.webhook_notifications import json_body, sentence, slack_body, teams_body, templated_body
from domain.instances.workflow_ids import InstanceKey
from domain.notices import warning
from domain.refusal import RETRIED_BY_SERVER
from domain.resource import timestamp
from engine.clock import now
from engine.errors import ApiError, Invalid, Throttled, Unavailable, asked_delay
from engine.kube import SECRET, KubeApi
from engine.kube.secrets import secret_content

KEPT_IN = "perdure-notifications"
TIMEOUT = 10.0
LONGEST_PAUSE = timedelta(minutes=1)
_BODIES = {
    NotificationFormat.JSON: json_body,
    NotificationFormat.SLACK: slack_body,
    NotificationFormat.TEAMS: teams_body,
}


class NotificationActivities(Activities):
    def __init__(self, kube: KubeApi, cache: InstanceCache, namespace: str) -> None:
        self._kube = kube
        self._cache = cache
        self._namespace = namespace
        self._authorities: ssl.SSLContext | None = None

    @activity.defn(name=Notify.activity)
    async def notify(self, notice: Notify) -> Done:
        """A final failure is not raised, but reported by Events."""
        await self._cache.ready()
        policy = self._cache.policy(notice.policy)
        channels = policy.spec.notify if policy else ()
        channel = next((each for each in channels if each.name == notice.channel), None)
        if policy is None or channel is None:
            return Done(at=now())  # the policy or its channel was removed meanwhile
        try:
            await self._send(channel, notice)
        except ApiError as error:
            if error.type in RETRIED_BY_SERVER and activity.info().attempt < notice.most_attempts:
                metrics.NOTIFICATIONS.labels("retried").inc()
                raise
            metrics.NOTIFICATIONS.labels("failed").inc()
            message = f"not sent for {notice.key.name}: {error.message}"
            where = (about(policy), *notice.about)
            return Done(at=now(), notices=on_each(where, warning, "NotificationFailed", message))
        metrics.NOTIFICATIONS.labels("sent").inc()
        return Done(at=now())

    async def _send(self, channel: Notification, notice: Notify) -> None:
        what = f"notification {channel.name} of InterruptionPolicy {notice.policy}"
        named = (channel.url_secret_key, channel.proxy_secret_key, *(each.secret_key for each in channel.headers))
        keys = {key for key in named if key is not None}
        secrets = await self._secrets(what) if keys else {}
        missing = sorted(keys - set(secrets))
        if missing:
            where = f"Secret {self._namespace}/{KEPT_IN}"
            raise Unavailable(f"{what}: {where} has no readable key {', '.join(missing)}", code="SecretKeyMissing")
        url = channel.url or secrets[channel.url_secret_key or ""]
        proxy = secrets[channel.proxy_secret_key] if channel.proxy_secret_key else channel.proxy
        if proxy and not re.match(WEB_ADDRESS, proxy):
            key = f"key {channel.proxy_secret_key} of Secret {self._namespace}/{KEPT_IN}"
            raise Unavailable(f"{what}: {key} holds no address of an HTTP proxy", code="InvalidProxy")
        usual = {
            "Content-Type": "application/json",
            "Idempotency-Key": hashlib.sha256(_identity(notice).encode()).hexdigest(),
        }
        given = {
            each.name: secrets[each.secret_key] if each.secret_key else each.value or "" for each in channel.headers
        }
        replaced = {name.lower() for name in given}
        headers = {name: value for name, value in usual.items() if name.lower() not in replaced} | given
        try:
            if self._authorities is None:  # loading the authorities takes a tenth of a second
                self._authorities = await asyncio.to_thread(ssl.create_default_context)
            async with (
                asyncio.timeout(TIMEOUT),
                httpx.AsyncClient(proxy=proxy, verify=self._authorities, timeout=TIMEOUT) as client,
                client.stream("POST", url, content=_body(channel, notice), headers=headers) as answer,
            ):
                status, pause = answer.status_code, answer.headers.get("Retry-After", "")
        except TimeoutError:
            raise Unavailable(f"{what}: no answer within {TIMEOUT:g} s", code="Timeout") from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            # The error's text may repeat the address or a header.
            raise Unavailable(f"{what}: {type(error).__name__}", code=type(error).__name__) from None
        if status >= 300:
            raise _refusal(f"{what}: the webhook answers {status}", status, pause)

    async def _secrets(self, what: str) -> dict[str, str]:
        try:
            return secret_content(await self._kube.get(SECRET, self._namespace, KEPT_IN))
        except ApiError as error:
            raise Unavailable(f"{what}: {error.message}", code=error.code) from None


def _identity(notice: Notify) -> str:
    """The identity of the notification. It is the same for each attempt, and new for each stop of an instance."""
    which = f"{notice.key.path}/{notice.id}"
    return f"{which}/{timestamp(notice.received_at)}" if notice.sort is CauseSort.STOPPED else which


def _body(channel: Notification, notice: Notify) -> str:
    key = InstanceKey.of(notice.key)
    fields = {
        "event": notice.cause,
        "cause": notice.sort.value,
        "reaction": notice.reaction.value,
        "policy": notice.policy,
        "instance": key.instance_id,
        "account": key.account,
        "region": key.region,
        "namespace": notice.namespace,
        "cluster": notice.cluster,
        "machine": notice.machine,
        "node": notice.node,
        "received": timestamp(notice.received_at),
        "deadline": timestamp(notice.deadline) if notice.deadline else "",
    }
    fields["text"] = sentence(fields)
    if channel.template is not None:
        return templated_body(channel.template, fields)
    return _BODIES[channel.format or NotificationFormat.JSON](fields)


def _refusal(message: str, status: int, pause: str) -> ApiError:
    wait = asked_delay(pause)
    delay = min(wait, LONGEST_PAUSE) if wait else None
    if status == 429:
        return Throttled(message, code=str(status), delay=delay)
    if status == 408 or status >= 500:
        return Unavailable(message, code=str(status), delay=delay)
    return Invalid(message, code=str(status))
