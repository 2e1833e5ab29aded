"""Tree and catalog to a resolved, typed query: what a script means, and every rule of ESL checked."""
