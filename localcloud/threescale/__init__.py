"""The 3scale simulator: the Account Management and Master APIs, as far as provisioning programs use them.

It is written from 3scale's public documentation and clients' observations, without gateway traffic, billing, portal or
statistics. One process serves a master and its tenants, each on its own port.
"""
