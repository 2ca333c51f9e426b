"""Parts of `tiller review`: options, execution, report files, fixes and signals."""
