"""Raw tables: reading files, inferring what columns are, models of whole tables and their errors."""
