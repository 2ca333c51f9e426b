"""`tiller lark` and `tiller slack`: what the commands of chat platforms share."""
