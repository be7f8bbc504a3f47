"""The worker process: task queues, clients, health, drain."""
