"""The 3scale simulator: the Account Management and Master APIs, as far as provisioning programs use them.

The simulator follows 3scale's public documentation and what clients observe.
"""
