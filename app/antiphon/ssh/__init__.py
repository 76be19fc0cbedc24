"""The SSH host: a process beside a kernel that lets guests in by their keys.

It decides nothing. Whose key it is and what they may do, the kernel says; each session is the
ordinary app in a process of its own (`antiphon.guest`).
"""
