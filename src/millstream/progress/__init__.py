"""Progress of streams: what they promise, and what breaks a promise. Pure logic, told what arrives."""
