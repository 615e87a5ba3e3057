def collapse_warning(embedding, settings, schedule): return ''
