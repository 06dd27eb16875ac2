"""The paper's online experiment: `plans` says which runs, `running` makes them, `store` keeps and `reporting` tells."""
