"""Black boxes: text in, text out; a callable of yours, or a server that speaks OpenAI's protocol."""
