"""Reports of evaluations: estimators, text, JSON, HTML."""
