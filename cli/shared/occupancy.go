package shared

import "ductor/cli"

// State is the state of a process. It determines whether sessions may join.
type State string

// State values.
const (
	Starting State = "starting" // sessions wait until the process is ready
	Ready    State = "ready"
	Attached State = "attached" // no session may join; ends with the sessions that resume a turn in it
	Draining State = "draining" // no session may join; ends with its last session
	// Ending means that no session may join, and that the process ends with its last turn: child processes of an
	// aborted turn may still run.
	Ending   State = "ending"
	Detached State = "detached" // no session may join; continues without ductor after its last session
	Dead     State = "dead"     // the process failed to start, or its output has ended
)

// occupancy counts the sessions and turns of a process. Its state determines whether more may join.
type occupancy struct {
	state    State
	givenUp  bool                   // the process was draining or ending before it died
	sessions int                    // sessions that joined, and turns that no request has resumed yet
	running  int                    // running turns
	awaited  map[cli.TurnID]awaited // turns that no request has resumed yet
}

// awaited contains the results of Server.Await.
type awaited struct {
	kept any
	drop func()
}

// become changes to a state in which no session may join.
func (o *occupancy) become(s State) {
	if o.state != Dead {
		o.state = s
	}
	o.givenUp = o.givenUp || s == Draining || s == Ending
}
