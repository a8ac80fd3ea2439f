"""From depth to kinetic time: residual stacks against the closed form, and architectures at birth."""
