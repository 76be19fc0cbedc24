"""One kernel process: its lock, its address file, its server, its life and its end."""

from antiphon_kernel.daemon.cli import main
