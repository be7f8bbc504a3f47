"""The area's actions: the input and result of each activity, and how the world changes.

An action with `search` adopts an object that exists already. Its first attempt looks for the object only if `search` is
set, later attempts always. Actions on AWS are carried out by the modules of the same name in `activities/aws`.
"""
