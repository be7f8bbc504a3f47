"""3scale objects in time: a workflow for each object of `capabilities.3scale.net`."""
