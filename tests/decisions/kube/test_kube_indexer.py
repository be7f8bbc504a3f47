"""Objects are found by the values of declared indexes as they come, change and go."""

from __future__ import annotations

from engine.kube.indexer import Indexer


def by_words() -> Indexer[str]:
    return Indexer({"word": str.split})


def test_an_object_is_found_under_each_value_of_an_index() -> None:
    objects = by_words()
    objects["n", "a"], objects["n", "b"] = "red green", "green"
    assert objects.find("word", "green") == ["red green", "green"]
    assert objects.find("word", "red") == ["red green"]
    assert objects.find("word", "blue") == []


def test_an_object_that_changes_or_goes_is_not_found_by_what_it_was() -> None:
    objects = by_words()
    objects["n", "a"], objects["n", "b"] = "red", "red green"
    objects["n", "a"] = "green"
    assert objects.find("word", "red") == ["red green"]
    del objects["n", "b"]
    assert (objects.find("word", "red"), objects.find("word", "green")) == ([], ["green"])
    assert list(objects.values_of("word")) == ["green"], "values that nothing has are forgotten"
    objects.clear()
    assert objects.find("word", "green") == []


def test_an_index_declared_later_covers_the_objects_that_are_there() -> None:
    objects = by_words()
    objects["n", "a"] = "red"
    assert not objects.has_index("length")
    objects.add_index("length", lambda text: (len(text),))
    objects["n", "b"] = "blue"
    assert (objects.find("length", 3), objects.find("length", 4)) == (["red"], ["blue"])
