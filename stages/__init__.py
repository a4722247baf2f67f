"""One short script a stage of dvc.yaml, which owns every file name."""
