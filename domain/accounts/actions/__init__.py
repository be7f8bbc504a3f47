"""The area's effects: the input and result of each activity, and how the world changes.

Every effect searches for its object and adopts it: in the first attempt only with `search`, in later attempts always.
AWS effects are in modules of the same name in `activities/aws`.
"""
