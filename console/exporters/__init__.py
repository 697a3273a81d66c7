"""Machine endpoints on a port of their own: what monitors made for ActiveMQ ask, in the form they ask it."""
