"""A machine's lifecycle, its permissions on the API server, and the user data for its image."""
