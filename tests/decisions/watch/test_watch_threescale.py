"""Who is woken by what in the 3scale area: the watcher's table, event by event."""

from __future__ import annotations

from typing import Any

from domain.built_in_kinds import API_MANAGER
from domain.threescale import (
    ACTIVE_DOC,
    APPLICATION,
    BACKEND,
    CUSTOM_POLICY_DEFINITION,
    DEVELOPER_ACCOUNT,
    DEVELOPER_USER,
    PRODUCT,
    PROXY_CONFIG_PROMOTE,
    TENANT,
    THE_TENANTS,
)
from domain.writes import merge
from engine.kube import SECRET
from engine.kube.json import text
from starters.watch.projection import Projection
from starters.watch.projection_index import Index
from starters.watch.threescale import WATCHED
from starters.watch.watched_kinds import Watched

Json = dict[str, Any]
LASTING = {"type": "InSync", "status": "True"}
SYNCED = {"backendId": 7, "conditions": [{"type": "Synced", "status": "True"}], "observedGeneration": 1}


def obj(kind: str, name: str, spec: Json | None = None, status: Json | None = None, **metadata: Any) -> Json:
    meta = {
        "name": name,
        "namespace": "shop",
        "uid": f"uid-{name}",
        "generation": 1,
        "resourceVersion": "1",
        **metadata,
    }
    return {"kind": kind, "metadata": meta, "spec": spec or {}, "status": status or {}}


def sources_named(known: Projection) -> list[Watched]:
    entry = next(each for each in WATCHED if each.kind.name == known.key.kind)
    return list(entry.declared(known))


NAMED = {
    each.kind.name: each for each in sources_named(WATCHED[0].project("", obj(PRODUCT.name, "any", {"name": "any"})))
}
ENTRIES = {**NAMED, **{entry.name: entry for entry in WATCHED}}


def seen(body: Json) -> Projection:
    return ENTRIES[text(body, "kind")].project("", body)


class World:
    """Objects that the watcher knows."""

    def __init__(self, *bodies: Json) -> None:
        self.index = Index()
        self.sweep_woken = False
        self.bodies = {text(body, "metadata", "name"): body for body in bodies}
        for body in bodies:
            known = seen(body)
            self.index.of(known.key.kind)[known.name] = known

    def woken(self, name: str, change: Json | None) -> set[str]:
        """Who is woken when an object is changed so, or goes."""
        before = seen(self.bodies[name])
        after = seen(merge(self.bodies[name], change)) if change is not None else None  # type: ignore[arg-type]
        return self._woken(before, after)

    def arriving(self, body: Json) -> set[str]:
        return self._woken(None, seen(body))

    def _woken(self, before: Projection | None, after: Projection | None) -> set[str]:
        known = after or before
        assert known is not None
        if after is not None:
            self.index.of(known.key.kind)[known.name] = after
        else:
            del self.index.of(known.key.kind)[known.name]
        woken = ENTRIES[known.key.kind].relatives(before, after, self.index)
        self.sweep_woken = THE_TENANTS in woken
        return {key.name for key in woken - {THE_TENANTS}}


def product(name: str = "goods", **more: Any) -> Json:
    return obj(PRODUCT.name, name, {"name": name, "systemName": name, "backendUsages": {"stock": {}}}, **more)


def backend(name: str = "store", **more: Any) -> Json:
    return obj(BACKEND.name, name, {"name": name, "systemName": "stock"}, **more)


def test_the_arrival_of_a_backend_wakes_the_products_that_name_it() -> None:
    assert World(product(), obj(PRODUCT.name, "other", {"name": "x"})).arriving(backend()) == {"goods"}


def test_that_a_backend_is_synced_wakes_them_and_a_time_in_its_status_does_not() -> None:
    world = World(product(), backend())
    assert world.woken("store", {"status": SYNCED}) == {"goods"}
    world = World(product(), backend(status=SYNCED))
    conditions = [{**SYNCED["conditions"][0], "lastTransitionTime": "2026-11-21T00:00:00Z"}]  # type: ignore[index]
    assert world.woken("store", {"status": {"conditions": conditions}}) == set()


