"""Notifications sent to a real HTTP server, with policies and the Secret on a real API server."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import web
from temporalio.testing import ActivityEnvironment
from waiting import eventually
from webhook import CONFIDENTIAL, Webhook, serving

from activities.instances import webhook_notifications
from activities.instances.cache import InstanceCache
from activities.instances.webhook_notifications import KEPT_IN, NotificationActivities
from domain.identity import Key
from domain.instances import AWS_MACHINE, INTERRUPTION_POLICY
from domain.instances.actions import Done, Notify
from domain.instances.interruption_policy import CauseSort, Reaction
from domain.instances.workflow_ids import InstanceKey
from domain.notices import Notice
from engine.errors import ApiError, Invalid, Throttled, Unavailable
from engine.kube import SECRET, KubeApi
from engine.kube.informer_cache import Store

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

INSTANCE = InstanceKey(account="123456789012", region="us-east-1", instance_id="i-0a1b2c3d4e5f60718")


@pytest.fixture
async def webhook() -> AsyncIterator[Webhook]:
    async with serving() as found:
        yield found


class Lab:
    """A policy with one channel, and the activity that sends."""

    def __init__(self, kube: KubeApi, namespace: str, cache: InstanceCache) -> None:
        self.kube, self.namespace, self.cache = kube, namespace, cache
        self.activities = NotificationActivities(kube, cache, namespace)
        self.notices: list[Notice] = []
        self.policy = f"p-{uuid4().hex[:8]}"
        self.machine = Key(kind=AWS_MACHINE.name, namespace=namespace, name=f"am-{uuid4().hex[:8]}", uid="u-am")

    async def channel(self, **channel: Any) -> None:
        spec = {"notify": [{"name": "chat", **channel}]}
        await self.kube.create(INTERRUPTION_POLICY, {"metadata": {"name": self.policy}, "spec": spec})
        await eventually(lambda: self.cache.policy(self.policy), "the policy is in the cache")

    async def secret(self, **values: str) -> None:
        data = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
        await self.kube.create(SECRET, {"metadata": {"name": KEPT_IN}, "data": data}, self.namespace)

    async def send(self, *, attempt: int = 1, channel: str = "chat") -> None:
        notice = Notify(
            key=INSTANCE.lifecycle,
            policy=self.policy,
            channel=channel,
            cause="spot-1",
            sort=CauseSort.SPOT,
            reaction=Reaction.DRAIN,
            received_at=datetime.now(UTC),
            namespace=self.namespace,
            cluster="c1",
            node="node-0",
            about=(self.machine,),
        )
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, attempt=attempt, started_time=datetime.now(UTC))
        done: Done = await environment.run(self.activities.notify, notice)
        self.notices += done.notices

    def reported(self) -> list[str]:
        about = {self.policy, self.machine.name}
        return [each.message for each in self.notices if each.about and each.about.name in about]


@pytest.fixture
async def lab(kube: KubeApi, namespace: str) -> AsyncIterator[Lab]:
    async with Store(kube) as store:
        found = Lab(kube, namespace, InstanceCache(kube, store))
        yield found
        try:
            await kube.delete(INTERRUPTION_POLICY, "", found.policy)
        except ApiError:
            logging.getLogger(__name__).info("no policy was made")


async def test_a_notification_has_its_format_headers_and_address_from_policy_and_secret(
    lab: Lab, webhook: Webhook
) -> None:
    await lab.secret(address=f"{webhook.url}\n", token="Bearer abc")
    headers = [{"name": "Authorization", "secretKey": "token"}, {"name": "X_Team", "value": "web"}]
    await lab.channel(urlSecretKey="address", format="Slack", headers=headers)
    await lab.send()
    assert "Spot reclaims it" in json.loads(webhook.bodies[0])["text"]
    sent = webhook.headers[0]
    assert (sent["Authorization"], sent["X_Team"], sent["Content-Type"]) == ("Bearer abc", "web", "application/json")


async def test_a_header_of_the_policy_takes_the_place_of_the_usual_one(lab: Lab, webhook: Webhook) -> None:
    headers = [{"name": "content-type", "value": "text/plain"}, {"name": "X-Empty", "value": ""}]
    await lab.channel(url=webhook.url, headers=headers, template="${cause}")
    await lab.send()
    names = [name for name in webhook.headers[0] if name.lower() == "content-type"]
    assert [webhook.headers[0][name] for name in (*names, "X-Empty")] == ["text/plain", ""]


async def test_a_repeated_send_has_the_same_idempotency_key(lab: Lab, webhook: Webhook) -> None:
    await lab.channel(url=webhook.url)
    await lab.send()
    await lab.send(attempt=2)
    keys = {each["Idempotency-Key"] for each in webhook.headers}
    assert (len(webhook.headers), len(keys)) == (2, 1)
    assert json.loads(webhook.bodies[0])["instance"] == INSTANCE.instance_id


async def test_a_template_is_sent_with_the_fields_in_it(lab: Lab, webhook: Webhook) -> None:
    await lab.channel(url=webhook.url, template='{"node": "${node}", "why": "${cause}"}')
    await lab.send()
    assert json.loads(webhook.bodies[0]) == {"node": "node-0", "why": "spot"}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (web.Response(status=500), Unavailable),
        (web.Response(status=408), Unavailable),
        (web.Response(status=429, headers={"Retry-After": "7"}), Throttled),
        (web.Response(status=503, headers={"Retry-After": "7"}), Unavailable),
    ],
    ids=["500", "408", "429", "503"],
)
async def test_a_webhook_that_fails_for_now_is_tried_again_and_then_given_up(
    lab: Lab, webhook: Webhook, answer: web.Response, error: type[ApiError]
) -> None:
    await lab.channel(url=webhook.url)
    webhook.answers = [answer, web.Response(status=answer.status)]
    with pytest.raises(error) as caught:
        await lab.send()
    assert lab.reported() == []
    delay = caught.value.delay
    assert (delay.total_seconds() if delay else None) == (7 if "Retry-After" in answer.headers else None)
    await lab.send(attempt=8)
    assert len(lab.reported()) == 2, "on the policy and on the AWSMachine"
    await lab.send()
    assert len(webhook.bodies) == 3


async def test_a_webhook_that_refuses_is_not_tried_again_and_a_redirect_is_not_followed(
    lab: Lab, webhook: Webhook
) -> None:
    await lab.channel(url=webhook.url)
    webhook.answers = [web.Response(status=403), web.Response(status=302, headers={"Location": "/elsewhere"})]
    await lab.send()
    await lab.send()
    assert len(webhook.bodies) == 2
    assert sorted(message[-3:] for message in lab.reported()) == ["302", "302", "403", "403"]


async def test_a_webhook_that_hangs_or_is_away_is_given_up_without_naming_its_address(
    lab: Lab, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_notifications, "TIMEOUT", 0.3)
    await lab.secret(
        hanging=webhook.url, away=f"http://127.0.0.1:1/{CONFIDENTIAL}", broken=f"ftp://{CONFIDENTIAL}\r\nX"
    )
    webhook.hangs = True
    await lab.channel(urlSecretKey="hanging")
    for key in ("hanging", "away", "broken"):
        patch = {"spec": {"notify": [{"name": "chat", "urlSecretKey": key}]}}
        await lab.kube.patch(INTERRUPTION_POLICY, "", lab.policy, patch)
        await eventually(lambda key=key: _key_of(lab) == key, "the cache shows the change")
        with pytest.raises(Unavailable) as caught:
            await lab.send()
        assert CONFIDENTIAL not in f"{caught.value!r} {caught.value.__cause__!r}"
        await lab.send(attempt=8)
    reported = lab.reported()
    assert len(reported) == 6
    assert not any(CONFIDENTIAL in message or "127.0.0.1" in message for message in reported)


def _key_of(lab: Lab) -> str | None:
    policy = lab.cache.policy(lab.policy)
    return policy.spec.notify[0].url_secret_key if policy else None


async def test_a_missing_secret_and_a_missing_key_are_named(lab: Lab) -> None:
    await lab.channel(urlSecretKey="address")
    with pytest.raises(Unavailable, match=f"Secret {lab.namespace}/{KEPT_IN}.*404"):
        await lab.send()
    await lab.secret(other="x")
    with pytest.raises(Unavailable, match="no readable key address"):
        await lab.send()


async def test_a_proxy_with_a_password_is_read_from_the_secret(lab: Lab, webhook: Webhook) -> None:
    await lab.secret(proxy=f"http://perdure:{CONFIDENTIAL}@127.0.0.1:{webhook.port}\n")
    # No resolver knows the host: only the proxy can receive the request.
    await lab.channel(url="http://chat.invalid/hook", proxySecretKey="proxy")
    await lab.send()
    given = base64.b64encode(f"perdure:{CONFIDENTIAL}".encode()).decode()
    assert (webhook.urls, webhook.headers[0]["Proxy-Authorization"]) == (["http://chat.invalid/hook"], f"Basic {given}")


@pytest.mark.parametrize(
    "proxy",
    [
        pytest.param(f"http://perdure:{CONFIDENTIAL}@127.0.0.1:1", id="away"),
        pytest.param(f"socks5://perdure:{CONFIDENTIAL}@127.0.0.1:1", id="of another kind"),
        pytest.param(f"perdure:{CONFIDENTIAL}@127.0.0.1:1", id="without a scheme"),
    ],
)
async def test_a_proxy_that_cannot_be_used_is_given_up_without_naming_its_address(
    lab: Lab, webhook: Webhook, proxy: str
) -> None:
    await lab.secret(proxy=proxy)
    await lab.channel(url=webhook.url, proxySecretKey="proxy")
    with pytest.raises(Unavailable) as caught:
        await lab.send()
    assert CONFIDENTIAL not in f"{caught.value!r} {caught.value.__cause__!r}"
    await lab.send(attempt=8)
    assert (len(lab.reported()), webhook.bodies) == (2, [])
    assert not any(CONFIDENTIAL in message for message in lab.reported())


async def test_a_missing_key_of_a_proxy_is_named(lab: Lab) -> None:
    await lab.secret(other="x")
    await lab.channel(url="http://chat.invalid/hook", proxySecretKey="proxy")
    with pytest.raises(Unavailable, match="no readable key proxy"):
        await lab.send()


async def test_a_channel_that_was_removed_meanwhile_is_not_told(lab: Lab, webhook: Webhook) -> None:
    await lab.channel(url=webhook.url)
    await lab.send(channel="gone")
    assert webhook.bodies == []


@pytest.mark.parametrize(
    ("channel", "field"),
    [
        ({}, r"spec.notify\[0\]"),
        ({"url": "https://x", "urlSecretKey": "y"}, r"spec.notify\[0\]"),
        ({"url": "file:///etc/passwd"}, r"spec.notify\[0\].url"),
        ({"url": "https://x", "causes": ["rebalance"]}, r"spec.notify\[0\].causes"),
        ({"url": "https://x", "template": "${password}"}, r"spec.notify\[0\].template"),
        ({"url": "https://x", "format": "Slack", "template": "x"}, r"spec.notify\[0\]"),
        ({"url": "https://x", "headers": [{"name": "a b", "value": "c"}]}, r"spec.notify\[0\].headers\[0\].name"),
        ({"url": "https://x", "headers": [{"name": "a"}]}, r"spec.notify\[0\].headers\[0\]"),
        ({"url": "https://x", "proxy": "socks5://y"}, r"spec.notify\[0\].proxy"),
        ({"url": "https://x", "proxy": "http://y", "proxySecretKey": "z"}, "exclude each other"),
    ],
)
async def test_a_channel_that_cannot_be_meant_is_refused_with_the_field(
    lab: Lab, channel: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid, match=field):
        await lab.channel(**channel)
