"""Parts shared by the search tools: ripgrep, tree walk, globs, ignore files and secret files."""
