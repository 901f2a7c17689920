"""From prompts to responses."""
