"""The area's actions: the input and result of each activity, and how its outcome changes the `World`.

An action with a field `search` adopts an object that exists already. The first attempt looks for the object only if
`search` is True; later attempts always do. Actions on AWS are carried out by the modules of the same name in
`activities/aws`.
"""
