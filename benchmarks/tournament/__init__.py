"""`ss.solve`, untuned, against tuned programs from elsewhere on tomography: time to a gap judged from outside."""
