"""The effects of the area: what each activity is asked, what it answers, and what the world learns from it.

Every effect looks up what it is about to make and adopts it: in the first attempt only where an earlier life may have
made it (`search`), in every later attempt always. Names, tags and e-mail addresses are the intent that is looked up.

One module per matter; AWS's are carried out by the module of the same name in `activities/aws`.
"""
