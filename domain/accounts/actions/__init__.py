"""The area's effects: the input and result of each activity, and how the world changes.

Every effect searches for its object before creation and adopts it: in the first attempt only if an earlier workflow may
have created it (`search`), in later attempts always. AWS effects are in modules of the same name in `activities/aws`.
"""
