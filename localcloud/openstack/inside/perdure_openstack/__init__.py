"""Extensions of OpenStack's services for one computer.

They run in OpenStack's environment, and import the services and the standard library only.
"""
