package orchestrator

// BusyMode is what becomes of a prompt that comes while a turn runs.
type BusyMode string

// The busy modes. Queue is the default, and what the others fall back to.
const (
	BusyQueue     BusyMode = "queue"     // it waits
	BusySteer     BusyMode = "steer"     // it is handed to the turn that runs
	BusyInterrupt BusyMode = "interrupt" // the turn that runs is ended for it
)

// BusyModes lists every mode, the default first.
func BusyModes() []BusyMode { return []BusyMode{BusyQueue, BusySteer, BusyInterrupt} }
