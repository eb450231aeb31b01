package shared

import "ductor/cli"

// State is the state of a process. It determines whether new sessions may join the process.
type State string

// State values.
const (
	Starting State = "starting" // sessions wait until the process is ready
	Ready    State = "ready"
	Attached State = "attached" // no session may join; the process ends after the turns that ductor resumes in it
	Draining State = "draining" // no session may join; the process ends after its last session
	// Ending means that no session may join, and that the process ends with its last turn. The reason is that child
	// processes of an aborted turn may still run.
	Ending State = "ending"
	// Detached means that no session may join. After the last session, ductor closes its connection to the process, but
	// does not end the process.
	Detached State = "detached"
	Dead     State = "dead" // the process failed to start, or its output has ended
)

// occupancy counts the sessions and turns of a process.
type occupancy struct {
	state    State
	givenUp  bool                   // ductor made the process accept no more sessions; remains set in the state Dead
	sessions int                    // number of sessions, plus one for each turn in awaited
	running  int                    // number of running turns
	awaited  map[cli.TurnID]awaited // turns that no request has resumed yet
}

// awaited contains the results of Server.Await.
type awaited struct {
	kept any
	drop func()
}

// become sets the state to one in which no session may join. The state Dead does not change any more.
func (o *occupancy) become(s State) {
	if o.state != Dead {
		o.state = s
	}
	o.givenUp = o.givenUp || s == Draining || s == Ending
}
