package docker

import "ductor/internal/supervisor"

// Runs answers questions about all that runs in the container, whoever started it, and makes no container for it. One
// that was stopped is started; Status tells before. It is closed with the Launcher.
func (l *Launcher) Runs() *supervisor.Root { return l.root }