def test_a_backend_on_its_way_out_is_woken_by_the_product_that_lets_go_of_it() -> None:
    going = backend(deletionTimestamp="2026-11-21T00:00:00Z", finalizers=[BACKEND.finalizer])
    assert World(product(), going).woken("goods", {"spec": {"backendUsages": {"stock": None}}}) == {"store"}
    assert World(product(), going).woken("goods", None) == {"store"}
    assert World(product(), backend()).woken("goods", None) == set()


def test_a_deleted_object_wakes_those_of_the_same_name() -> None:
    younger = product("younger")
    younger["spec"]["systemName"] = "goods"
    assert World(product(), younger).woken("goods", None) == {"younger"}
    assert World(product(), younger).woken("goods", {"spec": {"systemName": "others"}}) == {"younger"}


def test_an_object_that_moves_to_another_tenant_wakes_the_ones_it_blocked() -> None:
    refused = {"conditions": [{"type": "Invalid", "status": "True"}]}
    younger, busy = product("younger", status=refused), product("busy")
    for each in (younger, busy):
        each["spec"]["systemName"] = "goods"
    world = World(product(status={"providerAccountHost": "https://a"}), younger, busy)
    assert world.woken("goods", {"status": {"providerAccountHost": "https://b"}}) == {"younger"}
    assert world.woken("goods", {"status": {"productId": 7}}) == set()


def test_an_object_that_comes_into_a_tenant_wakes_its_namesakes_there() -> None:
    """The elder may take what the younger has; neither sees that of the other."""
    there = product("there", status={**SYNCED, "providerAccountHost": "https://b.example.com"})
    elsewhere = product("elsewhere", status={**SYNCED, "providerAccountHost": "https://c.example.com"})
    for each in (there, elsewhere):
        each["spec"]["systemName"] = "goods"
    world = World(product(), there, elsewhere)
    assert world.woken("goods", {"status": {"providerAccountHost": "https://b.example.com:443"}}) == {"there"}


def test_of_those_called_alike_a_new_object_wakes_only_the_younger() -> None:
    """A thousand tenants that are filled alike would have each wake all others."""
    older = product("older", creationTimestamp="2026-11-21T00:00:00Z")
    younger = product("younger", creationTimestamp="2026-11-21T00:00:09Z")
    for each in (older, younger):
        each["spec"]["systemName"] = "goods"
    assert World(older, younger).arriving(product(creationTimestamp="2026-11-21T00:00:05Z")) == {"younger"}


def application(name: str, called: str = "App", **more: Any) -> Json:
    spec = {"accountCR": {"name": "acme"}, "productCR": {"name": "goods"}, "name": called}
    return obj(APPLICATION.name, name, spec, **more)


def test_the_id_of_an_application_wakes_others_with_the_same_id() -> None:
    """Two passes at once do not see what the other one finds in 3scale."""
    world = World(application("first"), application("second"), application("third", "Another"))
    assert world.woken("first", {"status": {"applicationID": 7}}) == {"second"}
    assert world.woken("first", None) == {"second"}


def test_the_id_of_a_user_wakes_those_of_the_same_name_and_account() -> None:
    def user(name: str, username: str = "ann") -> Json:
        spec = {"username": username, "developerAccountRef": {"name": "acme"}, "passwordCredentialsRef": {}}
        return obj(DEVELOPER_USER.name, name, spec)

    world = World(user("first"), user("second"), user("third", "bob"))
    assert world.woken("first", {"status": {"developerUserID": 7}}) == {"second"}


