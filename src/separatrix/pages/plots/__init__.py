"""How each kind of result is drawn and saved: a module for each, called as its kind."""
