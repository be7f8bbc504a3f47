"""A production Temporal: its server, its web UI and their schemas on PostgreSQL, with mutual TLS and encryption."""
