"""The gateway: every agent of a project over HTTP, and a console for the person who answers for them."""
