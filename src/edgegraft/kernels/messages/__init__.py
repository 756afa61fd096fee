"""Messages, beliefs and their schedules."""
