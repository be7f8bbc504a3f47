"""The lifecycle of an ApplicationAuth: set an application's credentials from a Secret, once.

    waits for application, account, product, Secret ─► with `generateSecret`, generate missing credentials
        ─► write them to 3scale ─► write the application's id into the Secret, and an empty value for each credential
        that is still missing ─► Ready

Random values are stored in the Secret before they are sent, so that a pass after a crash repeats the same write. If
3scale refuses an application key because the application already has it, the key counts as written.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Self

from domain.decision import Decision
from domain.model import Model
from domain.threescale.actions import WriteSecret
from domain.threescale.application_credentials import APPLICATION_ID, APPLICATION_KEY, USER_KEY, keys_of_auth
from domain.threescale.calls import Read, Resource, SecretKey, Sync, Write, unless_refused
from domain.threescale.conditions import INVALID, READY
from domain.threescale.observed import Blocker, ObservedOne, Phase, acts, invalid, is_true, waiting
from domain.threescale.provider_account import known_at
from domain.threescale.refused_calls import TAKEN
from domain.threescale.remote_object import One
from domain.threescale.remote_state import FoundApplication
from domain.threescale.resources import Application, ApplicationAuth, DeveloperAccount, Product


class SecretContent(Model):
    """The keys of a Secret. Of the values, only the application's id is included."""

    name: str
    there: tuple[str, ...] = ()  # the Secret's keys
    filled: tuple[str, ...] = ()  # keys with a value that is not empty
    application_id: str = ""


class ObservedAuth(ObservedOne):
    """`done` contains the key (`Write.slot`) of each write that this pass has completed."""

    item: ClassVar[type[FoundApplication]] = FoundApplication
    wrapper: ClassVar[Resource] = Resource.APPLICATION
    learnt: ClassVar[tuple[str, ...]] = ("found", "done")

    resource: ApplicationAuth
    application: Application | None = None
    account: DeveloperAccount | None = None
    product: Product | None = None
    secret: SecretContent | None = None
    found: One[FoundApplication] = One()
    done: tuple[str, ...] = ()

    def decide(self, now: datetime) -> Decision:
        if self.resource.metadata.deleting:
            return acts(Phase.GONE, "it owns nothing in 3scale")
        if is_true(self.resource.status.conditions, READY):
            return acts(Phase.SYNCED, "done")
        return self.without_account(now) or _decided(self, now)

    def is_it(self, found: FoundApplication) -> bool:
        return False

    def wrote(self, write: Write, body: object) -> Self:
        """Keep the application that was read: only credentials change."""
        return self.beside({"done": (*self.done, write.slot)})


def _decided(observed: ObservedAuth, now: datetime) -> Decision:
    auth = observed.resource
    blocker = _blocker(observed)
    product, secret = observed.product, observed.secret
    if blocker is not None or product is None or secret is None:
        return observed.blocked(blocker or _absent(observed), now)
    wanted = keys_of_auth(product)
    if auth.spec.generate_secret:
        # Clients of the replaced operator also read an application key for products with user keys.
        made_up = tuple(dict.fromkeys((*wanted, APPLICATION_KEY)))
        if missing := tuple(key for key in made_up if key not in secret.filled):
            why = f"generate {', '.join(missing)}"
            return observed.writes_cluster((WriteSecret(generated=missing),), why, now)
    lacking = tuple(key for key in wanted if key not in secret.filled)
    keys = tuple(key for key in (USER_KEY, APPLICATION_KEY) if key in secret.filled)
    if not keys:
        message = f"Secret {secret.name} has no {' and no '.join(lacking)}, and generateSecret is not set"
        return observed.blocked(waiting(message, f"Secret/{auth.metadata.namespace}/{secret.name}"), now)
    return _written(observed, secret, keys, now)


