"""Real Hugging Face networks: loading, anatomy, initialisation, position coding on and off."""
