"""One table for each area: bad input, and the whole message that it gets."""
