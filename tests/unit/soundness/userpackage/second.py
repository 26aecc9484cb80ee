rate = 3
