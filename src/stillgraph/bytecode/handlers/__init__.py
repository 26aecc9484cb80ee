"""What each instruction does: take values from the stack, call an operator, put back what it gives."""
