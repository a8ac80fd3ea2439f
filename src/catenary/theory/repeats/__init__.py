"""The birth law over tokens that repeat, with rotary positions, exact and by frequency class."""
