"""Ways into a running kernel; they translate and authenticate, and decide nothing."""