def test_a_tenant_that_goes_wakes_those_of_its_token_that_have_something_left_to_do() -> None:
    going = {"deletionTimestamp": "2026-11-21T00:00:00Z", "finalizers": [TENANT.finalizer]}
    tenant = obj("Tenant", "acme", {"organizationName": "acme", "tenantSecretRef": {"name": "token"}}, finalizers=[])
    left, other = product("left"), product("other")
    for each, secret in ((left, "token"), (other, "another")):
        each["spec"]["providerAccountRef"] = {"name": secret}
    assert World(tenant, left, other).woken("acme", {"metadata": going}) == {"left"}


def test_tenants_are_called_alike_where_they_have_the_same_master() -> None:
    def tenant(name: str, master: str) -> Json:
        return obj("Tenant", name, {"organizationName": "acme", "systemMasterUrl": master})

    world = World(tenant("elder", "https://a"), tenant("younger", "https://b"), tenant("third", "https://a:443/"))
    assert world.woken("elder", {"spec": {"systemMasterUrl": "https://c"}}) == {"third"}


def test_an_account_and_its_users_wake_each_other() -> None:
    account = obj(DEVELOPER_ACCOUNT.name, "acme", {"orgName": "Acme"})
    spec = {"username": "ann", "developerAccountRef": {"name": "acme"}, "passwordCredentialsRef": {"name": "password"}}
    user = obj(DEVELOPER_USER.name, "ann", spec)
    assert World(account).arriving(user) == {"acme"}
    assert World(account, user).woken("acme", {"status": {"accountID": 3}}) == {"ann"}


def test_an_account_that_lets_go_and_stays_in_the_cluster_wakes_its_own() -> None:
    going = {"deletionTimestamp": "2026-11-21T00:00:00Z", "finalizers": ["foregroundDeletion"]}
    held = {**going, "finalizers": [DEVELOPER_ACCOUNT.finalizer, "foregroundDeletion"]}
    account = obj(DEVELOPER_ACCOUNT.name, "acme", {"orgName": "Acme"}, **held)
    application = obj(APPLICATION.name, "app", {"accountCR": {"name": "acme"}, "productCR": {"name": "goods"}})
    assert World(account, application).woken("acme", {"metadata": going}) == {"app"}


def test_a_secret_wakes_its_readers_and_the_account_of_its_admin() -> None:
    account = obj(DEVELOPER_ACCOUNT.name, "acme", {"orgName": "Acme", "providerAccountRef": {"name": "tenant"}})
    spec = {
        "username": "ann",
        "developerAccountRef": {"name": "acme"},
        "passwordCredentialsRef": {"name": "password"},
        "providerAccountRef": {"name": "tenant"},
    }
    world = World(account, obj(DEVELOPER_USER.name, "ann", spec), product())
    assert world.arriving(obj("Secret", "password")) == {"ann", "acme"}
    assert world.arriving(obj("Secret", "threescale-provider-account")) == {"goods"}
    assert world.arriving(obj("Secret", "nobodys")) == set()


def test_a_corrected_token_wakes_unsynced_applications_and_promotions() -> None:
    """They name no tenant themselves: theirs is that of their account and product, which may be in step."""
    done = {"conditions": [{"type": "Ready", "status": "True"}]}
    spec = {"accountCR": {"name": "acme"}, "productCR": {"name": "goods"}}
    in_step = obj(APPLICATION.name, "done", spec, done, finalizers=[APPLICATION.finalizer])
    their_app = obj(APPLICATION.name, "their-app", {**spec, "accountCR": {"name": "others"}})
    named = {"orgName": "Others", "providerAccountRef": {"name": "mine"}}
    world = World(
        obj(DEVELOPER_ACCOUNT.name, "acme", {"orgName": "Acme"}),
        obj(DEVELOPER_ACCOUNT.name, "others", named),
        product(),
        obj(APPLICATION.name, "app", spec),
        in_step,
        their_app,
        obj(PROXY_CONFIG_PROMOTE.name, "live", {"productCRName": "goods"}),
    )
    woken = {"acme", "goods", "app", "live"}
    assert world.arriving(obj("Secret", "threescale-provider-account")) == woken
    assert world.arriving(obj("Secret", "mine")) == {"others", "their-app"}
    assert World(*world.bodies.values()).arriving(obj(API_MANAGER.name, "apimanager")) == woken


