"""The processes that execute: task queues, clients, health, drain."""
