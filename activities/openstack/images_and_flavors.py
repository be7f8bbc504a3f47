"""Flavors and images by id, name or search; an id costs no call.

Image names are not unique: the newest active image is used. A search is a part of a name. Exactly one flavor must fit.
"""

from __future__ import annotations

from activities.openstack.session import Api, Project
from domain.loadbalancers.resources import Flavor, Image
from engine.errors import Invalid
from engine.kube.json import JsonObject, text

NO_FLAVOR = "NoSuchFlavor"
NO_IMAGE = "NoSuchImage"
_MOST_NAMED = 5


def flavor_id(project: Project, flavor: Flavor) -> str:
    """The flavor's id; raises Invalid if no flavor is given, or not exactly one fits."""
    if given := flavor.id or flavor.former_id:
        return given
    name, search = _wanted_name("flavor", flavor, NO_FLAVOR)
    flavors = project.pages(Api.NOVA, "flavor", "/flavors", "flavors")
    fitting = [each for each in flavors if _fits(each, name, search)]
    if len(fitting) != 1:
        raise Invalid(f"{_wanted('flavor', name, search)}: {_found_several(fitting)} in {project.name}", code=NO_FLAVOR)
    return text(fitting[0], "id")


def image_id(project: Project, image: Image) -> str:
    """The image's id; raises Invalid if no image is given, or none fits."""
    if given := image.id or image.former_id:
        return given
    name, search = _wanted_name("image", image, NO_IMAGE)
    query = (("status", "active"), *((("name", name),) if name else ()))
    images = project.pages(Api.GLANCE, "image", "/images", "images", query=query)
    fitting = [each for each in images if _fits(each, name, search)]
    if not fitting:
        raise Invalid(f"{_wanted('image', name, search)}: {_found_several(fitting)} in {project.name}", code=NO_IMAGE)
    return text(max(fitting, key=lambda each: (text(each, "created_at"), text(each, "id"))), "id")


def _wanted_name(kind: str, choice: Flavor | Image, code: str) -> tuple[str | None, str | None]:
    name, search = choice.name or choice.former_name, choice.search or choice.former_search
    if not name and not search:
        raise Invalid(f"no {kind} is given: infrastructure.{kind} needs {kind}ID or {kind}Name", code=code)
    return name, search


def _fits(found: JsonObject, name: str | None, search: str | None) -> bool:
    own = text(found, "name")
    return own == name if name else bool(search) and str(search) in own


def _wanted(kind: str, name: str | None, search: str | None) -> str:
    return f"{kind} {name}" if name else f"{kind} with {search} in its name"


def _found_several(fitting: list[JsonObject]) -> str:
    names = sorted(text(each, "name") for each in fitting)
    if not names:
        return "there is none"
    more = ", ..." if len(names) > _MOST_NAMED else ""
    return f"there must be exactly one, but there are {len(names)} ({', '.join(names[:_MOST_NAMED])}{more})"
