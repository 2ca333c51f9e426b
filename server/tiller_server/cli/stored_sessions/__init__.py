"""Parts of `tiller sessions`: list, transcript, tree, diff and files of stored sessions."""
