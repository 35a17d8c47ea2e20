"""Two mechanisms in one."""