def test_an_application_that_goes_wakes_product_and_account_and_theirs_wake_it() -> None:
    application = obj(APPLICATION.name, "app", {"accountCR": {"name": "acme"}, "productCR": {"name": "goods"}})
    world = World(application, product(), obj(DEVELOPER_ACCOUNT.name, "acme", {"orgName": "Acme"}))
    assert world.woken("goods", {"status": {"productId": 4}}) == {"app"}
    assert world.woken("app", None) == {"goods", "acme"}


def test_a_deleting_object_is_woken_by_a_product_that_removed_it_in_3scale() -> None:
    leaving = {"deletionTimestamp": "2026-11-21T00:00:00Z", "finalizers": ["x"]}
    remaining: Json = {"finalizers": [PRODUCT.finalizer]}
    edited = product(status={**SYNCED, "observedGeneration": 0}, **remaining)
    edited["spec"]["backendUsages"] = {}
    policy = obj(CUSTOM_POLICY_DEFINITION.name, "mine", {"name": "mine", "version": "1"}, **leaving)
    elsewhere = backend("elsewhere", **leaving, namespace="other")
    world = World(edited, backend(**leaving), policy, elsewhere, backend("staying"))
    assert world.woken("goods", {"status": {"observedGeneration": 1}}) == {"store", "mine"}

    observed = product(annotations={"perdure.dev/retry": "1"}, status=SYNCED, **remaining)
    world = World(observed, backend("other", **leaving))
    done = {"metadata": {"annotations": {"perdure.dev/retried": "1"}}}
    assert world.woken("goods", done) == {"other"}, "also where a look has mended it"
    assert World(edited, policy).woken("goods", None) == {"mine"}


def test_a_policy_that_could_not_be_changed_is_woken_by_a_product_that_is_in_sync() -> None:
    edited = product(status={**SYNCED, "observedGeneration": 0}, finalizers=[PRODUCT.finalizer])
    spec = {"name": "mine", "version": "1"}
    refused = {"conditions": [{"type": "Invalid", "status": "True"}], "observedGeneration": 1}
    done = {"conditions": [{"type": "Ready", "status": "True"}], "observedGeneration": 1}
    finalizers = [CUSTOM_POLICY_DEFINITION.finalizer]
    policies = (
        obj(CUSTOM_POLICY_DEFINITION.name, "mine", spec, refused, finalizers=finalizers),
        obj(CUSTOM_POLICY_DEFINITION.name, "done", spec, done, finalizers=finalizers),
    )
    assert World(edited, *policies).woken("goods", {"status": {"observedGeneration": 1}}) == {"mine"}
    assert World(edited, *policies).woken("goods", None) == {"mine"}


def test_a_promotion_that_succeeds_wakes_the_waiting_lifecycles_once() -> None:
    failed = {"conditions": [{"type": "Failed", "status": "True"}]}
    done = {"conditions": [{"type": "Ready", "status": "True"}]}
    to_production = {"productCRName": "goods", "production": True}
    promotion = obj(PROXY_CONFIG_PROMOTE.name, "live", to_production)
    goods, other = product(status=failed), product("other")
    world = World(promotion, goods, backend(status=failed), other)
    assert world.woken("live", {"status": failed}) == set()
    assert world.woken("live", {"status": done}) == {"goods", "store"}

    promoted = obj(PROXY_CONFIG_PROMOTE.name, "live", to_production, done)
    again = World(promoted, goods, backend(status=failed))
    assert again.woken("live", {"metadata": {"resourceVersion": "7"}}) == set()
    assert again.woken("live", {"status": {"latestProductionVersion": 3}}) == set()
    assert again.arriving(promoted) == set(), "as every object does that a new watcher lists"
    in_step = backend(status=SYNCED, finalizers=[BACKEND.finalizer])
    assert World(promotion, goods, in_step).woken("live", {"status": done}) == {"goods"}


