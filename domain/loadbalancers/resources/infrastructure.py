"""What machines are made from: networks, flavor, image, credentials. All three kinds have these fields.

Where the template hash distinguishes an absent field from an empty one, an absent field is None. Aliases with an
underscore are yawol's former names, which are still read; no attribute may have such a name.
"""

from __future__ import annotations

from pydantic import Field

from domain.resource import KubeModel
from domain.schema import AtomicObject, Required


class Network(KubeModel):
    """The network of the virtual address and the machines' ports."""

    floating_net_id: str | None = Field(
        None, alias="floatingNetID", description="The external network that floating IPs come from."
    )
    network_id: Required[str] = Field("", alias="networkID", description="The network of all ports.")
    subnet_id: str | None = Field(
        None, alias="subnetID", description="The subnet of all ports; any subnet of the network if absent."
    )


class AdditionalNetwork(KubeModel):
    """A further network that machines are attached to."""

    network_id: Required[str] = Field("", alias="networkID", description="The network's id.")


class Flavor(KubeModel):
    """The machines' flavor, by id, name or a part of the name."""

    id: str | None = Field(None, alias="flavorID", description="The flavor's id.")
    name: str | None = Field(None, alias="flavorName", description="The flavor's name.")
    search: str | None = Field(None, alias="flavorSearch", description="A part of the flavor's name.")
    former_id: str | None = Field(None, alias="flavor_id", description="Deprecated: use flavorID.")
    former_name: str | None = Field(None, alias="flavor_name", description="Deprecated: use flavorName.")
    former_search: str | None = Field(None, alias="flavor_search", description="Deprecated: use flavorSearch.")


class Image(KubeModel):
    """The machines' image, by id, name or a part of the name."""

    id: str | None = Field(None, alias="imageID", description="The image's id.")
    name: str | None = Field(None, alias="imageName", description="The image's name.")
    search: str | None = Field(None, alias="imageSearch", description="A part of the image's name.")
    former_id: str | None = Field(None, alias="image_id", description="Deprecated: use imageID.")
    former_name: str | None = Field(None, alias="image_name", description="Deprecated: use imageName.")
    former_search: str | None = Field(None, alias="image_search", description="Deprecated: use imageSearch.")


class CredentialsReference(KubeModel):
    """The Secret with the project's credentials, under the key `cloudprovider.conf`."""

    name: str = Field("", description="The Secret's name.")
    namespace: str = Field("", description="The Secret's namespace.")


class Infrastructure(KubeModel):
    """Infrastructure of the machines, and their project."""

    floating_net_id: str | None = Field(
        None, alias="floatingNetID", description="Deprecated: use defaultNetwork.floatingNetID."
    )
    network_id: str = Field("", alias="networkID", description="Deprecated: use defaultNetwork.networkID.")
    default_network: Network = Field(Network(), description="The network of the virtual address and machines' ports.")
    additional_networks: tuple[AdditionalNetwork, ...] | None = Field(
        None, description="Further networks that machines are attached to."
    )
    flavor: Required[Flavor] = Field(Flavor(), description="The machines' size.")
    image: Required[Image] = Field(Image(), description="The machines' image.")
    availability_zone: str = Field("", description="The machines' availability zone; the cloud's default if empty.")
    auth_secret_ref: Required[AtomicObject[CredentialsReference]] = Field(
        CredentialsReference(), description="The Secret with the project's credentials."
    )
    project_id: str | None = Field(
        None, alias="projectID", description="The OpenStack project; the credentials' own project if absent."
    )

    @property
    def network(self) -> str:
        return self.default_network.network_id or self.network_id

    @property
    def floating_net(self) -> str:
        present = self.default_network.floating_net_id
        return (present if present is not None else self.floating_net_id) or ""

    @property
    def subnet(self) -> str:
        return self.default_network.subnet_id or ""
