"""Write results: tables, AnnData with the result, and figures."""
