"""What moves a birth profile: one config with some fields changed, local sensitivities, and many configs side by side.

Reading order: `changed` edits a config, `variation` predicts every combination, `sensitivity` finds the steepest
knobs, `atlas` does both for the shipped presets.
"""
