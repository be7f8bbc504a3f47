"""Resource claims on the real deployment; a package, so that one product serves all its tests."""
