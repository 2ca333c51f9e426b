"""Interactive conversation of `tiller chat`: input loop, slash commands and session switches."""
