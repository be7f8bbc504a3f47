"""Who is woken by a change follows from the relations between kinds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from domain.accounts import ACCOUNT
from domain.accounts.resources import Account
from domain.built_in_kinds import CONFIG_MAP, SECRET
from domain.identity import Key, Kind
from domain.relations import AnyObject, Linked, News, On, Relation, Scope, WhileNamed, Whom, version
from domain.resource import KubeModel, ObjectMeta
from engine.kube.api import FIELD_MANAGER
from engine.kube.reflector import Followed
from starters.watch.owned import objects, owned
from starters.watch.projection import Projection, View
from starters.watch.projection_index import Index
from starters.watch.watched_kinds import Watched

SHELF = Kind(name="Shelf", group="example.com", version="v1", plural="shelves", area="")
BOOK = Kind(name="Book", group="example.com", version="v1", plural="books", area="")


class Shelf(KubeModel):
    """A shelf, which may be full."""

    kind_of: ClassVar[Kind] = SHELF
    metadata: ObjectMeta = ObjectMeta()
    rooms: tuple[str, ...] = ()
    full: bool = False
    holds: str = ""


class Book(KubeModel):
    """A book on a shelf."""

    kind_of: ClassVar[Kind] = BOOK
    metadata: ObjectMeta = ObjectMeta()
    shelf: str = ""
    torn: bool = False
    key: str = ""


def shelf_of(book: Book) -> list[tuple[str, str]]:
    return [("n", book.shelf)] if book.shelf else []


def shelf_relation(**fields: Any) -> Relation:
    return Relation(of=Book, to=Shelf, by=shelf_of, **fields)


class World:
    """Books and shelves, and the lifecycles that their changes wake."""

    def __init__(self, *relations: Relation) -> None:
        self.index = Index()
        self._entries = {
            kind.name: Watched(Followed(kind), read=lambda _: View(()), relations=relations) for kind in (BOOK, SHELF)
        }

    def seen(self, kind: Kind, name: str, **fields: Any) -> Projection:
        metadata = {"name": name, "namespace": "n", "uid": name, **fields.pop("metadata", {})}
        return self._entries[kind.name].project("", {"metadata": metadata, **fields})

    def put(self, kind: Kind, name: str, **fields: Any) -> Projection:
        found = self.seen(kind, name, **fields)
        self.index.of(kind.name)[found.name] = found
        return found

    def woken(self, before: Projection | None, after: Projection | None) -> set[str]:
        entry = self._entries[(after or before).key.kind]  # type: ignore[union-attr]
        return {key.name for key in entry.relatives(before, after, self.index)}

    def missing(self, kind: Kind) -> set[str]:
        return {key.name for key in self._entries[kind.name].missing(self.index)}

    def declared(self, known: Projection) -> list[str]:
        return [each.name for each in self._entries[known.key.kind].declared(known)]


def test_relevant_changes_of_a_referent_wake_its_referrers() -> None:
    world = World(shelf_relation(matters=News(lambda shelf: shelf.full)))
    world.put(BOOK, "on it", shelf="s")
    world.put(BOOK, "elsewhere", shelf="other")
    before = world.seen(SHELF, "s")
    assert world.woken(before, world.seen(SHELF, "s", full=True)) == {"on it"}
    assert world.woken(before, world.seen(SHELF, "s", holds="much")) == set()
    assert world.woken(None, before) == world.woken(before, None) == {"on it"}


def test_news_of_a_referrer_wakes_its_referents_old_and_new() -> None:
    world = World(shelf_relation(news=News(lambda book: book.torn)))
    for name in ("s", "t"):
        world.put(SHELF, name)
    before = world.seen(BOOK, "b", shelf="s")
    assert world.woken(before, world.seen(BOOK, "b", shelf="s", torn=True)) == {"s"}
    assert world.woken(before, world.seen(BOOK, "b", shelf="s", key="k")) == set()
    assert world.woken(before, world.seen(BOOK, "b", shelf="t")) == {"s", "t"}
    assert world.woken(before, world.seen(BOOK, "b")) == {"s"}


def test_a_relation_without_news_wakes_no_lifecycle() -> None:
    world = World(shelf_relation())
    world.put(BOOK, "b", shelf="s")
    shelf = world.put(SHELF, "s")
    assert world.woken(shelf, None) == world.woken(world.seen(BOOK, "b", shelf="s"), None) == set()


@pytest.mark.parametrize("on", list(On))
def test_news_may_be_limited_to_coming_changing_or_going(on: On) -> None:
    world = World(shelf_relation(news=News(lambda book: book.torn, on=frozenset({on}))))
    world.put(SHELF, "s")
    whole, torn = world.seen(BOOK, "b", shelf="s"), world.seen(BOOK, "b", shelf="s", torn=True)
    woken = {
        On.COMES: world.woken(None, whole),
        On.CHANGES: world.woken(whole, torn),
        On.GOES: world.woken(torn, None),
    }
    assert {each for each, keys in woken.items() if keys} == {on}


def test_a_set_is_news_by_what_is_added_to_it() -> None:
    world = World(shelf_relation(news=News(lambda book: frozenset(book.key))))
    world.put(SHELF, "s")
    books = {key: world.seen(BOOK, "b", shelf="s", key=key) for key in ("", "x", "xy")}
    assert world.woken(None, books[""]) == world.woken(books["xy"], books["x"]) == set()
    assert world.woken(None, books["x"]) == world.woken(books["x"], books["xy"]) == {"s"}
    assert world.woken(books[""], None) == {"s"}


@pytest.mark.parametrize(("whom", "woken"), [(Whom.DELETING, {"going"}), (Whom.ALL, {"going", "staying"})])
def test_only_lifecycles_for_which_it_is_news_are_woken(whom: Whom, woken: set[str]) -> None:
    world = World(shelf_relation(matters=News(whom=whom)))
    world.put(BOOK, "going", shelf="s", metadata={"deletionTimestamp": "2026-05-01T11:00:00Z"})
    world.put(BOOK, "staying", shelf="s")
    assert world.woken(None, world.seen(SHELF, "s")) == woken


def test_referrers_of_an_unseen_deletion_are_found_if_the_relation_requires_it() -> None:
    for required, woken in ((True, {"c"}), (False, set())):
        world = World(shelf_relation(required=required))
        world.put(SHELF, "s")
        world.put(BOOK, "b", shelf="s")
        world.put(BOOK, "c", shelf="gone")
        assert (world.missing(SHELF), world.missing(BOOK)) == (woken, set())


BY_US = {"managedFields": [{"manager": "perdure", "time": "2026-05-01T11:00:00Z"}]}


def test_an_object_that_a_referent_has_made_is_no_news_to_it_until_it_differs() -> None:
    world = World(shelf_relation(news=News(lambda book: book.torn, as_made=lambda book: not book.torn)))
    world.put(SHELF, "s")
    assert world.woken(None, world.seen(BOOK, "b", shelf="s", metadata=BY_US)) == set()
    assert world.woken(None, world.seen(BOOK, "b", shelf="s")) == {"s"}
    assert world.woken(None, world.seen(BOOK, "b", shelf="s", torn=True, metadata=BY_US)) == {"s"}


def test_a_referent_that_was_linked_first_is_not_woken_by_the_second_link() -> None:
    world = World(shelf_relation(news=News(lambda book: book.torn, linked=Linked.KNOWN)))
    world.put(SHELF, "s")
    free = world.seen(BOOK, "b")
    assert world.woken(free, world.seen(BOOK, "b", shelf="s")) == set()
    assert world.woken(free, world.seen(BOOK, "b", shelf="s", torn=True)) == {"s"}


def test_a_referent_that_we_link_next_is_not_woken_by_the_first_link() -> None:
    back = Relation(of=Shelf, to=Book, by=lambda shelf: [("n", shelf.holds)] if shelf.holds else [])
    world = World(shelf_relation(news=News(linked=Linked.FOLLOWED)), back)
    world.put(SHELF, "s")
    free = world.seen(BOOK, "b")
    assert world.woken(free, world.seen(BOOK, "b", shelf="s", metadata=BY_US)) == set()
    assert world.woken(free, world.seen(BOOK, "b", shelf="s")) == {"s"}, "a person has linked it"
    world.put(SHELF, "s", holds="b")
    assert world.woken(free, world.seen(BOOK, "b", shelf="s", metadata=BY_US)) == {"s"}, "it may wait for just that"


def test_a_wake_is_passed_on_along_another_relation() -> None:
    onto = shelf_relation(news=News(on=frozenset()))
    key = Relation(of=Book, to=Shelf, by=lambda book: [book.key], known_as=lambda shelf: shelf.rooms)
    news: News[Any] = News(onward=(onto,))
    world = World(onto, replace(key, matters=news))
    world.put(SHELF, "s")
    world.put(BOOK, "b", shelf="s", key="k")
    assert world.woken(None, world.seen(SHELF, "t", rooms=["k"])) == {"b", "s"}
    world = World(onto, replace(key, matters=replace(news, whom=Whom.NONE)))
    world.put(SHELF, "s")
    world.put(BOOK, "b", shelf="s", key="k")
    assert world.woken(None, world.seen(SHELF, "t", rooms=["k"])) == {"s"}


def test_a_transitive_relation_follows_any_number_of_links_and_stops_on_a_cycle() -> None:
    books = shelf_relation(matters=News(lambda shelf: shelf.full))
    held = Relation(
        of=Shelf,
        to=Shelf,
        by=lambda shelf: [("n", shelf.holds)] if shelf.holds else [],
        matters=News(lambda shelf: shelf.full, whom=Whom.NONE, onward=(books,)),
        transitive=True,
    )
    world = World(books, held)
    for shelf, holds in (("far", "middle"), ("middle", "near"), ("near", "far"), ("other", "")):
        world.put(SHELF, shelf, holds=holds)
        world.put(BOOK, f"on {shelf}", shelf=shelf)
    before, after = (world.seen(SHELF, "near", holds="far", full=full) for full in (False, True))
    assert world.woken(before, after) == {"on far", "on middle", "on near"}


def test_an_object_that_does_not_count_is_as_if_it_did_not_exist() -> None:
    world = World(shelf_relation(news=News(lambda book: book.key, counts=lambda book: not book.torn)))
    world.put(SHELF, "s")
    whole, torn = world.seen(BOOK, "b", shelf="s"), world.seen(BOOK, "b", shelf="s", torn=True)
    assert world.woken(None, torn) == world.woken(torn, None) == set()
    assert world.woken(torn, world.seen(BOOK, "b", shelf="s", torn=True, key="k")) == set()
    assert world.woken(torn, whole) == world.woken(whole, torn) == {"s"}


def test_of_many_that_share_a_delegate_one_is_woken() -> None:
    world = World(shelf_relation(matters=News(whom=Whom.ONE)))
    for name in "abc":
        world.put(BOOK, name, shelf="s")
    assert len(world.woken(None, world.seen(SHELF, "s"))) == 1
    assert world.woken(None, world.seen(SHELF, "empty")) == set()


def test_an_object_that_its_model_cannot_read_is_as_if_it_did_not_exist() -> None:
    world = World(shelf_relation(news=News(lambda book: book.torn)))
    world.put(SHELF, "s")
    odd, book = world.seen(BOOK, "b", shelf="s", torn="perhaps"), world.seen(BOOK, "b", shelf="s")
    assert world.woken(None, odd) == set()
    assert world.woken(odd, book) == world.woken(book, odd) == {"s"}


def test_a_named_object_is_watched_by_its_name() -> None:
    named = Relation(
        of=Book,
        to=SECRET,
        by=lambda book: [("n", book.key)] if book.key else [],
        matters=News(version),
        watched=WhileNamed(Scope.NAME, "key", "keys"),
    )
    world = World(named)
    assert world.declared(world.seen(BOOK, "b")) == []
    assert world.declared(world.seen(BOOK, "b", key="k")) == ["key n/k"]


def test_values_that_relations_use_are_in_the_fingerprint() -> None:
    world = World(shelf_relation(news=News(lambda book: book.torn)))
    whole = world.seen(BOOK, "b", shelf="s")
    assert whole.fingerprint != world.seen(BOOK, "b", shelf="s", torn=True).fingerprint
    assert whole.fingerprint == world.seen(BOOK, "b", shelf="s", key="k").fingerprint


def test_a_named_object_may_be_watched_by_namespace_or_in_the_whole_cluster() -> None:
    def named(scope: Scope) -> Relation:
        watched = WhileNamed(scope, "keys in", "all keys")
        return Relation(of=Book, to=SECRET, by=lambda book: [("n", each) for each in book.key], watched=watched)

    for scope, names in ((Scope.NAMESPACE, ["keys in n"]), (Scope.CLUSTER, ["all keys"])):
        world = World(named(scope))
        assert world.declared(world.seen(BOOK, "b", key="kl")) == names
        assert world.declared(world.seen(BOOK, "b")) == []


def test_objects_of_any_kind_may_be_named_with_their_kind() -> None:
    def name(named: AnyObject) -> list[tuple[str, ...]]:
        document = named.document
        return [(document["apiVersion"], document["kind"], "n", document["metadata"]["name"])]

    lent = Relation(
        of=Book,
        to=AnyObject,
        by=lambda book: [(f"example.com/{book.shelf}", "Reader", "n", book.key)] if book.shelf else [],
        known_as=name,
        matters=News(on=frozenset({On.GOES})),
        required=True,
        watched=WhileNamed(Scope.KIND, all="of books", field_manager="librarian"),
    )
    entry = Watched(Followed(BOOK), read=lambda _: View(()), relations=(shelf_relation(), lent))
    index = Index()
    for shelf, key in (("v1", "a"), ("v1", "b"), ("v1", ""), ("v2", "a")):
        meta = {"name": f"{shelf} {key}", "namespace": "n", "uid": f"{shelf} {key}"}
        known = entry.project("", {"metadata": meta, "shelf": shelf, "key": key})
        index.of(BOOK.name)[known.name] = known
    readers, others = (entry.declared(index.of(BOOK.name)["n", f"{each} a"])[0] for each in ("v1", "v2"))
    assert (readers.name, readers.kind.api_version) == ("Reader of example.com/v1, of books", "example.com/v1")
    reader = readers.project("", {"metadata": {"name": "a", "namespace": "n", "uid": "r"}})
    index.of(readers.name)[reader.name] = reader
    assert {key.name for key in readers.missing(index)} == {"v1 b"}, "an empty name requires nothing"
    assert {key.name for key in others.missing(index)} == {"v2 a"}
    assert {key.name for key in readers.relatives(reader, None, index)} == {"v1 a"}
    assert (readers.writer, entry.writer) == ("librarian", FIELD_MANAGER)


def test_of_those_concerned_only_some_may_be_woken_by_how_they_compare() -> None:
    older = Relation(
        of=Book,
        to=Book,
        by=shelf_of,
        known_as=shelf_of,
        news=News(on=frozenset({On.COMES}), among=lambda new, other: other < new),
        trait=lambda book: book.key,
    )
    world = World(older)
    world.put(BOOK, "a", shelf="s", key="1")
    world.put(BOOK, "c", shelf="s", key="3")
    assert world.woken(None, world.put(BOOK, "b", shelf="s", key="2")) == {"a"}


def test_our_own_writes_and_new_names_may_be_no_news() -> None:
    world = World(shelf_relation(news=News(lambda book: book.torn, ours=False, linked=Linked.NEVER)))
    world.put(SHELF, "s")
    whole = world.seen(BOOK, "b", shelf="s")
    assert world.woken(whole, world.seen(BOOK, "b", shelf="s", torn=True)) == {"s"}
    assert world.woken(whole, world.seen(BOOK, "b", shelf="s", torn=True, metadata=BY_US)) == set()
    assert world.woken(whole, world.seen(BOOK, "b")) == set()


def test_an_object_may_wake_a_lifecycle_that_has_no_object() -> None:
    shop = Key(kind="Shop", namespace="", name="corner", uid="")
    world = World(Relation(of=Book, to=(), by=lambda book: [shop] if book.key else [], news=News()))
    assert world.woken(None, world.seen(BOOK, "b", key="k")) == {"corner"}
    assert world.woken(None, world.seen(BOOK, "b")) == set()


def test_an_owned_object_and_its_referents_belong_to_the_owners_area() -> None:
    assert owned(CONFIG_MAP, by=ACCOUNT, label="example.com/of").area == ACCOUNT.area
    assert Watched(Followed(SECRET), read=lambda _: View(()), relations=(shelf_relation(),)).area == ""
    named = Relation(of=Account, to=Book, by=lambda account: [account.metadata.name])
    assert Watched(Followed(BOOK), read=lambda _: View(()), relations=(named,)).area == ACCOUNT.area


def test_an_owned_object_wakes_its_owner_by_any_change() -> None:
    config_map = Kind(name="ConfigMap", group="", version="v1", plural="configmaps", area="")
    owning, entry = objects(BOOK), owned(config_map, by=BOOK, label="example.com/of")
    index = Index()
    book = owning.project("", {"metadata": {"name": "b", "namespace": "n", "uid": "u"}})
    index.of(BOOK.name)[book.name] = book

    def made(version: str, kind: str) -> Projection:
        owners = [{"apiVersion": BOOK.api_version, "kind": kind, "name": "b", "uid": "u"}]
        meta = {"name": "c", "namespace": "n", "uid": "c", "resourceVersion": version, "ownerReferences": owners}
        return entry.project("", {"metadata": meta, "data": ["of any shape"]})

    assert entry.relatives(made("1", "Book"), made("2", "Book"), index) == {book.key}
    assert entry.relatives(None, made("1", "Shelf"), index) == set()
    assert (entry.followed.label_selector, entry.kind.lifecycle) == ("example.com/of", False)
