"""Rows that stay with the workers of a Dask cluster."""
