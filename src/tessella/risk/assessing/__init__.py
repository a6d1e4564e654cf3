"""All attacks that fit, and what the worst of them finds."""