def _written(observed: ObservedAuth, secret: SecretContent, keys: tuple[str, ...], now: datetime) -> Decision:
    auth, found = observed.resource, observed.found
    if found.lost:
        return observed.blocked(_not_there(auth.metadata.namespace, auth.spec.application_cr_name), now)
    whole = _sync(observed, keys)
    taken = {slot for slot, each in observed.refusals.items() if slot.startswith("POST ") and TAKEN in each.message}
    whole = whole.model_copy(update={"writes": unless_refused(whole.writes, taken)})
    decision, refused = observed.attempted(whole, now)
    if decision is not None:
        return decision
    if refused:
        return observed.as_refused(refused, now)
    missing = {key: "" for key in (USER_KEY, APPLICATION_ID, APPLICATION_KEY) if key not in secret.there}
    id_ = found.item.application_id if found.item else ""
    noted = {**missing, **({APPLICATION_ID: id_} if id_ and id_ != secret.application_id else {})}
    if noted:
        return observed.writes_cluster((WriteSecret(values=noted),), "record the application's id", now)
    return observed.fine(now, {}, why="done")


def _sync(observed: ObservedAuth, keys: tuple[str, ...]) -> Sync:
    assert observed.application is not None  # noqa: S101 - nothing is missing
    assert observed.account is not None  # noqa: S101
    assert observed.secret is not None  # noqa: S101
    id_ = observed.application.status.application_id or 0
    path = f"accounts/{observed.account.status.account_id}/applications/{id_}"
    if not observed.found.looked:
        return Sync(reads=(Read(resource=Resource.APPLICATION, path=path, of=id_),))
    namespace, name = observed.resource.metadata.namespace, observed.secret.name
    of = {key: SecretKey(namespace=namespace, name=name, key=key) for key in keys}
    writes = []
    if USER_KEY in of:
        secrets = {"user_key": of[USER_KEY]}
        writes.append(
            Write(resource=Resource.APPLICATION, method="PUT", path=path, id=id_, secrets=secrets, about=USER_KEY)
        )
    if APPLICATION_KEY in of:
        secrets = {"key": of[APPLICATION_KEY]}
        writes.append(
            Write(resource=Resource.KEY, method="POST", path=f"{path}/keys", secrets=secrets, about=APPLICATION_KEY)
        )
    return Sync(writes=unless_refused(writes, observed.done))


def _blocker(observed: ObservedAuth) -> Blocker | None:
    application, namespace = observed.application, observed.resource.metadata.namespace
    if application is None or observed.account is None or observed.product is None or observed.secret is None:
        return _absent(observed)
    waits_for = (f"Application/{namespace}/{application.metadata.name}",)
    if is_true(application.status.conditions, INVALID):
        return invalid(f"Application {application.metadata.name} is invalid", *waits_for)
    status, provider = application.status, observed.provider
    if status.application_id and not known_at(provider.url, status.provider_account_host, status.application_id):
        message = f"Application {application.metadata.name} does not belong to the same provider account"
        return waiting(message, *waits_for)
    if not status.application_id or not observed.account.status.account_id:
        return _not_there(namespace, application.metadata.name)
    return None


def _not_there(namespace: str, application: str) -> Blocker:
    return waiting(f"Application {application} is not in 3scale yet", f"Application/{namespace}/{application}")


def _absent(observed: ObservedAuth) -> Blocker:
    spec, namespace = observed.resource.spec, observed.resource.metadata.namespace
    application = observed.application
    named: list[tuple[str, str, Model | None]] = [("Application", spec.application_cr_name, application)]
    if application is not None:
        named.append(("DeveloperAccount", application.spec.account_cr.name, observed.account))
        named.append(("Product", application.spec.product_cr.name, observed.product))
    named.append(("Secret", spec.auth_secret_ref.name, observed.secret))
    missing = [(kind, name) for kind, name, there in named if there is None]
    return waiting(
        "; ".join(f'{kind} "{name}" not found' for kind, name in missing),
        *tuple(f"{kind}/{namespace}/{name}" for kind, name in missing),
    )
