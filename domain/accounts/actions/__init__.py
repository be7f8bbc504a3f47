"""The area's actions: the input and result of each activity, and how the world changes.

Actions with `search` adopt an existing object: the first attempt looks for one only if `search` is set, later attempts
always. Modules of the same name in `activities/aws` carry out actions on AWS.
"""
