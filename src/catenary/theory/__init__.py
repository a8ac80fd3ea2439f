"""What theory says about a profile, from an Architecture alone. Nothing here imports torch."""
