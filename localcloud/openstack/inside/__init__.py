"""On the module path of OpenStack's own environment: holds only `perdure_openstack`, so that nothing else is found."""
