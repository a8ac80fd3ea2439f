"""A whole profile of one model: planned, measured unit by unit, resumable, stored and reported."""
