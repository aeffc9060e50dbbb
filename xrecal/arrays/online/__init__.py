"""Verified cases -> experts, and weights of them, that go on learning day by day."""