def test_a_document_is_woken_by_the_product_of_that_system_name() -> None:
    document = obj(ACTIVE_DOC.name, "doc", {"name": "doc", "productSystemName": "goods"})
    named = product("other")
    named["spec"]["systemName"] = "goods"
    assert World(document).arriving(named) == {"doc"}


def test_a_new_object_wakes_the_sweep_and_a_change_does_not() -> None:
    world = World(backend())
    world.arriving(product())
    assert world.sweep_woken
    world.woken("store", {"status": SYNCED})
    assert not world.sweep_woken


def test_secrets_are_watched_where_objects_name_them() -> None:
    refers = product()
    refers["spec"]["policies"] = [
        {
            "name": "cors",
            "version": "1",
            "enabled": True,
            "configurationRef": {"name": "cors", "namespace": "elsewhere"},
        }
    ]
    assert [each.followed.namespace for each in sources_named(seen(refers)) if each.kind == SECRET] == [
        "elsewhere",
        "shop",
    ]
    assert sources_named(seen(refers)) == sources_named(seen(refers))


def test_a_local_3scale_is_watched_for_and_wakes_objects_without_a_secret() -> None:
    named = obj(PRODUCT.name, "named", {"name": "x", "providerAccountRef": {"name": "mine"}})
    elsewhere = obj(PRODUCT.name, "far", {"name": "y"}, namespace="elsewhere")
    assert [API_MANAGER in [each.kind for each in sources_named(seen(one))] for one in (product(), named)] == [
        True,
        False,
    ]
    world = World(product(), backend(), named, elsewhere)
    installed = obj(API_MANAGER.name, "apimanager", {"wildcardDomain": "example.com"})
    assert world.arriving(installed) == {"goods", "store"}
    world.bodies["apimanager"] = installed
    assert world.woken("apimanager", {"spec": {"wildcardDomain": "example.org"}}) == {"goods", "store"}


def test_an_object_is_settled_when_its_spec_is_synced_and_no_retry_is_pending() -> None:
    done = backend(status=SYNCED, finalizers=[BACKEND.finalizer])
    assert seen(done).settled
    for change in (
        {"metadata": {"generation": 2}},
        {"metadata": {"annotations": {"perdure.dev/retry": "x"}}},
        {"metadata": {"annotations": {"perdure.dev/3scale-drift": "x"}}},
        {"metadata": {"finalizers": []}},
        {"metadata": {"deletionTimestamp": "2026-11-21T00:00:00Z"}},
        {"status": {"conditions": [{"type": "Synced", "status": "False"}]}},
        {"status": {"conditions": [*SYNCED["conditions"], LASTING]}},  # type: ignore[misc]
    ):
        assert not seen(merge(done, change)).settled, change  # type: ignore[arg-type]


def test_a_lasting_sync_wakes_no_lifecycle_and_is_shown() -> None:
    world = World(product(), backend(status=SYNCED))
    lasting = {**SYNCED, "conditions": [*SYNCED["conditions"], LASTING]}  # type: ignore[misc]

    assert world.woken("store", {"status": lasting}) == set()
    assert seen(backend(status=SYNCED)).fingerprint == seen(backend(status=lasting)).fingerprint
    assert seen(backend(status={"conditions": [LASTING]})).fact("phase") == "Syncing"


def test_an_object_that_cannot_be_read_is_woken_by_each_change_of_it() -> None:
    odd = obj(PRODUCT.name, "odd", {"name": 3})
    assert seen(odd).fingerprint != seen(merge(odd, {"metadata": {"generation": 2}})).fingerprint  # type: ignore[arg-type]


def test_every_kind_with_a_lifecycle_is_watched() -> None:
    assert {each.name for each in WATCHED} >= {PRODUCT.name, BACKEND.name, "ProxyConfigPromote"}
