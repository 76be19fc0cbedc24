"""`antiphon acp`: contexts as sessions of the Agent Client Protocol, for editors that speak it."""
