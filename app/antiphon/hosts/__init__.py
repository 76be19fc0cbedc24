"""Hosts of guests: processes beside a kernel that let people in.

They decide nothing: who somebody is and what they may do, the kernel says. Each session is the
ordinary app in a process of its own (`antiphon.guest`).
"""
