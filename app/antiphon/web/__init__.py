"""The web host, which lets guests into the app in a browser by their invitations."""
