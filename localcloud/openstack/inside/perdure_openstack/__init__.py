"""Extensions of OpenStack's services, which import the services and the standard library only."""
