"""The entry on OpenStack's module path; it contains only `perdure_openstack`, to hide our other packages."""
