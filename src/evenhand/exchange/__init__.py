"""What learners and the world hand to each other."""
