"""On the module path of OpenStack's environment; contains only `perdure_openstack`, to hide our other packages."""
