package shared

import "ductor/cli"

// State is the state of a process. It determines whether sessions may join.
type State string

// The states of a process.
const (
	Starting State = "starting" // sessions wait until it is ready
	Ready    State = "ready"
	Attached State = "attached" // takes no session, and ends with those that resume a turn in it
	Draining State = "draining" // takes no session, and ends with its last session
	// Ending: the process takes no sessions, and ends with its last turn, because child processes of an aborted turn
	// may still run.
	Ending   State = "ending"
	Detached State = "detached" // takes no session, and continues without ductor when its sessions have left
	Dead     State = "dead"     // failed to start, or its output has ended
)

// occupancy counts the sessions and turns of a process. Its state determines whether more may join.
type occupancy struct {
	state    State
	givenUp  bool                   // it was draining or ending before it died
	sessions int                    // sessions that joined, and turns that no request has resumed yet
	running  int                    // turns
	awaited  map[cli.TurnID]awaited // turns that no request has resumed yet
}

// awaited has the results of Server.Await.
type awaited struct {
	kept any
	drop func()
}

// become changes to a state that takes no sessions.
func (o *occupancy) become(s State) {
	if o.state != Dead {
		o.state = s
	}
	o.givenUp = o.givenUp || s == Draining || s == Ending
}
