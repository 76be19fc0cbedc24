"""Ways into a running kernel; they translate and authenticate, and decide nothing."""

from antiphon_kernel.server.serving import Server
