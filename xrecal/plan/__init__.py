"""What a fit or forecast will take, told before any work: tasks, memory, time."""
