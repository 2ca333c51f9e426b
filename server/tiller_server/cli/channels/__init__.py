"""Parts that the commands of chat platforms (`tiller lark`, `tiller slack`) share."""
