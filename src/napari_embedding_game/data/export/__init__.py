"""What is written: tables, AnnData with the result, figures."""
