"""What OpenStack's services need on one computer and do not have.

Runs in OpenStack's own environment: imports the services and the standard library, nothing of Perdure.
"""
