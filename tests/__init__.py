"""Makes this folder the package ``tests``: a wheel that neonize needs brings another of that name,
and without this file Python would take that one."""
