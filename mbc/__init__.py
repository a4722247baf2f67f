"""Measurements behind "Marginals Before Conditionals" as plain functions: values in, values out."""
