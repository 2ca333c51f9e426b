"""Where jobs come from: webhooks, polling and requests; and the page and metrics of the fleet."""
